"""Record the stages of a scan, and measure them for Prometheus."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from django.db.models import F
from django.utils import timezone
from django.utils.translation import gettext as _

from settings.monitoring.metrics import observe_feed_stage  # noqa: TID251
from survey.models import FeedScan, FeedStage
from survey.work.jobs import FAILED, RUN_AGAIN, Cancelled, JobRefused

# More columns than any file of OneRoster has.
MOST_NOTES = 100
LONGEST_NOTE = 200


@contextmanager
def record_stage(scan: FeedScan, name: str) -> Iterator[FeedStage]:
    """Record an attempt of a stage, and why it failed.

    The stage's last transaction calls `end_stage`, so that a stage is done only
    if its result is stored.
    """
    stages = FeedStage.objects.filter(scan=scan, stage=name)
    is_repeated = stages.update(
        started_at=timezone.now(),
        ended_at=None,
        message="",
        attempts=F("attempts") + 1,
    )
    stage = (
        stages.get() if is_repeated else FeedStage.objects.create(scan=scan, stage=name)
    )
    result = "failed"
    try:
        yield stage
        result = "failed" if stage.message else "done"
    except (*RUN_AGAIN, Cancelled):
        # The attempt is repeated, or the scan is over.
        result = "interrupted"
        raise
    except Exception as error:
        end_stage(
            stage, message=str(error) if isinstance(error, JobRefused) else FAILED
        )
        raise
    finally:
        seconds = (timezone.now() - stage.started_at).total_seconds()
        observe_feed_stage(name, seconds, result, rows=stage.rows, size=stage.bytes)


def end_stage(
    stage: FeedStage,
    *,
    size: int = 0,
    rows: int = 0,
    message: str = "",
    notes: Sequence[str] = (),
) -> None:
    stage.ended_at = timezone.now()
    stage.bytes, stage.rows, stage.message = size, rows, message[:500]
    # One a line, whatever a column of the file is called.
    lines = [" ".join(note.split())[:LONGEST_NOTE] for note in notes[:MOST_NOTES]]
    if len(notes) > MOST_NOTES:
        lines.append(
            _("and %(notes)s more") % {"notes": f"{len(notes) - MOST_NOTES:,}"}
        )
    stage.notes = "\n".join(lines)
    stage.save(update_fields=["ended_at", "bytes", "rows", "message", "notes"])


def is_done(scan: FeedScan, name: str) -> bool:
    done = FeedStage.objects.filter(scan=scan, stage=name, ended_at__isnull=False)
    return done.filter(message="").exists()
