"""The rules of a survey, applied to one respondent's answers.

`static/js/rules.js` does the same in the browser; the vectors in
`survey/tests/rules_vectors.json` run through both. Answers are text: '' or
absent is blank, a multiple choice is its values joined by one space.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from survey.expressions import (
    Context,
    Expr,
    Value,
    evaluate,
    reads_clock,
    references,
    text,
    truth,
)

Item = Mapping[str, Any]
Definition = Mapping[str, Any]
Option = Mapping[str, Any]

UNANSWERABLE = frozenset({"note", "calculate", "hidden"})
# These take no room on a page.
UNSEEN = frozenset({"calculate", "hidden"})
CHOICES = frozenset({"select_one", "select_multiple"})
# What must be known before an item's value is: the other rules only judge it.
ORDERING_RULES = ("relevant", "calculation", "choice_filter", "default_expression")
LOCAL_RULES = ("relevant", "calculation", "choice_filter", "constraint", "required")
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
class State:
    """What holds for these answers; the names that were asked about only.

    `values` has '' for an item that is not relevant. `problems` says of a
    relevant item "required", "option" (no longer offered) or "constraint".
    """

    definition: Definition
    clock: Clock
    language: str
    only_local: bool = False
    relevant: dict[str, bool] = field(default_factory=dict)
    values: dict[str, str] = field(default_factory=dict)
    problems: dict[str, str] = field(default_factory=dict)

    def item(self, name: str) -> Item:
        item: Item = self.definition["items"][name]
        return item

    def rule(self, item: Item, rule: str) -> Expr | None:
        """The rule's expression, or None where it is not to be applied."""
        if self.only_local and rule not in item.get("local", ()):
            return None
        expr: Expr | None = item.get(rule)
        return expr

    def value_of(self, expr: Expr, row: Mapping[str, str] | None = None) -> Value:
        context = Context(
            values=self.values,
            today=self.clock.today,
            now=self.clock.now,
            choice_label=self.choice_label,
            row=row or {},
        )
        return evaluate(expr, context)

    def holds(self, item: Item, rule: str, default: bool) -> bool:
        expr = self.rule(item, rule)
        return default if expr is None else truth(self.value_of(expr))

    def options(self, name: str) -> list[Option]:
        option_set = self.definition["items"].get(name, {}).get("option_set")
        options: list[Option] = self.definition["option_sets"].get(option_set, [])
        return options

    def offered(self, name: str) -> list[Option]:
        """The item's options that its choice filter lets through."""
        return [o for o in self.options(name) if self.offers(name, o)]

    def offers(self, name: str, option: Option) -> bool:
        expr = self.rule(self.item(name), "choice_filter")
        return expr is None or truth(self.value_of(expr, _row(option)))

    def required(self, name: str) -> bool:
        return self.holds(self.item(name), "required", False)

    def page_visible(self, number: int) -> bool:
        """Whether anything on page `number` (from 1) shows."""
        return any(
            self.relevant.get(name, False)
            for name, item in self.definition["items"].items()
            if item["page"] == number and item["kind"] not in UNSEEN
        )

    def choice_label(self, name: str, value: str) -> str:
        """The label in the state's language; several values are listed."""
        labels = {o["value"]: self.label(o) for o in self.options(name)}
        if value in labels:
            return labels[value]
        return ", ".join(labels[part] for part in value.split(" ") if part in labels)

    def label(self, option: Option) -> str:
        label = option.get("label", "")
        if isinstance(label, str):
            return label
        first = self.definition["languages"][0]["code"]
        words: str = label.get(self.language) or label.get(first) or option["value"]
        return words


def state_of(
    definition: Definition,
    answers: Mapping[str, str],
    *,
    today: str,
    now: str,
    language: str,
) -> State:
    """All rules of the survey, as at finishing and export."""
    state = State(definition, Clock(today, now), language)
    return _settled(state, definition["order"], answers)


def page_state(
    definition: Definition,
    number: int,
    answers: Mapping[str, str],
    *,
    today: str,
    now: str,
    language: str,
) -> State:
    """The rules that read nothing but page `number`, as at saving it.

    A rule that reads more counts as fulfilled: pages arrive in any order.
    """
    state = State(definition, Clock(today, now), language, only_local=True)
    items = definition["items"]
    names = [name for name in definition["order"] if items[name]["page"] == number]
    return _settled(state, names, answers)


def _settled(state: State, names: Collection[str], answers: Mapping[str, str]) -> State:
    for name in names:
        item = state.item(name)
        state.relevant[name] = state.holds(item, "relevant", True)
        known = state.relevant[name]
        state.values[name] = _value(state, name, item, answers) if known else ""
    for name in names:
        problem = _problem(state, name) if state.relevant[name] else None
        if problem:
            state.problems[name] = problem
    return state


def _value(state: State, name: str, item: Item, answers: Mapping[str, str]) -> str:
    if item["kind"] == "hidden":
        return str(item.get("default", ""))
    if is_computed(item):
        expr = state.rule(item, "calculation")
        return "" if expr is None else _computed(state.value_of(expr))
    return answers.get(name) or ""


def is_computed(item: Item) -> bool:
    """Whether the value is the calculation's, whatever was sent."""
    if item["kind"] == "calculate":
        return True
    return bool(item.get("read_only")) and "calculation" in item


def _computed(value: Value) -> str:
    # As ODK stores it: a number that is none is no answer.
    if isinstance(value, float) and math.isnan(value):
        return ""
    return text(value)[:LONGEST_VALUE]


def _problem(state: State, name: str) -> str | None:
    item = state.item(name)
    if item["kind"] in UNANSWERABLE:
        return None
    value = state.values[name]
    if value == "":
        return "required" if state.holds(item, "required", False) else None
    if item["kind"] in CHOICES and not _is_offered(state, name, value):
        return "option"
    return None if state.holds(item, "constraint", True) else "constraint"


def _is_offered(state: State, name: str, value: str) -> bool:
    chosen = {value}
    if state.item(name)["kind"] == "select_multiple":
        chosen = set(value.split(" "))
    # The filter runs for what was chosen alone, not for 5,000 options.
    known = [o for o in state.options(name) if o["value"] in chosen]
    return chosen <= {o["value"] for o in known if state.offers(name, o)}


def _row(option: Option) -> dict[str, str]:
    return {**option.get("attributes", {}), "name": option["value"]}


# --- For publishing ----------------------------------------------------------


def evaluation_order(items: Mapping[str, Item]) -> list[str]:
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


def _dependencies(item: Item) -> set[str]:
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


def local_rules(item: Item, page_items: Mapping[str, Item]) -> list[str]:
    """The rules of `item` that read nothing but its own page.

    They are checked when the page is saved. A rule that reads the clock is
    not among them: a save that waits in a queue over midnight would be
    refused although it was right when it was made.
    """
    known = _known_on_page(page_items)
    own = {name for name, other in page_items.items() if other is item}
    return [
        rule
        for rule in LOCAL_RULES
        if rule in item and _reads_only(item[rule], _readable(rule, known, own, item))
    ]


def _readable(rule: str, known: set[str], own: set[str], item: Item) -> set[str]:
    # An item's own answer is at hand when that answer is what is judged.
    judges = rule in {"constraint", "required"} and not is_computed(item)
    return known | own if judges else known


def _reads_only(expr: Expr, names: Collection[str]) -> bool:
    return not reads_clock(expr) and all(name in names for name in references(expr))


def _known_on_page(page_items: Mapping[str, Item]) -> set[str]:
    """Names whose values follow from the answers of this page alone."""
    readers: dict[str, list[str]] = {name: [] for name in page_items}
    lost = []
    for name, item in page_items.items():
        for expr in _deciding_rules(item):
            if not _reads_only(expr, page_items):
                lost.append(name)
            for other in references(expr) & page_items.keys():
                readers[other].append(name)
    return set(page_items) - _with_readers(lost, readers)


def _deciding_rules(item: Item) -> Iterable[Expr]:
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
