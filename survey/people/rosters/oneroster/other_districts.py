"""Refuse the OneRoster data of another district than the one it is for."""

from __future__ import annotations

from django.utils.translation import gettext as _

from accounts.models import District
from survey.people.rosters.oneroster.store import OneRosterInvalid, OneRosterStore
from survey.people.rosters.place_names import PlaceDirectory, is_same_name

# Shorter codes may be numbers of the district's own system, such as 1.
SHORTEST_SHARED_CODE = 4


def refuse_other_district(store: OneRosterStore, code: str, name: str) -> None:
    """Refuse data whose only district is known here, and is not the given one.

    A district's own system may have any code and name for it, so a district that
    is unknown here is the given one. Where the data has several districts, each
    row names its own.

    Raises OneRosterInvalid.
    """
    districts = store.districts()
    if len(districts) != 1:
        return
    [(written_code, written_name)] = districts
    if written_code.casefold() == code.casefold() or is_same_name(written_name, name):
        return
    directory = PlaceDirectory(District.objects.values_list("pk", "code", "name"))
    place = directory.find_by_name(written_name)
    if not place.keys and len(written_code) >= SHORTEST_SHARED_CODE:
        place = directory.find(written_code, "")
    if place.keys:
        raise OneRosterInvalid(
            _(
                "This is the data of %(written_name)s (%(written_code)s), not of"
                " %(name)s (%(code)s)."
            )
            % {
                "written_name": written_name or written_code,
                "written_code": written_code,
                "name": name,
                "code": code,
            }
        )
