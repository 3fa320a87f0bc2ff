"""Calculations in the rows of questions, and calculations with a trigger."""

from __future__ import annotations

from typing import Any

import pytest

from survey.instrument.xlsform import Reading
from survey.tests.workbooks import AGREE, Rows, draft_items, places, read

HEAD = ["type", "name", "label", "calculation", "read_only", "default", "trigger"]
TWICE = ["*", ["$", "a"], 2]


def read_row(type_: str, *cells: Any) -> Reading:
    label = None if type_ == "calculate" else "X?"
    rows = [HEAD, ["integer", "a", "A?"], ["text", "b", "B?"]]
    return read([*rows, [type_, "x", label, *cells]])


@pytest.mark.parametrize(
    "type_", ["text", "integer", "decimal", "date", "select_one pets", "range"]
)
def test_calculation_of_a_question_is_its_default(type_: str):
    reading = read_row(type_, "${a} * 2")
    assert draft_items(reading)["x"].rules["default_expression"] == TWICE
    assert ("survey", 4, "calculation") in places(reading.warnings)


@pytest.mark.parametrize("type_", ["text", "integer", "decimal", "date"])
def test_read_only_calculation_is_a_computed_text(type_: str):
    item = draft_items(reading := read_row(type_, "${a} * 2", "yes"))["x"]
    assert (item.kind, item.rules["calculation"]) == ("text", TWICE)
    assert item.rules["read_only"] is True
    assert (("survey", 4, "type") in places(reading.warnings)) == (type_ != "text")


def test_calculation_comes_before_a_default():
    reading = read_row("integer", "${a} * 2", None, "3")
    assert draft_items(reading)["x"].rules == {"default_expression": TWICE}
    assert ("survey", 4, "default") in places(reading.warnings)


def test_note_with_a_calculation_shows_it():
    item = draft_items(read_row("note", "${a} * 2"))["x"]
    assert (item.kind, item.rules["calculation"]) == ("text", TWICE)


@pytest.mark.parametrize(
    ("type_", "cells"),
    [
        ("select_one pets", ["'cat'", "yes"]),
        ("range", ["3", "yes"]),
    ],
)
def test_calculation_that_could_not_be_answered_is_refused(
    type_: str, cells: list[str]
):
    reading = read_row(type_, *cells)
    assert places(reading.problems) == [("survey", 4, "calculation")]


@pytest.mark.parametrize("type_", ["calculate", "note"])
def test_trigger_is_ignored_if_the_calculation_follows_it_anyway(type_: str):
    reading = read_row(type_, "${a} * 2", None, None, "${a}")
    assert draft_items(reading)["x"].rules["calculation"] == [
        "if", ["!=", ["$", "a"], ""], TWICE, "",
    ]  # fmt: skip
    assert ("survey", 4, "trigger") in places(reading.warnings)


@pytest.mark.parametrize(
    ("type_", "calculation"),
    [
        ("calculate", "now()"),
        ("calculate", "${a} + ${b}"),
        ("integer", "${a} * 2"),
        ("text", None),
    ],
)
def test_trigger_that_decides_when_is_refused(type_: str, calculation: str | None):
    reading = read_row(type_, calculation, None, None, "${a}")
    assert ("survey", 4, "trigger") in places(reading.problems)


LIST = ["list_name", "name", "label", "region", "size"]
REPEATED: Rows = [
    LIST,
    *AGREE[1:3],
    ["town", "a", "Ada", "n", "1"],
    ["town", "other", "Other", "n", "1"],
    ["town", "other", "Other", "s", "1"],
]


def read_towns(choices: Rows, rule: str, setting: str = "yes") -> Reading:
    rows = [
        ["type", "name", "label", "choice_filter"],
        ["text", "region", "Region?"],
        ["select_one town", "t", "Town?", rule],
    ]
    settings = [["form_id", "allow_choice_duplicates"], ["towns", setting]]
    return read(rows, choices, settings)


def test_option_repeated_for_several_filters_is_one_option():
    reading = read_towns(REPEATED, "region = ${region} and size = 1")
    assert draft_items(reading)["t"].rules["choice_filter"] == [
        "and",
        ["selected", ["col", "region"], ["$", "region"]],
        ["=", ["col", "size"], 1],
    ]
    assert reading.draft
    options = {o.value: o.attributes for o in reading.draft.option_sets["town"]}
    assert options["other"]["region"] == "n s"
    assert ("choices", 6, "name") in places(reading.warnings)


def test_option_is_repeated_only_where_the_settings_allow_it():
    reading = read_towns(REPEATED, "region = ${region}", "no")
    assert ("choices", 6, "name") in places(reading.problems)


@pytest.mark.parametrize(
    "rule",
    [
        "not(region = ${region})",
        "region != ${region}",
        "region = ${region} or region = 'n'",
        "region = 1",
        "starts-with(region, ${region})",
    ],
)
def test_filter_that_repeated_options_would_change_is_refused(rule: str):
    reading = read_towns(REPEATED, rule)
    assert places(reading.problems) == [("survey", 3, "choice_filter")]


@pytest.mark.parametrize(
    ("row", "column"),
    [
        (["town", "other", "Else", "s", "1"], "name"),
        (["town", "other", "Other", "e", "2"], "name"),
        (["town", "other", "Other", None, "1"], "name"),
        (["town", "b", "Bea", "far north", "1"], "region"),
    ],
)
def test_option_repeated_otherwise_is_refused(row: list[Any], column: str):
    reading = read_towns([*REPEATED, row], "region = ${region}")
    assert ("choices", 7, column) in places(reading.problems)


def test_words_for_other_that_are_missing_in_a_language_give_a_warning():
    head = ["type", "name", "label::English (en)", "label::Soomaali (so)"]
    rows = [head, ["select_one pets or_other", "pet", "Pet?", "Xayawaan?"]]
    choices = [
        ["list_name", "name", *head[2:]],
        ["pets", "cat", "Cat", "Bisad"],
    ]
    reading = read(rows, choices, [["form_id"], ["other"]])
    assert reading.draft
    (warning,) = [problem for problem in reading.warnings if problem.column == "type"]
    assert (warning.column, warning.reason.split(":")[0]) == ("type", "Somali")
