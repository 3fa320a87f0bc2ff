"""Which answers are sent, and which rows they become."""

from __future__ import annotations

from provisioning.prove.fault_injection.saves import (
    ANSWERED,
    AnswerSource,
    Item,
    fingerprint,
)
from survey.models import Response

PAGES = {2: [Item(9, "first", ("a", "b", "c")), Item(8, "second", ("x", "y"))]}
SOURCE = AnswerSource(seed=7, pages=PAGES)


def test_every_item_gets_one_of_its_values():
    for revision in range(20):
        answers = SOURCE.answers(41, 2, revision)
        assert answers["first"] in ("a", "b", "c")
        assert answers["second"] in ("x", "y")


def test_all_values_are_drawn():
    drawn = {SOURCE.answers(41, 2, revision)["first"] for revision in range(50)}
    assert drawn == {"a", "b", "c"}


def test_answers_follow_from_seed_respondent_page_and_revision():
    item = Item(1, "q", tuple("abcdefghijklmnop"))
    pages = dict.fromkeys((1, 2), [item] * 1)
    drawn = [
        AnswerSource(seed, pages).answers(respondent, page, revision)["q"]
        for seed in (1, 2, 3)
        for respondent in (41, 42, 43)
        for page in (1, 2)
        for revision in (1, 2, 3)
    ]
    assert len(set(drawn)) > 10
    assert SOURCE.answers(41, 2, 7) == SOURCE.answers(41, 2, 7)


def test_a_fingerprint_does_not_depend_on_the_order_of_items():
    answers = SOURCE.answers(41, 2, 1)
    assert fingerprint(answers) == fingerprint(dict(reversed(answers.items())))
    assert fingerprint(answers) != fingerprint({**answers, "first": "z"})


def test_stored_answers_are_known_by_the_ids_of_items():
    sent, stored = SOURCE.answers(41, 2, 1), SOURCE.stored(41, 2, 1)
    assert stored == {9: sent["first"], 8: sent["second"]}
    assert ANSWERED == Response.State.ANSWERED


def test_described_pages_become_items():
    described = {
        "pages": [{"n": 3, "items": [{"id": 9, "name": "q", "values": ["x"]}]}]
    }
    assert AnswerSource.of(1, described).pages == {3: [Item(9, "q", ["x"])]}
