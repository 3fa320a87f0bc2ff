"""Surveys of SurveyJS."""

from __future__ import annotations

import json

from survey.tests.foreign.converting import Result
from survey.tests.foreign.samples import school_json


def converted(*elements) -> Result:
    return Result(json.dumps({"elements": list(elements)}).encode())


def test_survey_of_surveyjs_becomes_a_draft_and_a_report():
    result = Result(json.dumps(school_json()).encode())
    assert result.draft.title == {"en": "Pets", "es": "Mascotas"}
    pet = result.row("pet")
    assert pet["required"] == "yes" and result.options("pet") == ["yes", "no"]
    assert pet["label::español (es)"] == "¿Una mascota?"
    many = result.row("many")
    assert (many["relevant"], many["constraint"]) == ("${pet} = 'yes'", ". <= 20")
    hay = result.row("hay")
    assert hay["relevant"] == "selected(${food}, 'hay') and ${many} > 1"
    assert hay["label::English (en)"] == "Why, ${many}?"
    (grid,) = [b for page in result.draft.pages for b in page.blocks if b.is_grid]
    assert [item.name for item in grid.items] == ["mood_home", "mood_school"]
    assert result.outcome("rank") == "refused"
    assert result.outcome("odd", "rule") == "refused"
    assert "relevant" not in result.row("odd")


def test_booleans_compare_with_words_and_stand_alone():
    result = converted(
        {"type": "boolean", "name": "ok", "title": "Ok?"},
        {"type": "text", "name": "a", "title": "A?", "visibleIf": "{ok} = true"},
        {"type": "text", "name": "b", "title": "B?", "visibleIf": "{ok}"},
        {"type": "text", "name": "c", "title": "C?", "visibleIf": "{ok} empty"},
    )
    rules = [result.row(name)["relevant"] for name in "abc"]
    assert rules == ["${ok} = 'true'", "${ok} = 'true'", "${ok} = ''"]


def test_options_that_follow_other_answers_are_filtered():
    result = converted(
        {"type": "checkbox", "name": "a", "title": "A?", "choices": ["x", "y"]},
        {
            "type": "radiogroup",
            "name": "b",
            "title": "B?",
            "choices": ["x", "y"],
            "choicesVisibleIf": "{a} contains {item}",
        },
    )
    assert result.row("b")["choice_filter"] == "selected(${a}, name)"
    # Both have one list.
    assert result.options("a") == ["x", "y"] and result.options("b") == []


def test_names_that_are_no_names_are_changed_by_a_stable_rule():
    result = converted(
        {"type": "text", "name": "How many pets?", "title": "A?"},
        {"type": "text", "name": "how many pets", "title": "B?"},
        {"type": "text", "name": "2nd", "title": "C?"},
        {"type": "text", "name": "constructor", "title": "D?"},
    )
    names = [item.name for item in result.draft.items()]
    assert names == ["How_many_pets", "how_many_pets_2", "q2nd", "q_constructor"]


def test_comparisons_of_texts_are_refused_because_of_their_case():
    result = converted(
        {"type": "text", "name": "a", "title": "A?"},
        {"type": "radiogroup", "name": "b", "title": "B?", "choices": ["xy", "x"]},
        {"type": "text", "name": "c", "title": "C?", "visibleIf": "{a} = 'Yes'"},
        # True of xy as well.
        {"type": "text", "name": "d", "title": "D?", "visibleIf": "{b} contains 'x'"},
        {"type": "text", "name": "e", "title": "E?", "visibleIf": "{b} anyof ['x']"},
    )
    outcomes = [result.outcome(name, "rule") for name in "cde"]
    assert outcomes == ["refused", "refused", "taken"]


def test_texts_that_quote_what_is_no_answer_are_in_the_report():
    reason = "computed texts are shown as written: {total}"
    result = converted(
        {
            "type": "radiogroup",
            "name": "a",
            "title": "Of {total}?",
            "choices": [{"value": "x", "text": "All {total}"}],
        },
        {"type": "panel", "name": "p", "title": "{total}", "elements": []},
        {
            "type": "matrix",
            "name": "m",
            "title": "<b>Of</b> {total}",
            "columns": ["1"],
            "rows": ["r"],
        },
    )
    for place, part in (("a", "question"), ("a", "options"), ("p", "group")):
        (line,) = result.lines(place, part)
        assert (line.outcome, line.reason) == ("changed", reason)
    (line,) = result.lines("m")
    assert line.reason == f"formatting is lost; {reason}"
    assert result.row("a")["label::English (en)"] == "Of {total}?"
