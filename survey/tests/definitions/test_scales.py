"""Agreement scales are found by how a survey uses its lists, not by labels."""

from __future__ import annotations

import pytest

from survey.instrument.definitions.scales import agreement_scales


def survey(values, *, appearance=(), grid=False, **rules):
    """Return a survey in which items `a` and `b` have one list of options."""
    item = {"id": 1, "page": 1, "kind": "select_one", "option_set": "list"}
    return {
        "option_sets": {
            "list": [{"value": v, "label": {}, "attributes": {}} for v in values]
        },
        "pages": [
            {"blocks": [{"grid": grid, "items": ["a"], "label": {}}]},
            {"blocks": [{"grid": False, "items": ["b", "c"], "label": {}}]},
        ],
        "items": {
            "a": item | {"appearance": list(appearance)} | rules,
            "b": item,
            "c": item | {"kind": "select_multiple"},
        },
    }


def measures(*items, missing=()):
    measure = {"items": [{"name": name, "reversed": False} for name in items]}
    return {"measures": [measure | {"missing": list(missing)}], "essentials": []}


def test_a_measure_makes_its_list_a_scale_for_all_items():
    scales = agreement_scales(survey(["lo", "hi", "dk"]), measures("a", missing=["dk"]))
    assert scales == {"a": ["dk"], "b": ["dk"]}


def test_a_list_of_which_nothing_says_that_it_has_an_order_is_no_scale():
    assert agreement_scales(survey(["1", "2", "3"]), None) == {}
    assert agreement_scales(survey(["1", "2", "3"], appearance=["minimal"]), None) == {}


@pytest.mark.parametrize(
    ("values", "beside"),
    [
        (["1", "2", "3", "4"], []),
        (["1", "2", "3", "4", "9"], ["9"]),
        (["-1", "1", "2", "3"], ["-1"]),
        (["5", "4", "3", "2", "1", "other"], ["other"]),
        (["no", "rather no", "rather yes", "yes"], []),
        (["1"], []),
    ],
)
def test_the_appearance_likert_makes_a_list_a_scale(values, beside):
    scales = agreement_scales(survey(values, appearance=["likert"]), None)
    assert scales == {"a": beside, "b": beside}


@pytest.mark.parametrize(
    ("values", "scales"),
    [
        (["1", "2", "3", "-1"], {"a": ["-1"], "b": ["-1"]}),
        (["2", "1", "0"], {"a": [], "b": []}),
        # Yes and no.
        (["1", "0"], {}),
        (["phone", "tablet", "laptop"], {}),
        (["10", "20", "30"], {}),
    ],
)
def test_a_grid_is_a_scale_if_its_values_count(values, scales):
    assert agreement_scales(survey(values, grid=True), None) == scales


def test_a_shuffled_list_has_no_order():
    shuffled = survey(["1", "2", "3"], appearance=["likert"], randomize=True)
    assert agreement_scales(shuffled, None) == {}
    # Its measure says that it has one.
    assert agreement_scales(shuffled, measures("a")) == {"a": []}
