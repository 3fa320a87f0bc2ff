"""Read the distributions of a group from a row of counts, and code their ends."""

from __future__ import annotations

from dataclasses import dataclass, field

from reports.releases.counting import Counts, lengthened
from reports.releases.layout import Layout, Measured
from reports.suppression.end_coding import CodedShare, coded_shares


@dataclass(slots=True)
class ItemDistribution:
    """How many people of a group gave each answer to an item."""

    measured: Measured
    answered: int = 0
    skipped: int = 0
    not_applicable: int = 0
    not_reached: int = 0
    # Option, number or lower end of a bin -> people, in the survey's or numeric order.
    # Of multiple choices, a person may be in several.
    values: dict[str, int] = field(default_factory=dict)
    # Of bins; "" if each number is counted.
    width: str = ""
    # Answers that are not in `values`, because only a bound of their share is shown.
    coded: dict[str, CodedShare] = field(default_factory=dict)
    # Who gave one of these, where answers exclude each other: all minus the exact ones.
    coded_people: int = 0

    @property
    def answers(self) -> set[str]:
        return self.values.keys() | self.coded.keys()

    def code_ends(self, threshold: int) -> bool:
        """Replace the numbers of all and hardly any people by bounds of their shares.

        Return False if the item has to be hidden instead.
        """
        are_exclusive = self.measured != "multiple"
        shares = coded_shares(
            list(self.values.values()),
            self.answered,
            threshold,
            are_exclusive=are_exclusive,
        )
        if shares is None:
            return False
        for value, share in zip(list(self.values), shares, strict=True):
            if share:
                people = self.values.pop(value)
                self.coded[value] = share
                self.coded_people += people if are_exclusive else 0
        return True


def items_of(
    layout: Layout, people: int, counts: Counts
) -> dict[str, ItemDistribution]:
    """Return the distributions in a row of counts.

    After these there may be the number of people for each item, where some are left
    out.
    """
    items = {
        item.name: ItemDistribution(
            item.measured, width=layout.widths.get(item.name, "")
        )
        for item in layout.items
    }
    columns = counts[: len(layout.columns)]
    numbers = lengthened(columns, len(layout.columns)).tolist()
    for column, number in zip(layout.columns, numbers, strict=True):
        item = items[column.item]
        if column.kind == "answered":
            item.answered = number
        elif column.kind == "skipped":
            item.skipped = number
        elif column.kind == "not applicable":
            item.not_applicable = number
        else:
            item.values[column.value] = number
    bases = counts[len(layout.columns) :].tolist() or [people] * len(items)
    for base, item in zip(bases, items.values(), strict=True):
        item.not_reached = base - item.answered - item.skipped - item.not_applicable
        if item.measured == "number":
            item.values = {
                value: item.values[value] for value in sorted(item.values, key=float)
            }
    return items
