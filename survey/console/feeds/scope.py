"""Find the feeds that a user may manage, with what lists show of them."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from typing import NamedTuple

from django.db import DEFAULT_DB_ALIAS
from django.db.models import Case, OuterRef, Q, QuerySet, Subquery, Value, When
from django.shortcuts import get_object_or_404
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from accounts.http import StaffRequest
from accounts.permissions import Capability
from accounts.time_zones import zone_of
from survey.models import FeedScan, FeedStage, RosterFeed

MANAGE = Capability.MANAGE_FEEDS
State = FeedScan.State
# A nightly scan has ended well by then.
LATE_AFTER = timedelta(hours=26)


class Status(NamedTuple):
    """What a list says about a feed, and the look of its badge."""

    words: str
    badge: str = ""


# In the order of the list, after those that are late: feeds that need somebody
# come first.
STATUSES = {
    "held": Status(gettext_noop("waits for confirmation"), "caution"),
    "failing": Status(gettext_noop("failed"), "bad"),
    "late": Status(gettext_noop("overdue"), "bad"),
    "running": Status(gettext_noop("being scanned")),
    "new": Status(gettext_noop("never scanned")),
    "current": Status(gettext_noop("up to date"), "good"),
    "paused": Status(gettext_noop("paused")),
}


def feeds_of(request: StaffRequest) -> QuerySet[RosterFeed]:
    visible = RosterFeed.objects.visible_to(request.permissions)
    return visible.current().select_related("district")


def feed_or_404(request: StaffRequest, pk: int) -> RosterFeed:
    # From the primary: it may have been changed a moment ago.
    feeds = with_status(feeds_of(request).using(DEFAULT_DB_ALIAS))
    return get_object_or_404(feeds, pk=pk)


def with_status(feeds: QuerySet[RosterFeed]) -> QuerySet[RosterFeed]:
    """Add `status_rank`, `is_late`, `scanned_at`, `good_at` and `people`."""
    scans = FeedScan.objects.filter(feed=OuterRef("pk")).order_by("-pk")
    real = scans.exclude(reason=FeedScan.Reason.TRY)
    good = real.filter(state__in=(State.APPLIED, State.UNCHANGED))
    rows = FeedStage.objects.filter(
        scan__feed=OuterRef("pk"), stage=FeedStage.Stage.COMPARE, ended_at__isnull=False
    ).order_by("-pk")
    long_ago = timezone.now() - LATE_AFTER
    is_late = Q(window_begins__isnull=False, is_paused=False) & (
        Q(good_at__lt=long_ago) | Q(good_at=None, created_at__lt=long_ago)
    )
    ranks = list(STATUSES)
    conditions = {
        "paused": Q(is_paused=True),
        "held": Q(latest_state=State.HELD),
        "failing": Q(failures_in_a_row__gt=0),
        "late": is_late,
        "running": Q(latest_state__in=(State.WAITING, State.RUNNING)),
        "new": Q(latest_state=None),
    }
    return feeds.annotate(
        latest_state=Subquery(real.values("state")[:1]),
        good_at=Subquery(good.values("ended_at")[:1]),
        scanned_at=Subquery(real.filter(ended_at__isnull=False).values("ended_at")[:1]),
        people=Subquery(rows.values("rows")[:1]),
    ).annotate(
        is_late=Case(When(is_late, then=Value(True)), default=Value(False)),
        status_rank=Case(
            *(
                When(condition, then=Value(ranks.index(name)))
                for name, condition in conditions.items()
            ),
            default=Value(ranks.index("current")),
        ),
    )


def status_of(feed: RosterFeed) -> Status:
    rank: int = feed.status_rank  # type: ignore[attr-defined]
    status = list(STATUSES.values())[rank]
    if status is STATUSES["failing"] and feed.failures_in_a_row > 1:
        words = _("failed %(times)s times") % {"times": feed.failures_in_a_row}
        return status._replace(words=words)
    return status._replace(words=_(status.words))


def next_window(feed: RosterFeed, now: datetime) -> datetime | None:
    """Return when the feed is scanned next without anybody's doing."""
    if feed.window_begins is None or feed.is_paused:
        return None
    zone = zone_of(feed.district)
    local = now.astimezone(zone)
    day: date = local.date()
    if local.time() >= feed.window_begins:
        day += timedelta(days=1)
    return datetime.combine(day, feed.window_begins, zone)
