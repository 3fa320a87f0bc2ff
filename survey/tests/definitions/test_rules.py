from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from survey.definitions.expressions import compile_expression
from survey.definitions.rules import (
    MOST_WORK,
    CycleError,
    Work,
    evaluation_order,
    local_rules,
    page_state,
    state_of,
)

pytestmark = pytest.mark.once

VECTORS = json.loads(
    Path(__file__).with_name("rules_vectors.json").read_text(encoding="utf-8")
)
RULES = ("relevant", "constraint", "calculation", "choice_filter", "default_expression")
COLUMNS = ("region", "since")


def compiled_item(name, item):
    texts = {rule: item[rule] for rule in (*RULES, "required") if rule in item}
    if item.get("required") is True:
        del texts["required"]
    compiled = {
        rule: compile_expression(
            text,
            self_name=name,
            columns=COLUMNS if rule == "choice_filter" else (),
        )
        for rule, text in texts.items()
    }
    return {"kind": "text", "page": 1, **item, **compiled}


def compiled_items(items):
    return {name: compiled_item(name, item) for name, item in items.items()}


def definition_of(survey):
    items = compiled_items(survey["items"])
    for item in items.values():
        on_page = {n: i for n, i in items.items() if i["page"] == item["page"]}
        item["local"] = local_rules(item, on_page)
    return {**survey, "items": items, "order": evaluation_order(items)}


DEFINITION = definition_of(VECTORS["survey"])


def clock_of(vector):
    return {key: vector.get(key, value) for key, value in VECTORS["clock"].items()}


def outcome(state, vector):
    """The state, as far as the vector speaks of it."""
    values = {name: state.values[name] for name in vector.get("values", {})}
    offered = {
        name: [option["value"] for option in state.offered(name)]
        for name in vector.get("offered", {})
    }
    found = {
        "hidden": [name for name in DEFINITION["items"] if not state.relevant[name]],
        "problems": state.problems,
        "values": values,
        "offered": offered,
        "pages": sorted(state.visible_pages()),
    }
    return {key: found[key] for key in found if key in vector}


def expected(vector):
    keys = ("hidden", "problems", "values", "offered", "pages")
    return {key: vector[key] for key in keys if key in vector}


@pytest.mark.parametrize("vector", VECTORS["whole"], ids=lambda v: v["about"])
def test_the_rules_of_the_whole_survey(vector):
    state = state_of(DEFINITION, vector["answers"], **clock_of(vector))

    assert outcome(state, vector) == expected(vector)


@pytest.mark.parametrize("vector", VECTORS["page_alone"], ids=lambda v: v["about"])
def test_the_rules_of_one_page_alone(vector):
    state = page_state(
        DEFINITION, vector["page"], vector["answers"], **clock_of(vector)
    )

    on_page = [n for n, i in DEFINITION["items"].items() if i["page"] == vector["page"]]
    assert sorted(state.relevant) == sorted(on_page)
    assert state.problems == vector["problems"]
    assert [name for name in on_page if not state.relevant[name]] == vector["hidden"]


def order_of(**relevant_texts):
    items = {name: {"relevant": text} for name, text in relevant_texts.items()}
    return evaluation_order(
        compiled_items({name: i if i["relevant"] else {} for name, i in items.items()})
    )


def test_items_come_after_what_they_depend_on_and_else_keep_their_places():
    assert order_of(a="", b="${d} = 1", c="", d="${c} = 1", e="") == list("acdbe")


def test_every_rule_that_decides_a_value_orders():
    items = {
        "a": {"calculation": "${b}"},
        "b": {"default_expression": "${c}"},
        "c": {"choice_filter": "region = ${d}"},
        "d": {"relevant": "${e} = 1"},
        "e": {},
    }
    assert evaluation_order(compiled_items(items)) == list("edcba")


def test_rules_that_only_judge_do_not_order():
    items = {
        "a": {"constraint": ". < ${b}", "required": "${b} = ''"},
        "b": {"constraint": ". > ${a}", "required": "${a} = ''"},
    }
    assert evaluation_order(compiled_items(items)) == ["a", "b"]


def test_a_cycle_is_named():
    with pytest.raises(CycleError) as refusal:
        order_of(z="", a="${z} = ${b}", b="${c} = 1", c="${a} = 1", d="${a} = 1")

    assert str(refusal.value) == "a → b → c → a"
    assert refusal.value.cycle == ["a", "b", "c", "a"]


def test_an_item_that_waits_for_itself_is_a_cycle():
    with pytest.raises(CycleError, match="a → a"):
        order_of(a="${a} = 1")


def test_a_long_chain_needs_no_deep_stack():
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
def test_an_order_or_a_true_cycle_for_any_dependencies(waits):
    items = {
        name: {"relevant": ["and", True, *(["$", other] for other in sorted(others))]}
        for name, others in waits.items()
    }
    try:
        order = evaluation_order(items)
    except CycleError as error:
        steps = zip(error.cycle, error.cycle[1:], strict=False)
        assert error.cycle[0] == error.cycle[-1]
        assert all(after in waits[name] for name, after in steps)
        return
    assert sorted(order) == sorted(waits)
    for name, others in waits.items():
        known = others & waits.keys()
        assert all(order.index(other) < order.index(name) for other in known)


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


def test_required_always_is_local():
    assert local("a", a={"required": True}) == ["required"]


@pytest.mark.parametrize(
    "others",
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
def test_rules_that_lead_off_the_page_are_not_local(others):
    assert local("a", a={"relevant": "${b} = 1"}, **others) == []


def test_rules_through_what_the_page_alone_decides_are_local():
    rules = local(
        "a",
        a={"relevant": "${b} = 1"},
        b={"kind": "calculate", "calculation": "${c}"},
        c={"relevant": "${d} = 1"},
        d={},
    )
    assert rules == ["relevant"]


def test_a_rule_that_reads_the_clock_is_not_local():
    assert local("a", a={"constraint": ". <= today()"}) == []


def test_an_answer_is_judged_even_where_another_page_may_hide_the_item():
    rules = local("a", a={"relevant": "${elsewhere} = 1", "constraint": ". < 5"})
    assert rules == ["constraint"]


ANSWER = st.sampled_from(
    ["", "yes", "no", "dog", "cat dog", "other", "n", "lincoln", "7", "2010-01-01"]
)


@given(st.dictionaries(st.sampled_from(sorted(DEFINITION["items"])), ANSWER))
def test_a_page_alone_never_finds_what_the_whole_survey_does_not(answers):
    """What the browser found right, knowing all, is never refused at saving."""
    whole = state_of(DEFINITION, answers, **VECTORS["clock"])
    sent = {name: whole.values[name] for name in answers}
    for number in range(1, 9):
        alone = page_state(DEFINITION, number, sent, **VECTORS["clock"])
        answered = {n: p for n, p in alone.problems.items() if p != "required"}
        assert answered.items() <= whole.problems.items()


def test_a_calculation_cannot_grow_without_end():
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


# --- Labels are in a language -------------------------------------------------

SAYS_YES = "jr:choice-name(${q1}, '${q1}') = 'Sí'"
ASKED = {"kind": "select_one", "option_set": "yesno"}


def test_a_rule_that_reads_a_label_is_not_local():
    assert local("a", q1=ASKED, a={"relevant": SAYS_YES}) == []
    assert local("a", q1=ASKED, a={"relevant": "${q1} = 'yes'"}) == ["relevant"]


def test_a_rule_that_reads_a_label_through_a_calculation_is_not_local():
    said = {"kind": "calculate", "calculation": SAYS_YES}
    again = {"kind": "calculate", "calculation": "${said}"}
    rule = {"relevant": "${again} = 'true'"}
    assert local("a", q1=ASKED, said=said, again=again, a=rule) == []


# --- What rules cost ----------------------------------------------------------


def options(count):
    return [
        {"value": f"o{n}", "label": "", "attributes": {"region": f"r{n}"}}
        for n in range(count)
    ]


def work(item, option_count=1, **others):
    items = compiled_items({"t": {}, **others, "q": item})
    return Work(items, {"many": options(option_count)}).of_item(items["q"])


def test_a_choice_filter_counts_once_for_each_option():
    heavy = " + ".join(["count-selected(${t})"] * 100) + " > 0"
    item = {"kind": "select_multiple", "option_set": "many", "choice_filter": heavy}
    once = work(item)["choice_filter"]
    assert 100 * 250 < once < MOST_WORK
    assert work(item, 1000)["choice_filter"] == pytest.approx(1000 * once, rel=0.001)


def test_an_ordinary_choice_filter_is_light():
    item = {
        "kind": "select_one",
        "option_set": "many",
        "choice_filter": "region = ${region}",
    }
    region = {"kind": "select_one", "option_set": "many"}
    for others in ({"region": region}, {"region": {}}):
        assert work(item, 1000, **others)["choice_filter"] < MOST_WORK / 5


def test_what_can_be_long_weighs_more_than_what_is_short():
    rule = {"relevant": "count-selected(${a}) > 0"}
    assert (
        work(rule, a={})["relevant"] > 10 * work(rule, a={"kind": "date"})["relevant"]
    )
    grown = {"relevant": "count-selected(concat(${t}, ${t}, ${t}, ${t})) > 0"}
    assert work(grown)["relevant"] > 3 * work(rule, a={})["relevant"]


def test_a_pattern_counts_by_its_states():
    def units(pattern):
        return work({"constraint": f"regex(., '{pattern}')"})["constraint"]

    assert units("[ab]*a[ab]{480}") > 20 * units("[ab]*a[ab]{20}")
    assert units(".*a.{480}") > 3 * units("[ab]*a[ab]{480}")
    # Without a loop no more is read than the pattern is long.
    assert units(".{10,500}") < MOST_WORK / 5
    assert units(r"[\w.+-]+@[\w-]+(\.[\w-]+)+") < MOST_WORK / 100
    # Members and escapes are no loops.
    assert units(r"\+?[0-9*+ ]{5,15}") < 20
    # The portable form cannot always be read again: then the most is counted.
    assert units(r"[&\&]*") >= 12 * 1000 * 5
