"""End scans: applied, unchanged, held, tried, failed or cancelled."""

from __future__ import annotations

import logging
from functools import partial

from django.db import transaction
from django.db.models import F
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts.email_outbox import queue_email
from accounts.models import Membership, User
from accounts.permissions import Capability, Permissions
from survey.models import FeedScan, RosterFeed, RosterUpload
from survey.people.rosters.retention import delete_upload_files
from survey.work.files import delete_folder
from survey.work.jobs import Cancelled

log = logging.getLogger(__name__)

State = FeedScan.State
Upload = RosterUpload.State

# Failures after which the owner and the administrators of the district are told.
FAILURES_UNTIL_NOTICE = 3


def lock_running(scan: FeedScan) -> None:
    """Lock the scan's row within a transaction. Raises Cancelled if it is over."""
    running = FeedScan.objects.select_for_update().filter(pk=scan.pk)
    if not running.filter(state=State.RUNNING).exists():
        raise Cancelled


def end_scan(scan: FeedScan, state: State, *, message: str = "") -> None:
    """End a locked scan that worked, and reset the feed's failures."""
    FeedScan.objects.filter(pk=scan.pk).update(
        state=state, message=message[:500], ended_at=timezone.now()
    )
    delete_downloads(scan)
    if scan.reason != FeedScan.Reason.TRY:
        RosterFeed.objects.filter(pk=scan.feed_id, failures_in_a_row__gt=0).update(
            failures_in_a_row=0
        )


def hold_scan(scan: FeedScan, message: str) -> None:
    """Hold a locked scan until somebody confirms it.

    Its owners are told once: a scan that is held again the next night sends no
    further e-mail.
    """
    before = FeedScan.objects.filter(feed=scan.feed_id, pk__lt=scan.pk)
    before = before.exclude(reason=FeedScan.Reason.TRY).exclude(state=State.FAILED)
    newest = before.order_by("-pk").first()
    was_held = newest is not None and newest.was_held
    scan.uploads.filter(state=Upload.APPLYING).update(
        state=Upload.CHECKED, confirmed_by=None, confirmed_at=None, typed=""
    )
    end_scan(scan, State.HELD, message=message)
    FeedScan.objects.filter(pk=scan.pk).update(was_held=True)
    if not was_held:
        _notify(scan, "feed scan held", message)


@transaction.atomic
def fail_scan(scan: FeedScan, message: str) -> None:
    """End an unfinished scan that failed, and tell its owners of the third failure."""
    unfinished = FeedScan.objects.filter(pk=scan.pk, state__in=FeedScan.UNFINISHED)
    if not unfinished.update(
        state=State.FAILED,
        message=message[:500],
        ended_at=timezone.now(),
        retry_at=None,
    ):
        return
    log.warning("the scan %s of the feed %s failed", scan.pk, scan.feed_id)
    applying = scan.uploads.filter(state=Upload.APPLYING)
    applying.update(state=Upload.FAILED, message=message[:500])
    drop_uploads(scan)
    delete_downloads(scan)
    if scan.reason == FeedScan.Reason.TRY:
        return
    feeds = RosterFeed.objects.filter(pk=scan.feed_id)
    feeds.update(failures_in_a_row=F("failures_in_a_row") + 1)
    failures = feeds.values_list("failures_in_a_row", flat=True).get()
    if failures == FAILURES_UNTIL_NOTICE:
        _notify(scan, "feed scan failed", message)


def cancel_replaced(scan: FeedScan) -> None:
    """Cancel older held and tried scans of the feed: a newer one shows the figures."""
    older = FeedScan.objects.filter(
        feed=scan.feed_id, pk__lt=scan.pk, state__in=(State.HELD, State.TRIED)
    )
    for replaced in older:
        drop_uploads(replaced)
    older.update(state=State.CANCELLED, message=_("Replaced by a newer scan."))


def drop_uploads(scan: FeedScan) -> None:
    """Cancel the uploads that were not applied, and delete their files."""
    waiting = (Upload.CHECKING, Upload.CHECKED, Upload.REFUSED)
    uploads = list(scan.uploads.filter(state__in=waiting))
    pks = [upload.pk for upload in uploads]
    scan.uploads.filter(pk__in=pks).update(
        state=Upload.CANCELLED, ended_at=timezone.now()
    )
    delete_upload_files(uploads)


def delete_downloads(scan: FeedScan) -> None:
    """Delete what a scan downloaded, when the transaction has committed."""
    folder = FeedScan.objects.values_list("folder", flat=True).get(pk=scan.pk)
    if folder:
        FeedScan.objects.filter(pk=scan.pk).update(folder="")
        transaction.on_commit(partial(delete_folder, folder))


def people_to_notify(feed: RosterFeed) -> list[User]:
    """Return the owner and the district's administrators who may still manage it."""
    memberships = Membership.objects.current().filter(
        role=Membership.Role.DISTRICT, district=feed.district_id
    )
    users = {row.user for row in memberships.select_related("user")} | {feed.by}
    return sorted(
        (user for user in users if may_manage(user, feed)), key=lambda user: user.email
    )


def may_manage(user: User, feed: RosterFeed) -> bool:
    places = Permissions(user).places(Capability.MANAGE_ROSTERS)
    return places.has_district(feed.district_id)


def _notify(scan: FeedScan, kind: str, message: str) -> None:
    feed = RosterFeed.objects.select_related("by", "district").get(pk=scan.feed_id)
    for user in people_to_notify(feed):
        queue_email(
            kind,
            to=user.email,
            name=feed.name,
            district=feed.district.name,
            message=message,
            address=f"/console/feeds/{feed.pk}/",
        )
