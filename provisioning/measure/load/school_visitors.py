"""Draw the places from which people look for schools, and model the cache."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

from survey.simulation.schools import made_up_towns

# A spike is one state's: the towns of the made-up country that lie in it.
TOWNS_OF_THE_COUNTRY, STATE = 12_500, "IL"
# Degrees: two thirds of the largest town's people live within 7 km of its centre.
# The other towns are as dense.
LARGEST_TOWN = 0.05


@dataclass(frozen=True)
class Place:
    latitude: str
    longitude: str

    def cell(self, decimals: int) -> tuple[str, str]:
        return _cut(self.latitude, decimals), _cut(self.longitude, decimals)


def _cut(degrees: str, decimals: int) -> str:
    return degrees[: degrees.index(".") + 1 + decimals]


def draw_places(count: int, seed: int) -> Iterator[Place]:
    """Draw towns by size, by Zipf's law, and places around their centres."""
    chance = random.Random(f"visitors {seed}")  # noqa: S311
    towns = [
        town for town in made_up_towns(TOWNS_OF_THE_COUNTRY) if town.state == STATE
    ]
    sizes = [1 / rank for rank in range(1, len(towns) + 1)]
    totals = list(accumulate(sizes))
    numbers = range(len(towns))
    for number in chance.choices(numbers, cum_weights=totals, k=count):
        spread = LARGEST_TOWN * math.sqrt(sizes[number])
        yield Place(
            f"{chance.gauss(towns[number].latitude, spread):.12f}",
            f"{chance.gauss(towns[number].longitude, spread):.12f}",
        )


def hit_ratio(
    places: Sequence[Place], *, decimals: int, rate: float, lifetime: float, warm: float
) -> float:
    """Return the share of requests that find a page `lifetime` seconds old.

    The requests come one after another at this rate, to an empty cache; those of
    the first `warm` seconds are not counted.
    """
    stored: dict[tuple[str, str], float] = {}
    hits = counted = 0
    for number, place in enumerate(places):
        now, cell = number / rate, place.cell(decimals)
        is_hit = now - stored.get(cell, -math.inf) < lifetime
        if not is_hit:
            stored[cell] = now
        if now >= warm:
            counted += 1
            hits += is_hit
    return hits / max(1, counted)
