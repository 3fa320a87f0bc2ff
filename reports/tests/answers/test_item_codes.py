"""Both ways to read answers, and rules over pages, find the same on PostgreSQL."""

from __future__ import annotations

import random

import pytest
from django.db import connection

from reports.answers import item_codes
from reports.answers.people import read_people
from reports.releases import changes
from reports.releases.rollup import roll_up_results
from reports.tests.exports.conftest import (
    FIRST,
    SKIP,
    answer,
    draft,
    group,
    opened,
    published,
)
from reports.tests.releases.conftest import stored
from reports.tests.releases.slow_count import slowly_counted
from reports.tests.releases.stored_figures import distributions
from survey.instrument.definitions.corrections import publish_correction, use_correction
from survey.models import Administration, Respondent

pytestmark = [pytest.mark.django_db, pytest.mark.sqlite]

RULES = [
    FIRST[0],
    group("p1", "School", "Escuela"),
    ["text", "word", "A word?", "¿Palabra?"],
    ["date", "born", "Born?", "¿Nacimiento?"],
    ["select_multiple pets", "pets", "Your pets?", "¿Mascotas?"],
    ["select_one agree", "safe", "Safe?", "¿A salvo?"],
    ["end group"],
    group("p2", "Later", "Después"),
    ["select_one agree", "odd", "Odd?", "¿Raro?", '${word} = "it\'s odd"'],
    ["select_one agree", "old", "Old?", "¿Viejo?", "${born} < '2010-01-01'"],
    ["select_one agree", "both", "Both?", "¿Ambos?", "count-selected(${pets}) = 2"],
    ["integer", "deep", "Deep?", "¿Hondo?", "${odd} = 1"],
    ["end group"],
    ["calculate", "sum", None, None, None, "${safe} + coalesce(${old}, 0)"],
]
GIVEN = {
    "word": ["it's odd", "even", "tab\there", SKIP],
    "born": ["2009-12-31", "2010-01-01", SKIP],
    "pets": ["cat", "cat dog", SKIP],
    "safe": ["1", "2", "-1", SKIP],
    "odd": ["1", "2"],
    "old": ["1", "2"],
    "both": ["2", SKIP],
    "deep": ["3", "4000"],
}


@pytest.fixture
def ruled(staff, db, enrol) -> Administration:
    """40 people who answered items that other answers made inapplicable."""
    administration = opened(published(RULES, "r"), "ruled")
    dice = random.Random(3)
    for number in range(40):
        person = enrol(administration, dice.choice([staff.lincoln, staff.roosevelt]))
        if number % 3 == 0:
            person.completed_at = person.started_at
            person.save(update_fields=["completed_at"])
        names = dice.sample(list(GIVEN), dice.randint(1, len(GIVEN)))
        answer(person, {name: dice.choice(GIVEN[name]) for name in names})
    return administration


def test_items_that_another_page_hid_are_masked(ruled):
    roll_up_results(ruled)
    assert stored(ruled) == slowly_counted(ruled)
    items = distributions(ruled).items
    # Some of those who answered, and some who passed by.
    assert items["deep"].not_applicable > 10
    assert sum(items["deep"].values.values()) > 0
    assert sum(items["sum"].values.values()) > 0


def test_people_are_looked_up_with_the_same_result(ruled, monkeypatch):
    roll_up_results(ruled)
    expected = stored(ruled)
    read = changes.read_answers
    asked = []

    def some(*args, everyone, **fields):
        asked.append(everyone)
        return read(*args, everyone=False, **fields)

    monkeypatch.setattr(changes, "read_answers", some)
    ruled.results_roll_up.delete()
    roll_up_results(ruled)
    assert (asked, stored(ruled)) == ([True], expected)


@pytest.mark.skipif(connection.vendor != "postgresql", reason="SQLite never packs")
@pytest.mark.parametrize("limit", ["MOST_PACKED_VALUES", "MOST_KEYS"])
def test_answers_that_cannot_be_packed_are_fetched(ruled, monkeypatch, limit):
    monkeypatch.setattr(item_codes, limit, 0)
    roll_up_results(ruled)
    assert stored(ruled) == slowly_counted(ruled)


@pytest.mark.skipif(connection.vendor != "postgresql", reason="SQLite never packs")
@pytest.mark.parametrize("is_distributed", [False, True])
def test_answers_are_packed_page_by_page_or_by_person(
    ruled, monkeypatch, settings, is_distributed
):
    settings.IS_DISTRIBUTED = is_distributed
    monkeypatch.setattr(item_codes, "PAGES_AT_ONCE", 1)
    written = []
    write = item_codes.PackedAnswers.write

    def recorded(reader, data):
        written.append(len(data))
        write(reader, data)

    monkeypatch.setattr(item_codes.PackedAnswers, "write", recorded)
    # Somebody whose answers do not count, and whose key is the last.
    last = Respondent.objects.filter(administration=ruled).latest("pk")
    last.opted_out_at = last.withdrawn_at = last.started_at
    last.save(update_fields=["opted_out_at", "withdrawn_at"])
    roll_up_results(ruled)
    assert stored(ruled) == slowly_counted(ruled)
    # A message for each page of the table, or for each person.
    assert len(written) > 2
    assert (len(written) > 20) == is_distributed


@pytest.mark.skipif(connection.vendor != "postgresql", reason="SQLite has one process")
def test_one_process_reads_so_that_page_saves_have_the_other_processor(ruled):
    def most_helpers():
        with connection.cursor() as cursor:
            cursor.execute("SHOW max_parallel_workers_per_gather")
            return cursor.fetchone()[0]

    assert most_helpers() != "0"
    # It reads in the transaction of this test.
    roll_up_results(ruled)
    assert most_helpers() == "0"


def test_people_of_both_versions_of_a_corrected_survey_count_together(
    staff, fall, enrol
):
    corrected = [*FIRST[:2], [*FIRST[2][:2], "I feel safe.", *FIRST[2][3:]], *FIRST[3:]]
    correction = publish_correction(
        survey=draft(corrected, "1.1"), corrects=fall.published, by=staff.state
    )
    # Both persons' items have the same keys: `answer` finds those of the first.
    answer(enrol(fall, staff.lincoln), {"safe": "1"})
    answer(enrol(fall, staff.lincoln), {"safe": "1"})
    use_correction(administration=fall, published=correction, by=staff.state)
    roll_up_results(Administration.objects.get(pk=fall.pk))
    assert distributions(fall).items["safe"].values == {"1": 2, "2": 0, "-1": 0}


def test_grades_and_languages_with_any_character_are_read(staff, fall, enrol):
    enrol(fall, staff.lincoln, grade="0\x1f7", language="e\x1fs")
    [group] = read_people("default", fall).groups
    assert (group.school, group.grade, group.language, group.attributes) == (
        *(staff.lincoln.pk, "0\x1f7", "e\x1fs", {}),
    )
