"""Change the roster before and after a release: nobody's row stands out.

Rows of two files can be matched by the answers, so a change of one person's cells
would name the row of that person.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from django.utils import timezone

from reports.rates.counting_groups import let_changes_count
from reports.releases import rollup
from reports.tests.exports.conftest import (
    FIRST,
    answer_all,
    made,
    opened,
    published,
    released,
    respondent_of,
)
from reports.tests.exports.test_formats import rows_of
from reports.tests.exports.test_minimum_group import CELLS as ALL_CELLS
from survey.models import CountedGroup, Identity, Respondent
from survey.tests.rosters.roster_imports import run_import

pytestmark = pytest.mark.django_db

HEADER = "district,school,role,grade,language,sex,student ID"
CELLS = tuple(name for name in ALL_CELLS if name != "track")


@pytest.fixture
def administration(staff):
    protected = opened(published(FIRST, "3"), "protected", minimum_group=5)
    protected.subgroups = {"sex": ["f", "m"]}
    protected.save(update_fields=["subgroups"])
    return protected


@pytest.fixture
def people(staff, administration):
    """Invite 30 people of grade 7 and 30 of grade 8, each with another age."""
    respondents = Respondent.objects.bulk_create(
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
            respondent=respondent,
            administration=administration,
            district=staff.riverside,
            external_id=str(100 + number),
        )
        for number, respondent in enumerate(respondents)
    )
    answer_all(
        administration,
        ((respondent, {"age": str(n)}) for n, respondent in enumerate(respondents)),
    )
    return respondents


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
def test_a_change_of_one_person_before_the_closing_is_in_no_row(
    staff, administration, people, edit
):
    for changed in EDITS[edit]:
        assert run_import(administration, HEADER, changed).changed == 1
    cells = cells_by_age(staff, administration)
    assert cells[3][CELLS.index("grade")] == "07"
    assert cells[3] == cells[5]


@pytest.mark.sqlite
@pytest.mark.parametrize(
    "changes",
    [
        {"grade": "08"},
        {"attributes": {"sex": "f"}},
        {"language": "es"},
        {"withdrawn_at": datetime(2027, 3, 9, tzinfo=UTC)},
    ],
)
def test_a_change_of_one_person_after_the_release_changes_no_row(
    staff, administration, people, changes
):
    before = cells_by_age(staff, administration)
    Respondent.objects.filter(pk=people[3].pk).update(**changes)
    assert cells_by_age(staff, administration) == before


@pytest.mark.sqlite
def test_with_the_roster_of_today_the_one_row_that_changes_is_that_person(
    staff, administration, people, monkeypatch
):
    before = cells_by_age(staff, administration)
    Respondent.objects.filter(pk=people[3].pk).update(grade="08")
    monkeypatch.setattr(rollup, "schools_to_keep", lambda *_: set())
    released(administration)
    after = cells_by_age(staff, administration)
    assert [age for age in after if after[age] != before[age]] == [3]


@pytest.mark.sqlite
def test_changes_of_many_people_are_in_the_file(staff, administration, people):
    moved = [line(number, grade="8") for number in range(12)]
    run_import(administration, HEADER, *moved)
    yesterday = timezone.now() - timedelta(days=1)
    CountedGroup.objects.update(changed_at=yesterday)
    let_changes_count(administration, yesterday)
    after = cells_by_age(staff, administration)
    grade = CELLS.index("grade")
    assert {after[age][grade] for age in range(12)} == {"08"}
    assert {after[age][grade] for age in range(12, 30)} == {"07"}


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
