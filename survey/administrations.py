"""Opening an administration: its window, and the place for its responses."""

from __future__ import annotations

from datetime import datetime

from django.db import connection, transaction
from django.db.models import Q, QuerySet

from accounts.models import District, School
from accounts.permissions import Capability, Permissions
from survey.models import Administration, PublishedSurvey, Wave

MOST_NAMED = 10


class AdministrationNotFound(LookupError):
    """Says which ones there are."""


def administration_called(name: str) -> Administration:
    """With its published survey; raises AdministrationNotFound."""
    known = Administration.objects.order_by("-opens_at")
    found = known.select_related("published").filter(name=name).first()
    if found is None:
        names = ", ".join(known.values_list("name", flat=True)[:MOST_NAMED])
        raise AdministrationNotFound(
            f"No administration is called {name}. There"
            f" {f'are these: {names}' if names else 'is none yet: open one first'}."
        )
    return found


def administrations_for(
    permissions: Permissions, capability: Capability
) -> QuerySet[Administration]:
    """Those that are offered in a place where somebody has the capability."""
    places = permissions.places(capability)
    known = Administration.objects.all()
    if places.state:
        return known
    if not places:
        return known.none()
    own_schools = School.objects.filter(
        Q(district__in=places.districts) | Q(pk__in=places.schools)
    )
    # Also of a coordinator's district: it may be offered in all its schools.
    own_districts = District.objects.filter(
        Q(pk__in=places.districts) | Q(schools__in=places.schools)
    )
    everywhere = Q(districts=None, schools=None)
    return known.filter(
        pk__in=known.filter(
            everywhere & (Q(district=None) | Q(district__in=own_districts))
            | Q(districts__in=own_districts)
            | Q(schools__in=own_schools)
        ).values("pk")
    )


def may_manage(permissions: Permissions, administration: Administration) -> bool:
    """Change its window and its people's survey, and close it."""
    places = permissions.places(Capability.MANAGE_SURVEYS)
    if administration.district_id is None:
        return places.state
    return places.has_district(administration.district_id)


@transaction.atomic
def open_administration(
    *,
    name: str,
    published: PublishedSurvey,
    role: str,
    opens_at: datetime,
    closes_at: datetime,
    wave: Wave | None = None,
) -> Administration:
    """Offer a published survey to one role from `opens_at` to `closes_at`.

    Raises ValidationError for a name that is taken or a window that ends
    before it begins.
    """
    administration = Administration(
        name=name,
        published=published,
        role=role,
        opens_at=opens_at,
        closes_at=closes_at,
        wave=wave,
    )
    administration.full_clean()
    administration.save(force_insert=True)
    if connection.vendor == "postgresql":
        _add_partition(administration.pk)
    return administration


def _add_partition(administration_id: int) -> None:
    # Made as a table and then attached: CREATE … PARTITION OF would lock the
    # parent against the page saves of every other administration. The check
    # tells ATTACH that there is nothing to scan.
    number = int(administration_id)
    name = f"survey_response_{number}"
    with connection.cursor() as cursor:
        cursor.execute(
            f"""
            CREATE TABLE {name} (
                LIKE survey_response INCLUDING ALL,
                CONSTRAINT of_one_administration CHECK (administration_id = {number})
            );
            ALTER TABLE survey_response
                ATTACH PARTITION {name} FOR VALUES IN ({number});
            ALTER TABLE {name} DROP CONSTRAINT of_one_administration;
            """
        )
