"""Stages of a scan, as the rows and cells of tables."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from django.contrib.humanize.templatetags.humanize import intcomma
from django.template.defaultfilters import filesizeformat
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from survey.models import FeedScan, FeedStage

NOTHING = "–"


@dataclass(frozen=True, slots=True)
class StageRow:
    name: str
    started_at: datetime
    ended_at: datetime | None
    took: str
    # What it handled, such as "3.4 MB", "unchanged" and "1,200".
    size: str
    rows: str
    # The one of them that says most, such as "3.4 MB" or "1,200 rows".
    amount: str
    attempts: int
    message: str


@dataclass(frozen=True, slots=True)
class ScanRow:
    scan: FeedScan
    # In the order of FeedStage.Stage; None where a stage did not run.
    stages: list[StageRow | None]


def in_words(seconds: float) -> str:
    """Format a time as "0.4 s", "12 s" or "3 min 5 s"."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes:,} min {rest} s" if minutes else f"{rest} s"


def stage_row(stage: FeedStage, scan: FeedScan) -> StageRow:
    took, size, amount = NOTHING, "", ""
    if stage.ended_at is not None:
        took = in_words((stage.ended_at - stage.started_at).total_seconds())
    if stage.bytes:
        size = filesizeformat(stage.bytes)
    if stage.stage == FeedStage.Stage.DOWNLOAD:
        # Nothing was sent (ETag), or the same as the last time.
        amount = size = _("unchanged") if is_unchanged(scan) else size
    elif stage.rows:
        amount = ngettext("%(rows)s row", "%(rows)s rows", stage.rows) % {
            "rows": intcomma(stage.rows)
        }
    return StageRow(
        stage.get_stage_display(),
        stage.started_at,
        stage.ended_at,
        took,
        size or NOTHING,
        intcomma(stage.rows) if stage.rows else NOTHING,
        amount,
        stage.attempts,
        stage.message,
    )


def is_unchanged(scan: FeedScan) -> bool:
    """Return whether the source offered the same as at the scan before."""
    # A scan that ends after the download stores nothing about it.
    return scan.state == FeedScan.State.UNCHANGED or bool(
        scan.download.get("is_unchanged")
    )


def scan_rows(scans: Iterable[FeedScan]) -> list[ScanRow]:
    """Return a row for each scan, whose stages were prefetched."""
    rows = []
    for scan in scans:
        named = {stage.stage: stage_row(stage, scan) for stage in scan.stages.all()}
        rows.append(ScanRow(scan, [named.get(name) for name in FeedStage.Stage.values]))
    return rows
