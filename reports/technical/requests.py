"""Request the technical report of an administration, as one of the exports."""

from __future__ import annotations

from django.db import transaction
from django.http import HttpRequest

from accounts import audit
from accounts.models import User
from accounts.permissions import Capability, Permissions
from reports.models.exports import TECHNICAL, Export
from survey.models import Administration
from survey.work.requested_files import order, refuse_above_quota


def may_request(permissions: Permissions) -> bool:
    """Test that a user sees the responses of the whole state."""
    return permissions.places(Capability.SEE_RESPONSES).state


@transaction.atomic
def request_technical_report(
    *, administration: Administration, by: User, request: HttpRequest | None = None
) -> Export:
    """Record a report and start its job; the caller checks permissions.

    Raises QuotaExceeded if the user has too many unfinished exports or files.
    """
    refuse_above_quota(by)
    export = order(
        Export(
            by=by,
            format=TECHNICAL,
            role=administration.role,
            places={"state": True, "districts": [], "schools": []},
        )
    )
    export.administrations.add(administration)
    audit.record(
        "ask for technical report",
        by=by,
        request=request,
        subject=export,
        after={"administrations": [administration.name]},
    )
    return export
