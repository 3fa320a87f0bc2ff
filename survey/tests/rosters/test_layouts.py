"""Read files of student information systems, and ask what is unclear."""

from __future__ import annotations

import io
from datetime import date
from pathlib import Path
from types import SimpleNamespace

import pytest

from accounts.permissions import Places
from survey.models import Identity
from survey.people.rosters import columns, layouts
from survey.people.rosters.apply import import_roster
from survey.people.rosters.date_parsers import parse_exit_date
from survey.people.rosters.field_parsers import InvalidCell, parse_status
from survey.people.rosters.file_reader import ColumnsUnclear, open_table
from survey.people.rosters.layouts import KnownPlace, RosterLayout, suggest_layout
from survey.people.rosters.presets import all_presets
from survey.people.rosters.scope import RosterScope
from survey.people.rosters.unreadable import RosterUnreadable
from survey.tests.rosters.roster_imports import counts, run_import

FOLDER = Path(__file__).parent / "sample_files" / "systems"
STUDENT_FILES = sorted(
    path for path in FOLDER.iterdir() if path.name != "clever-teachers.csv"
)
EVERYBODY = {
    ("00123", "Maya", "Lopez", "07"),
    ("00124", "Ali", "Diaz", "08"),
    ("00125", "Zoe", "Kim", "KG"),
}
PLACE = KnownPlace("riverside", "Riverside Unified", "lincoln", "Lincoln")
HEADER = "student id,given name,family name,dob"


def people():
    return {
        (
            identity.external_id,
            identity.given_name,
            identity.family_name,
            identity.respondent.grade,
        )
        for identity in Identity.objects.select_related("respondent")
    }


def read(content: str, known: KnownPlace = PLACE, role: str = "student", **options):
    with open_table(
        io.BytesIO(content.encode()), known=known, role=role, **options
    ) as table:
        return table


def questions(content: str, **options):
    with pytest.raises(ColumnsUnclear) as error:
        read(content, **options)
    return error.value.suggestion


@pytest.mark.django_db
@pytest.mark.parametrize("is_coordinator", [True, False], ids=["school", "district"])
@pytest.mark.parametrize("path", STUDENT_FILES, ids=lambda path: path.stem)
def test_a_file_of_each_system_gives_the_same_people(
    path, is_coordinator, administration, lincoln
):
    """The school's and the district's upload of the file as it was exported."""
    lincoln.code = "42"
    lincoln.save()
    district, school = lincoln.district, None
    scope = RosterScope(Places(districts=frozenset((district.pk,))))
    if is_coordinator:
        district, school = None, lincoln
        scope = RosterScope(Places(schools=frozenset((lincoln.pk,))))
    known = KnownPlace.of(district, school)
    with (
        path.open("rb") as file,
        open_table(file, known=known, role=administration.role) as table,
    ):
        report = import_roster(administration=administration, table=table, scope=scope)
    assert table.layout.preset == path.stem
    assert report.imported, report.rejections
    assert people() == EVERYBODY
    assert {row.district for row in Identity.objects.all()} == {lincoln.district}
    if table.columns.fields.get("birth_date"):
        assert str(Identity.objects.get(external_id="00123").birth_date) == "2014-03-04"
    assert not report.districts_created and not report.schools_created


@pytest.mark.django_db
def test_people_who_have_left_are_counted_as_a_group(administration, lincoln):
    lincoln.code = "42"
    lincoln.save()
    content = (FOLDER / "powerschool-students.csv").read_text()
    known = KnownPlace.of(lincoln.district, None)
    report = run_import(administration, content, known=known)
    assert (report.added, report.left, report.later) == (3, 2, 1)
    assert report.left_by_school == {"42": 1, "999999": 1}
    assert report.as_dict()["left"] == 2


@pytest.mark.django_db
def test_a_new_school_is_named_by_the_first_of_several_orgs(administration, lincoln):
    content = (FOLDER / "oneroster-users.csv").read_text()
    report = run_import(
        administration, content, known=KnownPlace.of(lincoln.district, None)
    )
    assert [(entry["code"], entry["name"]) for entry in report.unknown_schools] == [
        ("42", "42")
    ]


@pytest.mark.django_db
def test_rows_of_other_roles_are_left_out_and_counted(administration, lincoln):
    lincoln.code = "42"
    lincoln.save()
    content = (FOLDER / "oneroster-users.csv").read_text()
    report = run_import(
        administration, content, known=KnownPlace.of(lincoln.district, None)
    )
    assert report.other_roles == {"teacher": 1, "parent": 1, "administrator": 1}
    assert report.rejected == 0
    assert people() == EVERYBODY


def test_a_file_of_teachers_is_refused_for_students():
    content = (FOLDER / "clever-teachers.csv").read_text()
    with pytest.raises(RosterUnreadable, match="This is a file of teachers"):
        read(content)
    of_teachers = read(content, KnownPlace("riverside"), "teacher")
    assert of_teachers.layout.preset == "clever-teachers"


@pytest.mark.parametrize(
    "preset", all_presets().values(), ids=lambda preset: preset.name
)
def test_every_preset_names_its_source_and_our_fields(preset):
    assert preset.source and preset.title
    assert preset.fields.keys() <= columns.ALIASES.keys()
    assert "external_id" in preset.fields
    assert set(preset.values) <= set(layouts.VALUE_FIELDS)
    assert set(preset.values.get("status", {}).values()) <= {"active", "left", "later"}


def test_several_id_columns_are_a_question():
    suggestion = questions("sourcedId,Student Number,given name\na1,77,Maya\n")
    assert suggestion.questions == ["external_id"]
    assert suggestion.options["external_id"] == ["Student Number", "sourcedId"]
    assert "external_id" not in suggestion.layout.fields


def test_ranking_the_id_columns_would_read_the_file_without_a_person(monkeypatch):
    """Without the question, another ID than before invites everybody twice."""
    monkeypatch.setattr(layouts, "ids_of_role", lambda headers, role: headers[:1])
    table = read("sourcedId,Student Number,given name\na1,77,Maya\n")
    assert table.columns.heading("external_id") == "Student Number"


def test_a_teachers_id_in_a_row_is_no_students_id():
    table = read("student id,teacher id,given name\n1,t1,Maya\n")
    assert table.columns.heading("external_id") == "student id"


def test_a_layout_decides_between_id_columns():
    layout = RosterLayout(fields={"external_id": "sourcedId"})
    content = b"sourcedId,Student Number\na1,77\n"
    with open_table(io.BytesIO(content), layout, PLACE) as table:
        assert table.columns.heading("external_id") == "sourcedId"


def test_the_place_of_the_upload_answers_for_a_file_without_one():
    assert questions(f"{HEADER}\n1,Maya,Lopez,\n", known=KnownPlace()).questions == [
        "district",
        "school",
    ]
    of_district = KnownPlace("riverside", "Riverside")
    assert questions(f"{HEADER}\n1,Maya,Lopez,\n", known=of_district).questions == [
        "school"
    ]
    assert read(f"{HEADER}\n1,Maya,Lopez,\n").columns.fields.keys() == {
        "external_id", "given_name", "family_name", "birth_date",
    }  # fmt: skip


def test_a_code_and_its_name_stay_together():
    table = read(
        "School,School ID,District Name,District,student id\nLincoln,7,R,1,5\n",
        KnownPlace(),
    )
    headings = {name: table.columns.heading(name) for name in table.columns.fields}
    assert headings == {
        "school": "School ID",
        "school_name": "School",
        "district": "District",
        "district_name": "District Name",
        "external_id": "student id",
    }


def test_a_school_code_that_is_not_the_uploads_is_a_question():
    content = "student id,school id\n1,42\n2,42\n"
    assert questions(content).questions == ["school"]
    assert read(content.replace("42", "lincoln"))
    assert read(content + "3,43\n")  # The rows of other schools are rejected.
    assert read(content, known=KnownPlace("riverside"))


@pytest.mark.parametrize(
    ("content", "field", "options"),
    [
        (
            "student id,Status,Enrollment Status\n1,Active,Withdrawn\n2,Active,Active",
            "status",
            ["Status", "Enrollment Status"],
        ),
        # The later rows of one column have left, those of the other are blank.
        (
            "student id,Exit Date,Withdrawal Date\n1,,\n2,,2020-01-31",
            "exit_date",
            ["Exit Date", "Withdrawal Date"],
        ),
        (
            "student id,First Name,Student Email,E-mail\n1,Ann,a@x.org,b@x.org",
            "email",
            ["E-mail", "Student Email"],
        ),
        (
            "First Name,student id,First Name\nPat,1,Kit",
            "given_name",
            ["First Name", "First Name (2)"],
        ),
        (
            "student id,Name (Preferred),Name (Legal)\n1,Ann Lee,Anne Lee",
            "name",
            ["Name (Preferred)", "Name (Legal)"],
        ),
        # Also in a file of a known system, and in a template.
        (
            "District,School,Student ID,Grade,Student ID\nriverside,lincoln,1,7,2",
            "external_id",
            ["Student ID", "Student ID (2)"],
        ),
        (
            "District,School,Student ID,Status,Enrollment Status\n"
            "riverside,lincoln,1,Active,Withdrawn",
            "status",
            ["Status", "Enrollment Status"],
        ),
        (
            "Student_Number,SchoolID,Enroll_Status,Student_Number\n1,lincoln,0,2",
            "external_id",
            ["Student_Number", "Student_Number (2)"],
        ),
        (
            "student id,Birth Date,DOB\n1,2013-01-31,2014-01-31",
            "birth_date",
            ["Birth Date", "DOB"],
        ),
        (
            "student id,Grade,Grade Level\n1,A,7\n2,B,8",
            "grade",
            ["Grade", "Grade Level"],
        ),
    ],
)
def test_columns_that_contradict_each_other_are_a_question(content, field, options):
    suggestion = questions(content + "\n")
    assert field in suggestion.questions
    assert suggestion.options[field] == options


@pytest.mark.parametrize(
    "content",
    [
        "student id,Status,Enrollment Status\n1,Active,A\n2,W,Withdrawn\n",
        "student id,Active,Inactive\n1,Y,N\n2,N,Y\n",
        "student id,grade,grade\n1,7,07\n",
        "student id,E-mail,Parent E-mail\n1,a@x.org,b@x.org\n",
        "Student_Number,SchoolID,Enroll_Status,Status\n1,lincoln,0,A\n",
    ],
)
def test_columns_that_mean_the_same_are_no_question(content):
    assert read(content)


@pytest.mark.django_db
def test_the_first_of_two_columns_would_be_somebody_else(
    administration, lincoln, monkeypatch
):
    monkeypatch.setattr(layouts, "_contradicting_columns", lambda *args: {})
    run_import(
        administration,
        "First Name,Student ID,First Name",
        "Guardian,1,Child",
        known=KnownPlace.of(None, lincoln),
    )
    assert Identity.objects.get().given_name == "Guardian"


def test_a_google_export_of_accounts_asks_what_suspended_means():
    suggestion = questions(
        "First Name [Required],Last Name [Required],Email Address [Required],"
        "Employee ID,Status [READ ONLY]\n"
        "Ann,Lee,ann@x.org,1,Active\nBob,Ray,bob@x.org,2,Suspended\n"
    )
    assert suggestion.questions == ["values:status"]
    assert suggestion.options["values:status"] == ["Suspended"]
    assert suggestion.layout.fields["given_name"] == "First Name [Required]"


def test_users_of_school_data_sync_are_read_for_one_school():
    table = read(
        "sourcedId,username,givenName,familyName,activeDirectoryMatchId,email\n"
        "1,mlopez,Maya,Lopez,mlopez@x.org,maya@x.org\n"
    )
    assert table.layout.preset == "sds-users"
    assert table.columns.heading("external_id") == "sourcedId"


def test_teachers_of_school_data_sync_are_no_students():
    content = "SIS ID,School SIS ID,First Name,Teacher Number\n1,lincoln,Luis,9\n"
    assert read(content, role="teacher").layout.preset == "sds-teachers"
    with pytest.raises(RosterUnreadable, match="This is a file of"):
        read(content)


def test_dates_that_could_be_read_in_two_ways_are_a_question():
    content = f"{HEADER}\n1,Maya,Lopez,3/4/2014\n"
    assert questions(content).questions == ["birth_date"]
    assert read(f"{content}2,Ali,Diaz,25/12/2014\n")


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("day_first", "born"), [(True, "2014-04-03"), (False, "2014-03-04")]
)
def test_an_answer_about_dates_wins(administration, lincoln, day_first, born):
    fields = {"external_id": "student id", "birth_date": "dob"}
    report = run_import(
        administration,
        f"{HEADER}\n1,Maya,Lopez,3/4/2014\n2,Ali,Diaz,12/25/2014",
        layout=RosterLayout(fields=fields, day_first=day_first),
        known=KnownPlace.of(None, lincoln),
        partial=True,
    )
    assert counts(report) == ((1, 0, 0, 1) if day_first else (2, 0, 0, 0))
    assert str(Identity.objects.get(external_id="1").birth_date) == born


@pytest.mark.django_db
@pytest.mark.parametrize(("certain", "left"), [("15/06/2020", 1), ("06/15/2020", 2)])
def test_exit_dates_that_are_certain_decide_for_the_others(
    administration, lincoln, certain, left, monkeypatch
):
    """The other one is in January or in December."""
    today = SimpleNamespace(localdate=lambda: date(2026, 11, 28))
    monkeypatch.setattr("survey.people.rosters.comparison.timezone", today)
    report = run_import(
        administration,
        "student id,exit date",
        *(f"1,{certain}", "2,01/12/2026", "3,"),
        known=KnownPlace.of(None, lincoln),
    )
    assert (report.rejected, report.left) == (0, left)


def test_exit_dates_of_both_orders_decide_nothing():
    content = "student id,exit date\n1,15/06/2020\n2,06/15/2020\n"
    assert read(content).layout.day_first is None


def test_a_column_without_a_header_is_no_status():
    assert read("student id,,first name,\n1,zz,Maya,yy\n")


def test_a_repeated_header_and_dashes_are_no_values_to_explain():
    header = "student id,first name,grade,status"
    rows = f"{header}\n---,----,---,---\n1,Maya,7,active\n{header}\n2,Ali,8,left\n"
    assert read(rows)


def test_an_unknown_status_is_a_question():
    suggestion = questions("student id,status\n1,active\n2,on leave\n")
    assert suggestion.questions == ["values:status"]
    assert suggestion.options["values:status"] == ["on leave"]


@pytest.mark.django_db
def test_an_unknown_status_deep_in_a_file_is_rejected(administration, lincoln):
    known = KnownPlace.of(None, lincoln)
    rows = [f"{number},active" for number in range(600)]
    report = run_import(
        administration, "student id,status", *rows, "x,on leave", known=known
    )
    assert (report.imported, report.rejected) == (False, 1)
    assert "unknown status" in report.rejections[0].reason


def test_unknown_grades_are_a_question_if_most_are_unknown():
    rows = "".join(f"{number},grade group {number}\n" for number in range(9))
    assert questions(f"student id,grade\n{rows}").questions == ["values:grade"]


def test_unknown_headers_are_suggested_by_what_the_columns_hold():
    suggestion = questions(
        "Kennung,Vorname,Postfach,Geburt,Parent Box\n"
        "S-1,Maya,maya@x.org,2014-03-04,a@x.org\nS-2,Ali,ali@x.org,2013-12-31,b@x.org\n"
    )
    assert suggestion.questions == ["external_id"]
    assert suggestion.options["external_id"] == ["Kennung"]
    assert suggestion.layout.fields == {
        "external_id": "Kennung",
        "email": "Postfach",
        "birth_date": "Geburt",
    }
    assert suggestion.samples["Vorname"] == ["Maya", "Ali"]


def test_what_a_column_looks_like_never_decides_alone():
    assert "email" not in read("student id,Postfach\n1,maya@x.org\n").columns.fields


def test_a_layout_is_stored_and_read_again():
    layout = RosterLayout("x", {"external_id": "ID"}, {"grade": {"a": "01"}}, True)
    assert RosterLayout.from_dict(layout.as_dict()) == layout
    assert RosterLayout.from_dict({"fields": 3, "day_first": "no"}) == RosterLayout()


@pytest.mark.django_db
def test_a_layout_translates_values(administration, lincoln):
    layout = RosterLayout(
        fields={"external_id": "id", "grade": "grade", "status": "here"},
        values={"grade": {"lower group": "02"}, "status": {"nein": "left"}},
    )
    report = run_import(
        administration,
        "id,grade,here",
        "1,Lower  Group,active",
        "2,3,nein",
        layout=layout,
        known=KnownPlace.of(None, lincoln),
    )
    assert report.imported
    assert {(row[0], row[3]) for row in people()} == {("1", "02")}


@pytest.mark.parametrize(
    ("cell", "status"),
    [("", "active"), ("A", "active"), ("tobedeleted", "left"), ("INACTIVE", "left"),
     ("To be deleted", "left"), ("Withdrawn", "left"), ("Pre-registered", "later"),
     ("Active - Enrolled", "active"), ("No Show", "left"), ("Dropped Out", "left"),
     ("Exited", "left"), ("Not enrolled", "left"), ("Future Student", "later"),
     ("Graduate", "left"), ("WD", "left"), ("Expelled", "left")],
)  # fmt: skip
def test_words_for_a_status(cell, status):
    assert parse_status(cell) == status


@pytest.mark.parametrize(
    "cell", ["Suspended", "on leave", "Transfer", "Pending", "Completed", "2", "Yes"]
)
def test_a_status_that_could_mean_either_is_never_taken_for_active(cell):
    with pytest.raises(InvalidCell, match="unknown status"):
        parse_status(cell)


def test_the_header_says_what_yes_means():
    for header, values in (
        ("active", ("Y", "N")),
        ("Inactive", ("N", "Y")),
        ("Currently Enrolled?", ("Yes", "No")),
    ):
        suggestion = suggest_layout(
            ["student id", header], [["1", "Y"]], known=PLACE, role="student"
        )
        assert not suggestion.questions
        here, gone = values
        assert suggestion.layout.values["status"][here.casefold()] == "active"
        assert suggestion.layout.values["status"][gone.casefold()] == "left"


def test_an_exit_date_in_two_digits_is_not_a_hundred_years_ago():
    today = date(2026, 11, 22)
    assert not parse_exit_date("06/15/27", today, day_first=False)
    assert parse_exit_date("06/15/26", today, day_first=False)
    assert not parse_exit_date("0/0/0", today, day_first=None)
    with pytest.raises(InvalidCell, match="two dates"):
        parse_exit_date("12/11/2026", today, day_first=None)
    assert parse_exit_date("3/4/2026", today, day_first=None)
