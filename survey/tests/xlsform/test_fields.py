"""Paths, metadata and repeated names in expressions are read as `${name}`."""

from __future__ import annotations

from typing import Any

import pytest

from survey.instrument.xlsform.problems import Problem
from survey.tests.workbooks import draft_items, places, read

HEAD = ["type", "name", "label", "relevant", "calculation"]
# Two groups have an age; `pet` is in neither.
GROUPS: list[list[Any]] = [
    HEAD,
    ["today", "today"],
    ["start", "began"],
    ["username", "username"],
    ["text", "pet", "Pet?"],
    ["begin group", "child", "Child"],
    ["integer", "age", "Age?"],
    ["text", "school", "School?"],
    ["end group"],
    ["begin group", "parent", "Parent"],
    ["integer", "age", "Age?"],
]


def of_type(problems: list[Problem], column: str) -> list[tuple[int | None, str]]:
    return [(p.row, p.reason) for p in problems if p.column == column]


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("../age > 3", [">", ["$", "parent_age"], 3]),
        ("../../child/age > 3", [">", ["$", "child_age"], 3]),
        ("/data/child/age > 3", [">", ["$", "child_age"], 3]),
        ("/climate/child/school = 'a'", ["=", ["$", "school"], "a"]),
        ("current()/../age > 3", [">", ["$", "parent_age"], 3]),
        ("../../pet = '../age'", ["=", ["$", "pet"], "../age"]),
        ("not(/data/pet)", ["not", ["$", "pet"]]),
        ("${today} > '2027-01-01'", [">", ["today"], "2027-01-01"]),
        ("string-length(${began}) > 3", [">", ["string-length", ["now"]], 3]),
        ("${username} = 'x'", ["=", "", "x"]),
        ("/data/today > '2027'", [">", ["today"], "2027"]),
        ("TRUE", True),
        ("no", False),
        ("${pet} = 'a' or TRUE", ["or", ["=", ["$", "pet"], "a"], True]),
        ("if(FALSE(), true(), false)", ["if", False, True, False]),
        ("${pet} = 'TRUE'", ["=", ["$", "pet"], "TRUE"]),
        ("(${pet} != null)", ["!=", ["$", "pet"], ""]),
        ("if(${pet} = 'null', 1, NULL)", ["if", ["=", ["$", "pet"], "null"], 1, ""]),
    ],
)
def test_reference_is_read_as_the_name_of_an_item(rule: str, expected: object):
    reading = read([*GROUPS, ["text", "x", "X?", rule], ["end group"]])
    assert draft_items(reading)["x"].rules["relevant"] == expected


@pytest.mark.parametrize(
    ("rule", "reason"),
    [
        ("../school = 'a'", "no question at the path ../school"),
        ("../../../../pet = 'a'", "no question at the path"),
        # Other programs find nothing there: child is no root.
        ("/child/age > 3", "no question at the path /child/age"),
        ("/data/child = 'a'", "no question at the path"),
        ("${age} > 3", "in several groups: write its path, such as /data/child/age"),
        ("jr:choice-name(${pet}, '${age}') = 'a'", "in several groups"),
        ("now() - ${began} > 1", "metadata"),
        ("${pet}/age = 1", "paths are not supported"),
        ("null() = ${pet}", "unknown function null()"),
    ],
)
def test_unclear_reference_is_refused(rule: str, reason: str):
    reading = read([*GROUPS, ["text", "x", "X?", rule], ["end group"]])
    assert places(reading.problems) == [("survey", 12, "relevant")]
    assert reason in reading.problems[0].reason


@pytest.mark.parametrize(
    "rule", ["${today} > 1", "${username} = 'x'", "1 = TRUE", "${pet} = null"]
)
def test_reading_that_may_differ_gives_a_warning(rule: str):
    reading = read([*GROUPS, ["text", "x", "X?", rule], ["end group"]])
    assert [row for row, _reason in of_type(reading.warnings, "relevant")] == [12]


def test_name_in_two_groups_is_stored_with_its_group():
    reading = read([*GROUPS, ["end group"], ["note", "n", "You have a ${pet}."]])
    assert list(draft_items(reading)) == [
        "pet", "child_age", "school", "parent_age", "n",
    ]  # fmt: skip
    assert of_type(reading.warnings, "name") == [
        (7, "used in several groups: answers are stored as child_age"),
        (11, "used in several groups: answers are stored as parent_age"),
    ]


def test_stored_names_never_meet():
    rows = [*GROUPS, ["end group"], ["text", "child_age", "Child's age?"]]
    assert list(draft_items(read(rows))) == [
        "pet", "age", "school", "parent_age", "child_age",
    ]  # fmt: skip


def test_text_cannot_quote_a_name_in_two_groups():
    rows = [*GROUPS, ["end group"], ["note", "n", "You are ${age}."]]
    assert places(read(rows).problems) == [("survey", 13, "label")]


def test_name_twice_in_one_group_is_refused():
    rows = [*GROUPS, ["integer", "age", "Age?"], ["end group"]]
    assert ("survey", 12, "name") in places(read(rows).problems)


@pytest.mark.parametrize("calculation", ["device-info()", "once(duration())"])
def test_calculation_about_the_device_is_dropped(calculation: str):
    rows: list[list[Any]] = [
        HEAD,
        ["text", "a", "A?"],
        ["calculate", "d", None, None, calculation],
    ]
    reading = read(rows)
    assert list(draft_items(reading)) == ["a"]
    assert (3, "not collected: dropped") in of_type(reading.warnings, "type")
    refused = read([*rows, ["text", "b", "B?", "${d} = 1"]])
    assert "metadata" in refused.problems[0].reason


def test_a_problem_of_a_translation_names_its_column():
    english, spanish = "label::English (en)", "label::Spanish (es)"
    reading = read(
        [
            ["type", "name", english, spanish, "media::image::en", "media::image::es"],
            ["text", "pet", "Pet?", "¿${nope}?"],
            ["text", "food", "Food?", "¿Comida?", None, "pic_es.png"],
        ]
    )
    assert places(reading.problems) == [
        ("survey", 2, spanish),
        ("survey", 3, "media::image::es"),
    ]
