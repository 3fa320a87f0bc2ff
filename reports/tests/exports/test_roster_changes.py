"""Compare exports made before and after a roster change: nobody stands out.

Their rows can be matched by the answers, so a change of one person's cells would
name the row of that person.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from django.utils import timezone

from reports.counting_groups import let_changes_count
from reports.exports.selection import Selection
from reports.tests.exports.conftest import (
    FIRST,
    answer,
    answer_all,
    made,
    opened,
    published,
    respondent_of,
)
from reports.tests.exports.test_formats import rows_of
from reports.tests.exports.test_minimum_group import CELLS as ALL_CELLS
from survey.models import CountedGroup, Identity, Respondent
from survey.tests.rosters.roster_imports import run_import

pytestmark = pytest.mark.django_db

HEADER = "district,school,role,grade,language,sex,student ID"
CELLS = tuple(name for name in ALL_CELLS if name != "track")
SAME_SCHOOL = {"complete_for": "schools"}


@pytest.fixture
def administration(staff):
    found = opened(published(FIRST, "3"), "protected", minimum_group=5)
    found.subgroups = {"sex": ["f", "m"]}
    found.save(update_fields=["subgroups"])
    return found


@pytest.fixture
def people(staff, administration):
    """Invite 30 people of grade 7 and 30 of grade 8, each with another age."""
    found = Respondent.objects.bulk_create(
        respondent_of(
            administration,
            staff.lincoln,
            grade="07" if number < 30 else "08",
            language="en",
            attributes={"sex": "fm"[number % 2]},
            started_at=datetime(2027, 3, 1, 15, tzinfo=UTC),
        )
        for number in range(60)
    )
    Identity.objects.bulk_create(
        Identity(
            respondent=one,
            administration=administration,
            district=staff.riverside,
            external_id=str(100 + number),
        )
        for number, one in enumerate(found)
    )
    answer_all(administration, ((one, {"age": str(n)}) for n, one in enumerate(found)))
    return found


def line(number, *, grade=None, sex=None, language="English"):
    grade = grade or ("7" if number < 30 else "8")
    sex = sex or "fm"[number % 2]
    return f"Riverside,Lincoln,student,{grade},{language},{sex},{100 + number}"


def cells_by_age(staff, administration):
    rows = rows_of(made(staff.state, administration))
    return {int(row["age"]): tuple(row[name] for name in CELLS) for row in rows}


EDITS = {
    "grade": [line(3, grade="8")],
    "sex": [line(3, sex="f")],
    "language": [line(3, language="Spanish")],
    "away and back": [line(3, grade="8"), line(3)],
}


@pytest.mark.parametrize("edit", EDITS)
def test_a_change_of_one_person_changes_no_row(staff, administration, people, edit):
    before = cells_by_age(staff, administration)
    assert before[3][CELLS.index("grade")] == "07"
    for changed in EDITS[edit]:
        assert run_import(administration, HEADER, changed).changed == 1
    assert cells_by_age(staff, administration) == before
    tomorrow = timezone.now() + timedelta(days=1)
    CountedGroup.objects.update(changed_at=tomorrow - timedelta(days=2))
    let_changes_count(administration, tomorrow - timedelta(days=2))
    assert cells_by_age(staff, administration) == before


@pytest.mark.sqlite
def test_withdrawing_one_person_changes_no_row(staff, administration, people):
    before = cells_by_age(staff, administration)
    others = [line(number) for number in range(60) if number != 3]
    assert run_import(administration, HEADER, *others, **SAME_SCHOOL).withdrawn == 1
    assert cells_by_age(staff, administration) == before


def test_without_counted_groups_the_one_row_that_changes_is_that_person(
    staff, administration, people, monkeypatch
):
    monkeypatch.setattr(Selection, "shows_counted", lambda *_: False)
    before = cells_by_age(staff, administration)
    run_import(administration, HEADER, line(3, grade="8"))
    after = cells_by_age(staff, administration)
    assert [age for age in after if after[age] != before[age]] == [3]


@pytest.mark.sqlite
def test_changes_of_many_people_are_exported_on_the_next_day(
    staff, administration, people
):
    run_import(
        administration, HEADER, *(line(number, grade="8") for number in range(12))
    )
    yesterday = timezone.now() - timedelta(days=1)
    CountedGroup.objects.update(changed_at=yesterday)
    let_changes_count(administration, yesterday)
    after = cells_by_age(staff, administration)
    grade = CELLS.index("grade")
    assert {after[age][grade] for age in range(12)} == {"08"}
    assert {after[age][grade] for age in range(12, 30)} == {"07"}


def test_a_corrected_subgroup_of_many_people_follows_a_day_after_their_grade(
    staff, administration, people
):
    """Others count the next day, even if a few change their subgroup as well."""
    moved = [line(n, grade="8", sex="m" if n < 4 else "f") for n in range(30)]
    run_import(administration, HEADER, *moved)
    found = []
    for _ in range(2):
        yesterday = timezone.now() - timedelta(days=1)
        CountedGroup.objects.update(changed_at=yesterday)
        let_changes_count(administration, yesterday)
        after = cells_by_age(staff, administration)
        found.append({age: after[age][CELLS.index("sex")] for age in range(30)})
        assert {after[age][CELLS.index("grade")] for age in range(30)} == {"08"}
    assert found[0] == {age: "fm"[age % 2] for age in range(30)}
    # Thirteen change from m to f. The other way are only two, who wait.
    changed = range(5, 30, 2)
    assert {found[1][age] for age in changed} == {"f"}
    # The others are apart from those now, and two boys among them too few.
    assert {found[1][age] for age in range(30) if age not in changed} == {"*"}


@pytest.mark.sqlite
def test_people_who_came_later_have_no_cells(staff, administration, people):
    run_import(administration, HEADER, *(line(number) for number in range(60, 66)))
    new = Respondent.objects.order_by("pk")[60:]
    Respondent.objects.filter(pk__in=[one.pk for one in new]).update(
        started_at=datetime(2027, 3, 1, 15, tzinfo=UTC)
    )
    for number, one in enumerate(new, start=60):
        answer(one, {"age": str(number)})
    after = cells_by_age(staff, administration)
    assert {set(after[age]) == {"*"} for age in range(60, 66)} == {True}
    assert after[3][CELLS.index("grade")] == "07"


def test_a_file_with_names_has_the_roster_of_today(staff, administration, people):
    run_import(administration, HEADER, line(3, grade="8"))
    export = made(
        staff.dana,
        administration,
        places={"districts": [staff.riverside.pk]},
        identities=True,
        reason="consent has to be checked",
    )
    grades = {row["age"]: row["grade"] for row in rows_of(export)}
    assert (grades["3"], grades["4"]) == ("08", "07")
