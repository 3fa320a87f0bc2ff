"""Every type of pyxform's dictionary is an item, dropped or refused by name."""

from __future__ import annotations

import pytest
from pyxform.question_type_dictionary import QUESTION_TYPE_DICT

from survey.instrument.xlsform.types import KINDS, parse_type
from survey.tests.workbooks import draft_items, read


def test_no_type_of_pyxform_is_unknown():
    for name in QUESTION_TYPE_DICT:
        type_ = parse_type(name)
        # A select needs the name of a list, and so does a ranking.
        if "select" not in name and name != "rank":
            assert type_.kind in {*KINDS, "metadata", "refused"}, name
            assert type_.reason != "unknown type", name


@pytest.mark.parametrize(
    ("spelling", "kind", "constraint"),
    [
        ("phone number", "text", ["regex", ["$", "a"], "[0-9]*"]),
        ("Percentage", "integer", None),
        ("number of days in last month", "integer", None),
        ("q date time", "datetime", None),
        ("add integer prompt", "integer", None),
    ],
)
def test_alias_of_a_type_is_read_with_its_constraint(spelling, kind, constraint):
    item = draft_items(read([["type", "name", "label"], [spelling, "a", "A?"]]))["a"]
    assert item.kind == kind
    if constraint:
        assert item.rules["constraint"] == constraint
    elif kind == "integer" and "prompt" not in spelling:
        assert item.rules["constraint"][0] == "and"
    else:
        assert "constraint" not in item.rules


def test_constraint_of_the_row_replaces_that_of_its_type():
    rows = [["type", "name", "label", "constraint"], ["percentage", "a", "A?", ". < 9"]]
    item = draft_items(read(rows))["a"]
    assert item.rules["constraint"] == ["<", ["$", "a"], 9]


def test_phone_number_of_the_device_is_metadata():
    assert parse_type("phonenumber").kind == "metadata"
    assert parse_type("get phone number").kind == "metadata"
