"""Count the answers of an administration, and store the figures that changed.

Schools whose people, groups and answers are those of the last roll-up are not counted
again. Figures are never replaced by older ones, such as those of a replica that is
further behind than the one before.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Exists, F, Max, OuterRef, Q
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts import audit
from reports.exports.reading import versions_of
from reports.models import ResultsRollUp
from reports.results.changes import LastRollUp, Recount, read_changes
from reports.results.counting import GRADE, count_groups, distinct_numbers
from reports.results.layout import CountedItem, DistinctNumbers, Layout, counted_items
from reports.results.storing import Figures, store
from reports.rollup import AFTER_CLOSING, CLOSED_EVERY, ROSTER_JOB
from reports.rollup_query import refresh_replica_timestamp
from survey.jobs import Progress
from survey.models import Administration, Denominator, Job, OptOut, Role

log = logging.getLogger(__name__)
# Who stops sharing results, in the audit log.
COUNTING = "results.count"


@dataclass(frozen=True, slots=True)
class ResultsOutcome:
    """The outcome of a roll-up. `reading` and `counting` are parts of `seconds`."""

    schools: int = 0
    people: int = 0
    rows_changed: int = 0
    reading: float = 0.0
    counting: float = 0.0
    seconds: float = 0.0


def roll_up_results(
    administration: Administration,
    progress: Progress | None = None,
    *,
    again: bool = False,
) -> ResultsOutcome:
    """Count an administration's answers and store what changed.

    With `again`, all schools are counted. Raises OperationalError if the replica is
    away: the figures then stay as they are.
    """
    start = time.monotonic()
    stop_sharing_if_reopened(administration)
    refresh_replica_timestamp()
    last = LastRollUp.find(administration)
    [version] = versions_of([administration]).values()
    items, attributes = counted_items(version), attributes_of(administration)
    if last is not None and list(last.layout.attributes) != attributes:
        # A subgroup was declared since.
        again = True
    if progress:
        progress.begin_step(_("Reading the responses."))
    recount = read_changes(administration, version, items, None if again else last)
    reading = time.monotonic() - start
    if progress:
        progress.begin_step(_("Counting the answers."), total=len(recount.people))
    numbers = distinct_numbers(items, recount.answers, recount.people)
    layout = layout_for(items, attributes, last, recount, numbers)
    if layout is None:
        return roll_up_results(administration, progress, again=True)
    schools = {
        (school, group): counts
        for school, group, counts in count_groups(
            layout, recount.answers, recount.people, attributes
        )
    }
    counting = time.monotonic() - start - reading
    if progress:
        progress.begin_step(_("Storing the figures."))
    figures = Figures(layout, numbers, schools)
    changed = store(administration, last, recount, figures, progress)
    seconds = time.monotonic() - start
    log.info("Counted the results of %s in %.2f s", administration, seconds)
    return ResultsOutcome(
        len(recount.schools), len(recount.people), changed, reading, counting, seconds
    )


def stop_sharing_if_reopened(administration: Administration) -> None:
    """Stop sharing figures that were counted before the administration closed again.

    Coordinators have seen these. If later ones took their place, the difference would
    be the answers of the people who answered in between, and these may be few.
    """
    stopped = ResultsRollUp.objects.filter(
        pk=administration.pk,
        shared_at__isnull=False,
        as_of__lt=administration.closes_at,
    ).update(shared_at=None)
    if stopped:
        audit.record("stop sharing results", by=COUNTING, subject=administration)


def layout_for(
    items: Sequence[CountedItem],
    attributes: Sequence[str],
    last: LastRollUp | None,
    recount: Recount,
    numbers: dict[int, dict[str, DistinctNumbers]],
) -> Layout | None:
    """Return the columns; None if bins are others now, so that all schools change."""
    everywhere: list[Mapping[str, DistinctNumbers]] = [*numbers.values()]
    if last is not None and not recount.is_full:
        everywhere += [
            found for key, found in last.numbers.items() if key not in recount.schools
        ]
    together = {
        item.name: DistinctNumbers.union(
            found[item.name] for found in everywhere if item.name in found
        )
        for item in items
        if item.measured == "number"
    }
    if last is None or recount.is_full:
        return Layout.of(items, attributes, together)
    layout = last.layout
    if any(found.width() != layout.widths[name] for name, found in together.items()):
        return None
    layout.append(together)
    return layout


def attributes_of(administration: Administration) -> list[str]:
    """Return the attributes by which people are counted; "" counts everyone."""
    has_grades = (
        administration.role != Role.TEACHER
        and administration.denominator != Denominator.COUNT
    )
    return ["", *([GRADE] if has_grades else []), *administration.subgroups]


def due(now: datetime | None = None) -> list[Administration]:
    """Return closed administrations whose results are missing or may have changed."""
    now = now or timezone.now()
    last_roster = Job.objects.filter(kind=ROSTER_JOB, state=Job.State.DONE).aggregate(
        last=Max("ended_at")
    )["last"]
    last = F("results_roll_up__as_of")
    opted_out = OptOut.objects.filter(
        Q(recorded_at__gte=OuterRef("results_roll_up__as_of"))
        | Q(ended_at__gte=OuterRef("results_roll_up__as_of")),
        respondent__administration=OuterRef("pk"),
    )
    condition = (
        Q(results_roll_up=None)
        # Last counted when pages could still arrive.
        | Q(closes_at__gt=last - AFTER_CLOSING)
        | Q(results_roll_up__as_of__lte=now - CLOSED_EVERY)
        | Q(Exists(opted_out))
    )
    if last_roster:
        condition |= Q(results_roll_up__as_of__lte=last_roster)
    closed = Administration.objects.filter(closes_at__lte=now - AFTER_CLOSING)
    return list(closed.filter(condition).order_by("closes_at", "pk"))
