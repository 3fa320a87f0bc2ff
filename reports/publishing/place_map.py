"""Draw a map of schools, or of districts, as links: nothing is fetched for it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from html import escape
from math import cos, radians
from statistics import fmean

from django.utils.safestring import SafeString

from accounts.models import SchoolListing

# Units of the drawing. A dot at the edge is still whole.
WIDTH, MOST_HIGH, MARGIN, RADIUS = 400, 260, 16, 6
# Space for a letter, for a line, and between a dot and its name.
LETTER, LINE, GAP = 6.8, 14, 10
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


def schools_by_district() -> dict[int, list[tuple[float, float]]]:
    """Return where the open schools of each district are. 1 statement.

    Of the directory, which everybody may read: with a report or without.
    """
    rows = SchoolListing.objects.filter(latitude__isnull=False, closed=False).order_by()
    located: dict[int, list[tuple[float, float]]] = {}
    for key, latitude, longitude in rows.values_list(
        "district", "latitude", "longitude"
    ):
        place = latitude or 0.0, longitude or 0.0
        located.setdefault(key, []).append(place)
    return located


def middle_of(places: Sequence[tuple[float, float]]) -> tuple[float, float]:
    latitudes, longitudes = zip(*places, strict=True)
    return fmean(latitudes), fmean(longitudes)


def map_of(
    places: Sequence[tuple[str, int]],
    coordinates: Coordinates,
    address: Callable[[int], str],
    ground: Iterable[tuple[float, float]] = (),
) -> SafeString:
    """Return the drawing of named places; empty for fewer than two.

    Behind them is a faint area around the places of `ground`: a map has no outline.

    A list beside it has the same links, so it is hidden from screen readers, and the
    keyboard does not stop at it.
    """
    located = [(name, key) for name, key in places if key in coordinates]
    if len(located) < 2:
        return SafeString()
    drawn = [coordinates[key] for _name, key in located]
    ground = list(ground)
    latitudes, longitudes = zip(*drawn, *ground, strict=True)
    top, left = max(latitudes), min(longitudes)
    # A degree of longitude is shorter, the farther from the equator.
    shrink = cos(radians((top + min(latitudes)) / 2)) or 1.0
    width = max((max(longitudes) - left) * shrink, SMALLEST)
    height = max(top - min(latitudes), SMALLEST)
    scale = min((WIDTH - 2 * MARGIN) / width, (MOST_HIGH - 2 * MARGIN) / height)
    # The drawing is as wide as its space, whatever the shape of the region.
    start = (WIDTH - width * scale) / 2
    height_drawn = height * scale + 2 * MARGIN

    def point(place: tuple[float, float]) -> tuple[float, float]:
        x = start + (place[1] - left) * shrink * scale
        return x, MARGIN + (top - place[0]) * scale

    points = [point(place) for place in drawn]
    # In steps, since thousands of schools are much closer to each other.
    spots = sorted(
        {(round(x / 6) * 6, round(y / 6) * 6) for x, y in map(point, ground)}
    )
    area = "".join(f"M{x},{y}h0" for x, y in spots)
    labels = _labels([name for name, _key in located], points)
    dots = [
        f'<a href="{escape(address(key))}" tabindex="-1"><title>{escape(name)}'
        f'</title><circle cx="{x:.1f}" cy="{y:.1f}" r="{RADIUS}" />{label}</a>'
        for (name, key), (x, y), label in zip(located, points, labels, strict=True)
    ]
    return SafeString(
        f'<svg class="place-map" viewBox="0 0 {WIDTH} {height_drawn:.0f}"'
        f' direction="ltr" aria-hidden="true"><path d="{area}" />{"".join(dots)}</svg>'
    )


def _labels(
    names: Sequence[str], points: Sequence[tuple[float, float]]
) -> Iterator[str]:
    """Yield the name beside each dot; "" where it would cover another one."""
    # Left, right and middle of what is drawn already.
    taken = [(x - RADIUS, x + RADIUS, y) for x, y in points]
    for name, (x, y) in zip(names, points, strict=True):
        length = LETTER * len(name)
        for anchor, start in (("start", x + GAP), ("end", x - GAP - length)):
            end = start + length
            is_free = start >= 0 and end <= WIDTH
            if is_free and not any(
                start < right and left < end and abs(y - middle) < LINE
                for left, right, middle in taken
            ):
                taken.append((start, end, y))
                at = start if anchor == "start" else end
                yield (
                    f'<text x="{at:.1f}" y="{y + 4:.1f}" text-anchor="{anchor}">'
                    f"{escape(name)}</text>"
                )
                break
        else:
            yield ""
