"""The rules of a survey, applied to one respondent's answers.

`static/js/rules.js` does the same in the browser; the vectors in
`survey/tests/definitions/rules_vectors.json` run through both. Answers are text: '' or
absent is blank, a multiple choice is its values joined by one space.
"""

from __future__ import annotations

import heapq
import math
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from survey.definitions import portable_regex
from survey.definitions.expressions import (
    Context,
    Value,
    evaluate,
    labels_of,
    reads_clock,
    references,
    to_boolean,
    to_text,
)
from survey.definitions.schema import (
    ANSWERABLE,
    RULES,
    SELECTS,
    VISIBLE,
    Call,
    Expr,
    OptionDefinition,
    RuledItem,
    RuleName,
    SurveyDefinition,
)

# What must be known before an item's value is: the other rules only judge it.
ORDERING_RULES: tuple[RuleName, ...] = (
    "relevant",
    "calculation",
    "choice_filter",
    "default_expression",
)
LOCAL_RULES: tuple[RuleName, ...] = (
    "relevant",
    "calculation",
    "choice_filter",
    "constraint",
    "required",
)
# As long as any answer; calculations that feed each other would otherwise
# double a text again and again.
LONGEST_VALUE = 5000


class CycleError(ValueError):
    """Items whose rules wait for each other; `cycle` ends where it begins."""

    def __init__(self, cycle: list[str]) -> None:
        super().__init__(" → ".join(cycle))
        self.cycle = cycle


@dataclass(frozen=True)
class Clock:
    """`today` is YYYY-MM-DD and `now` an ISO time with offset."""

    today: str
    now: str


@dataclass
class RuleState:
    """What holds for these answers; the names that were asked about only.

    `values` has '' for an item that is not relevant. `problems` says of a
    relevant item "required", "option" (no longer offered) or "constraint".
    """

    definition: SurveyDefinition
    clock: Clock
    language: str
    only_local: bool = False
    relevant: dict[str, bool] = field(default_factory=dict)
    values: dict[str, str] = field(default_factory=dict)
    problems: dict[str, str] = field(default_factory=dict)

    def item(self, name: str) -> RuledItem:
        return self.definition["items"][name]

    def rule(self, item: RuledItem, rule: RuleName) -> Expr | None:
        """The rule's expression, or None where it is not to be applied."""
        if self.only_local and rule not in item.get("local", ()):
            return None
        return item.get(rule)

    def value_of(self, expr: Expr, row: Mapping[str, str] | None = None) -> Value:
        context = Context(
            values=self.values,
            today=self.clock.today,
            now=self.clock.now,
            choice_label=self.choice_label,
            row=row or {},
        )
        return evaluate(expr, context)

    def holds(self, item: RuledItem, rule: RuleName, default: bool) -> bool:
        expr = self.rule(item, rule)
        return default if expr is None else to_boolean(self.value_of(expr))

    def options(self, name: str) -> list[OptionDefinition]:
        item = self.definition["items"].get(name)
        option_set = item.get("option_set", "") if item else ""
        return self.definition["option_sets"].get(option_set, [])

    def offered(self, name: str) -> list[OptionDefinition]:
        """The item's options that its choice filter lets through."""
        return [o for o in self.options(name) if self.offers(name, o)]

    def offers(self, name: str, option: OptionDefinition) -> bool:
        expr = self.rule(self.item(name), "choice_filter")
        return expr is None or to_boolean(self.value_of(expr, _row(option)))

    def required(self, name: str) -> bool:
        return self.holds(self.item(name), "required", False)

    def visible_pages(self) -> set[int]:
        """The numbers, from 1, of the pages on which anything shows."""
        return {
            item["page"]
            for name, item in self.definition["items"].items()
            if item["kind"] in VISIBLE and self.relevant.get(name, False)
        }

    def choice_label(self, name: str, value: str) -> str:
        """The label in the state's language; several values are listed."""
        labels = {o["value"]: self.label(o) for o in self.options(name)}
        if value in labels:
            return labels[value]
        return ", ".join(labels[part] for part in value.split(" ") if part in labels)

    def label(self, option: OptionDefinition) -> str:
        label = option.get("label", "")
        if isinstance(label, str):
            return label
        first = self.definition["languages"][0]["code"]
        return label.get(self.language) or label.get(first) or option["value"]


def state_of(
    definition: SurveyDefinition,
    answers: Mapping[str, str],
    *,
    today: str,
    now: str,
    language: str,
) -> RuleState:
    """All rules of the survey, as at finishing and export."""
    state = RuleState(definition, Clock(today, now), language)
    return _settled(state, definition["order"], answers)


def page_state(
    definition: SurveyDefinition,
    number: int,
    answers: Mapping[str, str],
    *,
    today: str,
    now: str,
    language: str,
    names: Collection[str] = (),
) -> RuleState:
    """The rules that read nothing but page `number`, as at saving it.

    A rule that reads more counts as fulfilled: pages arrive in any order.
    `names` are `names_on` of the page, where somebody keeps them.
    """
    state = RuleState(definition, Clock(today, now), language, only_local=True)
    return _settled(state, names or names_on(definition, number), answers)


def values_of(
    definition: SurveyDefinition,
    answers: Mapping[str, str],
    *,
    names: Collection[str],
    today: str,
    now: str,
    language: str,
) -> RuleState:
    """What is relevant and which value it has; nothing is judged.

    `names` are in the definition's order, with all that they wait for.
    """
    state = RuleState(definition, Clock(today, now), language)
    _values(state, names, answers)
    return state


def names_on(definition: SurveyDefinition, number: int) -> list[str]:
    """The items of a page, each after those that its rules wait for."""
    items = definition["items"]
    return [name for name in definition["order"] if items[name]["page"] == number]


def _settled(
    state: RuleState, names: Collection[str], answers: Mapping[str, str]
) -> RuleState:
    _values(state, names, answers)
    for name in names:
        problem = _problem(state, name) if state.relevant[name] else None
        if problem:
            state.problems[name] = problem
    return state


def _values(state: RuleState, names: Iterable[str], answers: Mapping[str, str]) -> None:
    for name in names:
        item = state.item(name)
        state.relevant[name] = state.holds(item, "relevant", True)
        known = state.relevant[name]
        state.values[name] = _value(state, name, item, answers) if known else ""


def _value(
    state: RuleState, name: str, item: RuledItem, answers: Mapping[str, str]
) -> str:
    if item["kind"] == "hidden":
        return str(item.get("default", ""))
    if is_computed(item):
        expr = state.rule(item, "calculation")
        return "" if expr is None else _computed(state.value_of(expr))
    return answers.get(name) or ""


def is_computed(item: RuledItem) -> bool:
    """Whether the value is the calculation's, whatever was sent."""
    if item["kind"] == "calculate":
        return True
    return bool(item.get("read_only")) and "calculation" in item


def _computed(value: Value) -> str:
    # As ODK stores it: a number that is none is no answer.
    if isinstance(value, float) and math.isnan(value):
        return ""
    return to_text(value)[:LONGEST_VALUE]


def _problem(state: RuleState, name: str) -> str | None:
    item = state.item(name)
    if item["kind"] not in ANSWERABLE:
        return None
    value = state.values[name]
    if value == "":
        return "required" if state.holds(item, "required", False) else None
    if item["kind"] in SELECTS and not _is_offered(state, name, value):
        return "option"
    return None if state.holds(item, "constraint", True) else "constraint"


def _is_offered(state: RuleState, name: str, value: str) -> bool:
    chosen = {value}
    if state.item(name)["kind"] == "select_multiple":
        chosen = set(value.split(" "))
    # The filter runs for what was chosen alone, not for 5,000 options.
    known = [o for o in state.options(name) if o["value"] in chosen]
    return chosen <= {o["value"] for o in known if state.offers(name, o)}


def _row(option: OptionDefinition) -> dict[str, str]:
    return {**option.get("attributes", {}), "name": option["value"]}


# --- For publishing ----------------------------------------------------------


def evaluation_order(items: Mapping[str, RuledItem]) -> list[str]:
    """The names, each after all that its value depends on; else CycleError.

    Items that do not wait for each other keep their places.
    """
    waits = {name: _dependencies(item) & items.keys() for name, item in items.items()}
    followers: dict[str, list[str]] = {name: [] for name in items}
    for name, others in waits.items():
        for other in others:
            followers[other].append(name)
    position = {name: index for index, name in enumerate(items)}
    order = _in_order(waits, followers, position)
    if len(order) < len(items):
        raise CycleError(_cycle(waits, set(items) - set(order)))
    return order


def _dependencies(item: RuledItem) -> set[str]:
    rules = [item[rule] for rule in ORDERING_RULES if rule in item]
    return set().union(*map(references, rules))


def _in_order(
    waits: Mapping[str, set[str]],
    followers: Mapping[str, list[str]],
    position: Mapping[str, int],
) -> list[str]:
    missing = {name: len(others) for name, others in waits.items()}
    ready = [(position[name], name) for name, count in missing.items() if not count]
    heapq.heapify(ready)
    order = []
    while ready:
        _, name = heapq.heappop(ready)
        order.append(name)
        for follower in followers[name]:
            missing[follower] -= 1
            if not missing[follower]:
                heapq.heappush(ready, (position[follower], follower))
    return order


def _cycle(waits: Mapping[str, set[str]], left: set[str]) -> list[str]:
    # Whoever is left waits for someone who is left, so the walk must return.
    path = [min(left)]
    while path.count(path[-1]) < 2:
        path.append(min(waits[path[-1]] & left))
    return path[path.index(path[-1]) :]


def local_rules(item: RuledItem, page_items: Mapping[str, RuledItem]) -> list[RuleName]:
    """The rules of `item` that read nothing but its own page.

    They are checked when the page is saved. A rule that reads the clock is
    not among them: a save that waits in a queue over midnight would be
    refused although it was right when it was made. Nor is one that reads an
    option's label: the save does not know which language was on the screen.
    """
    known = _known_on_page(page_items)
    own = {name for name, other in page_items.items() if other is item}
    return [
        rule
        for rule in LOCAL_RULES
        if rule in item and _reads_only(item[rule], _readable(rule, known, own, item))
    ]


def _readable(rule: str, known: set[str], own: set[str], item: RuledItem) -> set[str]:
    # An item's own answer is at hand when that answer is what is judged.
    judges = rule in {"constraint", "required"} and not is_computed(item)
    return known | own if judges else known


def _reads_only(expr: Expr, names: Collection[str]) -> bool:
    if reads_clock(expr) or labels_of(expr):
        return False
    return all(name in names for name in references(expr))


def _known_on_page(page_items: Mapping[str, RuledItem]) -> set[str]:
    """Names whose values follow from the answers of this page alone."""
    readers: dict[str, list[str]] = {name: [] for name in page_items}
    lost = []
    for name, item in page_items.items():
        for expr in deciding_rules(item):
            if not _reads_only(expr, page_items):
                lost.append(name)
            for other in references(expr) & page_items.keys():
                readers[other].append(name)
    return set(page_items) - _with_readers(lost, readers)


def deciding_rules(item: RuledItem) -> Iterable[Expr]:
    """On which it depends whether the item has a value, and which."""
    if "relevant" in item:
        yield item["relevant"]
    if is_computed(item) and "calculation" in item:
        yield item["calculation"]


def _with_readers(names: list[str], readers: Mapping[str, list[str]]) -> set[str]:
    reached: set[str] = set()
    while names:
        name = names.pop()
        if name not in reached:
            reached.add(name)
            names.extend(readers[name])
    return reached


# --- What a page's rules cost -------------------------------------------------

# One unit is about a microsecond of Python, for the worst answers there are:
# a page that is saved keeps its worker for at most 100 ms with its rules.
MOST_WORK = 100_000
# A context, and the option's columns.
WORK_OF_USE = 4
# Per 1,000 characters of the arguments; measured with texts of 5,000 that are
# all spaces, digits or two-letter words, whichever is slowest.
WORK_PER_1000 = {
    "contains": 30,
    "count-selected": 50,
    "selected-at": 50,
    "selected": 17,
    "format-date": 14,
    "date": 9,
    "round": 5,
}
# To read a number, which most operations may have to do.
WORK_OF_NUMBER = 5
WORK_OF_TEXT = 1
ON_TEXT = frozenset(
    {"and", "or", "not", "boolean", "if", "coalesce", "concat", "string", "once"}
    | {"string-length", "starts-with", "ends-with", "substr", "jr:choice-name"}
)
WORK_OF_ROUND = 5
# Per state and 1,000 characters, where RE2 must follow all states at once:
# it reads bytes, and a state such as `.` or \p{L} is many of its own.
WORK_OF_STATE = 12
WORK_OF_WIDE_STATE = 50
WIDE = re.compile(r"\[\^|\\[pPDW]|[^\x00-\x7F]")
CLASS_OR_ESCAPE = re.compile(r"\[(?:\\.|[^\]\\])*\]|\\.", re.DOTALL)
UNBOUNDED = re.compile(r"[*+]|,\}")
# The longest number in plain digits, and other answers that are not free text.
LONGEST_NUMBER = 350
LONGEST_SHORT = 40
SHORT = frozenset(
    {"integer", "decimal", "range", "date", "time", "datetime", "acknowledge"}
)


@dataclass(frozen=True)
class _Sizes:
    """Of a set of options: how many, and the characters in them.

    Of one value, of all values, of one label and of one column.
    """

    count: int = 0
    longest: int = 0
    values: int = 0
    label: int = 0
    columns: int = 0


class Work:
    """What the rules of a survey cost, by their form, for any answers.

    Every node counts at least one; one that goes through a text counts by the
    longest text that can come there, a pattern by its states, and a choice
    filter once for each option. Linear in the size of the survey.
    """

    def __init__(
        self,
        items: Mapping[str, RuledItem],
        option_sets: Mapping[str, Collection[OptionDefinition]],
    ) -> None:
        self.items = items
        self.sizes = {name: _sizes(one) for name, one in option_sets.items()}

    def of_item(self, item: RuledItem) -> dict[str, int]:
        """Units by rule."""
        return {rule: self._of_rule(item, rule) for rule in RULES if rule in item}

    def _of_rule(self, item: RuledItem, rule: RuleName) -> int:
        sizes = self._sizes_of(item)
        once = WORK_OF_USE + self._work(item[rule], sizes.columns)[0]
        return math.ceil(once * (sizes.count if rule == "choice_filter" else 1))

    def _sizes_of(self, item: RuledItem) -> _Sizes:
        return self.sizes.get(item.get("option_set", ""), _Sizes())

    def _work(self, expr: Expr, column: int) -> tuple[float, int]:
        """The units, and how long a text may come out."""
        if not isinstance(expr, list):
            return 1, len(expr) if isinstance(expr, str) else LONGEST_NUMBER
        operation, arguments = expr[0], expr[1:]
        if operation == "$":
            return 1, self._longest_answer(arguments[0])
        if operation == "col":
            return 1, column
        if operation in {"regex", "jr:choice-name"}:
            return self._special(expr, column)
        parts = [self._work(argument, column) for argument in arguments]
        lengths = [length for _, length in parts]
        own = 1 + _per_1000(expr) * sum(lengths) / 1000
        own += WORK_OF_ROUND * (operation == "round")
        return own + sum(work for work, _ in parts), _length(expr, lengths)

    def _special(self, expr: Call, column: int) -> tuple[float, int]:
        work, length = self._work(expr[1], column)
        if expr[0] == "regex":
            return work + 1 + _matching(expr[2], length), LONGEST_NUMBER
        sizes = self._sizes_of(self.items.get(expr[2], {"kind": "text"}))
        # A word may stand in the value again and again, and so its label.
        words = length // 2 + 1
        own = 1 + sizes.count + words / 4
        return work + own, words * (sizes.label + 2)

    def _longest_answer(self, name: str) -> int:
        item = self.items.get(name, {"kind": "text"})
        if item["kind"] == "hidden":
            return len(str(item.get("default", "")))
        if is_computed(item):
            return LONGEST_VALUE
        if item["kind"] in SELECTS:
            sizes = self._sizes_of(item)
            single = item["kind"] == "select_one"
            return sizes.longest if single else sizes.values
        return LONGEST_SHORT if item["kind"] in SHORT else LONGEST_VALUE


def _sizes(options: Collection[OptionDefinition]) -> _Sizes:
    values = [len(one["value"]) for one in options]
    columns = [len(text) for one in options for text in _row(one).values()]
    return _Sizes(
        count=len(values),
        longest=max(values, default=0),
        values=sum(values) + len(values),
        label=max(map(_longest_label, options), default=0),
        columns=max(columns, default=0),
    )


def _longest_label(option: OptionDefinition) -> int:
    label = option.get("label", "")
    texts = [label] if isinstance(label, str) else label.values()
    return max(map(len, texts), default=0)


def _per_1000(expr: Call) -> float:
    operation = expr[0]
    compares = operation in {"=", "!="}
    if operation in ON_TEXT or (compares and all(map(_is_text, expr[1:]))):
        return WORK_OF_TEXT
    return WORK_PER_1000.get(operation, WORK_OF_NUMBER)


def _is_text(expr: Expr) -> bool:
    # Two texts are compared as they are; else both are read as numbers.
    return isinstance(expr, str) or (isinstance(expr, list) and expr[0] in {"$", "col"})


def _length(expr: Call, lengths: list[int]) -> int:
    operation = expr[0]
    if operation == "concat":
        return sum(lengths)
    if operation in {"if", "coalesce"}:
        return max(lengths)
    if operation in {"string", "once", "substr", "selected-at"}:
        return lengths[0]
    if operation == "format-date":
        return 2 * lengths[1]
    return LONGEST_NUMBER


def _matching(pattern: str, length: int) -> float:
    states = _states(pattern)
    # A longer text is not looked at, and without a loop each character that
    # is taken leaves a state behind for good.
    read = min(length, portable_regex.LONGEST_INPUT)
    if not UNBOUNDED.search(CLASS_OR_ESCAPE.sub("", pattern)):
        read = min(read, states)
    weight = WORK_OF_WIDE_STATE if WIDE.search(pattern) else WORK_OF_STATE
    return 1 + states * weight * read / 1000


def _states(pattern: str) -> int:
    try:
        return portable_regex._Reader(pattern).alternatives().states
    except portable_regex.PatternError:
        return portable_regex.MOST_STATES
