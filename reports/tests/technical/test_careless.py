"""People who seem not to have read the questions, and those who did."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from reports.answers.item_codes import SKIPPED, VALUE, ItemCodes
from reports.answers.people import read_people
from reports.answers.versions import versions_of
from reports.scores.visible import measures_in_survey
from reports.technical.careless import (
    Statements,
    fast_answers,
    statements_of,
    straight_lines,
)
from reports.tests.scores.conftest import (  # noqa: F401
    closed,
    published,
    shared_staff,
    simulated,
    staff,
    take_part,
)
from survey.models import Response
from survey.tests.conftest import empty_caches  # noqa: F401

pytestmark = pytest.mark.django_db

OPTIONS = ["1", "2", "3", "4"]
PAGE = Statements(["a", "b", "c", "d"], [False, False, True, False], OPTIONS)


def answers_of(*people, items="abcd"):
    """Return the answers of people, each a text with a digit for each item."""
    values = sorted({value for person in people for value in person} - {"-"})
    place = {value: VALUE + number for number, value in enumerate(values)}
    return {
        item: ItemCodes(
            np.array([place.get(person[number], SKIPPED) for person in people]), values
        )
        for number, item in enumerate(items)
    }


def flagged(pages, *people, **items):
    flags = straight_lines(pages, answers_of(*people, **items), len(people))
    return [
        "flagged" if flag else "judged" if judged else ""
        for flag, judged in zip(flags.is_flagged, flags.is_judged, strict=True)
    ]


def test_the_same_answer_to_opposite_statements_is_flagged():
    assert flagged([PAGE], "4444", "4414", "1111", "3343") == [
        *("flagged", "judged", "flagged", "judged")
    ]


def test_too_few_answers_are_not_judged():
    assert flagged([PAGE], "444-", "44-4", "----", "4444") == ["", "", "", "flagged"]


def test_the_middle_answer_means_the_same_either_way():
    page = Statements(PAGE.items, PAGE.is_reversed, [*OPTIONS, "5"])
    assert flagged([page], "3333", "5555") == ["judged", "flagged"]


def test_dont_know_is_no_answer():
    assert flagged([PAGE], "9999", "4449") == ["", ""]


def test_only_people_with_a_line_on_every_page_are_flagged():
    second = Statements(["e", "f", "g", "h"], [True, False, False, False], OPTIONS)
    assert flagged(
        [PAGE, second], "44442222", "44442122", "4444--22", items="abcdefgh"
    ) == ["flagged", "judged", "flagged"]


def test_statements_are_those_of_a_page_with_reversed_ones(staff):  # noqa: F811
    administration = closed(published())
    [version] = versions_of([administration]).values()
    pages = statements_of(version, measures_in_survey(administration))
    # The second page has no reversed statement, so a line can be meant.
    assert pages == [
        Statements(["q1", "q2", "q3", "q4"], [False, False, True, False], OPTIONS)
    ]


def saved(administration, person, seconds_per_page, items):
    """Let a person save a page of these items each, so many seconds later."""
    at = datetime(2027, 3, 1, 14, tzinfo=UTC)
    rows = Response.objects.filter(
        administration_id=administration.pk, respondent_id=person.pk
    )
    keys = list(rows.order_by("item_id").values_list("item_id", flat=True))
    for number in range(0, len(keys), items):
        rows.filter(item_id__in=keys[number : number + items]).update(saved_at=at)
        at += timedelta(seconds=seconds_per_page)


def test_answers_faster_than_reading_are_flagged(staff):  # noqa: F811
    names = [f"q{n}" for n in range(1, 16)]
    administration = closed(published(items=names, measures=[]))
    row = ["1"] * 15
    fast, slow, paused, short = take_part(
        administration, staff.lincoln, [row, row, row, ["1"] * 9 + [""] * 6], names
    )
    saved(administration, fast, 4, items=3)
    saved(administration, slow, 9, items=3)
    # Whoever goes away for an hour has nothing left to be judged by.
    saved(administration, paused, 3600, items=3)
    saved(administration, short, 1, items=3)

    people = read_people("default", administration)
    flags = fast_answers(administration, people)
    place = {key: number for number, key in enumerate(people.ids.tolist())}
    assert [
        (
            bool(flags.is_judged[place[person.pk]]),
            bool(flags.is_flagged[place[person.pk]]),
        )
        for person in (fast, slow, paused, short)
    ] == [(True, True), (True, False), (False, False), (False, False)]


def test_people_who_are_not_in_the_release_are_in_no_figure(staff):  # noqa: F811
    names = [f"q{n}" for n in range(1, 16)]
    administration = closed(published(items=names, measures=[]))
    first, second = take_part(administration, staff.lincoln, [["1"] * 15] * 2, names)
    for person in (first, second):
        saved(administration, person, 4, items=3)
    people = read_people("default", administration)
    only = people.chosen(people.ids == second.pk)
    flags = fast_answers(administration, only)
    assert flags.is_flagged.tolist() == [True]
