"""Read the name and logo at the top of reports: the district's, or else the state's."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from django.db.models import Q

from accounts.logos import shown_size
from accounts.models import PlaceSettings

# As in `pdf_process`, which imports nothing of ours.
PNG = "data:image/png;base64,"


@dataclass(frozen=True, slots=True)
class Brand:
    name: str = ""
    # An address, and the size at which it is shown.
    logo: str = ""
    size: tuple[int, int] = (0, 0)


NO_BRAND = Brand()


def brands_of(districts: Collection[int]) -> Mapping[int, Brand]:
    """Return the brand of each district, by its key. 1 statement."""
    rows = PlaceSettings.objects.filter(
        Q(district=None) | Q(district__in=districts), school=None
    ).values_list("district", "name", "logo", "logo__content")
    names: dict[int | None, str] = {}
    logos: dict[int | None, tuple[str, tuple[int, int]]] = {}
    for district, name, logo, content in rows:
        if name:
            names[district] = name
        if logo:
            address = f"{PNG}{b64encode(bytes(content)).decode()}"
            logos[district] = address, shown_size(logo)
    return {
        district: Brand(
            names.get(district, names.get(None, "")),
            *logos.get(district, logos.get(None, ("", (0, 0)))),
        )
        for district in districts
    }
