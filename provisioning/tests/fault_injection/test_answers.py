"""Which answers are sent, and which rows they become."""

from __future__ import annotations

from provisioning.fault_injection.answers import (
    Item,
    answers_for,
    as_stored,
    fingerprint,
    pages_of,
)

ITEMS = [
    Item(1, "choice", "select_one", ("a", "b", "c")),
    Item(2, "several", "select_multiple", ("a", "b", "c")),
    Item(3, "text", "text"),
    Item(4, "number", "integer"),
    Item(5, "date", "date"),
]


def draw(revision, items=ITEMS):
    return answers_for(seed=7, respondent=41, page=2, revision=revision, items=items)


def test_each_kind_of_item_gets_an_answer_of_its_kind():
    for revision in range(20):
        answers = draw(revision)
        assert answers["choice"] in ("a", "b", "c")
        assert set(answers["several"]) <= {"a", "b", "c"}
        assert answers["number"].isdigit()
        assert answers["date"] is None


def test_a_text_names_respondent_page_and_revision():
    assert draw(1003)["text"].startswith("41 on 2 at 1003: ")


def test_all_options_are_drawn():
    assert {draw(revision)["choice"] for revision in range(50)} == {"a", "b", "c"}


def test_a_fingerprint_does_not_depend_on_the_order_of_items():
    answers = draw(1)
    assert fingerprint(answers) == fingerprint(dict(reversed(answers.items())))
    assert fingerprint(answers) != fingerprint({**answers, "choice": "z"})


def test_a_blank_answer_is_stored_as_skipped():
    assert as_stored("") == as_stored(None) == as_stored([]) == ("s", None)
    assert as_stored("a") == ("a", "a")


def test_described_pages_become_items():
    described = {
        "pages": [
            {
                "n": 3,
                "items": [
                    {"id": 9, "name": "q", "kind": "select_one", "values": ["x"]}
                ],
            }
        ]
    }
    assert pages_of(described) == {3: [Item(9, "q", "select_one", ("x",))]}
