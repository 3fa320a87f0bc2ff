"""Settings of the state, of districts and of schools.

A school has what it has set itself, else what its district has set, else what the
state has set, else a default. Places of a district or school keep only what
differs, so a change of the state reaches everybody who has set nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.db.models import Q, QuerySet
from django.http import HttpRequest

from accounts import audit
from accounts.logos import shown_size
from accounts.models import (
    District,
    Logo,
    PlaceSettings,
    School,
    SchoolListing,
    User,
)
from accounts.permissions import Capability, Permissions

# None is the state.
Place = District | School | None
Level = PlaceSettings | SchoolListing

CONTACT = ("contact_name", "contact_email", "contact_phone")
# In percent, by the role of the people who answer.
DEFAULT_THRESHOLDS: Mapping[str, int] = {"student": 50, "teacher": 50, "parent": 20}
# In percent: results show "under 5 %" below it, and "over 95 %" at the other end.
DEFAULT_CODING_THRESHOLD = 5
LARGEST_CODING_THRESHOLD = 20
# Coordinators choose who helps at their school, and nothing else.
MAY_CHANGE_CONTACT = Capability.MANAGE_ROSTERS
MAY_CHANGE = Capability.MANAGE_SURVEYS


@dataclass(frozen=True, slots=True)
class Setting:
    """The values in force, and where they come from.

    `source` is "own", "district", "state" or "default".
    """

    values: Mapping[str, Any]
    source: str


def levels_of(place: Place) -> list[PlaceSettings]:
    """Return the settings of a place and of those above it, nearest first.

    Places that have set nothing have no row. 1 statement.
    """
    chosen = Q(district=None, school=None)
    if isinstance(place, School):
        chosen |= Q(school=place) | Q(district=place.district_id)
    elif isinstance(place, District):
        chosen |= Q(district=place)
    rows = PlaceSettings.objects.filter(chosen)
    return sorted(rows, key=lambda row: (row.school_id is None, not row.district_id))


def setting_of(place: Place, levels: Sequence[Level], *names: str) -> Setting:
    """Return the values of the nearest level that has set one of them."""
    for level in levels:
        values = {name: getattr(level, name) for name in names}
        if any(values.values()):
            return Setting(values, _source_of(place, level))
    return Setting(dict.fromkeys(names), "default")


def minimum_group_of(place: Place, levels: Sequence[PlaceSettings]) -> Setting:
    """Return the least minimum group of administrations that a place opens.

    It is the largest that the place or one above it has set: a district can protect
    people more than the state does, never less.
    """
    setting = Setting({"minimum_group": None}, "default")
    for level in levels:
        least = level.minimum_group
        if least and least > (setting.values["minimum_group"] or 0):
            setting = Setting({"minimum_group": least}, _source_of(place, level))
    return setting


def coding_threshold() -> int:
    """Return below which percentage results show a bound. 1 statement."""
    [threshold] = setting_of(None, levels_of(None), "coding_threshold").values.values()
    return threshold or DEFAULT_CODING_THRESHOLD


def help_is_public() -> bool:
    """Return whether everyone may read the help site. 1 statement."""
    return PlaceSettings.objects.filter(public_help=True).exists()


def contact_of(place: Place, levels: Sequence[PlaceSettings]) -> Setting:
    """Return whom respondents ask for help. 1 statement for schools."""
    all_levels: list[Level] = list(levels)
    if isinstance(place, School):
        all_levels = [*SchoolListing.objects.filter(school=place), *levels]
    return setting_of(place, all_levels, *CONTACT)


def own_values(place: Place, *names: str) -> dict[str, object]:
    """Return what the place itself has set. 1 statement."""
    row = _row_of(place, names).first()
    return {name: getattr(row, name, None) for name in names}


def may_change(permissions: Permissions, place: Place, capability: Capability) -> bool:
    places = permissions.places(capability)
    if isinstance(place, School):
        return places.has_school(place)
    return places.has_district(place.pk) if place is not None else places.state


@transaction.atomic
def change_settings(
    action: str,
    *,
    place: Place,
    values: Mapping[str, object],
    by: User,
    request: HttpRequest | None = None,
) -> bool:
    """Set values of a place, empty ones to inherit; return whether they differ.

    Raises PermissionDenied.
    """
    names = tuple(values)
    capability = MAY_CHANGE_CONTACT if names == CONTACT else MAY_CHANGE
    if not may_change(Permissions(by), place, capability):
        raise PermissionDenied
    school = place if isinstance(place, School) else None
    district = place if isinstance(place, District) else None
    if not _row_of(place, names).exists():
        PlaceSettings.objects.get_or_create(school=school, district=district)
    row = _row_of(place, names).select_for_update().get()
    before = {name: getattr(row, name) for name in names}
    changed = [name for name in names if before[name] != values[name]]
    if not changed:
        return False
    for name in changed:
        setattr(row, name, values[name])
    row.save(update_fields=changed)
    audit.record(
        action,
        by=by,
        request=request,
        subject=place,
        school=school,
        district=district,
        before={name: _shown(before[name]) for name in changed},
        after={name: _shown(values[name]) for name in changed},
    )
    return True


@transaction.atomic
def change_time_zone(
    district: District,
    *,
    time_zone: str,
    by: User,
    request: HttpRequest | None = None,
) -> bool:
    """Set the zone of a district, or the state's with ""; return whether it differs.

    It is in the row of the district, which each request of its staff reads anyway.
    Raises PermissionDenied.
    """
    if not may_change(Permissions(by), district, MAY_CHANGE):
        raise PermissionDenied
    current = District.objects.select_for_update().get(pk=district.pk)
    before = current.time_zone
    if before == time_zone:
        return False
    current.time_zone = time_zone
    current.save(update_fields=["time_zone"])
    audit.record(
        "change time zone",
        by=by,
        request=request,
        subject=district,
        district=district,
        before={"time_zone": before},
        after={"time_zone": time_zone},
    )
    return True


def _row_of(place: Place, names: Sequence[str]) -> QuerySet[Any]:
    """Return the query of the one row that has these settings of a place."""
    if isinstance(place, School):
        if tuple(names) == CONTACT:
            return SchoolListing.objects.filter(school=place)
        return PlaceSettings.objects.filter(school=place)
    return PlaceSettings.objects.filter(school=None, district=place)


def _shown(value: object) -> object:
    return value.name if isinstance(value, Logo) else value


def _source_of(place: Place, level: Level) -> str:
    if isinstance(level, SchoolListing) or level.school_id is not None:
        return "own"
    if level.district_id is not None:
        return "own" if isinstance(place, District) else "district"
    return "own" if place is None else "state"


@dataclass(frozen=True, slots=True)
class Brand:
    """The name, logo, color and contact of a place, as printed on paper."""

    name: str = ""
    # PNG, or nothing; and the width and height at which it is shown.
    logo: bytes = b""
    size: tuple[int, int] = (0, 0)
    # As "#0a6375", or "".
    accent: str = ""
    contact: str = ""


class Brands:
    """The brands of all districts. 1 statement, and 1 for each logo that is used."""

    def __init__(self) -> None:
        rows = PlaceSettings.objects.filter(school=None)
        self.rows = {row.district_id: row for row in rows}
        self.brands: dict[int | None, Brand] = {}
        self.logos: dict[str, bytes] = {}

    def of(self, district: int | None) -> Brand:
        """Return the brand of a district, or of the state."""
        if district not in self.brands:
            self.brands[district] = self._brand(district)
        return self.brands[district]

    def _brand(self, district: int | None) -> Brand:
        levels = [self.rows[key] for key in (district, None) if key in self.rows]
        values: dict[str, Any] = {
            name: next(filter(None, (getattr(row, name) for row in levels)), "")
            for name in ("name", "logo_id", "accent")
        }
        contact = setting_of(None, levels, *CONTACT).values.values()
        return Brand(
            name=values["name"],
            logo=self._content(values["logo_id"]) if values["logo_id"] else b"",
            size=shown_size(values["logo_id"]) if values["logo_id"] else (0, 0),
            accent=values["accent"],
            contact=" · ".join(filter(None, contact)),
        )

    def _content(self, logo: str) -> bytes:
        if logo not in self.logos:
            contents = Logo.objects.values_list("content", flat=True)
            self.logos[logo] = bytes(contents.get(pk=logo))
        return self.logos[logo]


class Thresholds:
    """The response rate thresholds of one role in all places. 1 statement."""

    def __init__(self, role: str) -> None:
        self.default = DEFAULT_THRESHOLDS[role]
        self.state: int | None = None
        self.districts: dict[int, int] = {}
        self.schools: dict[int, int] = {}
        name = f"{role}_percent"
        rows = PlaceSettings.objects.exclude(**{name: None})
        for school, district, percent in rows.values_list("school", "district", name):
            if school is not None:
                self.schools[school] = percent
            elif district is not None:
                self.districts[district] = percent
            else:
                self.state = percent

    def of(self, school: int, district: int) -> int:
        """Return the percentage of a school."""
        above = self.districts.get(district) or self.state or self.default
        return self.schools.get(school, above)
