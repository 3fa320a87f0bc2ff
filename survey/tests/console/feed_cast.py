"""Feeds with scans, for tests of their pages."""

from __future__ import annotations

from datetime import datetime, time, timedelta
from typing import Any

from django.utils import timezone

from accounts.models import District, User
from survey.models import FeedScan, FeedStage, RosterFeed

SECRET = "hidden-harbour-77"


def create_feed(district: District, by: User, **fields: Any) -> RosterFeed:
    return RosterFeed.objects.create(
        district=district,
        by=by,
        **{
            "name": "PowerSchool",
            "kind": "zip",
            "address": "https://sis.example.org/oneroster.zip",
            "identity": "identifier",
            "window_begins": time(1),
            "window_ends": time(4),
            **fields,
        },
    )


def create_scan(
    feed: RosterFeed,
    state: str = "applied",
    *,
    began: datetime | None = None,
    **more: Any,
) -> FeedScan:
    """Create a scan by hand with four stages of one second each."""
    began = began or timezone.now() - timedelta(hours=1)
    is_over = state not in FeedScan.UNFINISHED
    scan = FeedScan.objects.create(
        feed=feed,
        district=feed.district,
        state=state,
        created_at=began,
        started_at=began,
        ended_at=began + timedelta(seconds=4) if is_over else None,
        **{"reason": "now", **more},
    )
    for n, stage in enumerate(FeedStage.Stage.values):
        FeedStage.objects.create(
            scan=scan,
            stage=stage,
            started_at=began + timedelta(seconds=n),
            ended_at=began + timedelta(seconds=n + 1),
            bytes=1_000_000 if stage == "download" else 0,
            rows=0 if stage == "download" else 1_200,
        )
    return scan
