"""Draw a map of schools, or of districts, as links: nothing is fetched for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from html import escape
from math import cos, radians

from django.db.models import Avg
from django.utils.safestring import SafeString

from accounts.models import SchoolListing

# Units of the drawing. A dot at the edge is still whole.
WIDTH, MOST_HIGH, MARGIN, RADIUS = 400, 400, 14, 6
# A smaller place would fill the map with a single street. In degrees.
SMALLEST = 0.02

Coordinates = Mapping[int, tuple[float, float]]


def places_of_schools(schools: Sequence[int]) -> Coordinates:
    """Return the latitude and longitude of schools that have one. 1 statement."""
    rows = SchoolListing.objects.filter(school__in=schools, latitude__isnull=False)
    return {
        listing.school_id: (listing.latitude or 0.0, listing.longitude or 0.0)
        for listing in rows.only("school", "latitude", "longitude")
    }


def places_of_districts() -> Coordinates:
    """Return the middle of each district's schools. 1 statement."""
    rows = (
        SchoolListing.objects.filter(latitude__isnull=False, closed=False)
        .order_by()
        .values_list("district")
        .annotate(Avg("latitude"), Avg("longitude"))
    )
    return {key: (latitude, longitude) for key, latitude, longitude in rows}


def map_of(
    places: Sequence[tuple[str, int]],
    coordinates: Coordinates,
    address: Callable[[int], str],
) -> SafeString:
    """Return the drawing of named places; empty for fewer than two.

    A list beside it has the same links, so it is hidden from screen readers, and the
    keyboard does not stop at it.
    """
    located = [(name, key) for name, key in places if key in coordinates]
    if len(located) < 2:
        return SafeString()
    latitudes = [coordinates[key][0] for _name, key in located]
    longitudes = [coordinates[key][1] for _name, key in located]
    top, left = max(latitudes), min(longitudes)
    # A degree of longitude is shorter, the farther from the equator.
    shrink = cos(radians((top + min(latitudes)) / 2)) or 1.0
    width = max((max(longitudes) - left) * shrink, SMALLEST)
    height = max(top - min(latitudes), SMALLEST)
    scale = min((WIDTH - 2 * MARGIN) / width, (MOST_HIGH - 2 * MARGIN) / height)
    dots = []
    for name, key in located:
        latitude, longitude = coordinates[key]
        x = MARGIN + (longitude - left) * shrink * scale
        y = MARGIN + (top - latitude) * scale
        dots.append(
            f'<a href="{escape(address(key))}" tabindex="-1"><title>{escape(name)}'
            f'</title><circle cx="{x:.1f}" cy="{y:.1f}" r="{RADIUS}" /></a>'
        )
    return SafeString(
        f'<svg class="place-map" viewBox="0 0 {width * scale + 2 * MARGIN:.0f}'
        f' {height * scale + 2 * MARGIN:.0f}" aria-hidden="true">{"".join(dots)}</svg>'
    )
