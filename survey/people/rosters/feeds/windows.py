"""Compute the scan windows of feeds, by the clocks of their districts."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo

from accounts.time_zones import zone_of
from survey.models import RosterFeed

# The part of a window in which scans begin; the rest is for those that wait.
SPREAD = 0.5


@dataclass(frozen=True)
class Window:
    """A scan window of one night, which has the date on which it begins."""

    night: date
    begins: datetime
    ends: datetime

    def start_of(self, feed: RosterFeed) -> datetime:
        """Return when to scan a feed: each at a time of its own, every night alike."""
        digest = hashlib.sha256(str(feed.pk).encode()).digest()
        share = int.from_bytes(digest[:4], "big") / 2**32
        return self.begins + (self.ends - self.begins) * share * SPREAD


def window_at(feed: RosterFeed, now: datetime) -> Window | None:
    """Return the feed's window that is open now; `district` should be selected."""
    if feed.window_begins is None or feed.window_ends is None:
        return None
    zone = zone_of(feed.district)
    today = now.astimezone(zone).date()
    # A window may begin before midnight.
    for night in (today, today - timedelta(days=1)):
        window = _window(night, feed.window_begins, feed.window_ends, zone)
        if window.begins <= now < window.ends:
            return window
    return None


def _window(night: date, begins: time, ends: time, zone: tzinfo) -> Window:
    last = night if ends > begins else night + timedelta(days=1)
    first, end = _instant(night, begins, zone), _instant(last, ends, zone)
    if end <= first:
        # The hour of the window is skipped in spring: it lasts as long, an hour
        # later by the clock.
        end = first + (datetime.combine(last, ends) - datetime.combine(night, begins))
    return Window(night, first, end)


def _instant(day: date, at: time, zone: tzinfo) -> datetime:
    return datetime.combine(day, at, zone).astimezone(UTC)
