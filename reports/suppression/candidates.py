"""Find out how many candidates are left for hidden numbers of a shown sum."""

from __future__ import annotations

import numpy as np

from reports.suppression.tables import CANDIDATES, Integers, Mask


def hide_people(
    people: Integers,
    limits: tuple[Integers, Integers],
    minimum: int,
    hidden: Mask,
    preferred: Mask,
) -> Mask:
    """Return which parts of a shown number of people are hidden, `hidden` among them.

    `limits` are the least and the most that each part is known to be. `preferred`
    parts are hidden before others, and of these the smallest. If all parts
    with people are hidden, so are those without: which these are would tell more.
    """
    hidden = hidden.copy()
    wanted = np.minimum(widths(people, limits, np.ones_like(hidden)), CANDIDATES - 1)
    # Somebody is in a hidden part, because 0 is shown.
    limits = np.maximum(limits[0], people > 0), limits[1]
    while hidden.any():
        width = widths(people, limits, hidden)[hidden]
        if (
            hidden.sum() > 1
            and people[hidden].sum() >= minimum
            and (width >= wanted[hidden]).all()
        ):
            break
        shown = np.flatnonzero((people > 0) & ~hidden)
        if not len(shown):
            return np.ones_like(hidden)
        hidden[shown[np.lexsort((people[shown], ~preferred[shown]))[0]]] = True
    return hidden


def hide_parts(
    people: Integers,
    counts: Integers,
    hidden: Mask,
    preferred: Mask,
    answered: Integers,
    minimum: int,
) -> Mask:
    """Return which parts of a shown sum hide an item, `hidden` ones among them.

    `counts` are [part, category]. Together, the hidden parts have at least the minimum
    of people who answered. `preferred` parts are hidden before others. Of these, the
    part that leaves the fewest narrow counts is next; of several, the smallest.
    """
    hidden = hidden.copy()
    limits = np.zeros_like(counts), people[:, None] * np.ones_like(counts)
    wanted = widths(counts, limits, people > 0)
    while hidden.any() and (
        few_answers(answered[hidden].sum(keepdims=True), minimum).any()
        or narrow_counts(counts, limits, hidden, wanted)
    ):
        best: tuple[bool, int, bool, int, int] | None = None
        for part in np.flatnonzero((people > 0) & ~hidden).tolist():
            hidden[part] = True
            left = narrow_counts(counts, limits, hidden, wanted)
            hidden[part] = False
            rank = (
                not preferred[part],
                left,
                not answered[part],
                int(people[part]),
                part,
            )
            best = min(best or rank, rank)
        if best is None:
            break
        hidden[best[-1]] = True
    return hidden


def has_narrow_counts(people: Integers, counts: Integers, hidden: Mask) -> bool:
    """Return whether a hidden count of a shown sum has fewer than three candidates."""
    limits = np.zeros_like(counts), people[:, None] * np.ones_like(counts)
    return narrow_counts(counts, limits, hidden, widths(counts, limits, people > 0)) > 0


def narrow_counts(
    counts: Integers, limits: tuple[Integers, Integers], hidden: Mask, wanted: Integers
) -> int:
    """Return how many hidden counts have fewer candidates than they should.

    That is three, or as many as the sum of all parts leaves.
    """
    width = widths(counts, limits, hidden)[hidden]
    return int((width < np.minimum(wanted[hidden], CANDIDATES - 1)).sum())


def widths(
    counts: Integers, limits: tuple[Integers, Integers], hidden: Mask
) -> Integers:
    """Return by how much each count can vary if these parts are hidden.

    Known is what they are together, and the least and most of each. Without other
    limits than the parts' numbers of people, the bounds are exact.
    """
    least, most = limits
    union = counts[hidden].sum(axis=0)
    upper = np.minimum(most, union - (least[hidden].sum(axis=0) - least))
    lower = np.maximum(least, union - (most[hidden].sum(axis=0) - most))
    return np.asarray(upper - lower)


def few_answers(answered: Integers, minimum: int) -> Mask:
    """Return the cells in which people answered, but fewer than the minimum."""
    return (answered > 0) & (answered < minimum)
