"""Find schools in the public directory: the nearest ones, or by name and town.

Each query reads one table, `SchoolListing`. On PostgreSQL indexes serve them
(migration 0003); SQLite, for a single district, reads what is around.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_

from django.db import connections, router, transaction
from django.db.models import BooleanField, Q, Sum
from django.db.models.expressions import RawSQL

from accounts.models import SchoolListing, SchoolWord
from accounts.search_letters import LETTERS, LIGATURES, REMOVED, SPACES

_TABLE = str.maketrans(
    LETTERS | LIGATURES | dict.fromkeys(SPACES, " ") | dict.fromkeys(REMOVED, "")
)

EARTH_RADIUS_KM = 6371.0
MOST_WORDS = 8
# Corrections of shorter words would be guesses.
SHORTEST_CORRECTED = 4
LONGEST_WORD = 64
# So many schools are found sooner along the names than through the words' index.
FREQUENT = 5_000
# A word of a school, by its beginning; as in migration 0003.
_HAS_WORD = (
    "array_to_tsvector(string_to_array(btrim(search), ' ')) @@ CAST(%s AS tsquery)"
)
# Half the side of the squares in which SQLite looks one after another, in degrees.
SQUARES = (0.1, 0.5, 2.5, 10.0)

# The place of a school and of a person, on the unit sphere; as in migration 0003.
_SPHERE = (
    "cube(ARRAY[cos(radians({latitude})) * cos(radians({longitude})),"
    " cos(radians({latitude})) * sin(radians({longitude})),"
    " sin(radians({latitude}))])"
)
_NEAREST = f"""
    SELECT school_id, district_id, name, city, state, postal_code, latitude, longitude
    FROM accounts_schoollisting
    WHERE latitude IS NOT NULL AND NOT closed
    ORDER BY {_SPHERE.format(latitude="latitude", longitude="longitude")}
        <-> {_SPHERE.format(latitude="%(latitude)s", longitude="%(longitude)s")}
    LIMIT %(limit)s
"""  # noqa: S608


@dataclass(frozen=True)
class FoundSchools:
    schools: list[SchoolListing]
    # Whether there are more than were asked for.
    more: bool = False
    # What was searched for instead, where a word was misspelled.
    corrected: str = ""


@dataclass(frozen=True)
class NearSchool:
    listing: SchoolListing
    kilometres: float


def search_text(text: str) -> str:
    """Return a text as `SchoolListing.search` has it: without accents and case."""
    return " " + " ".join(text.translate(_TABLE).lower().split())


# The nearest ------------------------------------------------------------------


def nearest_schools(
    latitude: float, longitude: float, limit: int = 20
) -> list[NearSchool]:
    """Return the nearest schools by the great circle, nearest first. 1 statement.

    On SQLite up to 5 statements.
    """
    database = router.db_for_read(SchoolListing)
    if connections[database].vendor == "postgresql":
        place = {"latitude": latitude, "longitude": longitude, "limit": limit}
        listings: Iterable[SchoolListing] = SchoolListing.objects.using(database).raw(
            _NEAREST, place
        )
    else:
        listings = _around(latitude, longitude, limit)
    near = [
        NearSchool(listing, kilometres_between(latitude, longitude, listing))
        for listing in listings
    ]
    near.sort(key=lambda school: (school.kilometres, school.listing.pk))
    return near[:limit]


def kilometres_between(
    latitude: float, longitude: float, listing: SchoolListing
) -> float:
    """Return the great-circle distance to a school that has a place (haversine)."""
    there, here = math.radians(listing.latitude or 0), math.radians(latitude)
    turn = math.radians((listing.longitude or 0) - longitude)
    half = (
        math.sin((there - here) / 2) ** 2
        + math.cos(here) * math.cos(there) * math.sin(turn / 2) ** 2
    )
    return 2 * EARTH_RADIUS_KM * math.asin(math.sqrt(min(1.0, half)))


def _around(latitude: float, longitude: float, limit: int) -> list[SchoolListing]:
    """Return schools among which the nearest ones are, from growing squares."""
    placed = SchoolListing.objects.exclude(latitude=None).filter(closed=False)
    for reach in SQUARES:
        furthest = min(90.0, abs(latitude) + reach)
        # A degree of longitude is shorter towards the poles, and none at them.
        shrunk = math.cos(math.radians(furthest))
        wide = reach / shrunk if shrunk > 0.01 else 360.0
        if abs(longitude) + wide > 180:
            # Beyond the date line: by latitude alone.
            wide = 360.0
        nearby = list(
            placed.filter(
                latitude__range=(latitude - reach, latitude + reach),
                longitude__range=(longitude - wide, longitude + wide),
            )
        )
        radius = math.radians(reach) * EARTH_RADIUS_KM
        inside = [
            listing
            for listing in nearby
            if kilometres_between(latitude, longitude, listing) <= radius
        ]
        if len(inside) >= limit:
            return inside
    return list(placed)


# By words -----------------------------------------------------------------------


def find_schools(text: str, limit: int = 20) -> FoundSchools:
    """Find schools by name, town, state and postal code, ordered by name.

    Each word may be the beginning of one. Schools whose name begins with the
    text come first. Words that no school has, with one wrong, missing, additional
    or exchanged letter, are corrected. Costs 1 statement or 3; where words are
    unknown, 1 more for each of them and 1.
    """
    words = search_text(text).split()[:MOST_WORDS]
    if not words:
        return FoundSchools([])
    matches = _names_beginning_with(words, limit + 1)
    corrected = ""
    if len(matches) <= limit:
        schools = _schools_by_word(words)
        # Names of schools that are newer than the list of words may have others.
        if not matches and not all(schools.values()):
            matches, corrected = _corrected_search(words, schools, limit + 1)
        if not corrected:
            matches += _others_with(words, schools, matches, limit + 1)
    return FoundSchools(matches[:limit], len(matches) > limit, corrected)


def _begins(name: str, text: str) -> Q:
    # A range and not LIKE, for which the planner sorts thousands.
    return Q(**{f"{name}__gte": text, f"{name}__lt": text + "\U0010ffff"})


def _names_beginning_with(words: Sequence[str], limit: int) -> list[SchoolListing]:
    listings = SchoolListing.objects.filter(closed=False).order_by("search", "pk")
    return list(listings.filter(_begins("search", " " + " ".join(words)))[:limit])


def _schools_by_word(words: Sequence[str]) -> dict[str, int]:
    """Return how many schools at most have words with these beginnings."""
    beginnings = [_begins("word", word) for word in words]
    counts = SchoolWord.objects.filter(reduce(or_, beginnings)).aggregate(
        **{
            f"schools{n}": Sum("schools", filter=beginning)
            for n, beginning in enumerate(beginnings)
        }
    )
    return {word: counts[f"schools{n}"] or 0 for n, word in enumerate(words)}


def _others_with(
    words: Sequence[str],
    schools: Mapping[str, int],
    matches: Sequence[SchoolListing],
    limit: int,
) -> list[SchoolListing]:
    """Return schools with all these words, without those that were found already."""
    listings = SchoolListing.objects.filter(closed=False).order_by("search", "pk")
    remaining = listings.exclude(pk__in=[listing.pk for listing in matches])
    for word in words:
        remaining = remaining.filter(search__contains=f" {word}")
    # The index is asked for the rarest word alone: "school" is in most of the
    # names, and what is frequent is found sooner along the names.
    rarest = min(words, key=lambda word: schools[word])
    if connections[remaining.db].vendor == "postgresql" and schools[rarest] < FREQUENT:
        # Letters and digits alone are left of a word, so nothing has to be quoted.
        has_word = RawSQL(_HAS_WORD, [f"'{rarest}':*"], BooleanField())  # noqa: S611
        remaining = remaining.filter(has_word)
    return list(remaining[: limit - len(matches)])


def _corrected_search(
    words: Sequence[str], schools: Mapping[str, int], limit: int
) -> tuple[list[SchoolListing], str]:
    """Return schools with the corrected words, and these; or nothing and ""."""
    likely: list[str] = []
    counts: dict[str, int] = {}
    for word in words:
        count, likely_word = (
            (schools[word], word) if schools[word] else _corrected(word)
        )
        if not count:
            return [], ""
        likely.append(likely_word)
        counts[likely_word] = count
    matches = _names_beginning_with(likely, limit)
    if len(matches) < limit:
        matches += _others_with(likely, counts, matches, limit)
    return matches, " ".join(likely) if matches else ""


def _corrected(word: str) -> tuple[int, str]:
    """Return the most frequent word that is one error away, and its schools."""
    if not SHORTEST_CORRECTED <= len(word) <= LONGEST_WORD:
        return 0, ""
    # One error is in one half, so the other half is as it was typed; an exchange
    # in the middle is tried by itself.
    middle = len(word) // 2
    exchanged = (
        word[: middle - 1] + word[middle] + word[middle - 1] + word[middle + 1 :]
    )
    likely = SchoolWord.objects.filter(
        _begins("word", word[:middle])
        | _begins("reverse", word[middle:][::-1])
        | Q(word=exchanged)
    )
    candidates = [
        (-schools, candidate)
        for candidate, schools in likely.values_list("word", "schools")
        if is_one_error_away(word, candidate)
    ]
    if not candidates:
        return 0, ""
    schools, closest = min(candidates)
    return -schools, closest


def is_one_error_away(typed: str, word: str) -> bool:
    """Tell whether one wrong, missing, additional or exchanged letter differs."""
    if typed == word or abs(len(typed) - len(word)) > 1:
        return False
    start = 0
    while start < min(len(typed), len(word)) and typed[start] == word[start]:
        start += 1
    typed, word = typed[start:], word[start:]
    return (
        typed[1:] == word[1:]
        or typed[1:] == word
        or typed == word[1:]
        or (typed[:2] == word[:2][::-1] and typed[2:] == word[2:])
    )


@transaction.atomic
def refresh_words() -> int:
    """Write the directory's words anew, by which typing errors are corrected.

    Returns how many words changed. Takes a second for 100,000 schools.
    """
    counts: Counter[str] = Counter()
    open_schools = SchoolListing.objects.filter(closed=False)
    texts = open_schools.values_list("search", flat=True)
    for text in texts.iterator(chunk_size=5000):
        counts.update({word for word in text.split() if len(word) <= LONGEST_WORD})
    known = dict(SchoolWord.objects.values_list("word", "schools"))
    # In one order everywhere, so that two refreshes cannot wait for each other.
    gone = sorted(known.keys() - counts.keys())
    for start in range(0, len(gone), 500):
        SchoolWord.objects.filter(word__in=gone[start : start + 500]).delete()
    changed = [
        SchoolWord(word=word, reverse=word[::-1], schools=counts[word])
        for word in sorted(counts)
        if known.get(word) != counts[word]
    ]
    SchoolWord.objects.bulk_create(
        changed,
        batch_size=500,
        update_conflicts=True,
        unique_fields=["word"],
        update_fields=["schools"],
    )
    return len(gone) + len(changed)
