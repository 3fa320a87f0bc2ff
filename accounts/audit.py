"""What is written down of every change, and of every look at identities.

In the transaction of what it is about: either both are there, or neither.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypedDict

from django.db.models import Model, QuerySet
from django.http import HttpRequest

from accounts.models import AuditEntry, District, School, User
from accounts.permissions import Capability, Permissions

# Wrong passwords and codes in a row that are worth an entry: not the first
# slip of a finger.
FAILURES_RECORDED = 3


class Place(TypedDict):
    school: School | None
    district: District | None


def record(
    action: str,
    *,
    by: User | str,
    request: HttpRequest | None = None,
    subject: Model | None = None,
    school: School | None = None,
    district: District | None = None,
    before: Mapping[str, object] | None = None,
    after: Mapping[str, object] | None = None,
) -> AuditEntry:
    """`action` is a verb and what it is done to: "import roster".

    `by` is a user, or the name of a command. `school` or `district` is whose
    administrators may read it; with neither it is the state's. An answer or an
    access code has no place in `before` and `after`, an identity neither.
    """
    user = by if isinstance(by, User) else None
    place = school.district_id if school else district.pk if district else None
    return AuditEntry.objects.create(
        user_id=user.pk if user else None,
        by=user.email if user else str(by),
        address=address_of(request) if request else "",
        action=action,
        kind=subject._meta.label_lower if subject else "",
        subject_id=subject.pk if subject else None,
        subject=str(subject)[:254] if subject else "",
        district_id=place,
        school_id=school.pk if school else None,
        before=dict(before or {}),
        after=dict(after or {}),
    )


def place_of(user: User) -> Place:
    """Whose administrators may read what happens to somebody's account.

    The one district or school where they work; the state's, where they work in
    several districts or in none.
    """
    current = list(user.memberships.current().select_related("school", "district"))
    schools = {one.school for one in current if one.school}
    districts = {one.district for one in current if one.district}
    everywhere = any(not one.school_id and not one.district_id for one in current)
    over = {one.pk for one in districts} | {one.district_id for one in schools}
    if everywhere or len(over) != 1:
        return {"school": None, "district": None}
    if len(schools) == 1 and not districts:
        return {"school": schools.pop(), "district": None}
    return {"school": None, "district": District.objects.get(pk=over.pop())}


def address_of(request: HttpRequest) -> str:
    """The browser's; behind nginx, as nginx saw it.

    A worker on nginx's unix socket has no address to go by, and the header is
    nginx's own. Whoever asks without nginx in between could write anything
    there, and has an address.
    """
    own = request.META.get("REMOTE_ADDR", "")
    return (own or request.headers.get("X-Forwarded-For", "")).strip()[:45]


def entries_for(permissions: Permissions) -> QuerySet[AuditEntry]:
    """Those of the districts that somebody administers, newest first."""
    places = permissions.places(Capability.SEE_AUDIT)
    if places.state:
        return AuditEntry.objects.all()
    return AuditEntry.objects.filter(district_id__in=places.districts)
