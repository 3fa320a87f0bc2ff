"""Join answers that too few people gave with the ones beside them."""

from __future__ import annotations

from collections.abc import Sequence

# With fewer answers in one of its categories, a threshold is mostly chance.
FEWEST_ANSWERS = 10
# Two are the fewest that have a threshold.
FEWEST_CATEGORIES = 2


def joined_categories(
    counts: Sequence[int], fewest: int = FEWEST_ANSWERS
) -> tuple[int, ...]:
    """Return the category of each option, counted from 0.

    `counts` are the people who chose each option, from low to high. As long as a
    category has fewer people than `fewest`, the rarest is joined with the rarer of its
    neighbours; of two categories both stay. So options that nobody chose have a
    category as well.
    """
    sizes, options = list(counts), [1] * len(counts)
    while len(sizes) > FEWEST_CATEGORIES and min(sizes) < fewest:
        rarest = sizes.index(min(sizes))
        neighbours = [
            place for place in (rarest - 1, rarest + 1) if 0 <= place < len(sizes)
        ]
        neighbour = min(neighbours, key=lambda place: sizes[place])
        low, high = sorted((rarest, neighbour))
        sizes[low : high + 1] = [sizes[low] + sizes[high]]
        options[low : high + 1] = [options[low] + options[high]]
    return tuple(
        category for category, number in enumerate(options) for _ in range(number)
    )
