"""Find what is public of a place in earlier results, to compare it.

Only what everybody may read is compared, with what everybody may read: whoever has both
pages can calculate each difference, so nothing follows from it.
"""

from __future__ import annotations

from reports.models import PublishedPlace
from reports.models.publications import public_condition
from survey.models import Administration


def place_last_time(
    administration: int, level: str, place_id: int
) -> PublishedPlace | None:
    """Return the place in the latest earlier results that are public, or None.

    Results of the same survey and audience, as on the pages of the console. With its
    publication. 2 statements.
    """
    row = Administration.objects.filter(pk=administration).values_list(
        *("role", "district", "closes_at"),
        *("published__survey__name", "published__survey__district"),
    )
    role, district, closes_at, name, owner = row.get()
    return (
        PublishedPlace.objects.filter(
            public_condition("publication__"),
            level=level,
            place_id=place_id,
            publication__administration__role=role,
            publication__administration__district=district,
            publication__administration__closes_at__lt=closes_at,
            publication__administration__published__survey__name=name,
            publication__administration__published__survey__district=owner,
        )
        .select_related("publication")
        .order_by("-publication__administration__closes_at")
        .first()
    )
