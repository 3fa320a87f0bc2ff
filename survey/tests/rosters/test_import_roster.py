"""The same sentences hold on SQLite and on PostgreSQL."""

from __future__ import annotations

import csv
import io
import json
import stat
import threading

import pytest
from django.core.management import CommandError, call_command
from django.db import OperationalError, connection, transaction
from django.test.utils import CaptureQueriesContext

from accounts.csv_injection import escape_formula, unescape_formula
from accounts.models import AuditEntry, District, School
from survey import access_codes
from survey.access_codes import CodeKeyMissing, code_of, digest_for
from survey.models import Administration, Identity, Respondent, Response
from survey.rosters import apply, diff, people
from survey.rosters.apply import import_roster
from survey.rosters.columns import columns_of
from survey.rosters.file_reader import RosterUnreadable, open_table
from survey.rosters.report import MOST_REJECTIONS_KEPT, write_rejected
from survey.rosters.staging import TABLES, Staging
from survey.tests.conftest import enrol

HEADER = (
    "district,school,role,grade,student ID,given name,family name,e-mail,birth date,"
    "language,lunch"
)
MAYA = "Riverside,Lincoln,student,7,00123,Maya,Lopez,maya@x.org,2014-03-04,Spanish,free"
ALI = "Riverside,Lincoln,student,8,00124,Ali,Diaz,,2013-12-31,,"
NOOR = "Lakeshore,Roosevelt,Students,8th,00123,Noor,Haddad,,5/26/2013,en,paid"


def brought_in(administration, *lines, **options):
    file = io.BytesIO("\n".join(lines).encode())
    with open_table(file) as table:
        return import_roster(administration=administration, table=table, **options)


def counts(report):
    return report.added, report.changed, report.unchanged, report.rejected


def everything():
    """All that an import could have written."""
    return (
        list(Respondent.objects.order_by("pk").values()),
        list(Identity.objects.order_by("pk").values()),
        list(District.objects.order_by("pk").values()),
        list(School.objects.order_by("pk").values()),
    )


def test_a_roster_comes_in(administration, lincoln):
    report = brought_in(administration, HEADER, MAYA, ALI, NOOR)

    assert report.imported
    assert counts(report) == (3, 0, 0, 0)
    maya = Identity.objects.select_related("respondent").get(given_name="Maya")
    assert (maya.external_id, maya.family_name) == ("00123", "Lopez")
    assert (maya.email, maya.birth_date.isoformat()) == ("maya@x.org", "2014-03-04")
    respondent = maya.respondent
    assert respondent.school == lincoln
    assert (respondent.grade, respondent.language) == ("07", "es")
    assert respondent.attributes == {"lunch": "free"}
    assert (respondent.issue, respondent.code_key_version) == (1, 2)
    assert bytes(respondent.code_digest) == digest_for(code_of(respondent), 2)
    noor = Identity.objects.select_related("district").get(given_name="Noor")
    assert (noor.district.code, noor.district.name) == ("lakeshore", "Lakeshore")
    assert report.schools_created == ["roosevelt"]


def test_a_district_by_its_code_and_by_its_name_is_one(administration):
    harbor = District.objects.create(code="d7", name="Harbor")
    School.objects.create(code="sea", name="Sea", district=harbor)
    header = HEADER.replace("district,", "district name,")
    rows = [MAYA.replace("Riverside,Lincoln", f"{one},sea") for one in ("d7", "Harbor")]

    report = brought_in(administration, header, *rows, partial=True)
    assert counts(report) == (1, 0, 0, 1)
    [refused] = report.rejections
    assert (refused.row, refused.reason) == (
        3,
        "is the same as in row 2, in the same district",
    )
    # And who is there already is not two either.
    report = brought_in(administration, header, *reversed(rows), partial=True)
    assert counts(report) == (0, 0, 1, 1)


def test_an_imported_person_logs_in(administration, browser):
    brought_in(administration, HEADER, MAYA)
    browser.log_in(Respondent.objects.get())
    assert browser.shell()["language"] == "es"


def test_the_same_roster_again_changes_nothing(administration):
    brought_in(administration, HEADER, MAYA, ALI, NOOR)
    before = everything()

    report = brought_in(administration, HEADER, MAYA, ALI, NOOR)

    assert counts(report) == (0, 0, 3, 0)
    assert everything() == before


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Lincoln", "Jefferson"),
        (",7,", ",8,"),
        ("Maya", "Maia"),
        ("Lopez", ""),
        ("maya@x.org", "maya@y.org"),
        ("2014-03-04", "2014-03-05"),
        ("2014-03-04", ""),
        ("Spanish", "English"),
        ("free", "paid"),
        ("free", ""),
    ],
)
def test_whoever_changed_keeps_respondent_code_and_answers(administration, old, new):
    brought_in(administration, HEADER, MAYA, ALI)
    before = Respondent.objects.get(identity__external_id="00123")
    answer = Response.objects.create(
        administration_id=administration.pk,
        respondent_id=before.pk,
        item_id=1,
        state="a",
        value="3",
        revision=1,
        saved_at=administration.opens_at,
    )

    changed = MAYA.replace(old, new)
    report = brought_in(administration, HEADER, changed, ALI)

    assert counts(report) == (0, 1, 1, 0)
    after = Respondent.objects.get(identity__external_id="00123")
    assert (after.pk, after.issue) == (before.pk, before.issue)
    assert bytes(after.code_digest) == bytes(before.code_digest)
    assert Response.objects.get().pk == answer.pk
    assert counts(brought_in(administration, HEADER, changed, ALI)) == (0, 0, 2, 0)


def test_a_column_that_is_not_in_the_file_stays_as_it_was(administration):
    brought_in(administration, HEADER, MAYA)
    before = everything()

    report = brought_in(
        administration, "school,student ID,district", "Lincoln,00123,Riverside"
    )

    assert counts(report) == (0, 0, 1, 0)
    assert everything() == before


def test_nobody_is_withdrawn_for_being_absent(administration):
    brought_in(administration, HEADER, MAYA, ALI)
    report = brought_in(administration, HEADER, ALI)
    assert counts(report) == (0, 0, 1, 0)
    assert Respondent.objects.filter(withdrawn_at=None).count() == 2


def test_the_same_person_in_two_administrations_has_two_codes(administration):
    other = Administration.objects.create(
        name="again",
        published=administration.published,
        role="student",
        opens_at=administration.opens_at,
        closes_at=administration.closes_at,
    )
    brought_in(administration, HEADER, MAYA)
    assert counts(brought_in(other, HEADER, MAYA)) == (1, 0, 0, 0)
    assert len({code_of(one) for one in Respondent.objects.all()}) == 2


def test_respondents_who_are_there_keep_their_codes(administration, maya):
    before = bytes(maya.code_digest)
    brought_in(administration, HEADER, MAYA)
    maya.refresh_from_db()
    assert bytes(maya.code_digest) == before
    assert Respondent.objects.count() == 2


# Rejections ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "new", "column", "reason"),
    [
        ("00123", "", "student ID", "is missing"),
        ("00123", "1.2E+10", "student ID", "was shortened by Excel"),
        ("Riverside", "", "district", "is missing"),
        ("Lincoln", "", "school", "is missing"),
        ("Lincoln", "L" * 65, "school", "is longer than 64 characters"),
        ("student", "Staff", "role", "this administration is for students"),
        ("student", "janitor", "role", "is none of student, teacher, parent"),
        (",7,", ",77,", "grade", "is no grade"),
        ("maya@x.org", "maya at x", "e-mail", "is not an e-mail address"),
        ("2014-03-04", "2014-13-04", "birth date", "is not a date"),
        ("2014-03-04", "1814-03-04", "birth date", "aged 2 to 110"),
        ("Maya", "Ma\x07ya", "given name", "holds a control character"),
        ("Lopez", "L" * 201, "family name", "is longer than 200 characters"),
        ("free", "f" * 201, "lunch", "is longer than 200 characters"),
        ("Lopez", "Lopez, Jr", "", "more cells than the header"),
    ],
)
def test_a_bad_cell_rejects_its_row_and_names_it(
    administration, old, new, column, reason
):
    before = everything()
    report = brought_in(administration, HEADER, ALI, MAYA.replace(old, new))

    assert not report.imported
    assert counts(report) == (0, 0, 0, 1)
    [rejection] = report.rejections
    assert (rejection.row, rejection.column) == (3, column)
    assert reason in rejection.reason
    assert everything() == before


LONG = [f"program {n}" for n in range(25)]
WIDE = ",".join([HEADER, *LONG])


def wide(size):
    return ",".join([MAYA, *["x" * size] * len(LONG)])


def test_a_row_of_very_long_attributes_is_rejected(administration):
    report = brought_in(administration, WIDE, f"{ALI}{',' * len(LONG)}", wide(200))
    assert not report.imported
    [rejection] = report.rejections
    assert (rejection.row, rejection.column) == (3, "")
    assert "more than 4,000 characters" in rejection.reason
    assert counts(brought_in(administration, WIDE, wide(100))) == (1, 0, 0, 0)


def test_without_that_bound_a_batch_holds_them_all(administration, monkeypatch):
    monkeypatch.setattr(people, "LONGEST_ATTRIBUTES", 10**9)
    assert brought_in(administration, WIDE, wide(200)).imported
    assert len(json.dumps(Respondent.objects.get().attributes)) > 4_000


def test_all_that_is_wrong_is_said_at_once(administration):
    broken = MAYA.replace(",7,", ",77,").replace("maya@x.org", "nowhere")
    report = brought_in(administration, HEADER, broken, ALI.replace("00124", ""))
    assert [(one.row, one.column) for one in report.rejections] == [
        (2, "grade"),
        (2, "e-mail"),
        (3, "student ID"),
    ]
    assert report.rejected == 2


def test_the_rest_is_imported_when_asked_for(administration):
    report = brought_in(
        administration, HEADER, ALI, MAYA.replace(",7,", ",77,"), NOOR, partial=True
    )
    assert report.imported
    assert counts(report) == (2, 0, 0, 1)
    names = Identity.objects.values_list("given_name", flat=True)
    assert set(names) == {"Ali", "Noor"}


def test_the_second_row_of_a_person_is_rejected(administration):
    report = brought_in(
        administration,
        HEADER,
        MAYA,
        NOOR,
        MAYA.replace("Lincoln", "Adams"),
        partial=True,
    )
    assert counts(report) == (2, 0, 0, 1)
    [rejection] = report.rejections
    assert rejection == (
        4, "student ID", "is the same as in row 2, in the same district", "00123",
    )  # fmt: skip
    assert not School.objects.filter(code="adams").exists()


def test_zeros_that_excel_dropped_double_nobody(administration):
    brought_in(administration, HEADER, MAYA, ALI)
    report = brought_in(administration, HEADER, MAYA.replace("00123", "123"), ALI)
    assert not report.imported
    [rejection] = report.rejections
    assert (rejection.row, rejection.text) == (2, "123")
    assert "is 00123 but for the zeros" in rejection.reason
    assert Respondent.objects.count() == 2


def test_dropped_zeros_would_have_doubled_everybody(administration, monkeypatch):
    monkeypatch.setattr(diff, "_reject_lost_zeros", lambda *_: None)
    brought_in(administration, HEADER, MAYA, ALI)
    brought_in(
        administration,
        HEADER,
        MAYA.replace("00123", "123"),
        ALI.replace("00124", "124"),
    )
    assert Respondent.objects.count() == 4


def test_ids_that_differ_in_zeros_within_a_file_are_two_people(administration):
    report = brought_in(administration, HEADER, MAYA, ALI.replace("00124", "123"))
    assert counts(report) == (2, 0, 0, 0)
    report = brought_in(administration, HEADER, MAYA, ALI.replace("00124", "123"))
    assert counts(report) == (0, 0, 2, 0)


def test_refused_after_the_database_was_asked_nothing_is_left(administration):
    brought_in(administration, HEADER, MAYA)
    before = everything()
    new_school = NOOR.replace("Roosevelt", "Brand new")
    report = brought_in(
        administration, HEADER, MAYA.replace("00123", "123"), new_school
    )
    assert not report.imported
    assert counts(report) == (0, 0, 0, 1)
    assert report.schools_created == []
    assert everything() == before


@pytest.mark.parametrize(
    ("dates", "expected"),
    [
        (["3/4/2014", "12/25/2014"], ["2014-03-04", "2014-12-25"]),
        (["3/4/2014", "25/12/2014"], ["2014-04-03", "2014-12-25"]),
        (["3/4/2014", "5/6/2014"], ["2014-03-04", "2014-05-06"]),
        (["3/4/2014", "25/12/2014", "12/25/2014"], [None, "2014-12-25", "2014-12-25"]),
        (["25/12/2014"] + ["12/25/2014"] * 20, [None] + ["2014-12-25"] * 20),
        (["12/25/2014"] + ["25/12/2014"] * 21, [None] + ["2014-12-25"] * 21),
    ],
)
def test_the_other_dates_tell_how_a_date_was_meant(administration, dates, expected):
    rows = [f"Riverside,Lincoln,{number},{day}" for number, day in enumerate(dates)]
    brought_in(administration, "district,school,id,dob", *rows, partial=True)
    born = dict(Identity.objects.values_list("external_id", "birth_date"))
    found = [born.get(str(number)) for number in range(len(dates))]
    assert [day and day.isoformat() for day in found] == expected


def test_a_language_that_the_survey_lacks_is_left_blank_and_noted(administration):
    report = brought_in(administration, HEADER, MAYA.replace("Spanish", "Klingon"))
    assert Respondent.objects.get().language == ""
    assert report.notes == {
        "language 'Klingon' is not one of the survey's: left blank": 1
    }


def test_a_teachers_grade_rejects_nobody(administration):
    administration.role = "teacher"
    row = MAYA.replace("student", "Faculty").replace(",7,", ",K-5,")
    report = brought_in(administration, HEADER, row)
    assert report.imported
    assert Respondent.objects.get().grade == ""
    assert report.notes == {"grade 'K-5' is no single grade: left blank": 1}


def test_one_name_column_is_taken_apart(administration):
    brought_in(
        administration,
        "district name,school name,id,student name",
        'Riverside Unified,Lincoln High,1,"Lopez, Maya"',
        "Riverside  UNIFIED,Lincoln high,2,Ana Maria Ortiz",
    )
    names = Identity.objects.order_by("external_id").values_list(
        "given_name", "family_name"
    )
    assert list(names) == [("Maya", "Lopez"), ("Ana Maria", "Ortiz")]
    assert School.objects.get().name == "Lincoln High"


def test_passwords_and_phones_are_kept_nowhere(administration):
    report = brought_in(
        administration,
        f"{HEADER},password,Home Phone,program",
        f"{MAYA},hunter2,555-0100,ELL",
    )
    assert report.imported
    assert Respondent.objects.get().attributes == {"lunch": "free", "program": "ELL"}
    kept = str(everything())
    assert "ELL" in kept and "hunter2" not in kept and "555-0100" not in kept


def test_a_column_of_names_in_the_place_of_schools_is_noticed(
    administration, monkeypatch
):
    monkeypatch.setattr(people, "MOST_SCHOOLS", 2)
    before = everything()
    rows = [
        MAYA.replace("Lincoln", f"school {n}").replace("00123", str(n))
        for n in range(3)
    ]
    with pytest.raises(RosterUnreadable, match="more than 2 schools"):
        brought_in(administration, HEADER, *rows)
    assert everything() == before


def test_a_file_that_breaks_off_leaves_nothing(administration):
    before = everything()
    with pytest.raises(RosterUnreadable, match="never closed"):
        brought_in(administration, HEADER, MAYA, '"Riverside')
    assert everything() == before
    assert counts(brought_in(administration, HEADER, MAYA)) == (1, 0, 0, 0)


def test_without_a_key_nobody_comes_in(administration, settings):
    settings.ACCESS_CODE_KEYS = {}
    with pytest.raises(CodeKeyMissing):
        brought_in(administration, HEADER, MAYA)


# Codes ----------------------------------------------------------------------------


def test_two_people_with_one_code_get_two(administration, monkeypatch):
    real = access_codes.code_for

    def colliding(id_, issue, version=None):
        return "A" * 12 if issue == 1 else real(id_, issue, version)

    monkeypatch.setattr(access_codes, "code_for", colliding)
    report = brought_in(administration, HEADER, MAYA, ALI, NOOR)

    assert counts(report) == (3, 0, 0, 0)
    assert sorted(Respondent.objects.values_list("issue", flat=True)) == [1, 2, 2]
    for respondent in Respondent.objects.all():
        assert bytes(respondent.code_digest) == digest_for(code_of(respondent), 2)


def test_ids_follow_those_that_were_taken(administration, lincoln):
    brought_in(administration, HEADER, MAYA, ALI)
    later = enrol(administration, lincoln)
    brought_in(administration, HEADER, NOOR)
    ids = list(Respondent.objects.order_by("pk").values_list("pk", flat=True))
    assert ids[2] == later.pk and len(ids) == 4


# Size -----------------------------------------------------------------------------


def many(count):
    return [ALI.replace("00124", f"{number:06}") for number in range(count)]


def test_the_number_of_statements_does_not_grow_with_the_roster(administration):
    brought_in(administration, HEADER, *many(1))
    statements = []
    for start, end in ((10, 20), (1000, 4000), (10_000, 17_000)):
        with CaptureQueriesContext(connection) as captured:
            report = brought_in(administration, HEADER, *many(end)[start:])
        assert report.added == end - start
        statements.append(len(captured))
    assert statements[0] == statements[1] < 100
    # Those of one more batch.
    assert statements[2] - statements[1] < 20


def test_batches_make_no_difference(administration, monkeypatch):
    monkeypatch.setattr(diff, "BATCH", 3)
    monkeypatch.setattr(apply, "ADD_AT_ONCE", 3)
    monkeypatch.setattr(apply, "CHANGE_AT_ONCE", 3)
    assert counts(brought_in(administration, HEADER, *many(10))) == (10, 0, 0, 0)
    assert Identity.objects.values("external_id").distinct().count() == 10
    rows = [row.replace(",8,", ",9,") for row in many(10)]
    assert counts(brought_in(administration, HEADER, *rows)) == (0, 10, 0, 0)
    assert Respondent.objects.filter(grade="09").count() == 10


def test_all_rejections_go_to_the_file_and_the_first_to_the_report(administration):
    file = io.StringIO()
    rows = [row.replace(",8,", ",=1+1,") for row in many(1300)]
    report = brought_in(administration, HEADER, MAYA, *rows, rejects=file)

    assert report.rejected == 1300
    assert len(report.rejections) == MOST_REJECTIONS_KEPT
    lines = list(csv.DictReader(io.StringIO(file.getvalue())))
    assert len(lines) == 1300
    assert lines[1299]["Rejected because"].startswith("Row 1302: grade is no grade")
    assert lines[1299]["grade"] == "'=1+1"
    assert lines[1299]["given name"] == "Ali"


@pytest.mark.parametrize(
    "cell", ["=1+1", "+1", "-1", "@x", "\tx", "\rx", " =1", "＝1", "＋1"]
)
def test_a_cell_that_excel_would_run_is_defused(cell):
    assert escape_formula(cell) == f"'{cell}"


@pytest.mark.parametrize(
    ("cell", "written"),
    [
        ("Ann;=1+1", "Ann;'=1+1"),
        ("Ann; +1", "Ann; '+1"),
        ("Ann;;-1;@x", "Ann;;'-1;'@x"),
        ('Ann;"=1', "Ann;\"'=1"),
        ("Ann\t=1", "Ann\t'=1"),
        ("Ann\r\n =1", "Ann\r\n '=1"),
        ("Ann;＝1", "Ann;'＝1"),
        ("=1;=2", "'=1;'=2"),
    ],
)
def test_a_cell_that_another_separator_would_open_is_defused(cell, written):
    assert escape_formula(cell) == written


def cells_by_semicolon(cell):
    """What Excel makes of the rejected rows where a semicolon separates."""
    file = io.StringIO()
    columns = columns_of(["district", "grade"])
    rejection = people.Rejection(2, "grade", "is no grade", cell)
    rows = iter([(2, ["Riverside", cell])])
    assert write_rejected(file, columns, rows, iter([rejection])) == 1
    file.seek(0)
    return [cell for row in csv.reader(file, delimiter=";") for cell in row]


def test_no_cell_begins_as_a_formula_where_a_semicolon_separates(monkeypatch):
    assert "'=1+1" in cells_by_semicolon("Ann;=1+1")
    # The twin.
    monkeypatch.setattr("survey.rosters.report.escape_formula", str)
    assert "=1+1" in cells_by_semicolon("Ann;=1+1")


@pytest.mark.parametrize(
    "cell",
    ["=1+1", " =1", "＝1", "Ann;=1+1", "Ann;;-1;@x", "=1;=2", "'x", "O'Brien", "Maya"]
    + ["\tx", "it's; 'x", "-"],
)
def test_a_defused_cell_is_made_whole_again(cell):
    assert unescape_formula(escape_formula(cell)) == cell


@pytest.mark.parametrize(
    "cell",
    ["", "Maya", "00123", "a=b", "'x", "é", "Ann; Ben;", "a;b=c", "a; b-c", "a\n"],
)
def test_other_cells_are_left_alone(cell):
    assert escape_formula(cell) == cell


def test_no_temporary_table_is_left(administration):
    if connection.vendor == "postgresql":
        pytest.skip("there they end with the transaction, which is the test's own")
    brought_in(administration, HEADER, MAYA)
    with connection.cursor() as cursor:
        cursor.execute("SELECT name FROM sqlite_temp_master")
        assert not {name for (name,) in cursor} & set(TABLES)


# At once --------------------------------------------------------------------------


def at_once(*works):
    errors = []

    def run(work):
        try:
            work()
        except Exception as error:
            errors.append(error)
        finally:
            connection.close()

    threads = [threading.Thread(target=run, args=[work]) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not errors


needs_postgresql = pytest.mark.skipif(
    connection.vendor == "sqlite",
    reason="SQLite in memory is one connection's own",
)


@needs_postgresql
@pytest.mark.django_db(transaction=True)
def test_two_imports_at_once_double_nobody(administration):
    rows = many(500)
    reports = []

    def work():
        reports.append(brought_in(administration, HEADER, *rows))

    at_once(work, work, work)

    assert sorted(counts(report) for report in reports) == [
        (0, 0, 500, 0),
        (0, 0, 500, 0),
        (500, 0, 0, 0),
    ]


@needs_postgresql
@pytest.mark.django_db(transaction=True)
def test_without_the_lock_the_second_import_fails(administration, monkeypatch):
    monkeypatch.setattr(
        "survey.rosters.staging.PostgreSQLStaging.lock", lambda *_: None
    )
    # With a school to create, the second would wait for that instead.
    brought_in(administration, HEADER, MAYA)
    both_matched = threading.Barrier(2, timeout=30)
    real = apply._add

    def together(*args):
        both_matched.wait()
        return real(*args)

    monkeypatch.setattr(apply, "_add", together)
    with pytest.raises(AssertionError, match="one_respondent_per_person"):
        at_once(*[lambda: brought_in(administration, HEADER, *many(50))] * 2)


@needs_postgresql
@pytest.mark.django_db(transaction=True)
def test_a_page_save_does_not_wait_for_an_import_that_reads(administration, maya):
    """The import holds no lock on respondents who do not change."""
    with transaction.atomic():
        brought_in(administration, HEADER, *many(50))

        def save():
            with connection.cursor() as cursor:
                cursor.execute("SET lock_timeout = '2s'")
                cursor.execute(
                    "SELECT 1 FROM survey_respondent WHERE id = %s FOR SHARE", [maya.pk]
                )

        at_once(save)


# The command ------------------------------------------------------------------------


@pytest.fixture
def roster(tmp_path):
    path = tmp_path / "roster.csv"
    path.write_text("\n".join([HEADER, MAYA, ALI.replace(",8,", ",=88,")]))
    return path


def command(roster, *args):
    out = io.StringIO()
    call_command(
        "import_roster",
        str(roster),
        "--administration",
        "students-2027",
        *args,
        stdout=out,
    )
    return out.getvalue()


def test_the_command_imports_and_measures(administration, roster):
    out = command(roster, "--partial")
    assert "1 added, 0 changed, 0 unchanged, 1 rejected" in out
    assert "row 3, grade: '=88' is no grade" in out
    assert "new schools (1): lincoln" in out
    assert "rows/s" in out and "MB at most" in out
    [entry] = AuditEntry.objects.filter(action="import roster")
    assert (entry.by, entry.subject) == ("import_roster", "students-2027")
    assert (entry.after["added"], entry.after["rejected"]) == (1, 1)


def test_the_command_withdraws_who_is_missing_when_told(administration, roster):
    brought_in(administration, HEADER, MAYA, ALI)
    roster.write_text(f"{HEADER}\n{ALI}")
    assert "withdrawn" not in command(roster)
    assert "1 withdrawn" in command(roster, "--complete-for", "schools")
    assert Respondent.objects.exclude(withdrawn_at=None).count() == 1


def test_the_command_ends_with_1_where_nothing_was_imported(
    administration, roster, tmp_path
):
    rejects = tmp_path / "rejects.csv"
    with pytest.raises(SystemExit) as end:
        command(roster, "--rejects", str(rejects))
    assert end.value.code == 1
    assert not Respondent.objects.exists()
    assert stat.S_IMODE(rejects.stat().st_mode) == 0o600
    with rejects.open(encoding="utf-8-sig") as file:
        assert [line["grade"] for line in csv.DictReader(file)] == ["'=88"]


def test_the_command_speaks_to_programs(administration, roster):
    report = json.loads(command(roster, "--partial", "--json"))
    assert (report["added"], report["rejected"]) == (1, 1)
    assert report["columns"]["external_id"] == "student ID"
    assert report["attributes"] == ["lunch"]
    assert report["rejections"][0]["row"] == 3


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (
            ["missing.csv", "--administration", "students-2027"],
            "missing.csv: No such file",
        ),
        ([".", "--administration", "students-2027"], "Is a directory"),
        (["manage.py", "--administration", "students-2027"], "names the columns"),
        (["manage.py", "--administration", "x"], "No administration is called x"),
    ],
)
def test_a_mistake_is_one_clear_line(administration, args, message):
    with pytest.raises(CommandError, match=message):
        call_command("import_roster", *args)


def test_a_made_roster_comes_in_whole(administration, tmp_path):
    out = io.StringIO()
    call_command("make_roster", "--rows", "600", stdout=out)
    path = tmp_path / "made.csv"
    path.write_text(out.getvalue(), newline="")
    report = json.loads(command(path, "--json"))
    assert (report["added"], report["rejected"]) == (600, 0)
    assert len(report["schools_created"]) == 2


@pytest.fixture
def slow(monkeypatch):
    """Makes one statement of an import take longer than the connection allows."""
    create_tables = Staging.create_tables

    def slowly(self):
        self.run("SELECT pg_sleep(0.1)")
        create_tables(self)

    monkeypatch.setattr(Staging, "create_tables", slowly)


@needs_postgresql
def test_a_large_roster_may_take_longer_than_a_page_turn(administration, slow):
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL statement_timeout = 50")
        assert counts(brought_in(administration, HEADER, MAYA, ALI)) == (2, 0, 0, 0)


@needs_postgresql
def test_within_that_time_it_would_be_cancelled(administration, slow, monkeypatch):
    """The twin."""
    run = Staging.run
    monkeypatch.setattr(
        Staging,
        "run",
        lambda self, sql, params=(): (
            0 if "statement_timeout" in sql else run(self, sql, params)
        ),
    )
    with (
        pytest.raises(OperationalError, match="statement timeout"),
        transaction.atomic(),
        connection.cursor() as cursor,
    ):
        cursor.execute("SET LOCAL statement_timeout = 50")
        brought_in(administration, HEADER, MAYA, ALI)
