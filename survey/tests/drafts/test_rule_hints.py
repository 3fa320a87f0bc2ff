"""Rules that can never be true are found, and mistakes are explained."""

from __future__ import annotations

import itertools
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from settings.tests.patience import patience
from survey.instrument.definitions.expressions import (
    Context,
    compile_expression,
    evaluate,
    references,
)
from survey.instrument.drafts.rule_hints import rule_hints, rule_problems
from survey.instrument.drafts.rule_logic import RuleLogic
from survey.tests.workbooks import read

HEAD = ["type", "name", "label", "relevant", "constraint", "required", "choice_filter"]
QUESTIONS = [
    ["select_one agree", "safe", "Do you feel safe?"],
    ["select_multiple pets", "pets", "Which pets do you have?"],
    ["integer", "age", "How old are you?", "", ". >= 4 and . <= 19"],
    ["text", "name", "What is your name?"],
    ["date", "born", "When were you born?"],
    ["calculate", "score", "Score"],
]


def draft_of(*rows):
    questions = [[*row, *[""] * (len(HEAD) - len(row))] for row in (*QUESTIONS, *rows)]
    calculation = {"score": "${age} * 2"}
    survey = [
        [*HEAD, "calculation"],
        *([*row, calculation.get(row[1], "")] for row in questions),
    ]
    reading = read(survey)
    assert reading.draft, [str(problem) for problem in reading.problems]
    return reading.draft


def hints_of(*rows):
    return [(hint.item, hint.rule, hint.kind) for hint in rule_hints(draft_of(*rows))]


def kinds(relevant, rule="relevant"):
    column = HEAD.index(rule)
    row = ["text", "q", "Q", *[""] * (column - 3), relevant]
    return [kind for item, _, kind in hints_of(row) if item == "q"]


def test_hints_name_the_question_and_what_is_wrong():
    draft = draft_of(
        ["text", "why", "Why?", "${safe} = '1' and ${safe} = '2'"],
        ["text", "colors", "Colors?", "${pets} = '' or ${pets} != ''"],
        ["text", "dog", "The dog?", "${age} >= 15"],
        ["text", "child", "As a child?", "${dog} != '' and ${age} < 10"],
    )
    hints = rule_hints(draft)
    assert [(hint.item, hint.row, hint.kind) for hint in hints] == [
        ("why", 8, "never"),
        ("colors", 9, "always"),
        ("child", 11, "unreachable"),
    ]
    assert hints[0].message == (
        "This question is never shown: its rule can never be true."
    )
    assert hints[2].names == ("age", "dog")
    assert "“How old are you?”, “The dog?”" in hints[2].message


@pytest.mark.parametrize(
    "rule",
    [
        "${safe} = '1' and ${safe} = '2'",
        "${safe} = '1' and ${safe} = ''",
        "${age} > 19",
        "${age} < 4",
        "${age} > 5 and ${age} < 6",
        "${name} = 'a' and ${name} = 'b'",
        "${name} != '' and string-length(${name}) = 0",
        "${born} > '2010-01-01' and ${born} <= '2009-12-31'",
        "selected(${pets}, 'dog') and ${pets} = ''",
        "count-selected(${pets}) > 2",
        "${safe} > 2",
        # Unknown parts are the same in both places.
        "${score} > 5 and not(${score} > 5)",
        "(${age} = 5 or ${age} = 6) and ${age} > 7",
    ],
)
def test_rules_that_can_never_be_true_are_found(rule):
    assert "never" in kinds(rule)


def test_a_rule_that_is_true_without_an_answer_is_named():
    for rule in (
        "${safe} != '1'",
        "not(selected(${pets}, 'dog'))",
        "${safe} != '1' and ${name} != 'a'",
        "not(${age} > 5)",
    ):
        assert kinds(rule) == ["unanswered"]
    row = ["text", "q", "Q", "${safe} != '1'"]
    [hint] = rule_hints(draft_of(row))
    assert hint.message == (
        "This question is also shown while “Do you feel safe?” is not answered. To"
        " wait for the answer, add the condition “is answered”."
    )
    for rule in (
        "${safe} = '2'",
        "${safe} != '1' and ${safe} != ''",
        "${safe} != '1' or ${safe} = ''",
        "${safe} != '1' and ${age} > 5",
        "${age} < 5",
    ):
        assert "unanswered" not in kinds(rule)


def test_an_answer_that_is_required_before_is_there():
    start, end = ["begin_group", "page", "", ""], ["end_group", "", "", ""]
    asked = ["select_one agree", "agree", "Agree?", "", "", "yes"]
    row = ["text", "q", "Q", "${agree} != '1'"]
    first, second = ([*start[:1], name, *start[2:]] for name in ("a", "b"))
    apart = draft_of(first, asked, end, second, row, end)
    assert [hint.kind for hint in rule_hints(apart)] == []
    together = draft_of(first, asked, row, end)
    assert [hint.kind for hint in rule_hints(together)] == ["unanswered"]


def test_a_question_that_is_hidden_on_purpose_has_no_hint():
    assert kinds("false()") == []


@pytest.mark.parametrize(
    "rule",
    [
        "${safe} = '1' or ${safe} = '2'",
        "${safe} = '1' and selected(${pets}, 'dog') and not(selected(${pets}, 'cat'))",
        "${age} > 5 and ${age} < 7",
        "${name} != 'a' and ${name} != 'b' and string-length(${name}) = 1",
        "contains(${name}, 'a') and contains(${name}, 'b')",
        "${born} > '2010-01-01' and ${born} < '2010-01-03'",
        "${born} >= today()",
        "${score} = 5 and ${score} < 6",
        "regex(${name}, '[a-z]+')",
        "${age} + 1 > 30",
        "${safe} + ${age} > 2",
        "${safe} = '1' and ${name} = ${born}",
    ],
)
def test_nothing_is_claimed_of_rules_that_may_be_true_or_false(rule):
    assert kinds(rule) == []


def test_constraints_judge_answers_and_not_blanks():
    assert kinds("string-length(.) > 3 and string-length(.) < 3", "constraint") == [
        "never"
    ]
    assert kinds(". != ''", "constraint") == ["always"]
    assert kinds("string-length(.) <= 100", "constraint") == []
    assert kinds("${age} = 3", "required") == ["never"]


def test_a_value_that_is_no_option_is_named():
    draft = draft_of(["text", "q", "Q", "${safe} = '3' or ${age} = 5"])
    [hint] = rule_hints(draft)
    assert (hint.kind, hint.names) == ("no option", ("safe",))
    assert "“3” is not an option of “Do you feel safe?”" in hint.message


def test_the_rule_of_a_group_is_reported_once():
    assert hints_of(
        ["begin group", "g", "Group", "${safe} = '1' and ${safe} = '2'"],
        ["text", "q1", "Q1"],
        ["text", "q2", "Q2"],
        ["end group", ""],
    ) == [("q1", "relevant", "never")]


def test_a_question_in_a_group_needs_the_rule_of_the_group():
    rows = (
        ["begin group", "g", "Group", "${age} > 10"],
        ["text", "q", "Q", "${age} < 8"],
        ["end group", ""],
    )
    assert hints_of(*rows) == [("q", "relevant", "unreachable")]


SAMPLES = {
    "safe": ("", "1", "2"),
    "pets": ("", "cat", "dog", "cat dog"),
    "age": ("", "4", "5", "6", "18", "19"),
    "name": ("", "a", "b", "ab", "it’s"),
    "born": ("", "2009-12-31", "2010-01-01", "2010-01-02"),
    "score": ("", "8", "a"),
}
LEAVES = st.sampled_from(
    [
        f"${{{name}}} {sign} {value}"
        for name in SAMPLES
        for sign in ("=", "!=", "<", ">=")
        for value in ("''", "5", "'1'", "'a'", "${age}", "'2010-01-01'", "18.5")
    ]
    + [
        f"{call}(${{{name}}}, {value})"
        for call in ("selected", "contains")
        for name in SAMPLES
        for value in ("'cat'", "'1'", "'a'", "${safe}")
    ]
    + [
        f"{call}(${{{name}}}) {sign} {number}"
        for call in ("string-length", "count-selected")
        for name in SAMPLES
        for sign in ("=", "<", ">=")
        for number in (0, 1, 2)
    ]
)
RULES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.builds("({}) and ({})".format, inner, inner),
        st.builds("({}) or ({})".format, inner, inner),
        st.builds("not({})".format, inner),
    ),
    max_leaves=6,
)


@given(RULES)
def test_no_rule_is_called_impossible_that_some_answers_make_true(logic, text):
    rule = compile_expression(text)
    names = sorted(references(rule))
    for claimed in (rule, ["not", rule]):
        if logic.may_be_true(claimed) is False:
            for answers in itertools.product(*(SAMPLES[name] for name in names)):
                values = dict(zip(names, answers, strict=True))
                assert not evaluate(claimed, Context(values)), (text, values)


def test_a_rule_is_called_impossible_at_all(logic):
    rule = compile_expression("${age} > 5 and ${age} < 6")
    assert logic.may_be_true(rule) is False


@pytest.fixture(scope="module")
def logic():
    return RuleLogic(draft_of())


@pytest.fixture(scope="module")
def draft():
    return draft_of(
        ["note", "thanks", "Thank you"],
        ["text", "first", "First?", "${safe} = '1'"],
        ["text", "second", "Second?", "${first} != ''"],
    )


@pytest.mark.parametrize(
    ("rule", "text", "kind", "message"),
    [
        (
            "relevant",
            "${Saef} = '1'",
            "unknown",
            "There is no question named “Saef”. Did you mean “safe”?",
        ),
        ("relevant", "${zzz} = '1'", "unknown", "There is no question named “zzz”."),
        (
            "relevant",
            "${thanks} != ''",
            "unknown",
            "“Thank you” is a text without an answer.",
        ),
        (
            "relevant",
            "${first} != ''",
            "itself",
            "A question cannot decide by its own answer.",
        ),
        (
            "relevant",
            "${second} = 'a'",
            "circle",
            "These questions wait for each other: “First?”, “Second?”. Change the rule"
            " of one of them.",
        ),
        (
            "constraint",
            "${second} = .",
            "later",
            "This rule reads “Second?”, asked later. It cannot be true before it is"
            " answered.",
        ),
        (
            "relevant",
            "${safe} = ",
            "unreadable",
            "This rule cannot be read: the expression ends too early (character 10).",
        ),
        ("relevant", "${age} = 30", "never", "This question is never shown"),
    ],
)
def test_mistakes_are_explained_while_a_rule_is_written(
    draft, rule, text, kind, message
):
    [hint] = rule_problems(draft, "first", rule, text)
    assert (hint.item, hint.row, hint.rule, hint.kind) == ("first", 9, rule, kind)
    assert hint.message.startswith(message)


@pytest.mark.parametrize("text", ["", "yes", "${age} > 5", "selected(${pets}, 'cat')"])
def test_good_rules_have_no_problems(draft, text):
    assert rule_problems(draft, "first", "relevant", text) == []


def test_a_rule_that_takes_too_long_is_a_problem_of_its_page(draft):
    pattern = "regex(${name}, '(\\p{L}|[^a-z]){1,40}.*') and "
    [hint] = rule_problems(draft, "second", "relevant", pattern * 12 + "${age} = 5")
    assert hint.kind == "work" and hint.is_error
    assert "of what is allowed" in hint.message


def test_large_surveys_are_judged_in_time():
    rows = [["select_one agree", f"q{n}", f"Q{n}"] for n in range(150)]
    rows += [
        ["text", f"t{n}", "T", " and ".join(f"${{q{n + m}}} = '1'" for m in range(30))]
        for n in range(100)
    ]
    draft = draft_of(*rows)
    start = time.monotonic()
    assert rule_hints(draft) == []
    assert time.monotonic() - start < patience(3)
