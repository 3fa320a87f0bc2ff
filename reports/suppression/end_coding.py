"""Code percentages near 0 and 100 as "under 5 %" and "over 95 %".

This is top and bottom coding, as in the reports of most states: 100 % tells what each
person of a group has answered, 0 % what nobody has, and 1 of 20 points to one person
(NCES 2011-603, Statistical Methods for Protecting Personally Identifiable Information
in Aggregate Reporting).

Readers know the rule, how many answered, and the exact numbers beside the coded ones.
So the bound of an item is one from the start on, is never smaller than three people,
and rises where the coded answers could be calculated from the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

# In a group of more people, few are less than 1 %: a district can show 3 %.
LARGE_GROUP = 300
THRESHOLD_OF_LARGE_GROUPS = 1
# Fewer people than these are always below the bound. Where answers exclude each other,
# so many have given one of the coded ones, and each of these can be so many numbers,
# unless that many people have given each of them.
FEWEST = 3
# Coarse, so that a raised bound tells little about the answer that it was raised for.
RAISED_BOUNDS = (2, 5, 10, 20, 30, 40, 49)


@dataclass(frozen=True, slots=True)
class CodedShare:
    """A percentage of which only a bound is shown: it is under it, or over it."""

    percent: int
    is_over: bool = False

    def people(self, answered: int) -> int:
        """Return the bound in people: there are fewer, or more, than these."""
        if self.is_over:
            return answered * self.percent // 100
        return -(-answered * self.percent // 100)

    def least(self, answered: int) -> int:
        return self.people(answered) + 1 if self.is_over else 0

    def most(self, answered: int) -> int:
        return answered if self.is_over else self.people(answered) - 1


def coded_shares(
    counts: Sequence[int], answered: int, threshold: int, *, are_exclusive: bool
) -> list[CodedShare | None] | None:
    """Return for each answer of an item its coded share, or None if it is exact.

    None instead of the list: whatever the bound, the answers could be calculated, so
    the item has to be hidden. `threshold` is the state's, in percent, and
    `are_exclusive`: each person gave one answer.
    """
    if not answered:
        return [None] * len(counts)
    if answered > LARGE_GROUP:
        threshold = min(threshold, THRESHOLD_OF_LARGE_GROUPS)
    first = max(threshold, ceil(100 * FEWEST / answered))
    # Mostly, and ten times as fast.
    if (
        counts
        and 100 * min(counts) >= first * answered
        and 100 * max(counts) <= (100 - first) * answered
        and first < 50
    ):
        return [None] * len(counts)
    for bound in (first, *(raised for raised in RAISED_BOUNDS if raised > first)):
        # Beyond this, "under" and "over" would overlap.
        if bound >= 50:
            break
        shares = [_coded(people, answered, bound) for people in counts]
        if not are_exclusive or _is_protected(shares, counts, answered):
            return shares
    return None


def _coded(people: int, answered: int, bound: int) -> CodedShare | None:
    if 100 * people < bound * answered:
        return CodedShare(bound)
    if 100 * people > (100 - bound) * answered:
        return CodedShare(100 - bound, is_over=True)
    return None


def _is_protected(
    shares: Sequence[CodedShare | None], counts: Sequence[int], answered: int
) -> bool:
    """Test that no coded answer of a few people can be calculated from exact ones.

    Beside an answer that is over the bound, all others are under it, and any of at
    least three people may have given any of them.
    """
    coded = [(share, n) for share, n in zip(shares, counts, strict=True) if share]
    if all(people >= FEWEST and not share.is_over for share, people in coded):
        return True
    if any(share.is_over for share, _people in coded):
        return True
    together = sum(people for _share, people in coded)
    most = coded[0][0].most(answered)
    least = max(0, together - (len(coded) - 1) * most)
    return together >= FEWEST and min(most, together) - least + 1 >= FEWEST


def coded_cells(share: CodedShare, answered: int) -> tuple[str, str]:
    """Return people and percent as state reporting files have them: <12 and <5."""
    sign = ">" if share.is_over else "<"
    return f"{sign}{share.people(answered)}", f"{sign}{share.percent}"
