"""Places in the addresses of the settings pages, as far as a user may see them."""

from __future__ import annotations

from dataclasses import dataclass

from django.http import Http404
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.utils.translation import gettext as _

from accounts.http import StaffRequest
from accounts.models import District, School
from accounts.permissions import Capability, Permissions
from accounts.place_settings import Place

STATE = "state"


class PlaceConverter:
    """The state, a district or a school, such as "districts/5"."""

    regex = "state|districts/[0-9]{1,18}|schools/[0-9]{1,18}"

    def to_python(self, value: str) -> str:
        return value

    def to_url(self, value: str) -> str:
        return value


@dataclass(frozen=True, slots=True)
class Crumb:
    name: str
    address: str


def key_of(place: Place) -> str:
    if isinstance(place, School):
        return f"schools/{place.pk}"
    return STATE if place is None else f"districts/{place.pk}"


def name_of(place: Place) -> str:
    return _("The state") if place is None else place.name


def place_or_404(request: StaffRequest, key: str, *capabilities: Capability) -> Place:
    """Return a place where the user has these capabilities. 1 statement or none."""
    permissions = request.permissions
    kind, _slash, number = key.partition("/")
    if kind == STATE:
        if not permissions.places(*capabilities).state:
            raise Http404
        return None
    if kind == "districts":
        return get_object_or_404(permissions.districts(*capabilities), pk=int(number))
    schools = permissions.schools(*capabilities).select_related("district")
    return get_object_or_404(schools, pk=int(number))


def crumbs_of(permissions: Permissions, place: Place) -> list[Crumb]:
    """Return the path from Settings to a place, as far as the user may open it.

    For users of the state or of a single place, Settings is its page.
    """
    places = permissions.places(Capability.MANAGE_ROSTERS)
    path: list[District | School] = [] if place is None else [place]
    if isinstance(place, School) and places.has_district(place.district_id):
        path.insert(0, place.district)
    if not places.state and len(places.districts) + len(places.schools) == 1:
        path = path[1:]
    return [
        Crumb(_("Settings"), reverse("settings_home")),
        *(Crumb(step.name, settings_address(step)) for step in path),
    ]


def settings_address(place: Place) -> str:
    return reverse("settings_place", args=[key_of(place)])


def own_places(permissions: Permissions) -> list[District | School]:
    """Return the whole districts and the single schools of a user. 2 statements."""
    districts = permissions.districts(Capability.MANAGE_ROSTERS)
    schools = permissions.schools(Capability.MANAGE_ROSTERS)
    single = schools.exclude(district__in=districts).select_related("district")
    return [*districts.order_by("name", "pk"), *single.order_by("name", "pk")]


def about_place(request: StaffRequest, place: Place) -> dict[str, object]:
    """Return what the templates of all pages about a place need."""
    return {
        "place": place,
        "is_school": isinstance(place, School),
        "key": key_of(place),
        "place_name": name_of(place),
        "crumbs": crumbs_of(request.permissions, place),
    }
