"""Move an upload from one state to the next, and write its audit entries."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from django.http import HttpRequest
from django.utils.translation import gettext as _

from accounts.audit import record
from accounts.models import User
from survey.models import RosterUpload

# Figures of a report that go to the audit log and into e-mails.
COUNTS = ("added", "changed", "moved", "back", "withdrawn", "unchanged", "rejected")


class UploadConflict(Exception):
    """The upload has changed meanwhile; says so to the person who acted on it."""


def change_state(
    upload: RosterUpload,
    *,
    allowed: Collection[str],
    values: Mapping[str, object],
    **conditions: object,
) -> None:
    """Update an upload that is in one of the `allowed` states.

    Of two requests at once, one raises UploadConflict.
    """
    current = RosterUpload.objects.filter(pk=upload.pk, state__in=allowed, **conditions)
    if not current.update(**values):
        upload.refresh_from_db()
        raise UploadConflict(
            _("This can't be done now. Status of this roster: %(state)s.")
            % {"state": upload.get_state_display()}
        )
    for name, value in values.items():
        setattr(upload, name, value)


def record_action(
    action: str,
    upload: RosterUpload,
    *,
    by: User | str,
    request: HttpRequest | None = None,
    **after: object,
) -> None:
    """Write an audit entry that the administrators of the upload's place can see."""
    record(
        action,
        by=by,
        request=request,
        subject=upload,
        school=upload.school,
        district=upload.district,
        after={**after, "administration": upload.administration.name},
    )
