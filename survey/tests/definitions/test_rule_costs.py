"""Costs of rules are bounded by their form, whatever the answers are."""

from __future__ import annotations

import pytest

from survey.instrument.definitions.rule_costs import MAX_PAGE_COST, RuleCosts
from survey.tests.definitions.compiled import compiled_items


def options(count):
    return [
        {"value": f"o{n}", "label": {}, "attributes": {"region": f"r{n}"}}
        for n in range(count)
    ]


def costs(item, option_count=1, **more):
    items = compiled_items({"t": {}, **more, "q": item})
    return RuleCosts(items, {"many": options(option_count)}).of_item(items["q"])


def test_choice_filter_costs_once_for_each_option():
    heavy = " + ".join(["count-selected(${t})"] * 100) + " > 0"
    item = {"kind": "select_multiple", "option_set": "many", "choice_filter": heavy}
    once = costs(item)["choice_filter"]
    assert 100 * 250 < once < MAX_PAGE_COST
    assert costs(item, 1000)["choice_filter"] == pytest.approx(1000 * once, rel=0.001)


def test_ordinary_choice_filter_is_far_from_the_limit():
    item = {
        "kind": "select_one",
        "option_set": "many",
        "choice_filter": "region = ${region}",
    }
    region = {"kind": "select_one", "option_set": "many"}
    for more in ({"region": region}, {"region": {}}):
        assert costs(item, 1000, **more)["choice_filter"] < MAX_PAGE_COST / 5


def test_long_texts_cost_more_than_short_ones():
    rule = {"relevant": "count-selected(${a}) > 0"}
    assert (
        costs(rule, a={})["relevant"] > 10 * costs(rule, a={"kind": "date"})["relevant"]
    )
    grown = {"relevant": "count-selected(concat(${t}, ${t}, ${t}, ${t})) > 0"}
    assert costs(grown)["relevant"] > 3 * costs(rule, a={})["relevant"]


@pytest.mark.parametrize(
    "call",
    ["normalize-space({})", "translate({}, 'a', 'b')", "substring-after({}, 'a')"],
)
def test_result_of_a_text_function_is_as_long_as_its_argument(call):
    def units(text):
        rule = {"relevant": f"count-selected({call.format(text)}) > 0"}
        return costs(rule, short={"kind": "date"})["relevant"]

    assert units("${t}") > 250 > 10 * units("${short}")


def test_pattern_costs_by_its_states():
    def units(pattern):
        return costs({"constraint": f"regex(., '{pattern}')"})["constraint"]

    assert units("[ab]*a[ab]{480}") > 20 * units("[ab]*a[ab]{20}")
    assert units(".*a.{480}") > 3 * units("[ab]*a[ab]{480}")
    # Without a loop no more is read than the pattern is long.
    assert units(".{10,500}") < MAX_PAGE_COST / 5
    assert units(r"[\w.+-]+@[\w-]+(\.[\w-]+)+") < MAX_PAGE_COST / 100
    # Members and escapes are no loops.
    assert units(r"\+?[0-9*+ ]{5,15}") < 20
    # The portable form cannot always be read again: then the most is counted.
    assert units(r"[&\&]*") >= 12 * 1000 * 5


def test_labels_that_quote_answers_cost_more_where_a_rule_reads_them():
    def units(label):
        item = {"relevant": "jr:choice-name(${t}, '${pet}') = 'Rex'"}
        items = compiled_items(
            {"t": {}, "pet": {"kind": "select_one", "option_set": "pets"}, "q": item}
        )
        pets = [{"value": "dog", "label": {"en": label}, "attributes": {}}]
        return RuleCosts(items, {"pets": pets}).of_item(items["q"])["relevant"]

    assert units("A dog") < MAX_PAGE_COST / 20
    assert 10 * units("A dog") < units("${t}’s dog") < MAX_PAGE_COST
    # Each word of a text could be an option whose label is a thousand texts.
    assert units("${t}" * 1000) > 100 * MAX_PAGE_COST
