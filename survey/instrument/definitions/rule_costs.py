"""Bound what the rules of a survey cost to apply, whatever the answers are."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from survey.instrument.definitions import portable_regex
from survey.instrument.definitions.piping import PIPE
from survey.instrument.definitions.rules import (
    MAX_VALUE_LENGTH,
    filter_row,
    is_computed,
)
from survey.instrument.definitions.schema import (
    RULES,
    SELECTS,
    SHORT_KINDS,
    Call,
    Expr,
    OptionDefinition,
    RuledItem,
)

# One unit is about a microsecond of Python, for the worst answers possible: a
# page that is saved keeps its worker for at most 100 ms with its rules.
MAX_PAGE_COST = 100_000
# A context, and the option's columns.
COST_OF_RULE = 4
# Per 1,000 characters of the arguments; measured with texts of 5,000 that are
# all spaces, digits or two-letter words, whichever is slowest.
COST_PER_1000 = {
    "contains": 30,
    "substring-after": 30,
    "substring-before": 30,
    "count-selected": 50,
    "normalize-space": 50,
    "selected-at": 50,
    "translate": 50,
    "selected": 17,
    "format-date": 14,
    "date": 9,
    "round": 5,
}
# Functions whose result is no longer than their first argument.
PARTS_OF_A_TEXT = frozenset(
    {"string", "once", "substr", "selected-at", "normalize-space"}
    | {"substring-after", "substring-before", "translate"}
)
# To read a number, which most operations may have to do.
COST_OF_NUMBER = 5
COST_OF_TEXT = 1
TEXT_OPERATIONS = frozenset(
    {"and", "or", "not", "boolean", "if", "coalesce", "concat", "string", "once"}
    | {"string-length", "starts-with", "ends-with", "substr", "jr:choice-name"}
)
COST_OF_ROUND = 5
# Per state and 1,000 characters, where RE2 must follow all states at once:
# it reads bytes, and a state such as `.` or \p{L} is many of its own.
COST_OF_STATE = 12
COST_OF_WIDE_STATE = 50
WIDE = re.compile(r"\[\^|\\[pPDW]|[^\x00-\x7F]")
CLASS_OR_ESCAPE = re.compile(r"\[(?:\\.|[^\]\\])*\]|\\.", re.DOTALL)
UNBOUNDED = re.compile(r"[*+]|,\}")
# The longest number in plain digits, and other answers that are not free text.
NUMBER_LENGTH = 350
SHORT_LENGTH = 40


@dataclass(frozen=True)
class OptionSizes:
    """The number of options in a set, and the most characters in their parts.

    In one value, in all values together, in one label and in one column. `pipes`
    is the most answers that a label quotes; `label` counts the longest ones.
    """

    count: int = 0
    longest: int = 0
    values: int = 0
    label: int = 0
    pipes: int = 0
    columns: int = 0

    @classmethod
    def of(cls, options: Collection[OptionDefinition]) -> OptionSizes:
        values = [len(option["value"]) for option in options]
        labels = [text for option in options for text in option["label"].values()]
        columns = [text for option in options for text in filter_row(option).values()]
        return cls(
            count=len(values),
            longest=max(values, default=0),
            values=sum(values) + len(values),
            label=max(
                (len(text) + pipes_in(text) * MAX_VALUE_LENGTH for text in labels),
                default=0,
            ),
            pipes=max(map(pipes_in, labels), default=0),
            columns=max(map(len, columns), default=0),
        )


class RuleCosts:
    """Costs of a survey's rules, derived from their form alone.

    Every call costs at least one unit; one that goes through a text costs by
    the longest text possible there, a pattern by its states, and a choice
    filter once for each option. Linear in the size of the survey.
    """

    def __init__(
        self,
        items: Mapping[str, RuledItem],
        option_sets: Mapping[str, Collection[OptionDefinition]],
    ) -> None:
        self.items = items
        self.option_sets = option_sets
        self.sizes: dict[str, OptionSizes] = {}

    def of_item(self, item: RuledItem) -> dict[str, int]:
        """Return the units of each rule that the item has."""
        costs: dict[str, int] = {}
        for rule in RULES:
            if rule in item:
                sizes = self.sizes_of(item)
                once = COST_OF_RULE + self.cost_and_length(item[rule], sizes.columns)[0]
                times = sizes.count if rule == "choice_filter" else 1
                costs[rule] = math.ceil(once * times)
        return costs

    def sizes_of(self, item: RuledItem) -> OptionSizes:
        """Measure a list of options only when a rule needs it: it may have 1,000."""
        name = item.get("option_set", "")
        if name not in self.sizes:
            self.sizes[name] = OptionSizes.of(self.option_sets.get(name, ()))
        return self.sizes[name]

    def cost_and_length(self, expr: Expr, column: int) -> tuple[float, int]:
        """Return the units of an expression and the longest text it may give.

        `column` is the length of the longest column of the option.
        """
        if not isinstance(expr, list):
            return 1, len(expr) if isinstance(expr, str) else NUMBER_LENGTH
        operation, *arguments = expr
        if operation == "$":
            return 1, self.longest_answer(arguments[0])
        if operation == "col":
            return 1, column
        if operation == "regex":
            cost, length = self.cost_and_length(arguments[0], column)
            return cost + 1 + pattern_cost(arguments[1], length), NUMBER_LENGTH
        if operation == "jr:choice-name":
            cost, length = self.cost_and_length(arguments[0], column)
            item = self.items.get(arguments[1])
            sizes = self.sizes_of(item) if item else OptionSizes()
            # A word may occur in the value again and again, and so its label.
            words = length // 2 + 1
            longest = words * (sizes.label + 2)
            cost += 1 + sizes.count + words * (1 + 2 * sizes.pipes) / 4
            return cost + COST_OF_TEXT * longest / 1000, longest
        parts = [self.cost_and_length(argument, column) for argument in arguments]
        lengths = [length for _, length in parts]
        base = 1 + cost_per_1000(expr) * sum(lengths) / 1000
        base += COST_OF_ROUND * (operation == "round")
        return base + sum(cost for cost, _ in parts), result_length(operation, lengths)

    def longest_answer(self, name: str) -> int:
        item = self.items.get(name, {"kind": "text"})
        if item["kind"] == "hidden":
            return len(str(item.get("default", "")))
        if is_computed(item):
            return MAX_VALUE_LENGTH
        if item["kind"] in SELECTS:
            sizes = self.sizes_of(item)
            single = item["kind"] == "select_one"
            return sizes.longest if single else sizes.values
        return SHORT_LENGTH if item["kind"] in SHORT_KINDS else MAX_VALUE_LENGTH


def pipes_in(text: str) -> int:
    return len(PIPE.findall(text))


def cost_per_1000(call: Call) -> float:
    operation, *arguments = call
    # Two texts are compared as they are; else both are read as numbers.
    compares_texts = operation in {"=", "!="} and all(
        isinstance(argument, str)
        or (isinstance(argument, list) and argument[0] in {"$", "col"})
        for argument in arguments
    )
    if operation in TEXT_OPERATIONS or compares_texts:
        return COST_OF_TEXT
    return COST_PER_1000.get(operation, COST_OF_NUMBER)


def result_length(operation: str, lengths: list[int]) -> int:
    """Return the longest result for arguments of these lengths."""
    if operation == "concat":
        return sum(lengths)
    if operation in {"if", "coalesce"}:
        return max(lengths)
    if operation in PARTS_OF_A_TEXT:
        return lengths[0]
    if operation == "format-date":
        return 2 * lengths[1]
    return NUMBER_LENGTH


def pattern_cost(pattern: str, length: int) -> float:
    states = portable_regex.count_states(pattern)
    # A longer text is not looked at, and without a loop each character that
    # is taken leaves a state behind for good.
    read = min(length, portable_regex.MAX_INPUT_LENGTH)
    if not UNBOUNDED.search(CLASS_OR_ESCAPE.sub("", pattern)):
        read = min(read, states)
    weight = COST_OF_WIDE_STATE if WIDE.search(pattern) else COST_OF_STATE
    return 1 + states * weight * read / 1000
