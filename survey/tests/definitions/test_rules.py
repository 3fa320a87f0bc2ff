"""Rules applied to answers, as the shared vectors say.

The browser's tests run the same vectors.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from survey.instrument.definitions import rules
from survey.instrument.definitions.rules import page_state, plain_items, state_of
from survey.tests.definitions.compiled import (
    DEFINITION,
    VECTORS,
    clock_of,
    definition_of,
    expected,
)


def outcome(state, vector):
    """Return the parts of the state that the vector describes."""
    values = {name: state.values[name] for name in vector.get("values", {})}
    offered = {
        name: [option["value"] for option in state.offered(name)]
        for name in vector.get("offered", {})
    }
    result = {
        "hidden": [name for name in DEFINITION["items"] if not state.relevant[name]],
        "problems": state.problems,
        "values": values,
        "offered": offered,
        "pages": sorted(state.visible_pages()),
    }
    return {key: result[key] for key in result if key in vector}


@pytest.mark.parametrize("vector", VECTORS["whole"], ids=lambda v: v["about"])
def test_rules_of_the_whole_survey(vector):
    state = state_of(DEFINITION, vector["answers"], **clock_of(vector))

    assert outcome(state, vector) == expected(vector)


ANSWER = st.sampled_from(
    ["", "yes", "no", "dog", "cat dog", "other", "n", "lincoln", "7", "2010-01-01"]
)


def results_of(answers, plain=None):
    state = state_of(DEFINITION, answers, plain, **VECTORS["clock"])
    return state.relevant, state.values, state.problems, state.visible_pages()


@given(st.data())
def test_items_without_rules_are_the_same_when_prepared(data):
    names = st.sampled_from(sorted(DEFINITION["items"]))
    answers = data.draw(st.dictionaries(names, ANSWER))
    plain = plain_items(DEFINITION)
    assert plain.blank and plain.offered and plain.ruled
    assert results_of(answers, plain) == results_of(answers)


def test_without_looking_for_rules_some_would_not_be_applied(monkeypatch):
    monkeypatch.setattr(rules, "RULES", ())
    assert results_of({}, plain_items(DEFINITION)) != results_of({})


@pytest.mark.parametrize("vector", VECTORS["page_alone"], ids=lambda v: v["about"])
def test_rules_of_a_single_page(vector):
    state = page_state(
        DEFINITION, vector["page"], vector["answers"], **clock_of(vector)
    )

    on_page = [n for n, i in DEFINITION["items"].items() if i["page"] == vector["page"]]
    assert sorted(state.relevant) == sorted(on_page)
    assert state.problems == vector["problems"]
    assert [name for name in on_page if not state.relevant[name]] == vector["hidden"]


@given(st.dictionaries(st.sampled_from(sorted(DEFINITION["items"])), ANSWER))
def test_single_page_finds_no_problem_that_the_whole_survey_does_not(answers):
    # Otherwise a save would refuse answers that the browser accepted.
    whole = state_of(DEFINITION, answers, **VECTORS["clock"])
    sent = {name: whole.values[name] for name in answers}
    for number in range(1, 9):
        alone = page_state(DEFINITION, number, sent, **VECTORS["clock"])
        answered = {n: p for n, p in alone.problems.items() if p != "required"}
        assert answered.items() <= whole.problems.items()


def test_calculated_texts_are_cut_at_the_longest_answer():
    items = {"q": {"page": 1, "kind": "text"}}
    for number in range(12):
        before = f"c{number - 1}" if number else "q"
        items[f"c{number}"] = {
            "page": 1,
            "kind": "calculate",
            "calculation": f"concat(${{{before}}}, ${{{before}}})",
        }
    survey = definition_of({"languages": [], "option_sets": {}, "items": items})

    state = state_of(survey, {"q": "x" * 1000}, **VECTORS["clock"])

    assert len(state.values["c0"]) == 2000
    assert len(state.values["c11"]) == 5000
