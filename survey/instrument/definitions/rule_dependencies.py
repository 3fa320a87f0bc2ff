"""Find out which items and pages the rules of a survey depend on."""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterator, Mapping

from survey.instrument.definitions.expressions import labels_of, reads_clock, references
from survey.instrument.definitions.rules import is_computed
from survey.instrument.definitions.schema import Expr, RuledItem, RuleName

# An item's value depends on these; the other rules only judge it.
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


class CycleError(ValueError):
    """Items whose rules read each other; `cycle` ends where it begins."""

    def __init__(self, cycle: list[str]) -> None:
        super().__init__(" → ".join(cycle))
        self.cycle = cycle


def evaluation_order(
    items: Mapping[str, RuledItem], piped: Mapping[str, Collection[str]] | None = None
) -> list[str]:
    """Sort the names, each after all that its value depends on.

    Items that do not depend on each other keep their order. `piped` are the items
    that the labels of each option set quote. Raises CycleError.
    """
    reads = {
        name: set[str]().union(
            *(
                items_read(item[rule], items, piped or {})
                for rule in ORDERING_RULES
                if rule in item
            )
        )
        & items.keys()
        for name, item in items.items()
    }
    readers: dict[str, list[str]] = {name: [] for name in items}
    for name, names_read in reads.items():
        for name_read in names_read:
            readers[name_read].append(name)
    # A heap by place in the survey, so that the same survey always has the same
    # order: it is part of the definition, and so of the digest.
    position = {name: index for index, name in enumerate(items)}
    missing = {name: len(names_read) for name, names_read in reads.items()}
    ready = [(position[name], name) for name, count in missing.items() if not count]
    heapq.heapify(ready)
    order = []
    while ready:
        _, name = heapq.heappop(ready)
        order.append(name)
        for reader in readers[name]:
            missing[reader] -= 1
            if not missing[reader]:
                heapq.heappush(ready, (position[reader], reader))
    if len(order) < len(items):
        # Each item that is left reads another one that is left, so that this
        # walk must come back to where it has been.
        left = set(items) - set(order)
        path = [min(left)]
        while path.count(path[-1]) < 2:
            path.append(min(reads[path[-1]] & left))
        raise CycleError(path[path.index(path[-1]) :])
    return order


def items_read(
    expr: Expr, items: Mapping[str, RuledItem], piped: Mapping[str, Collection[str]]
) -> set[str]:
    """Return the items that an expression reads, also through labels of options."""
    read = references(expr)
    for name in labels_of(expr) & items.keys():
        read.update(piped.get(items[name].get("option_set", ""), ()))
    return read


def local_rules(item: RuledItem, page_items: Mapping[str, RuledItem]) -> list[RuleName]:
    """Return the rules of `item` that read nothing but its own page.

    They are checked when the page is saved. A rule that reads the clock is
    not among them: a save that waits in a queue over midnight would be
    refused although it was right when it was made. Nor is one that reads an
    option's label: the save does not know which language was on the screen.
    """
    known = _known_on_page(page_items)
    names = {name for name, entry in page_items.items() if entry is item}
    rules = []
    for rule in LOCAL_RULES:
        # An item's own answer is at hand when that answer is judged.
        judges = rule in {"constraint", "required"} and not is_computed(item)
        readable = known | names if judges else known
        if rule in item and _reads_only(item[rule], readable):
            rules.append(rule)
    return rules


def deciding_rules(item: RuledItem) -> Iterator[Expr]:
    """Yield the rules that decide whether an item has a value, and which."""
    if "relevant" in item:
        yield item["relevant"]
    if is_computed(item) and "calculation" in item:
        yield item["calculation"]


def _known_on_page(page_items: Mapping[str, RuledItem]) -> set[str]:
    """Return the items whose values follow from the answers of this page alone."""
    readers: dict[str, list[str]] = {name: [] for name in page_items}
    waiting = []
    for name, item in page_items.items():
        for expr in deciding_rules(item):
            if not _reads_only(expr, page_items):
                waiting.append(name)
            for name_read in references(expr) & page_items.keys():
                readers[name_read].append(name)
    unknown: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name not in unknown:
            unknown.add(name)
            waiting.extend(readers[name])
    return set(page_items) - unknown


def _reads_only(expr: Expr, names: Collection[str]) -> bool:
    if reads_clock(expr) or labels_of(expr):
        return False
    return all(name in names for name in references(expr))
