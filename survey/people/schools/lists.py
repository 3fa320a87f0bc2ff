"""Lists of schools of a district, behind a cache that a worker refreshes.

A list that has expired is sent at once, and noted for the worker, which reads it
anew (`refresh_expired`, every three seconds). Only where no worker did, or
without Memcached, a request reads the list itself. The respondents' pool cannot
send messages to workers: its notes are in the cache, too.
"""

from __future__ import annotations

import random
import time
from dataclasses import asdict, dataclass
from typing import Any

from django.core.cache import cache, caches

from accounts.models import District, SchoolListing
from accounts.school_directory import nearest_schools
from survey.taking.places import PlaceOnPage, place_of_district

# Seconds. Together with nginx, a list is at most 30 seconds old.
FRESH, LIFE = 8, 20
REGION_LIFE = 600
MOST_LISTED = 500
# Places for notes. Without a free one, a list is read when its life ends.
SLOTS = [f"expired.{number}" for number in range(32)]


@dataclass(frozen=True)
class DistrictList:
    name: str
    # Key, name and town of each school, by name.
    schools: list[tuple[int, str, str]]
    has_more: bool
    place: PlaceOnPage


def district_at(latitude: float, longitude: float) -> int | None:
    """Return the district of the nearest school. 1 statement every ten minutes.

    There are no borders of districts here, and families near one ask the school.
    """
    key = f"district_at.{latitude:.2f},{longitude:.2f}"
    district = cache.get(key)
    if district is None:
        near = nearest_schools(latitude, longitude, limit=1)
        district = near[0].listing.district_id if near else 0
        cache.set(key, district, REGION_LIFE)
    return int(district) or None


def has_addresses() -> bool:
    """Tell whether towns, postal codes or locations of schools are known.

    1 statement every ten minutes.
    """
    known = cache.get("schools_have_addresses")
    if known is None:
        nowhere = {"city": "", "postal_code": "", "latitude": None}
        schools = SchoolListing.objects.filter(closed=False)
        known = schools.exclude(**nowhere).exists()
        cache.set("schools_have_addresses", known, REGION_LIFE)
    return bool(known)


def schools_of(district: int) -> DistrictList | None:
    """Return a district's schools: 1 cache read, or 3 statements."""
    stored = caches["lists"].get(_key(district))
    age = time.time() - stored["read_at"] if stored else LIFE
    if not 0 <= age < LIFE:
        return _read(district)
    if age >= FRESH:
        _note(district)
    return _from_cache(stored["list"])


def _from_cache(stored: dict[str, Any]) -> DistrictList:
    return DistrictList(**{**stored, "place": PlaceOnPage(**stored["place"])})


def refresh_expired() -> int:
    """Read the noted lists anew; return how many."""
    lists = caches["lists"]
    noted = lists.get_many(SLOTS)
    for district in set(noted.values()):
        _read(district)
    for slot in noted:
        lists.delete(slot)
    return len(set(noted.values()))


def _key(district: int) -> str:
    return f"district_list.{district}"


def _note(district: int) -> None:
    # Of many requests for an expired list, one notes it.
    lists = caches["lists"]
    if lists.add(f"noted.{district}", 1, FRESH):
        for slot in random.sample(SLOTS, 4):
            if lists.add(slot, district, LIFE):
                return


def _read(district: int) -> DistrictList | None:
    name = District.objects.filter(pk=district).values_list("name", flat=True).first()
    # Numbers of no district are not cached: anybody can ask for any.
    if name is None:
        return None
    rows = SchoolListing.objects.filter(district=district, closed=False).order_by(
        "search", "pk"
    )
    schools = list(rows.values_list("pk", "name", "city")[: MOST_LISTED + 1])
    has_more = len(schools) > MOST_LISTED
    place = place_of_district(district)
    listed = DistrictList(name, schools[:MOST_LISTED], has_more, place)
    stored = {"read_at": time.time(), "list": asdict(listed)}
    caches["lists"].set(_key(district), stored, LIFE)
    return listed
