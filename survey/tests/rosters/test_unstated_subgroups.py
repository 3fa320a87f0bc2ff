"""A file keeps the subgroups that it has no column for."""

from __future__ import annotations

import pytest

from survey.models import Respondent
from survey.people.rosters import diff
from survey.tests.rosters.roster_console import all_people
from survey.tests.rosters.roster_imports import counts, run_import

pytestmark = [pytest.mark.django_db, pytest.mark.sqlite]

HEADER = "district,school,student ID,grade"
MAYA, ALI = "riverside,lincoln,1,7", "riverside,lincoln,2,7"
WHOLE = f"{HEADER},House,lunch,100%é", f"{MAYA},Red,free,yes", f"{ALI},Blue,paid,no"


@pytest.fixture(autouse=True)
def declared(administration):
    administration.subgroups = {
        "House": ["Red", "Blue"],
        "lunch": ["free", "paid"],
        "100%é": ["yes", "no"],
    }
    administration.save(update_fields=["subgroups"])


def subgroups():
    people = Respondent.objects.order_by("identity__external_id")
    return list(people.values_list("attributes", flat=True))


def test_subgroups_without_a_column_stay(administration):
    run_import(administration, *WHOLE)
    house = f"{HEADER},House", f"{MAYA},Blue", f"{ALI},"
    assert counts(run_import(administration, *house)) == (0, 2, 0, 0)
    # A blank cell says that Ali is in no house.
    assert subgroups() == [
        {"House": "Blue", "lunch": "free", "100%é": "yes"},
        {"lunch": "paid", "100%é": "no"},
    ]
    assert counts(run_import(administration, *house)) == (0, 0, 2, 0)
    assert counts(run_import(administration, HEADER, MAYA, ALI)) == (0, 0, 2, 0)
    assert counts(run_import(administration, *WHOLE)) == (0, 2, 0, 0)
    assert counts(run_import(administration, *WHOLE)) == (0, 0, 2, 0)


def test_they_would_be_lost_if_the_rows_were_written_as_they_are(
    administration, monkeypatch
):
    monkeypatch.setattr(diff, "with_unstated_subgroups", lambda *_: "new.attributes")
    run_import(administration, *WHOLE)
    run_import(administration, f"{HEADER},House", f"{MAYA},Blue", f"{ALI},")
    assert subgroups() == [{"House": "Blue"}, {}]


def test_people_who_move_or_come_back_keep_them_too(administration):
    run_import(administration, *WHOLE)
    house = f"{HEADER},House"
    run_import(administration, house, f"{MAYA},Red", complete_for="schools")
    moved = f"{MAYA},Red".replace("lincoln", "washington")
    run_import(administration, house, moved, f"{ALI},Blue")
    assert Respondent.objects.filter(withdrawn_at=None).count() == 2
    assert [values["lunch"] for values in subgroups()] == ["free", "paid"]


def test_subgroups_that_are_no_longer_declared_are_not_kept(administration):
    run_import(administration, *WHOLE)
    del administration.subgroups["lunch"]
    administration.save(update_fields=["subgroups"])
    run_import(administration, f"{HEADER},House", f"{MAYA},Red")
    assert subgroups()[0] == {"House": "Red", "100%é": "yes"}


def test_undoing_restores_all_subgroups(administration, staff, console_of):
    dana = console_of(staff.dana)
    dana.apply(administration, *WHOLE)
    before = all_people()
    upload = dana.apply(
        administration,
        f"{HEADER},House",
        f"{MAYA},Blue",
        f"{ALI},",
        complete_for="changes",
    )
    assert [values["lunch"] for values in subgroups()] == ["free", "paid"]
    dana.post(f"/console/rosters/{upload.pk}/undo/")
    upload.refresh_from_db()
    assert upload.state == "undone", upload.message
    assert all_people() == before
