"""Make up a country's towns and schools, with the columns of NCES EDGE.

Sizes of towns follow Zipf's law, and schools lie around their town, so a
benchmark of the school finder meets crowded cities and empty plains.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate

HEADER = ("NCESSCH", "LEAID", "NAME", "STREET", "CITY", "STATE", "ZIP", "LAT", "LON")
SCHOOLS_PER_TOWN = 8
# The corners of the contiguous United States, divided into ten by five states.
SOUTH, NORTH, WEST, EAST = 26.0, 48.5, -123.0, -70.0
STATES_ACROSS, STATES_DOWN = 10, 5
_STATES = (
    "WA ID MT ND MN WI MI NY VT ME OR NV WY SD IA IL IN OH PA MA CA UT CO NE MO KY WV"
    " VA MD NJ AK AZ NM KS AR TN NC SC DE CT HI WN TX OK LA MS AL GA FL RI"
)
_BEGINNINGS = (
    "Ash Bel Birch Bridge Cedar Clear Cold East Elm Fair Forest Fox Glen Grand Green"
    " Hazel High Iron Lake Little Long Maple Mar Mill New North Oak Old Pine Red River"
    " Rock Sand Silver South Spring Stone Sun Wal West White Wil Wood San Santa Peña"
    " Cañon Saint Clin Har Lex Mont Nor Ply Rich Salem Ver Wind"
)
_ENDINGS = (
    "borough bridge brook burg bury dale field ford gate grove ham haven hill hurst"
    " lake land ley mont mouth point port ridge shire side stead ton town vale view"
    " ville ward water wick wood worth"
)
_PEOPLE = (
    "Adams Anthony Carver Cesar Chávez Douglass Earhart Edison Franklin Garfield Grant"
    " Hamilton Hughes Jefferson Keller King Lincoln Madison Marshall Monroe Muñoz Parks"
    " Pasteur Roosevelt Sacagawea Tubman Truman Washington Wheatley Wilson Wright"
)
STATES, BEGINNINGS = _STATES.split(), _BEGINNINGS.split()
ENDINGS, PEOPLE = _ENDINGS.split(), _PEOPLE.split()
KINDS = {
    "Elementary School": 55,
    "Middle School": 18,
    "High School": 18,
    "Academy": 6,
    "Charter School": 3,
}
STREETS = ("Main St", "School Rd", "Oak Ave", "Park Blvd", "2nd St", "College Ln")


@dataclass(frozen=True)
class Town:
    name: str
    state: str
    latitude: float
    longitude: float
    # The share of the largest town's schools and people.
    weight: float
    postal_code: str


def made_up_towns(count: int, seed: int = 1, state: str = "") -> list[Town]:
    """Return towns from the largest to the smallest, in one state or in all."""
    chance = random.Random(f"towns {seed}")  # noqa: S311
    width = (EAST - WEST) / STATES_ACROSS
    height = (NORTH - SOUTH) / STATES_DOWN
    towns = []
    for rank in range(1, count + 1):
        place = STATES.index(state) if state else chance.randrange(len(STATES))
        row, column = divmod(place, STATES_ACROSS)
        towns.append(
            Town(
                chance.choice(BEGINNINGS) + chance.choice(ENDINGS),
                STATES[place],
                NORTH - (row + chance.random()) * height,
                WEST + (column + chance.random()) * width,
                1 / rank,
                f"{place * 2000 + rank % 2000:05}",
            )
        )
    return towns


def made_up_schools(count: int, seed: int = 1, state: str = "") -> Iterator[list[str]]:
    """Return one row for each school, in the order of `HEADER`."""
    chance = random.Random(f"schools {seed}")  # noqa: S311
    towns = made_up_towns(max(1, count // SCHOOLS_PER_TOWN), seed, state)
    totals = list(accumulate(town.weight for town in towns))
    numbers = dict(zip(towns, range(1, len(towns) + 1), strict=True))
    placed: Counter[Town] = Counter()
    for _ in range(count):
        [town] = chance.choices(towns, cum_weights=totals)
        # The largest town is about 40 km wide, most are 2 to 4.
        spread = 0.01 + 0.15 * town.weight**0.5
        names = [
            chance.choice(PEOPLE),
            town.name,
            f"{town.name} {chance.choice(PEOPLE)}",
        ]
        [kind] = chance.choices(list(KINDS), list(KINDS.values()))
        district = f"{numbers[town]:07}"
        placed[town] += 1
        yield [
            f"{district}{placed[town]:05}",
            district,
            f"{chance.choice(names)} {kind}",
            f"{chance.randrange(1, 9900)} {chance.choice(STREETS)}",
            town.name,
            town.state,
            town.postal_code,
            f"{chance.gauss(town.latitude, spread):.6f}",
            f"{chance.gauss(town.longitude, spread):.6f}",
        ]
