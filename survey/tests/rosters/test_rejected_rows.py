"""Reject rows with invalid cells, and rows that clash with others."""

from __future__ import annotations

import pytest

from accounts.models import School
from survey.models import Identity, Respondent
from survey.people.rosters import diff, row_checks, row_parser
from survey.people.rosters.column_samples import RepeatableHeader
from survey.people.rosters.file_reader import RosterUnreadable
from survey.people.rosters.layouts import KnownPlace
from survey.tests.rosters.roster_imports import (
    ALI,
    HEADER,
    MAYA,
    NOOR,
    all_rows,
    counts,
    run_import,
)


@pytest.mark.parametrize(
    ("old", "new", "column", "reason"),
    [
        ("00123", "", "student ID", "is missing"),
        ("00123", "1.2E+10", "student ID", "was shortened by Excel"),
        ("Riverside", "", "district", "is missing"),
        ("Lincoln", "", "school", "is missing"),
        ("Lincoln", "L" * 65, "school", "is longer than 64 characters"),
        ("student", "janitor", "role", "must be student, teacher or parent"),
        (",7,", ",77,", "grade", "is not a grade"),
        ("maya@x.org", "maya at x", "e-mail", "is not an e-mail address"),
        ("2014-03-04", "2014-13-04", "birth date", "is not a date"),
        ("2014-03-04", "1814-03-04", "birth date", "age 2 to 110"),
        ("Maya", "Ma\x07ya", "given name", "contains a control character"),
        ("Lopez", "L" * 201, "family name", "is longer than 200 characters"),
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


@pytest.mark.parametrize(
    "header", [HEADER, HEADER.upper(), HEADER.replace(",e-mail,", ",,")]
)
def test_a_header_that_is_repeated_is_no_person(administration, header):
    """Reports have it at the top of each page."""
    report = run_import(administration, HEADER, ALI, header, MAYA, header)
    assert counts(report) == (2, 0, 0, 0)
    assert report.notes == {row_parser.HEADER_REPEATED: 2}
    assert report.rows == 2


def test_a_repeated_header_would_be_a_person(administration, monkeypatch):
    monkeypatch.setattr(RepeatableHeader, "is_repeated", lambda self, cells: False)
    header = "district,school,student ID,given name"
    run_import(administration, header, "riverside,lincoln,1,Maya", header)
    assert Identity.objects.filter(given_name="given name").exists()


def test_a_person_who_is_called_like_a_column_stays(administration):
    report = run_import(
        administration,
        "district,school,student ID,given name",
        "district,school,7,given name",
    )
    assert counts(report) == (1, 0, 0, 0)


def test_lines_below_a_header_and_at_the_end_are_rejected_by_row(
    administration, lincoln
):
    report = run_import(
        administration,
        "student ID,given name,family name",
        "----------,----------,-----------",
        "1,Maya,Lopez",
        "Printed on 11/28/2026 by A. Clerk,,",
        "Total: 1,,",
        known=KnownPlace.of(None, lincoln),
        partial=True,
    )
    assert counts(report) == (1, 0, 0, 3)
    assert [(cell.row, cell.column) for cell in report.rejections] == [
        (number, "student ID") for number in (2, 4, 5)
    ]


def test_a_name_without_a_letter_is_left_blank_with_a_note(administration):
    report = run_import(administration, HEADER, MAYA.replace("Lopez", "-"))
    assert counts(report) == (1, 0, 0, 0)
    assert Identity.objects.get().family_name == ""
    assert report.notes == {"family name without a letter or digit: left blank": 1}


def test_all_errors_are_reported_at_once(administration):
    broken = MAYA.replace(",7,", ",77,").replace("maya@x.org", "nowhere")
    report = run_import(administration, HEADER, broken, ALI.replace("00124", ""))
    assert [(cell.row, cell.column) for cell in report.rejections] == [
        (2, "grade"),
        (2, "e-mail"),
        (3, "student ID"),
    ]
    assert report.rejected == 2


@pytest.mark.sqlite
def test_partial_imports_the_valid_rows(administration):
    report = run_import(
        administration, HEADER, ALI, MAYA.replace(",7,", ",77,"), NOOR, partial=True
    )
    assert report.imported
    assert counts(report) == (2, 0, 0, 1)
    names = Identity.objects.values_list("given_name", flat=True)
    assert set(names) == {"Ali", "Noor"}


@pytest.mark.sqlite
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


@pytest.mark.sqlite
def test_ids_that_lost_their_zeros_are_rejected(administration):
    run_import(administration, HEADER, MAYA, ALI)
    report = run_import(administration, HEADER, MAYA.replace("00123", "123"), ALI)
    assert not report.imported
    [rejection] = report.rejections
    assert (rejection.row, rejection.text) == (2, "123")
    assert "lost its leading zeros: 00123 is" in rejection.reason
    assert Respondent.objects.count() == 2


@pytest.mark.sqlite
def test_lost_zeros_would_duplicate_everyone_without_the_check(
    administration, monkeypatch
):
    monkeypatch.setattr(row_checks, "reject_lost_zeros", lambda *_: None)
    monkeypatch.setattr(diff, "refuse_other_identifiers", lambda *_: None)
    run_import(administration, HEADER, MAYA, ALI)
    run_import(
        administration,
        HEADER,
        MAYA.replace("00123", "123"),
        ALI.replace("00124", "124"),
    )
    assert Respondent.objects.count() == 4


@pytest.mark.sqlite
def test_ids_that_differ_in_zeros_within_a_file_are_two_people(administration):
    report = run_import(administration, HEADER, MAYA, ALI.replace("00124", "123"))
    assert counts(report) == (2, 0, 0, 0)
    report = run_import(administration, HEADER, MAYA, ALI.replace("00124", "123"))
    assert counts(report) == (0, 0, 2, 0)


@pytest.mark.sqlite
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
    days = [born.get(str(number)) for number in range(len(dates))]
    assert [day and day.isoformat() for day in days] == expected


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
        f"{HEADER},password,Home Phone,English Learner",
        f"{MAYA},hunter2,555-0100,Yes",
    )
    assert report.imported
    attributes = {"lunch": "free", "English learner": "yes"}
    assert Respondent.objects.get().attributes == attributes
    stored = str(all_rows())
    assert "hunter2" not in stored and "555-0100" not in stored


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
