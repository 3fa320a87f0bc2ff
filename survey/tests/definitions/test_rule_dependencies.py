"""Evaluation order of items, and which rules read nothing but their page."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from survey.instrument.definitions.rule_dependencies import (
    CycleError,
    evaluation_order,
    local_rules,
)
from survey.tests.definitions.compiled import compiled_items

SAYS_YES = "jr:choice-name(${q1}, '${q1}') = 'Sí'"
ASKED = {"kind": "select_one", "option_set": "yesno"}


def order_of(**relevant_texts):
    items = {name: {"relevant": text} for name, text in relevant_texts.items()}
    return evaluation_order(
        compiled_items({name: i if i["relevant"] else {} for name, i in items.items()})
    )


def test_items_follow_their_dependencies_and_otherwise_keep_their_order():
    assert order_of(a="", b="${d} = 1", c="", d="${c} = 1", e="") == list("acdbe")


def test_every_rule_that_decides_a_value_affects_the_order():
    items = {
        "a": {"calculation": "${b}"},
        "b": {"default_expression": "${c}"},
        "c": {"choice_filter": "region = ${d}"},
        "d": {"relevant": "${e} = 1"},
        "e": {},
    }
    assert evaluation_order(compiled_items(items)) == list("edcba")


def test_rules_that_only_judge_do_not_affect_the_order():
    items = {
        "a": {"constraint": ". < ${b}", "required": "${b} = ''"},
        "b": {"constraint": ". > ${a}", "required": "${a} = ''"},
    }
    assert evaluation_order(compiled_items(items)) == ["a", "b"]


def test_cycle_error_names_the_items():
    with pytest.raises(CycleError) as refusal:
        order_of(z="", a="${z} = ${b}", b="${c} = 1", c="${a} = 1", d="${a} = 1")

    assert str(refusal.value) == "a → b → c → a"
    assert refusal.value.cycle == ["a", "b", "c", "a"]


def test_item_that_reads_itself_is_a_cycle():
    with pytest.raises(CycleError, match="a → a"):
        order_of(a="${a} = 1")


def test_long_chain_of_items_needs_no_deep_stack():
    names = [f"q{number}" for number in range(5000)]
    texts = {
        name: f"${{{after}}} = 1" for name, after in zip(names, names[1:], strict=False)
    }
    assert order_of(**texts, q4999="") == names[::-1]


@given(
    st.dictionaries(
        st.sampled_from("abcdefgh"), st.sets(st.sampled_from("abcdefgh")), min_size=1
    )
)
def test_any_dependencies_give_an_order_or_a_real_cycle(waits):
    items = {
        name: {
            "relevant": ["and", True, *(["$", earlier] for earlier in sorted(names))]
        }
        for name, names in waits.items()
    }
    try:
        order = evaluation_order(items)
    except CycleError as error:
        steps = zip(error.cycle, error.cycle[1:], strict=False)
        assert error.cycle[0] == error.cycle[-1]
        assert all(after in waits[name] for name, after in steps)
        return
    assert sorted(order) == sorted(waits)
    for name, names in waits.items():
        known = names & waits.keys()
        assert all(order.index(earlier) < order.index(name) for earlier in known)


def local(name, **items):
    compiled = compiled_items(items)
    return local_rules(compiled[name], compiled)


def test_rules_that_read_the_page_are_local():
    rules = local(
        "a",
        a={
            "relevant": "${b} = 1",
            "constraint": ". > ${b}",
            "required": "${b} = 2",
            "choice_filter": "region = ${b}",
        },
        b={},
    )
    assert rules == ["relevant", "choice_filter", "constraint", "required"]


def test_unconditional_required_is_local():
    assert local("a", a={"required": True}) == ["required"]


@pytest.mark.parametrize(
    "items",
    [
        {},
        {"b": {"relevant": "${elsewhere} = 1"}},
        {"b": {"kind": "calculate", "calculation": "${elsewhere}"}},
        {
            "b": {"kind": "calculate", "calculation": "${c}"},
            "c": {"kind": "calculate", "calculation": "${d}"},
            "d": {"relevant": "${elsewhere} = 1"},
        },
        {"b": {"kind": "calculate", "calculation": "today()"}},
    ],
    ids=["elsewhere", "relevance", "calculation", "far", "clock"],
)
def test_rules_that_read_other_pages_are_not_local(items):
    assert local("a", a={"relevant": "${b} = 1"}, **items) == []


def test_rules_that_read_calculations_of_the_page_are_local():
    rules = local(
        "a",
        a={"relevant": "${b} = 1"},
        b={"kind": "calculate", "calculation": "${c}"},
        c={"relevant": "${d} = 1"},
        d={},
    )
    assert rules == ["relevant"]


def test_rule_that_reads_the_clock_is_not_local():
    assert local("a", a={"constraint": ". <= today()"}) == []


def test_constraint_is_local_although_another_page_may_hide_the_item():
    rules = local("a", a={"relevant": "${elsewhere} = 1", "constraint": ". < 5"})
    assert rules == ["constraint"]


def test_rule_that_reads_a_label_is_not_local():
    assert local("a", q1=ASKED, a={"relevant": SAYS_YES}) == []
    assert local("a", q1=ASKED, a={"relevant": "${q1} = 'yes'"}) == ["relevant"]


def test_rule_that_reads_a_label_through_a_calculation_is_not_local():
    label = {"kind": "calculate", "calculation": SAYS_YES}
    copy = {"kind": "calculate", "calculation": "${said}"}
    rule = {"relevant": "${again} = 'true'"}
    assert local("a", q1=ASKED, said=label, again=copy, a=rule) == []


def test_label_that_quotes_an_answer_is_read_after_it():
    items = {
        "said": {"kind": "calculate", "calculation": "jr:choice-name('1', '${q1}')"},
        "q1": ASKED,
        "name": {},
    }
    compiled = compiled_items(items)
    assert evaluation_order(compiled, {"yesno": ["name"]}) == ["q1", "name", "said"]
    assert evaluation_order(compiled) == ["said", "q1", "name"]


def test_label_that_quotes_what_reads_it_is_a_cycle():
    label = {"kind": "calculate", "calculation": SAYS_YES}
    with pytest.raises(CycleError, match="said → said"):
        evaluation_order(
            compiled_items({"q1": ASKED, "said": label}), {"yesno": ["said"]}
        )
