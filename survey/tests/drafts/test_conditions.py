"""Rules are read as conditions, and written as the same rules."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from pyxform.xls2xform import convert

from accounts.control_characters import has_control_character
from survey.instrument.definitions.expressions import (
    Context,
    ExpressionError,
    compile_expression,
    evaluate,
    references,
    to_boolean,
)
from survey.instrument.drafts.conditions import (
    COLUMN,
    COUNTS,
    MOMENTS,
    NUMBERS,
    ORDERS,
    THIS,
    WITHOUT_VALUE,
    Condition,
    Group,
    Operator,
    Subject,
    expression_of,
    simplified,
    unchanged,
    words_of,
)
from survey.instrument.xlsform.rules import straight_quotes
from survey.tests import definitions

GRADES = tuple((str(n), f"Grade {n}") for n in range(1, 4))
PETS = (("cat", "Cat"), ("dog", "Dog"), ("fish", "Fish"))
REGIONS = (("north", "north"), ("south", "south"))
QUESTIONS = {
    subject.name: subject
    for subject in (
        Subject("grade", "select_one", options=GRADES),
        Subject("color", "select_one", options=(("red", "Red"), ("it's", "It’s"))),
        Subject("pets", "select_multiple", options=PETS),
        Subject("agreed", "acknowledge"),
        Subject("age", "integer"),
        Subject("height", "decimal"),
        Subject("born", "date"),
        Subject("woke", "time"),
        Subject("name", "text"),
        Subject("score", "calculate"),
    )
}
CONSTRAINT = {THIS: Subject("own", "integer"), **QUESTIONS}
FILTER = {
    f"{COLUMN}region": Subject(f"{COLUMN}region", "column", options=REGIONS),
    f"{COLUMN}name": Subject(f"{COLUMN}name", "column", options=PETS),
    **QUESTIONS,
}
SAMPLES = {
    "select_multiple": ("", "cat", "cat dog", "cat dog fish", "fish"),
    "acknowledge": ("", "OK"),
    "integer": ("", "-1", "0", "4", "05", "5", "6", "19"),
    "decimal": ("", "-1.5", "4.99", "5", "5.0", "19"),
    "date": ("", "2009-12-31", "2010-01-01", "2026-11-29"),
    "time": ("", "07:00", "08:30"),
    "text": ("", "5", "a", "Maya", "it's", 'say "hi"', "x" * 9),
    "calculate": ("", "5", "5.0", "a", "true", "2010-01-01"),
}


def compiled(text, subjects):
    columns = {name[1:] for name in subjects if name.startswith(COLUMN)}
    self_name = subjects[THIS].name if THIS in subjects else None
    return compile_expression(
        straight_quotes(text), self_name=self_name, columns=columns
    )


def samples(subject, *exprs):
    """Return answers that may differ: also those next to literals of the rules."""
    values = SAMPLES.get(subject.kind, ("", *(value for value, _ in subject.options)))
    if subject.kind in ("text", "calculate"):
        values = (*values, *literals(list(exprs)))
    return tuple(dict.fromkeys(values))


def literals(node):
    if isinstance(node, list):
        return [text for part in node for text in literals(part)]
    return [node] if isinstance(node, str) and len(node) > 1 else []


def assert_equivalent(before, after, subjects):
    first, second = compiled(before, subjects), compiled(after, subjects)
    self_name = subjects[THIS].name if THIS in subjects else ""
    names = sorted(references(first) | references(second))
    answers = [
        samples(subjects[THIS if name == self_name else name], first, second)
        for name in names
    ]
    rows = [{}]
    if COLUMN + "name" in subjects:
        rows = [
            {"name": name, "region": region}
            for name in ("cat", "fish")
            for region in ("", "north", "south")
        ]
    for texts in itertools.islice(itertools.product(*answers), 3000):
        for row in rows:
            values = dict(zip(names, texts, strict=True))
            context = Context(values, today="2026-11-29", row=row)
            results = [to_boolean(evaluate(expr, context)) for expr in (first, second)]
            assert results[0] == results[1], (before, after, values, row)


def all_of(*parts):
    return Group("all", parts)


def test_a_rule_is_read_changed_and_written():
    text = "${grade} = '2'  and (selected(${pets},'dog') or ${age} >= 5)"
    group = words_of(text, QUESTIONS)
    grade = Condition("grade", Operator.IS, "2")
    dog = Condition("pets", Operator.INCLUDES, "dog")
    older = Condition("age", Operator.AT_LEAST, "5")
    assert group == all_of(grade, Group("any", (dog, older)))
    assert unchanged(text, group, QUESTIONS)
    changed = all_of(grade, Group("any", (dog, Condition("age", Operator.LESS, "4"))))
    assert not unchanged(text, changed, QUESTIONS)
    assert (
        expression_of(changed, QUESTIONS)
        == "${grade} = '2' and (selected(${pets}, 'dog') or ${age} < 4)"
    )


@pytest.mark.parametrize(
    ("text", "condition"),
    [
        ("5 < ${age}", ("age", "more than", "5")),
        ("${age}>=-5", ("age", "at least", "-5")),
        ("${age} = 5.0", ("age", "is", "5")),
        ("${grade} = 2", ("grade", "is", "2")),
        ("'red' != ${color}", ("color", "is not", "red")),
        ("not(${color} = 'red')", ("color", "is not", "red")),
        ("selected(${color}, 'red')", ("color", "is", "red")),
        ("${grade} > 1", ("grade", "more than", "1")),
        ('${color} = "it\'s"', ("color", "is", "it's")),
        ("${name} = “Maya”", ("name", "is", "Maya")),
        ("concat('a\"', \"b'\") = ${name}", ("name", "is", "a\"b'")),
        ("not(selected(${pets}, 'cat'))", ("pets", "does not include", "cat")),
        ("${name} != ''", ("name", "is answered", "")),
        ("not(${pets} = '')", ("pets", "is answered", "")),
        ("${age} = ''", ("age", "is not answered", "")),
        ("${agreed} = 'OK'", ("agreed", "is answered", "")),
        ("contains(${name}, 'ay')", ("name", "contains", "ay")),
        ("count-selected(${pets}) < 3", ("pets", "count at most", "2")),
        ("3 < string-length(${name})", ("name", "count at least", "4")),
        ("string-length(${color}) = 0", ("color", "is not answered", "")),
        ("string-length(${color}) > 0", ("color", "is answered", "")),
        ("selected(${score}, 1)", ("score", "includes", "1")),
        ("${born} < date('2010-01-01')", ("born", "less than", "2010-01-01")),
        ("${born} >= '2010-01-01'", ("born", "at least", "2010-01-01")),
        ("${born} <= today()", ("born", "at most", "today")),
        ("${score} > 5", ("score", "more than", "5")),
        ("${age} > ${height}", ("age", "more than", "${height}")),
    ],
)
def test_each_condition_is_read_and_written_with_the_same_meaning(text, condition):
    group = words_of(text, QUESTIONS)
    assert group == all_of(Condition(*condition))
    written = expression_of(group, QUESTIONS)
    assert words_of(written, QUESTIONS) == group
    assert_equivalent(text, written, QUESTIONS)


@pytest.mark.parametrize(
    ("text", "condition"),
    [
        (". >= 4", (THIS, "at least", "4")),
        ("${own} <= 19", (THIS, "at most", "19")),
        (". != ''", (THIS, "is answered", "")),
        ("${age} < .", (THIS, "more than", "${age}")),
    ],
)
def test_a_constraint_is_about_the_answer_itself(text, condition):
    group = words_of(text, CONSTRAINT)
    assert group == all_of(Condition(*condition))
    assert_equivalent(text, expression_of(group, CONSTRAINT), CONSTRAINT)


@pytest.mark.parametrize(
    ("text", "condition"),
    [
        ("region = ${name}", (":region", "is", "${name}")),
        ("${color} = region", (":region", "is", "${color}")),
        ("region = 'north'", (":region", "is", "north")),
        ("name != 'fish'", (":name", "is not", "fish")),
        ("selected(${pets}, name)", (":name", "is among", "${pets}")),
        ("not(selected(${pets}, name))", (":name", "is not among", "${pets}")),
        ("${age} > 5", ("age", "more than", "5")),
    ],
)
def test_a_filter_is_about_the_columns_of_options(text, condition):
    group = words_of(text, FILTER)
    assert group == all_of(Condition(*condition))
    assert_equivalent(text, expression_of(group, FILTER), FILTER)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "yes",
        "true()",
        "${age} +",
        "${age} + 1 > 5",
        "${unknown} = 'x'",
        # As text, so that the answer 05 differs.
        "${age} = '5'",
        "${score} = '5'",
        "${name} = 5",
        "${name} > 5",
        # Only the dog, and nothing else.
        "${pets} = 'dog'",
        "selected(${pets}, '')",
        "contains(${pets}, 'dog')",
        "${name}",
        "${born} > 'soon'",
        "${name} = ' a '",
        "${name} = 'costs ${5}'",
        "${color} = true()",
        "region = name",
        "${age} = 5 and (${grade} = 1 or (${age} = 6 and ${grade} = 2))",
        "regex(${name}, '[a-z]+')",
        "string-length(${name}) > 2.5",
        "count-selected(${pets}) != 2",
        "${grade} = 9",
        "../age > 5",
        "(" * 200 + "1" + ")" * 200,
    ],
)
def test_other_expressions_stay_code(text):
    assert words_of(text, QUESTIONS) is None


def test_a_negation_that_holds_for_blank_answers_keeps_its_meaning():
    text = "not(${age} > 5)"
    group = words_of(text, QUESTIONS)
    assert group == Group("none", (Condition("age", Operator.MORE, "5"),))
    assert_equivalent(text, expression_of(group, QUESTIONS), QUESTIONS)
    # What it does not mean, although it looks like it.
    with pytest.raises(AssertionError):
        assert_equivalent(text, "${age} <= 5", QUESTIONS)


def test_groups_that_change_nothing_are_dropped():
    age = Condition("age", Operator.IS, "5")
    name = Condition("name", Operator.ANSWERED)
    assert simplified(all_of(Group("any", (age, name)))) == Group("any", (age, name))
    assert simplified(all_of(all_of(age), name)) == all_of(age, name)
    assert simplified(Group("none", (age,))) == all_of(
        Condition("age", Operator.IS_NOT, "5")
    )


VALUES = st.text(
    st.sampled_from("ab1 .'\"‘’“”$)(,=${}éع") | st.characters(codec="utf-8"),
    min_size=1,
    max_size=12,
)


@st.composite
def conditions(draw, subjects):
    subject = subjects[draw(st.sampled_from(sorted(subjects)))]
    name = next(name for name, known in subjects.items() if known is subject)
    operator = draw(st.sampled_from(subject.operators))
    if operator in WITHOUT_VALUE:
        return Condition(name, operator)
    if operator in COUNTS:
        return Condition(name, operator, str(draw(st.integers(0, 12))))
    if operator in (Operator.AMONG, Operator.NOT_AMONG):
        return Condition(name, operator, "${pets}")
    if name != "color" and draw(st.integers(0, 5)) == 0:
        return Condition(name, operator, "${color}")
    if subject.kind in MOMENTS:
        days = ("08:30", "07:00") if subject.kind == "time" else ("2010-01-01",)
        return Condition(name, operator, draw(st.sampled_from(days)))
    if subject.kind in NUMBERS or operator in ORDERS:
        number = draw(st.sampled_from(("-1", "4", "4.5", "5", "19")))
        return Condition(name, operator, number)
    if subject.options and draw(st.booleans()):
        return Condition(name, operator, draw(st.sampled_from(subject.options))[0])
    value = draw(VALUES)
    assume(value == value.strip() and "${" not in value)
    assume(not has_control_character(value))
    return Condition(name, operator, value)


def groups(subjects):
    joins = st.sampled_from(("all", "any", "none"))
    part = conditions(subjects)
    inner = st.builds(Group, joins, st.lists(part, min_size=1, max_size=3).map(tuple))
    return st.builds(
        Group, joins, st.lists(part | inner, min_size=1, max_size=3).map(tuple)
    )


@given(groups(QUESTIONS))
@example(all_of(Condition("name", Operator.IS, "the kids’ and “parents”")))
@example(all_of(Condition("name", Operator.IS, "’'\"”")))
def test_any_group_is_written_and_read_again(group):
    written = expression_of(group, QUESTIONS)
    assert words_of(written, QUESTIONS) == simplified(group)
    assert unchanged(written, group, QUESTIONS)


@given(groups(CONSTRAINT))
def test_any_constraint_is_written_and_read_again(group):
    written = expression_of(group, CONSTRAINT)
    assert words_of(written, CONSTRAINT) == simplified(group)


@given(groups(FILTER))
def test_any_filter_is_written_and_read_again(group):
    written = expression_of(group, FILTER)
    assert words_of(written, FILTER) == simplified(group)


LEAVES = st.sampled_from(
    [
        f"{left} {sign} {right}"
        for left in (*(f"${{{name}}}" for name in QUESTIONS), "5", "'red'", "''")
        for sign in ("=", "!=", "<", ">=")
        for right in ("5", "'5'", "''", "'cat'", "${age}", "-1", "'2010-01-01'")
    ]
    + [
        f"{call}(${{{name}}}, {value})"
        for call in ("selected", "contains")
        for name in QUESTIONS
        for value in ("'cat'", "'1'", "1", "''", "${color}")
    ]
    + [
        f"{call}(${{{name}}}) {sign} {number}"
        for call in ("string-length", "count-selected")
        for name in ("pets", "name", "age", "grade")
        for sign in ("=", "!=", "<", "<=", ">", ">=")
        for number in (0, 2, 2.5)
    ]
    + ["true()", "${name}", "today()", "${age} + 1 = 5"]
)
EXPRESSIONS = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.builds("({}) and ({})".format, inner, inner),
        st.builds("({}) or {}".format, inner, inner),
        st.builds("not({})".format, inner),
    ),
    max_leaves=5,
)


@given(EXPRESSIONS)
def test_what_is_put_into_words_means_the_same(text):
    group = words_of(text, QUESTIONS)
    if group is not None:
        for condition in group.conditions():
            assert condition.operator in QUESTIONS[condition.item].operators
        assert unchanged(text, group, QUESTIONS)
        assert_equivalent(text, expression_of(group, QUESTIONS), QUESTIONS)


def shared_vectors():
    folder = Path(definitions.__file__).parent
    expressions = json.loads((folder / "expression_vectors.json").read_text())
    rules = json.loads((folder / "rules_vectors.json").read_text())
    texts = {vector["expression"] for vector in expressions["evaluated"]}
    for item in rules["survey"]["items"].values():
        texts |= {
            text
            for rule in ("relevant", "constraint", "required", "choice_filter")
            if isinstance(text := item.get(rule), str)
        }
    return sorted(text for text in texts if isinstance(text, str))


def test_the_rules_of_other_tests_are_put_into_words_exactly():
    in_words = 0
    for text in shared_vectors():
        try:
            names = references(compile_expression(text, self_name="own"))
        except ExpressionError:
            continue
        for kind in ("text", "integer", "select_one", "select_multiple", "calculate"):
            options = PETS if kind.startswith("select") else ()
            subjects = {name: Subject(name, kind, options=options) for name in names}
            group = words_of(text, subjects)
            if group is not None:
                in_words += 1
                assert_equivalent(text, expression_of(group, subjects), subjects)
    assert in_words > 20


def test_pyxform_reads_what_is_written():
    questions = [
        ("select_one grade", "grade"),
        ("select_one color", "color"),
        ("select_multiple pets", "pets"),
        ("acknowledge", "agreed"),
        ("integer", "age"),
        ("decimal", "height"),
        ("date", "born"),
        ("time", "woke"),
        ("text", "name"),
    ]
    options = {"grade": ("1", "2"), "color": ("red", "blue"), "pets": ("cat", "dog")}
    parts = [
        Condition(name, operator, "" if operator in WITHOUT_VALUE else value)
        for name, subject in QUESTIONS.items()
        if name != "score"
        for operator in subject.operators
        for value in (
            'it\'s "x"' if name == "name" and operator not in COUNTS else "2",
        )
    ]
    rule = expression_of(Group("any", tuple(parts)), QUESTIONS)
    xform = convert(
        {
            "survey": [
                *({"type": t, "name": n, "label": n} for t, n in questions),
                {"type": "text", "name": "q", "label": "Q", "relevant": rule},
            ],
            "choices": [
                {"list_name": name, "name": value, "label": value}
                for name, values in options.items()
                for value in values
            ],
        }
    ).xform
    assert len(parts) > 40
    assert "count-selected( /data/pets ) &gt;= 2" in xform
    assert "concat('it',&quot;'s &quot;" in xform.replace(", ", ",")
