from __future__ import annotations

import json
import math
import re
import signal
import time
from datetime import date
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from settings.tests.patience import patience
from survey.instrument.definitions.expressions import (
    Context,
    ExpressionError,
    compile_expression,
    evaluate,
    labels_of,
    reads_clock,
    references,
    to_boolean,
    to_text,
)
from survey.instrument.definitions.expressions.evaluation import EAGER, OPERATIONS
from survey.instrument.definitions.expressions.parser import ARGUMENTS, PRECEDENCE
from survey.instrument.definitions.portable_regex import PatternError, matches, portable

VECTORS = json.loads(
    Path(__file__).with_name("expression_vectors.json").read_text(encoding="utf-8")
)
EVALUATED = VECTORS["evaluated"]
NUMBERS = {
    "NaN": math.nan,
    "Infinity": math.inf,
    "-Infinity": -math.inf,
    "-0": -0.0,
}


def written_out(value):
    """Expand a repeated text of the vectors: ["a", 3, "b", 1] is "aaab"."""
    if isinstance(value, str):
        return value
    pairs = zip(value[::2], value[1::2], strict=True)
    return "".join(part * times for part, times in pairs)


def values_of(vector):
    values = {**VECTORS["context"]["values"], **vector.get("values", {})}
    return {name: written_out(value) for name, value in values.items()}


def compiled(vector):
    return compile_expression(
        written_out(vector["expression"]),
        self_name=vector.get("self"),
        columns=vector.get("columns", ()),
        items=vector.get("items"),
    )


def context_of(vector):
    return Context(
        values=values_of(vector),
        today=VECTORS["context"]["today"],
        now=VECTORS["context"]["now"],
        choice_label=lambda name, value: f"[{name}={value}]",
        row=vector.get("row", {}),
    )


def plain(value):
    """A value that JSON can carry; the browser's page does the same."""
    if not isinstance(value, float):
        return value
    if not math.isfinite(value) or (value == 0 and math.copysign(1, value) < 0):
        return {"number": "-0" if value == 0 else to_text(value)}
    return value


def same(left, right):
    # 1 == True in Python, and they are not the same here.
    return isinstance(left, bool) == isinstance(right, bool) and left == right


def test_expressions_evaluate_to_the_values_of_their_vectors():
    for vector in EVALUATED:
        result = plain(evaluate(compiled(vector), context_of(vector)))
        assert same(result, vector["gives"]), (vector["expression"], result)


def test_wrong_expressions_are_refused_with_reason_and_position():
    for vector in VECTORS["refused"]:
        with pytest.raises(ExpressionError) as refusal:
            compiled(vector)
        assert vector["message"] in str(refusal.value), vector["expression"]
        assert str(refusal.value).endswith(f"(character {vector['at']})")


def test_items_columns_and_own_value_compile_to_different_references():
    compiled = compile_expression(
        "region = ${district} and . != name", self_name="school", columns=["region"]
    )
    assert compiled == [
        "and",
        ["=", ["col", "region"], ["$", "district"]],
        ["!=", ["$", "school"], ["col", "name"]],
    ]
    assert references(compiled) == {"district", "school"}


def test_labels_are_listed_apart_from_values():
    compiled = compile_expression("jr:choice-name(${a}, '${b}')")

    assert references(compiled) == {"a"}
    assert labels_of(compiled) == {"b"}


def test_expressions_that_read_the_clock_are_recognised():
    assert reads_clock(compile_expression("if(${a} = 1, date(now()), 2)"))
    assert not reads_clock(compile_expression("concat('today', ${now})"))


def test_parser_and_evaluator_know_the_same_functions():
    built = {"true", "false"}
    operators = {"neg", "$", "col", *PRECEDENCE}

    assert set(ARGUMENTS) - built == set(OPERATIONS) - operators
    assert operators <= set(OPERATIONS)


def test_long_chains_stay_flat():
    total = " + ".join(["${a}"] * 150)
    any_of = " or ".join(f"${{a}} = {n}" for n in range(150))
    context = Context({"a": "3"})

    assert evaluate(compile_expression(total), context) == 450
    assert evaluate(compile_expression(any_of), context) is True


def test_the_deepest_expression_is_evaluated_on_a_stack_already_in_use():
    deepest = compile_expression("-" * 99 + "1")

    def further_down(frames):
        if frames:
            return further_down(frames - 1)
        return evaluate(deepest, Context({}))

    assert further_down(400) == -1


# --- Any expression, any answers ---------------------------------------------

LETTERS = st.characters(exclude_categories=["Cs"])
ANSWERS = st.one_of(
    st.sampled_from(
        ["", "0", "1", "-1", "15", "1.5", "dog", "cat dog", "NaN", "2024-02-29"]
        + ["2023-02-30", "10:30", "2024-02-29T23:59:59", "٣", " 7 ", "9" * 400, "😀"]
    ),
    st.integers(-(10**15), 10**15).map(str),
    st.decimals(-1000, 1000, places=3).map(str),
    st.dates().map(date.isoformat),
    st.text(LETTERS, max_size=12),
)
NAMES = ["a", "b", "c"]
LITERALS = st.one_of(
    st.integers(0, 10**16),
    st.floats(0, 1e6).map(lambda number: round(number, 6)),
    st.sampled_from([0.1, 0.5, 1.005, 1e14, 99.99]),
    st.booleans(),
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="'"))
    .map(lambda text: text[:8])
    .filter(lambda text: "${" not in text),
)
LEAVES = st.one_of(
    LITERALS,
    st.sampled_from(NAMES).map(lambda name: ["$", name]),
    st.sampled_from([["today"], ["now"]]),
)
PATTERNS = ["[0-9]+", "a|b", "[^x]*", "\\w{1,3}", "(a+)+b"]
FORMATS = ["%Y-%m-%d", "%e.%n.%y %H:%M:%S", "%%%3"]
BINARY = sorted(PRECEDENCE)


def calls(inner):
    """All functions and operators but those with special arguments."""
    options = [st.tuples(st.sampled_from(BINARY), inner, inner).map(list)]
    options.append(inner.map(lambda a: ["neg", a]))
    for name in sorted(set(EAGER) - {"neg", *BINARY} | {"if", "coalesce"}):
        low, high = ARGUMENTS[name]
        arguments = st.lists(inner, min_size=low, max_size=min(high, low + 1))
        options.append(arguments.map(lambda given, name=name: [name, *given]))
    options += [
        st.tuples(inner, st.sampled_from(PATTERNS)).map(
            lambda pair: ["regex", pair[0], portable(pair[1])]
        ),
        st.tuples(inner, st.sampled_from(FORMATS)).map(
            lambda pair: ["format-date", *pair]
        ),
        st.tuples(inner, st.sampled_from(NAMES)).map(
            lambda pair: ["jr:choice-name", *pair]
        ),
    ]
    return st.one_of(options)


TREES = st.recursive(LEAVES, calls, max_leaves=12)
CONTEXTS = st.fixed_dictionaries(dict.fromkeys(NAMES, ANSWERS))


def source_of(expr):
    """The text that compiles to this form."""
    if isinstance(expr, bool):
        return "true()" if expr else "false()"
    if isinstance(expr, str):
        return f"'{expr}'"
    if not isinstance(expr, list):
        return to_text(float(expr)) if isinstance(expr, float) else str(expr)
    operation, *arguments = expr
    if operation == "$":
        return f"${{{arguments[0]}}}"
    if operation == "neg":
        return f"-({source_of(arguments[0])})"
    if operation == "jr:choice-name":
        return f"jr:choice-name({source_of(arguments[0])}, '${{{arguments[1]}}}')"
    if operation in PRECEDENCE:
        return f" {operation} ".join(f"({source_of(a)})" for a in arguments)
    return f"{operation}({', '.join(map(source_of, arguments))})"


@given(TREES, CONTEXTS)
def test_evaluating_never_raises(tree, values):
    context = Context(values, "2026-11-21", "2026-11-21T09:30:00Z")

    result = evaluate(tree, context)

    assert isinstance(result, str | bool | float)
    assert isinstance(to_text(result), str)
    assert isinstance(to_boolean(result), bool)


@given(TREES, CONTEXTS)
def test_random_tree_compiles_from_its_text_to_itself(tree, values):
    context = Context(values, "2026-11-21", "2026-11-21T09:30:00Z")

    recompiled = compile_expression(source_of(tree))

    assert source_of(compile_expression(source_of(recompiled))) == source_of(recompiled)
    assert repr(evaluate(recompiled, context)) == repr(evaluate(tree, context))
    assert references(recompiled) == references(tree)
    assert json.loads(json.dumps(recompiled)) == recompiled


WORDS = [*"(),.'[]*=}", "${a}", "${", "1", ".5", "and", "or", "mod", "div", "- ", "+"]
WORDS += ["!=", "<", "selected", "if", "concat(", "regex(", "true()", "'x'", "x"]


@given(
    st.one_of(
        st.text(max_size=40),
        st.lists(
            st.sampled_from(WORDS),
            max_size=15,
        ).map(" ".join),
    )
)
def test_any_text_compiles_and_evaluates_or_is_an_expression_error(source):
    try:
        compiled = compile_expression(source, self_name="a", columns=["x"])
    except ExpressionError as error:
        assert 0 <= error.position <= len(source)
    else:
        evaluate(compiled, Context({"a": "1"}))


PATTERN_PARTS = [
    *"abc.^$|()[]{}*+?-\\ é",
    *(
        [
            "\\d",
            "\\W",
            "[a-c]",
            "[^\\s]",
            "(?:",
            "{2}",
            "{1,3}",
            "{2,}",
            "\\.",
            "(?=",
            "\\1",
        ]
    ),
]


@given(
    st.lists(st.sampled_from(PATTERN_PARTS), max_size=10).map("".join),
    st.text("abc. é\n1_", max_size=6),
)
def test_portable_pattern_matches_the_same_texts_as_the_original(pattern, value):
    try:
        ours = portable(pattern)
    except PatternError as error:
        assert 0 <= error.position <= len(pattern)
        return
    # `.` stops at a newline alone in Python; the values here have no other.
    original = re.compile(pattern, re.ASCII).fullmatch(value) is not None
    assert matches(value, ours) == original
    assert portable(ours) == ours


@given(st.text())
def test_any_pattern_is_portable_or_refused(pattern):
    try:
        ours = portable(pattern)
    except PatternError as error:
        assert 0 <= error.position <= len(pattern)
    else:
        matches(pattern, ours)


# --- Patterns that hang others -----------------------------------------------

CATASTROPHES = [
    ("(a+)+b", "a" * 60),
    ("(a|a)*b", "a" * 60),
    ("(.*)*b", "a" * 60),
    ("(a|aa)+b", "a" * 90),
    ("\\w+([.-]?\\w+)*@x", "a" * 60),
    ("(a?){40}a{40}", "a" * 79 + "b"),
]


@pytest.mark.parametrize(("pattern", "value"), CATASTROPHES)
def test_catastrophic_pattern_is_matched_in_linear_time(pattern, value):
    ours = portable(pattern)

    started = time.process_time()
    matched = matches(value * 50, ours)

    assert not matched
    assert time.process_time() - started < patience(1)


@pytest.mark.parametrize(("pattern", "value"), CATASTROPHES)
def test_twin_catastrophic_pattern_hangs_a_backtracking_engine(pattern, value):
    def stop(*_):
        raise TimeoutError

    before = signal.signal(signal.SIGVTALRM, stop)
    # Of processor time. The engine looks for signals while it matches.
    signal.setitimer(signal.ITIMER_VIRTUAL, 0.2)
    try:
        with pytest.raises(TimeoutError):
            re.fullmatch(pattern, value)
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def test_lone_surrogate_in_an_answer_does_not_raise():
    assert matches("a\ud800", portable("a.")) is True
    assert matches("\ud83d\ude00", portable(".")) is True
