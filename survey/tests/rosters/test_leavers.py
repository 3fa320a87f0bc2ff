"""People whom a file marks as having left are not invited, and are withdrawn."""

from __future__ import annotations

import pytest

from accounts.models import School
from accounts.permissions import Places
from survey.models import Identity, Respondent
from survey.people.rosters import row_parser
from survey.people.rosters.layouts import KnownPlace
from survey.people.rosters.scope import RosterScope
from survey.tests.rosters.roster_imports import run_import

HEADER = "school,student id,given name,status"
pytestmark = pytest.mark.django_db


@pytest.fixture
def apply(administration, lincoln):
    """Import rows for Lincoln's district."""

    def apply(*rows, header=HEADER, **options):
        known = KnownPlace.of(lincoln.district, None)
        report = run_import(administration, header, *rows, known=known, **options)
        return report

    return apply


def invited():
    return set(
        Identity.objects.filter(respondent__withdrawn_at=None).values_list(
            "external_id", flat=True
        )
    )


@pytest.mark.sqlite
def test_people_who_have_left_are_not_invited(apply):
    report = apply(
        "lincoln,1,Maya,active", "lincoln,2,Ali,tobedeleted", "lincoln,3,Zoe,inactive"
    )
    assert invited() == {"1"}
    assert (report.added, report.left, report.left_withdrawn) == (1, 2, 0)
    assert report.left_by_school == {"lincoln": 2}


def test_leavers_would_be_invited_if_the_status_was_ignored(apply, monkeypatch):
    monkeypatch.setattr(
        row_parser.RowParser, "_status_of", lambda *_: row_parser.field_parsers.ACTIVE
    )
    apply("lincoln,1,Maya,active", "lincoln,2,Ali,tobedeleted")
    assert invited() == {"1", "2"}


@pytest.mark.sqlite
def test_people_who_were_invited_are_withdrawn_by_a_file_of_changes(apply):
    apply("lincoln,1,Maya,active", "lincoln,2,Ali,", "lincoln,3,Zoe,")
    report = apply("lincoln,2,Ali,withdrawn")
    assert invited() == {"1", "3"}
    assert (report.withdrawn, report.left_withdrawn) == (1, 1)
    [school] = report.schools
    assert (school.withdrawn, school.people) == (1, 3)
    second = apply("lincoln,2,Ali,withdrawn")
    assert (second.withdrawn, second.left) == (0, 1)


@pytest.mark.sqlite
def test_they_count_once_in_a_complete_file(apply):
    apply("lincoln,1,Maya,active", "lincoln,2,Ali,", "lincoln,3,Zoe,")
    report = apply(
        "lincoln,1,Maya,active", "lincoln,2,Ali,withdrawn", complete_for="schools"
    )
    assert invited() == {"1"}
    assert (report.withdrawn, report.left_withdrawn) == (2, 1)


@pytest.mark.sqlite
@pytest.mark.parametrize("status", ["active", "on leave"])
def test_another_row_of_the_person_wins(apply, status):
    """An active one, and one that is rejected."""
    apply("lincoln,1,Maya,active", "lincoln,2,Ali,")
    filler = [f"lincoln,x{number},A,active" for number in range(600)]
    report = apply(
        "lincoln,2,Ali,withdrawn", *filler, f"lincoln,2,Ali,{status}", partial=True
    )
    assert "2" in invited()
    assert (report.left, report.left_withdrawn) == (int(status != "active"), 0)


@pytest.mark.sqlite
@pytest.mark.parametrize("is_first", [True, False])
def test_a_new_id_wins_over_the_old_one_that_has_left(apply, is_first):
    """Systems that give somebody a new ID mark the old one as left."""
    apply("lincoln,1,Maya,active", "lincoln,2,Ali,active")
    rows = ["lincoln,22,2,Ali,active", "lincoln,2,,Ali,withdrawn"]
    header = "school,student id,previous id,given name,status"
    report = apply(*(rows if is_first else rows[::-1]), header=header)
    assert invited() == {"1", "22"}
    assert (report.changed, report.left_withdrawn) == (1, 0)
    assert Respondent.objects.count() == 2


def test_an_active_row_wins_however_the_rows_spell_the_district(apply, lincoln):
    district = lincoln.district
    district.code, district.name = "0153", "Northfield USD"
    district.save()
    header = f"district,{HEADER}"
    apply("0153,lincoln,1,Maya,", "0153,lincoln,2,Ali,", header=header)
    for active, left in (("0153", "Northfield USD"), ("Northfield USD", "0153")):
        report = apply(
            f"{active},lincoln,2,Ali,active",
            f"{left},lincoln,2,Ali,withdrawn",
            header=header,
        )
        assert invited() == {"1", "2"}
        assert (report.left, report.left_withdrawn) == (1, 0)
    # The twin: only the row that says that he has left.
    apply("Northfield USD,lincoln,2,Ali,withdrawn", header=header)
    assert invited() == {"1"}


@pytest.mark.sqlite
def test_somebody_who_has_moved_to_another_school_stays(apply, lincoln):
    School.objects.create(district=lincoln.district, code="washington", name="W")
    apply("lincoln,1,Maya,", "washington,2,Ali,")
    apply("lincoln,2,Ali,withdrawn")
    assert invited() == {"1", "2"}
    # PowerSchool moves graduates to a school of their own.
    apply("999999,2,Ali,withdrawn", "lincoln,1,Maya,active")
    assert invited() == {"1"}
    assert not School.objects.filter(code="999999").exists()


def test_a_school_withdraws_nobody_of_another_one(apply, administration, lincoln):
    elsewhere = School.objects.create(district=lincoln.district, code="other", name="O")
    apply("lincoln,1,Maya,", "other,2,Ali,")
    scope = RosterScope(Places(schools=frozenset((lincoln.pk,))))
    for school in ("other", "lincoln", "999999"):
        apply(f"{school},2,Ali,withdrawn", scope=scope, partial=True)
        assert invited() == {"1", "2"}
    apply("other,2,Ali,withdrawn", scope=RosterScope(Places(schools={elsewhere.pk})))
    assert invited() == {"1"}


def test_an_exit_date_that_has_passed_means_left(apply):
    header = "school,student id,exit date"
    apply("lincoln,1,", "lincoln,2,", "lincoln,3,12/31/2024", header=header)
    assert invited() == {"1", "2"}
    report = apply("lincoln,1,12/31/2024", "lincoln,2,12/31/2999", header=header)
    assert invited() == {"2"}
    assert report.left == 1


def test_somebody_who_comes_later_is_neither_invited_nor_withdrawn(apply):
    apply("lincoln,1,Maya,", "lincoln,2,Ali,")
    report = apply(
        "lincoln,1,Maya,active",
        "lincoln,2,Ali,pre-registered",
        "lincoln,3,Zoe,pre-registered",
        complete_for="schools",
    )
    assert invited() == {"1", "2"}
    assert (report.later, report.withdrawn) == (2, 0)


def test_a_leaver_is_counted_also_if_other_cells_are_wrong(apply):
    report = apply(
        "lincoln,1,withdrawn,99,nonsense", header="school,student id,status,grade,dob"
    )
    assert (report.imported, report.left, report.rejected) == (True, 1, 0)
    assert not Respondent.objects.exists()
