"""Import rosters; all tests run on SQLite and on PostgreSQL."""

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
from survey.rosters import apply, diff, row_checks, row_parser
from survey.rosters.apply import import_roster
from survey.rosters.columns import columns_of
from survey.rosters.file_reader import RosterUnreadable, open_table
from survey.rosters.report import MOST_REJECTIONS_KEPT, write_rejected_rows
from survey.rosters.staging import TABLES, Staging
from survey.tests.conftest import enrol

# Staging has SQL of its own for SQLite.
pytestmark = pytest.mark.sqlite

HEADER = (
    "district,school,role,grade,student ID,given name,family name,e-mail,birth date,"
    "language,lunch"
)
MAYA = "Riverside,Lincoln,student,7,00123,Maya,Lopez,maya@x.org,2014-03-04,Spanish,free"
ALI = "Riverside,Lincoln,student,8,00124,Ali,Diaz,,2013-12-31,,"
NOOR = "Lakeshore,Roosevelt,Students,8th,00123,Noor,Haddad,,5/26/2013,en,paid"


def run_import(administration, *lines, **options):
    file = io.BytesIO("\n".join(lines).encode())
    with open_table(file) as table:
        return import_roster(administration=administration, table=table, **options)


def counts(report):
    return report.added, report.changed, report.unchanged, report.rejected


def all_rows():
    """Return all rows that an import can write."""
    return (
        list(Respondent.objects.order_by("pk").values()),
        list(Identity.objects.order_by("pk").values()),
        list(District.objects.order_by("pk").values()),
        list(School.objects.order_by("pk").values()),
    )


def test_a_roster_is_imported(administration, lincoln):
    report = run_import(administration, HEADER, MAYA, ALI, NOOR)

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


def test_a_districts_code_and_name_mean_the_same_district(administration):
    harbor = District.objects.create(code="d7", name="Harbor")
    School.objects.create(code="sea", name="Sea", district=harbor)
    header = HEADER.replace("district,", "district name,")
    rows = [MAYA.replace("Riverside,Lincoln", f"{one},sea") for one in ("d7", "Harbor")]

    report = run_import(administration, header, *rows, partial=True)
    assert counts(report) == (1, 0, 0, 1)
    [refused] = report.rejections
    assert (refused.row, refused.reason) == (
        3,
        "is the same as in row 2, in the same district",
    )
    # The same holds for a person who is already there.
    report = run_import(administration, header, *reversed(rows), partial=True)
    assert counts(report) == (0, 0, 1, 1)


def test_an_imported_person_can_log_in(administration, browser):
    run_import(administration, HEADER, MAYA)
    browser.log_in(Respondent.objects.get())
    assert browser.bootstrap()["language"] == "es"


def test_the_same_roster_again_changes_nothing(administration):
    run_import(administration, HEADER, MAYA, ALI, NOOR)
    before = all_rows()

    report = run_import(administration, HEADER, MAYA, ALI, NOOR)

    assert counts(report) == (0, 0, 3, 0)
    assert all_rows() == before


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
def test_changed_people_keep_respondent_code_and_answers(administration, old, new):
    run_import(administration, HEADER, MAYA, ALI)
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
    report = run_import(administration, HEADER, changed, ALI)

    assert counts(report) == (0, 1, 1, 0)
    after = Respondent.objects.get(identity__external_id="00123")
    assert (after.pk, after.issue) == (before.pk, before.issue)
    assert bytes(after.code_digest) == bytes(before.code_digest)
    assert Response.objects.get().pk == answer.pk
    assert counts(run_import(administration, HEADER, changed, ALI)) == (0, 0, 2, 0)


def test_columns_missing_from_the_file_are_not_changed(administration):
    run_import(administration, HEADER, MAYA)
    before = all_rows()

    report = run_import(
        administration, "school,student ID,district", "Lincoln,00123,Riverside"
    )

    assert counts(report) == (0, 0, 1, 0)
    assert all_rows() == before


def test_missing_people_are_not_withdrawn_by_default(administration):
    run_import(administration, HEADER, MAYA, ALI)
    report = run_import(administration, HEADER, ALI)
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
    run_import(administration, HEADER, MAYA)
    assert counts(run_import(other, HEADER, MAYA)) == (1, 0, 0, 0)
    assert len({code_of(one) for one in Respondent.objects.all()}) == 2


def test_existing_respondents_keep_their_codes(administration, maya):
    before = bytes(maya.code_digest)
    run_import(administration, HEADER, MAYA)
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
        ("student", "janitor", "role", "must be student, teacher or parent"),
        (",7,", ",77,", "grade", "is not a grade"),
        ("maya@x.org", "maya at x", "e-mail", "is not an e-mail address"),
        ("2014-03-04", "2014-13-04", "birth date", "is not a date"),
        ("2014-03-04", "1814-03-04", "birth date", "age 2 to 110"),
        ("Maya", "Ma\x07ya", "given name", "contains a control character"),
        ("Lopez", "L" * 201, "family name", "is longer than 200 characters"),
        ("free", "f" * 201, "lunch", "is longer than 200 characters"),
        ("Lopez", "Lopez, Jr", "", "more cells than the header"),
    ],
)
def test_an_invalid_cell_rejects_its_row_with_a_reason(
    administration, old, new, column, reason
):
    before = all_rows()
    report = run_import(administration, HEADER, ALI, MAYA.replace(old, new))

    assert not report.imported
    assert counts(report) == (0, 0, 0, 1)
    [rejection] = report.rejections
    assert (rejection.row, rejection.column) == (3, column)
    assert reason in rejection.reason
    assert all_rows() == before


LONG = [f"program {n}" for n in range(25)]
WIDE = ",".join([HEADER, *LONG])


def wide(size):
    return ",".join([MAYA, *["x" * size] * len(LONG)])


def test_a_row_of_very_long_attributes_is_rejected(administration):
    report = run_import(administration, WIDE, f"{ALI}{',' * len(LONG)}", wide(200))
    assert not report.imported
    [rejection] = report.rejections
    assert (rejection.row, rejection.column) == (3, "")
    assert "more than 4,000 characters" in rejection.reason
    assert counts(run_import(administration, WIDE, wide(100))) == (1, 0, 0, 0)


def test_long_attributes_would_fill_the_memory_without_the_limit(
    administration, monkeypatch
):
    monkeypatch.setattr(row_parser, "LONGEST_ATTRIBUTES", 10**9)
    assert run_import(administration, WIDE, wide(200)).imported
    assert len(json.dumps(Respondent.objects.get().attributes)) > 4_000


def test_all_errors_are_reported_at_once(administration):
    broken = MAYA.replace(",7,", ",77,").replace("maya@x.org", "nowhere")
    report = run_import(administration, HEADER, broken, ALI.replace("00124", ""))
    assert [(one.row, one.column) for one in report.rejections] == [
        (2, "grade"),
        (2, "e-mail"),
        (3, "student ID"),
    ]
    assert report.rejected == 2


def test_partial_imports_the_valid_rows(administration):
    report = run_import(
        administration, HEADER, ALI, MAYA.replace(",7,", ",77,"), NOOR, partial=True
    )
    assert report.imported
    assert counts(report) == (2, 0, 0, 1)
    names = Identity.objects.values_list("given_name", flat=True)
    assert set(names) == {"Ali", "Noor"}


def test_the_second_row_of_a_person_is_rejected(administration):
    report = run_import(
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


def test_ids_that_lost_their_zeros_are_rejected(administration):
    run_import(administration, HEADER, MAYA, ALI)
    report = run_import(administration, HEADER, MAYA.replace("00123", "123"), ALI)
    assert not report.imported
    [rejection] = report.rejections
    assert (rejection.row, rejection.text) == (2, "123")
    assert "lost its leading zeros: 00123 is" in rejection.reason
    assert Respondent.objects.count() == 2


def test_lost_zeros_would_duplicate_everyone_without_the_check(
    administration, monkeypatch
):
    monkeypatch.setattr(row_checks, "reject_lost_zeros", lambda *_: None)
    run_import(administration, HEADER, MAYA, ALI)
    run_import(
        administration,
        HEADER,
        MAYA.replace("00123", "123"),
        ALI.replace("00124", "124"),
    )
    assert Respondent.objects.count() == 4


def test_ids_that_differ_in_zeros_within_a_file_are_two_people(administration):
    report = run_import(administration, HEADER, MAYA, ALI.replace("00124", "123"))
    assert counts(report) == (2, 0, 0, 0)
    report = run_import(administration, HEADER, MAYA, ALI.replace("00124", "123"))
    assert counts(report) == (0, 0, 2, 0)


def test_a_rejected_file_creates_no_schools(administration):
    run_import(administration, HEADER, MAYA)
    before = all_rows()
    new_school = NOOR.replace("Roosevelt", "Brand new")
    report = run_import(
        administration, HEADER, MAYA.replace("00123", "123"), new_school
    )
    assert not report.imported
    assert counts(report) == (0, 0, 0, 1)
    assert report.schools_created == []
    assert all_rows() == before


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
def test_unambiguous_dates_decide_the_order_of_the_others(
    administration, dates, expected
):
    rows = [f"Riverside,Lincoln,{number},{day}" for number, day in enumerate(dates)]
    run_import(administration, "district,school,id,dob", *rows, partial=True)
    born = dict(Identity.objects.values_list("external_id", "birth_date"))
    found = [born.get(str(number)) for number in range(len(dates))]
    assert [day and day.isoformat() for day in found] == expected


def test_an_unknown_language_is_left_blank_with_a_note(administration):
    report = run_import(administration, HEADER, MAYA.replace("Spanish", "Klingon"))
    assert Respondent.objects.get().language == ""
    assert report.notes == {
        "language 'Klingon' is not a language of this survey: left blank": 1
    }


def test_a_teachers_invalid_grade_is_left_blank(administration):
    administration.role = "teacher"
    row = MAYA.replace("student", "Faculty").replace(",7,", ",K-5,")
    report = run_import(administration, HEADER, row)
    assert report.imported
    assert Respondent.objects.get().grade == ""
    assert report.notes == {"grade 'K-5' is not a single grade: left blank": 1}


def test_a_full_name_column_is_split(administration):
    run_import(
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


def test_passwords_and_phone_numbers_are_not_stored(administration):
    report = run_import(
        administration,
        f"{HEADER},password,Home Phone,program",
        f"{MAYA},hunter2,555-0100,ELL",
    )
    assert report.imported
    assert Respondent.objects.get().attributes == {"lunch": "free", "program": "ELL"}
    kept = str(all_rows())
    assert "ELL" in kept and "hunter2" not in kept and "555-0100" not in kept


def test_a_column_of_names_read_as_schools_is_reported(administration, monkeypatch):
    monkeypatch.setattr(row_parser, "MOST_SCHOOLS", 2)
    before = all_rows()
    rows = [
        MAYA.replace("Lincoln", f"school {n}").replace("00123", str(n))
        for n in range(3)
    ]
    with pytest.raises(RosterUnreadable, match="more than 2 schools"):
        run_import(administration, HEADER, *rows)
    assert all_rows() == before


def test_a_truncated_file_imports_nothing(administration):
    before = all_rows()
    with pytest.raises(RosterUnreadable, match="never closed"):
        run_import(administration, HEADER, MAYA, '"Riverside')
    assert all_rows() == before
    assert counts(run_import(administration, HEADER, MAYA)) == (1, 0, 0, 0)


def test_nothing_is_imported_without_an_access_code_key(administration, settings):
    settings.ACCESS_CODE_KEYS = {}
    with pytest.raises(CodeKeyMissing):
        run_import(administration, HEADER, MAYA)


# Codes ----------------------------------------------------------------------------


def test_colliding_access_codes_are_replaced(administration, monkeypatch):
    real = access_codes.code_for

    def colliding(id_, issue, version=None):
        return "A" * 12 if issue == 1 else real(id_, issue, version)

    monkeypatch.setattr(access_codes, "code_for", colliding)
    report = run_import(administration, HEADER, MAYA, ALI, NOOR)

    assert counts(report) == (3, 0, 0, 0)
    assert sorted(Respondent.objects.values_list("issue", flat=True)) == [1, 2, 2]
    for respondent in Respondent.objects.all():
        assert bytes(respondent.code_digest) == digest_for(code_of(respondent), 2)


def test_primary_keys_do_not_collide_with_other_inserts(administration, lincoln):
    run_import(administration, HEADER, MAYA, ALI)
    later = enrol(administration, lincoln)
    run_import(administration, HEADER, NOOR)
    ids = list(Respondent.objects.order_by("pk").values_list("pk", flat=True))
    assert ids[2] == later.pk and len(ids) == 4


# Size -----------------------------------------------------------------------------


def many_rows(count):
    return [ALI.replace("00124", f"{number:06}") for number in range(count)]


def test_the_number_of_statements_does_not_grow_with_the_roster(administration):
    run_import(administration, HEADER, *many_rows(1))
    statements = []
    for start, end in ((10, 20), (1000, 4000), (10_000, 17_000)):
        with CaptureQueriesContext(connection) as captured:
            report = run_import(administration, HEADER, *many_rows(end)[start:])
        assert report.added == end - start
        statements.append(len(captured))
    assert statements[0] == statements[1] < 100
    # One more batch.
    assert statements[2] - statements[1] < 20


def test_the_result_does_not_depend_on_batch_sizes(administration, monkeypatch):
    monkeypatch.setattr(diff, "BATCH", 3)
    monkeypatch.setattr(apply, "ADD_AT_ONCE", 3)
    monkeypatch.setattr(apply, "CHANGE_AT_ONCE", 3)
    assert counts(run_import(administration, HEADER, *many_rows(10))) == (10, 0, 0, 0)
    assert Identity.objects.values("external_id").distinct().count() == 10
    rows = [row.replace(",8,", ",9,") for row in many_rows(10)]
    assert counts(run_import(administration, HEADER, *rows)) == (0, 10, 0, 0)
    assert Respondent.objects.filter(grade="09").count() == 10


def test_the_file_has_all_rejections_and_the_report_the_first(administration):
    file = io.StringIO()
    rows = [row.replace(",8,", ",=1+1,") for row in many_rows(1300)]
    report = run_import(administration, HEADER, MAYA, *rows, rejects=file)

    assert report.rejected == 1300
    assert len(report.rejections) == MOST_REJECTIONS_KEPT
    lines = list(csv.DictReader(io.StringIO(file.getvalue())))
    assert len(lines) == 1300
    assert lines[1299]["Rejected because"].startswith("Row 1302: grade is not a grade")
    assert lines[1299]["grade"] == "'=1+1"
    assert lines[1299]["given name"] == "Ali"


@pytest.mark.parametrize(
    "cell", ["=1+1", "+1", "-1", "@x", "\tx", "\rx", " =1", "＝1", "＋1"]
)
def test_cells_that_excel_would_run_are_escaped(cell):
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
def test_cells_that_another_separator_would_split_are_escaped(cell, written):
    assert escape_formula(cell) == written


def cells_by_semicolon(cell):
    """Read the rejected rows as Excel does where a semicolon separates cells."""
    file = io.StringIO()
    columns = columns_of(["district", "grade"])
    rejection = row_parser.CellRejection(2, "grade", "is not a grade", cell)
    rows = iter([(2, ["Riverside", cell])])
    assert write_rejected_rows(file, columns, rows, iter([rejection])) == 1
    file.seek(0)
    return [cell for row in csv.reader(file, delimiter=";") for cell in row]


def test_rejected_rows_hold_no_formulas_when_split_at_semicolons(monkeypatch):
    assert "'=1+1" in cells_by_semicolon("Ann;=1+1")
    # Without the escaping it would.
    monkeypatch.setattr("survey.rosters.report.escape_formula", str)
    assert "=1+1" in cells_by_semicolon("Ann;=1+1")


@pytest.mark.parametrize(
    "cell",
    ["=1+1", " =1", "＝1", "Ann;=1+1", "Ann;;-1;@x", "=1;=2", "'x", "O'Brien", "Maya"]
    + ["\tx", "it's; 'x", "-"],
)
def test_escaping_a_cell_can_be_undone(cell):
    assert unescape_formula(escape_formula(cell)) == cell


@pytest.mark.parametrize(
    "cell",
    ["", "Maya", "00123", "a=b", "'x", "é", "Ann; Ben;", "a;b=c", "a; b-c", "a\n"],
)
def test_harmless_cells_are_not_escaped(cell):
    assert escape_formula(cell) == cell


def test_no_temporary_table_is_left(administration):
    if connection.vendor == "postgresql":
        pytest.skip("on PostgreSQL they end with the transaction, here the test's")
    run_import(administration, HEADER, MAYA)
    with connection.cursor() as cursor:
        cursor.execute("SELECT name FROM sqlite_temp_master")
        assert not {name for (name,) in cursor} & set(TABLES)


# Concurrency ----------------------------------------------------------------------


def run_in_threads(*works):
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
    reason="an in-memory SQLite database has one connection",
)


@needs_postgresql
@pytest.mark.django_db(transaction=True)
def test_concurrent_imports_create_no_duplicates(administration):
    rows = many_rows(500)
    reports = []

    def work():
        reports.append(run_import(administration, HEADER, *rows))

    run_in_threads(work, work, work)

    assert sorted(counts(report) for report in reports) == [
        (0, 0, 500, 0),
        (0, 0, 500, 0),
        (500, 0, 0, 0),
    ]


@needs_postgresql
@pytest.mark.django_db(transaction=True)
def test_concurrent_imports_would_fail_without_the_lock(administration, monkeypatch):
    monkeypatch.setattr(
        "survey.rosters.staging.PostgreSQLStaging.lock", lambda *_: None
    )
    # If a school had to be created, the second would wait for that instead.
    run_import(administration, HEADER, MAYA)
    both_matched = threading.Barrier(2, timeout=30)
    real = apply.add_people

    def together(*args):
        both_matched.wait()
        return real(*args)

    monkeypatch.setattr(apply, "add_people", together)
    with pytest.raises(AssertionError, match="one_respondent_per_person"):
        run_in_threads(
            *[lambda: run_import(administration, HEADER, *many_rows(50))] * 2
        )


@needs_postgresql
@pytest.mark.django_db(transaction=True)
def test_page_saves_do_not_wait_while_an_import_compares(administration, maya):
    """An import locks no respondents who do not change."""
    with transaction.atomic():
        run_import(administration, HEADER, *many_rows(50))

        def save():
            with connection.cursor() as cursor:
                cursor.execute("SET lock_timeout = '2s'")
                cursor.execute(
                    "SELECT 1 FROM survey_respondent WHERE id = %s FOR SHARE", [maya.pk]
                )

        run_in_threads(save)


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


def test_the_command_prints_figures_and_speed(administration, roster):
    out = command(roster, "--partial")
    assert "1 added, 0 changed, 0 unchanged, 1 rejected" in out
    assert "row 3, grade: '=88' is not a grade" in out
    assert "new schools (1): lincoln" in out
    assert "rows/s" in out and "MB at most" in out
    [entry] = AuditEntry.objects.filter(action="import roster")
    assert (entry.by, entry.subject) == ("import_roster", "students-2027")
    assert (entry.after["added"], entry.after["rejected"]) == (1, 1)


def test_the_command_withdraws_missing_people_with_complete_for(administration, roster):
    run_import(administration, HEADER, MAYA, ALI)
    roster.write_text(f"{HEADER}\n{ALI}")
    assert "withdrawn" not in command(roster)
    assert "1 withdrawn" in command(roster, "--complete-for", "schools")
    assert Respondent.objects.exclude(withdrawn_at=None).count() == 1


def test_the_command_exits_with_1_if_nothing_was_imported(
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


def test_the_command_prints_json(administration, roster):
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
        (["manage.py", "--administration", "x"], "No administration is named x"),
    ],
)
def test_a_wrong_argument_is_reported_in_one_line(administration, args, message):
    with pytest.raises(CommandError, match=message):
        call_command("import_roster", *args)


def test_a_generated_roster_is_imported_completely(administration, tmp_path):
    out = io.StringIO()
    call_command("make_roster", "--rows", "600", stdout=out)
    path = tmp_path / "made.csv"
    path.write_text(out.getvalue(), newline="")
    report = json.loads(command(path, "--json"))
    assert (report["added"], report["rejected"]) == (600, 0)
    assert len(report["schools_created"]) == 2


@pytest.fixture
def slow_import(monkeypatch):
    """Make one statement of an import exceed the statement timeout."""
    create_tables = Staging.create_tables

    def slowly(self):
        self.execute("SELECT pg_sleep(0.1)")
        create_tables(self)

    monkeypatch.setattr(Staging, "create_tables", slowly)


@needs_postgresql
def test_an_import_is_not_bound_by_the_statement_timeout(administration, slow_import):
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL statement_timeout = 50")
        assert counts(run_import(administration, HEADER, MAYA, ALI)) == (2, 0, 0, 0)


@needs_postgresql
def test_an_import_would_be_cancelled_by_the_statement_timeout(
    administration, slow_import, monkeypatch
):
    """Shows that the test above would fail without lifting the timeout."""
    run = Staging.execute
    monkeypatch.setattr(
        Staging,
        "execute",
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
        run_import(administration, HEADER, MAYA, ALI)
