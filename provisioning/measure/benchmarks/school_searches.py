"""Time searches for schools in one process, for `provisioning/run finder`."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from functools import partial

from accounts.models import SchoolListing
from accounts.school_directory import find_schools, nearest_schools

FREQUENT = ("school", "high school", "elementary", "lincoln", "school high", "s", "e")
MISSPELT = ("scohol", "elemntary", "hihg school lincon", "acadmy", "middel")
ROUNDS = 40


def time_searches() -> dict[str, list[float]]:
    """Return milliseconds of each search, by what is typed."""
    chance = random.Random(7)  # noqa: S311
    placed = SchoolListing.objects.exclude(latitude=None).order_by("pk")
    known = list(placed[:: max(1, placed.count() // 300)])

    def misspelt(word: str) -> str:
        at = chance.randrange(len(word) - 1)
        return word[:at] + word[at + 1] + word[at] + word[at + 2 :]

    texts: dict[str, Sequence[str]] = {
        "names and towns": [f"{each.name} {each.city}" for each in known],
        "towns": [each.city for each in known],
        "postal codes": [each.postal_code for each in known],
        "beginnings": [each.name[: chance.randrange(2, 6)] for each in known],
        "frequent words": FREQUENT * ROUNDS,
        "misspelt towns": [misspelt(each.city) for each in known if each.city],
        "misspelt frequent words": MISSPELT * ROUNDS,
    }

    def nearby(listing: SchoolListing) -> object:
        latitude, longitude = listing.latitude or 0.0, listing.longitude or 0.0
        return nearest_schools(
            latitude + chance.gauss(0, 0.2), longitude + chance.gauss(0, 0.2)
        )

    timed([partial(nearby, each) for each in known[:20]])
    nearest = timed([partial(nearby, each) for each in known])
    return {"nearest": nearest} | {
        name: timed([partial(find_schools, text) for text in some])
        for name, some in texts.items()
    }


def timed(calls: Sequence[Callable[[], object]]) -> list[float]:
    took = []
    for call in calls:
        began = time.perf_counter()
        call()
        took.append((time.perf_counter() - began) * 1000)
    return took
