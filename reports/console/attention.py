"""List what waits for the user besides the next steps of survey rounds."""

from __future__ import annotations

from datetime import timedelta

from django.db.models import OuterRef, Subquery
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts.permissions import Capability as C
from accounts.permissions import Permissions
from reports.console.next_steps import NextStep
from survey.models import FeedScan, RosterFeed, RosterUpload

# An upload that nobody has confirmed for longer is not waited for any more.
UPLOADS_SINCE = timedelta(days=14)
# Lines on the page; the lists have all.
MAX_LINES = 5


def needing_attention(permissions: Permissions) -> list[NextStep]:
    """Return roster syncs and uploads that wait for a person of this user's places.

    At most 2 statements, none for users who manage no rosters.
    """
    lines = []
    if permissions.has(C.MANAGE_FEEDS):
        lines += _roster_syncs(permissions)
    if permissions.has(C.MANAGE_ROSTERS):
        lines += _roster_uploads(permissions)
    return lines


def _roster_syncs(permissions: Permissions) -> list[NextStep]:
    State = FeedScan.State
    newest = (
        FeedScan.objects.filter(feed=OuterRef("pk"))
        .exclude(state__in=FeedScan.UNFINISHED)
        .order_by("-created_at", "-pk")
    )
    feeds = (
        RosterFeed.objects.visible_to(permissions)
        .current()
        .annotate(
            scan=Subquery(newest.values("pk")[:1]),
            scan_state=Subquery(newest.values("state")[:1]),
        )
        .filter(scan_state__in=(State.HELD, State.FAILED))
        .order_by("name")
        .values_list("pk", "name", "scan", "scan_state")
    )
    sentences = {
        State.HELD.value: _("Roster sync “%(name)s” waits for your confirmation."),
        State.FAILED.value: _("Roster sync “%(name)s” failed."),
    }
    return [
        NextStep(
            sentences[state] % {"name": name}, reverse("feed_scan", args=[pk, scan])
        )
        for pk, name, scan, state in feeds[:MAX_LINES]
    ]


def _roster_uploads(permissions: Permissions) -> list[NextStep]:
    State = RosterUpload.State
    sentences = {
        State.MAPPING.value: _("Choose the columns of roster “%(name)s”."),
        State.CHECKED.value: _("Roster “%(name)s” is checked, and not applied yet."),
        State.FAILED.value: _("Roster “%(name)s” was not fully applied."),
    }
    now = timezone.now()
    uploads = (
        RosterUpload.objects.visible_to(permissions)
        .filter(
            state__in=sentences,
            scan=None,
            uploaded_at__gte=now - UPLOADS_SINCE,
            administration__closes_at__gt=now,
        )
        .order_by("-uploaded_at")
        .values_list("pk", "name", "state")
    )
    return [
        NextStep(sentences[state] % {"name": name}, reverse("roster_detail", args=[pk]))
        for pk, name, state in uploads[:MAX_LINES]
    ]
