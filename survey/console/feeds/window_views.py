"""The console's page of the last scan window: a chart, and the times per stage."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from django.conf import settings
from django.contrib.humanize.templatetags.humanize import intcomma
from django.db.models import Case, F, OuterRef, Q, QuerySet, Subquery, When
from django.http import HttpResponse
from django.shortcuts import render
from django.template.defaultfilters import filesizeformat
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_safe

from accounts.access import needs
from accounts.http import StaffRequest
from survey.console.feeds.scope import MANAGE, feeds_of
from survey.console.feeds.stage_rows import in_words
from survey.console.feeds.window_chart import (
    Bar,
    Stage,
    bars_of,
    count_bars,
    line_of,
    slowest_stage,
    time_stages,
)
from survey.models import FeedScan, FeedStage
from survey.work.jobs import DOWNLOADS, SCANS

State = FeedScan.State
# Queues, whose workers each do some of the stages.
POOL_LABELS = {
    DOWNLOADS: gettext_lazy("downloading"),
    SCANS: gettext_lazy("processing"),
}
# A scan that somebody confirmed in the morning was held at night, by its comparison.
END = Case(
    When(confirmed_at=None, then=F("ended_at")),
    default=Subquery(
        FeedStage.objects.filter(
            scan=OuterRef("pk"), stage=FeedStage.Stage.COMPARE
        ).values("ended_at")[:1]
    ),
)


def workers_by_pool() -> dict[str, int]:
    """Return how many workers the pools of feeds have; none where nobody said so."""
    return {
        pool: settings.JOB_WORKERS[pool]
        for pool in POOL_LABELS
        if pool in settings.JOB_WORKERS
    }


@needs(MANAGE)
@require_safe
def feed_window(request: StaffRequest) -> HttpResponse:
    """Show the newest night in which a feed of the user was scanned. 3 statements."""
    scans = FeedScan.objects.filter(feed__in=feeds_of(request).values("pk"))
    night = scans.filter(night__isnull=False).order_by("-night").values("night")[:1]
    of_night = scans.filter(night=night)
    states_and_ends = list(of_night.annotate(ended=END).values_list("state", "ended"))
    is_state = request.permissions.places(MANAGE).state
    context: dict[str, object] = {
        "scans": states_and_ends,
        "is_state": is_state,
    }
    stages = read_stages(of_night) if states_and_ends else []
    ends = [ended for _, ended in states_and_ends if ended is not None]
    # Workers are shared, so what is idle says something about other districts.
    bars = count_bars(stages, ends, workers_by_pool() if is_state else {})
    if bars:
        context |= _totals([state for state, _ in states_and_ends], stages)
        context |= _chart(bars, workers_by_pool() if is_state else {})
        context |= _times(stages)
        context |= {
            "begins": bars[0].begins,
            "ends": max([*ends, *(stage.ended for stage in stages)]),
        }
    else:
        context["scans"] = []
    return render(request, "survey/console/feed_window.html", context)


def read_stages(scans: QuerySet[FeedScan]) -> list[Stage]:
    """Read the stages of these scans that have ended, in their night."""
    rows = FeedStage.objects.filter(
        Q(scan__confirmed_at=None) | Q(started_at__lt=F("scan__confirmed_at")),
        scan__in=scans.values("pk"),
        ended_at__isnull=False,
    ).values_list("stage", "started_at", "ended_at", "bytes", "rows")
    return [
        Stage(name, DOWNLOADS if name == "download" else SCANS, began, ended, *amounts)
        for name, began, ended, *amounts in rows
        if ended is not None
    ]


def _totals(states: Sequence[str], stages: Sequence[Stage]) -> dict[str, object]:
    count = Counter(states)
    loaded = sum(stage.bytes for stage in stages if stage.name == "download")
    rows = sum(stage.rows for stage in stages if stage.name == "compare")
    unfinished = count[State.WAITING] + count[State.RUNNING]
    totals = [
        (_("roster syncs scanned"), intcomma(len(states))),
        (_("applied"), intcomma(count[State.APPLIED])),
        (_("nothing new"), intcomma(count[State.UNCHANGED])),
        (_("wait for confirmation"), intcomma(count[State.HELD])),
        (_("failed"), intcomma(count[State.FAILED])),
        (_("not done yet"), intcomma(unfinished)),
        (_("downloaded"), filesizeformat(loaded)),
        (_("rows compared"), intcomma(rows)),
    ]
    return {"totals": totals}


def _chart(bars: Sequence[Bar], workers: Mapping[str, int]) -> dict[str, object]:
    most_workers = max(workers.values(), default=0)
    return {
        "bars": bars_of([bar.scans for bar in bars]),
        "most_scans": max(bar.scans for bar in bars),
        "lines": [
            {
                "pool": pool,
                "words": POOL_LABELS[pool],
                "workers": count,
                "points": line_of([bar.idle[pool] for bar in bars], most_workers),
            }
            for pool, count in workers.items()
        ],
        "minutes": [
            {
                "begins": bar.begins,
                "scans": bar.scans,
                "idle": [bar.idle[pool] for pool in workers],
            }
            for bar in bars
        ],
    }


def _times(stages: Sequence[Stage]) -> dict[str, object]:
    times = time_stages(stages, FeedStage.Stage.values)
    rows = [
        {
            "name": FeedStage.Stage(stage.name).label,
            "times": stage.times,
            "total": in_words(stage.seconds),
            "percent": round(100 * stage.share),
            "median": in_words(stage.median_s),
            "longest": in_words(stage.longest_s),
            "bytes": stage.bytes,
            "rows": stage.rows,
        }
        for stage in times
    ]
    slowest = slowest_stage(times)
    return {"stages": rows, "slowest": rows[times.index(slowest)] if slowest else None}
