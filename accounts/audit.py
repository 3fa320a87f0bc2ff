"""Record every change, and every view of people's identities, in the audit log.

An entry is part of the transaction that it describes: both are committed, or
neither is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypedDict

from django.db.models import Model, QuerySet
from django.http import HttpRequest
from django.utils import translation

from accounts.models import AuditEntry, District, School, User
from accounts.permissions import Capability, Permissions

# Consecutive wrong passwords or codes from which on an entry is written, so
# that a single typing mistake leaves none.
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
    """Write one audit entry. 1 statement.

    `action` is a verb and its object: "import roster". `by` is a user, or the
    name of a command. Administrators of `school` or `district` may read the
    entry; without both, only those of the state. Never put an answer, an
    access code or a name into `before` and `after`.
    """
    user = by if isinstance(by, User) else None
    place = school.district_id if school else district.pk if district else None
    # The log is in one language, whoever writes it.
    with translation.override("en"):
        name = str(subject)[:254] if subject else ""
    return AuditEntry.objects.create(
        user_id=user.pk if user else None,
        by=user.email if user else str(by),
        address=address_of(request) if request else "",
        action=action,
        kind=subject._meta.label_lower if subject else "",
        subject_id=subject.pk if subject else None,
        subject=name,
        district_id=place,
        school_id=school.pk if school else None,
        before=dict(before or {}),
        after=dict(after or {}),
    )


def record_owned(
    action: str,
    subject: Any,
    by: User | str,
    request: HttpRequest | None,
    *,
    before: Mapping[str, object] | None = None,
    after: Mapping[str, object] | None = None,
) -> None:
    """Write an entry about what a district or the state owns. 1 statement."""
    record(
        action,
        by=by,
        request=request,
        subject=subject,
        district=subject.district,
        before=before,
        after=after,
    )


def place_of(user: User) -> Place:
    """Return the place whose administrators may read entries about this account.

    It is the one district or school where the user works; for users of several
    districts, or of none, it is the state.
    """
    memberships = user.memberships.current().select_related("school", "district")
    current = list(memberships)
    schools = {row.school for row in current if row.school}
    districts = {row.district for row in current if row.district}
    works_for_state = any(not row.school_id and not row.district_id for row in current)
    district_ids = {row.pk for row in districts} | {row.district_id for row in schools}
    if works_for_state or len(district_ids) != 1:
        return {"school": None, "district": None}
    if len(schools) == 1 and not districts:
        return {"school": schools.pop(), "district": None}
    return {"school": None, "district": District.objects.get(pk=district_ids.pop())}


def address_of(request: HttpRequest) -> str:
    """Return the client's network address, as nginx saw it where nginx is used.

    On nginx's unix socket there is no peer address, and the header was set by
    nginx. A client that connects directly could forge the header, but then
    there is a peer address, which wins.
    """
    peer = request.META.get("REMOTE_ADDR", "")
    return (peer or request.headers.get("X-Forwarded-For", "")).strip()[:45]


def entries_for(permissions: Permissions) -> QuerySet[AuditEntry]:
    """Return the entries of the places where the user may see the audit log."""
    places = permissions.places(Capability.SEE_AUDIT)
    if places.state:
        return AuditEntry.objects.all()
    return AuditEntry.objects.filter(district_id__in=places.districts)
