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

from django.db import transaction
from django.db.models import F, Q
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from reports.answers.page_times import page_times
from reports.answers.versions import versions_of
from reports.models import ResultsRollUp
from reports.rates.rollup import AFTER_CLOSING
from reports.rates.rollup_query import refresh_replica_timestamp
from reports.releases.apply_suppression import hide_small_groups
from reports.releases.changes import LastRollUp, Recount, read_changes
from reports.releases.counting import GRADE, count_groups, distinct_numbers
from reports.releases.frozen_people import counts_erased_people, schools_to_keep
from reports.releases.layout import CountedItem, DistinctNumbers, Layout, counted_items
from reports.releases.storing import Figures, store
from reports.releases.summed_schools import decide_summed_schools, staying_schools
from survey.database.replica.reports import reports_database
from survey.models import (
    Administration,
    CountedGroup,
    Denominator,
    OptOut,
    Respondent,
    Role,
)
from survey.work.jobs import JobRefused, Progress

log = logging.getLogger(__name__)
NOT_COMPARABLE = gettext_lazy(
    "New results cannot be counted. In some schools, too few people have changed to"
    " show new figures, and their earlier ones cannot be added to those of the others:"
    " other numbers were answered, or the questions have changed."
)


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
    all_schools: bool = False,
    release: bool = False,
) -> ResultsOutcome:
    """Count an administration's answers and store what changed.

    With `all_schools`, also schools without changes are counted. With `release`, it is
    decided in the same transaction what is hidden: the release is there as a whole, or
    the earlier one stays. Where it would differ from an earlier one by a few people,
    schools keep their figures. Raises OperationalError if the replica is away: the
    figures then stay as they are.
    """
    start = time.monotonic()
    refresh_replica_timestamp()
    last = LastRollUp.find(administration)
    [version] = versions_of([administration]).values()
    items, attributes = counted_items(version), attributes_of(administration)
    if last is not None and list(last.layout.attributes) != attributes:
        # A subgroup was declared since.
        all_schools = True
    if progress:
        progress.begin_step(_("Reading the responses."))
    released = last is not None and last.released_at is not None
    recount = read_changes(
        administration, version, items, None if all_schools and not released else last
    )
    reading = time.monotonic() - start
    if progress:
        progress.begin_step(_("Counting the answers."), total=len(recount.people))
    if released:
        recount.keep(
            schools_to_keep(
                *(administration, recount.people, recount.schools),
                *(recount.saved, attributes),
            )
        )
    figures = _figures(items, attributes, last, recount)
    if figures is None:
        if recount.kept_schools:
            raise JobRefused(NOT_COMPARABLE)
        return roll_up_results(
            administration, progress, all_schools=True, release=release
        )
    counting = time.monotonic() - start - reading
    if progress:
        progress.begin_step(_("Storing the figures."))
    changed = _store(administration, last, recount, figures, progress, release=release)
    seconds = time.monotonic() - start
    log.info("Counted the results of %s in %.2f s", administration, seconds)
    return ResultsOutcome(
        len(recount.schools), len(recount.people), changed, reading, counting, seconds
    )


def _figures(
    items: Sequence[CountedItem],
    attributes: Sequence[str],
    last: LastRollUp | None,
    recount: Recount,
) -> Figures | None:
    """Count the answers; None if all schools have to be counted, as in `layout_for`."""
    numbers = distinct_numbers(items, recount.answers, recount.people)
    layout = layout_for(items, attributes, last, recount, numbers)
    if layout is None:
        return None
    schools = {
        (school, group): counts
        for school, group, counts in count_groups(
            layout, recount.answers, recount.people, attributes
        )
    }
    return Figures(layout, numbers, schools)


def _store(
    administration: Administration,
    last: LastRollUp | None,
    recount: Recount,
    figures: Figures,
    progress: Progress | None,
    *,
    release: bool,
) -> int:
    """Store the figures, and of a release what is hidden; return how many changed."""
    attributes = figures.layout.attributes
    roster_groups = groups_of_roster(administration, attributes) if release else []
    times = times_for_authors(administration) if release else {}
    summed = staying_schools(administration, last, recount)
    with transaction.atomic():
        changed = store(administration, last, recount, figures)
        if release:
            hide_small_groups(administration)
            decide_summed_schools(administration, summed)
            roll_up = ResultsRollUp.objects.get(pk=administration.pk)
            roll_up.roster_groups = roster_groups
            roll_up.layout = {**roll_up.layout, **times}
            roll_up.save(update_fields=["roster_groups", "layout"])
            ResultsRollUp.objects.filter(
                pk=administration.pk,
                released_at=None,
                as_of__gte=administration.closes_at + AFTER_CLOSING,
            ).update(released_at=F("as_of"))
        if progress:
            progress.confirm()
    return changed


def times_for_authors(administration: Administration) -> dict[str, object]:
    """Return what `reports.results.recorded_times` reads later. 3 statements."""
    [version] = versions_of([administration]).values()
    times = page_times(administration, version)
    return {"times": times._asdict()} if times.people else {}


def layout_for(
    items: Sequence[CountedItem],
    attributes: Sequence[str],
    last: LastRollUp | None,
    recount: Recount,
    numbers: dict[int, dict[str, DistinctNumbers]],
) -> Layout | None:
    """Return the columns; None if bins or items are others, so that all change."""
    everywhere: list[Mapping[str, DistinctNumbers]] = [*numbers.values()]
    if last is not None and not recount.is_full:
        everywhere += [
            distinct
            for key, distinct in last.numbers.items()
            if key not in recount.schools
        ]
    together = {
        item.name: DistinctNumbers.union(
            of_school[item.name] for of_school in everywhere if item.name in of_school
        )
        for item in items
        if item.measured == "number"
    }
    if last is None or recount.is_full:
        return Layout.of(items, attributes, together)
    layout = last.layout
    if list(layout.items) != list(items) or any(
        distinct.width() != layout.widths[name] for name, distinct in together.items()
    ):
        return None
    layout.append(together)
    # A subgroup may have been declared since.
    layout.attributes = attributes
    return layout


def attributes_of(administration: Administration) -> list[str]:
    """Return the attributes by which people are counted; "" counts everyone."""
    has_grades = (
        administration.role != Role.TEACHER
        and administration.denominator != Denominator.COUNT
    )
    return ["", *([GRADE] if has_grades else []), *administration.subgroups]


def groups_of_roster(
    administration: Administration, attributes: Sequence[str]
) -> list[tuple[str, str]]:
    """Return attribute and value of all groups on the roster. 2 statements.

    A menu of the groups that have answered would tell whether the only pupil of a
    group took part.
    """
    alias = reports_database()
    people = Respondent.objects.using(alias).filter(administration=administration)
    counted = CountedGroup.objects.using(alias).filter(administration=administration)
    groups = set()
    for rows in (people, counted):
        for grade, values in rows.values_list("grade", "attributes").distinct():
            for attribute in filter(None, attributes):
                is_grade = attribute == GRADE
                value = grade if is_grade else (values or {}).get(attribute)
                groups.add((attribute, str(value or "")))
    return sorted(groups)


def due(now: datetime | None = None) -> list[Administration]:
    """Return closed administrations whose results are not released."""
    now = now or timezone.now()
    # Which schools have a report is decided by the final response rates.
    return list(
        Administration.objects.filter(closes_at__lte=now - AFTER_CLOSING)
        .filter(results_roll_up__released_at=None, answers_destroyed_at=None)
        .exclude(roll_up__as_of__lt=F("closes_at") + AFTER_CLOSING)
        .order_by("closes_at", "pk")
    )


def is_outdated(administration: Administration) -> bool:
    """Test if people or answers have changed since the release. 2 statements.

    Because the administration was opened again, people opted out or took that back, or
    a change of the roster counts.
    """
    as_of = administration.results_roll_up.as_of
    return (
        administration.closes_at + AFTER_CLOSING > as_of
        or OptOut.objects.filter(
            Q(recorded_at__gte=as_of) | Q(ended_at__gte=as_of),
            respondent__administration=administration,
        ).exists()
        or CountedGroup.objects.filter(
            administration=administration, changed_at__gte=as_of
        ).exists()
    )


def keeps_earlier_answers(administration: Administration) -> bool:
    """Test if schools show figures of answers that have changed, or are gone.

    Scores that are calculated again would be without them: the difference would tell
    what a few people have answered. 2 statements; 1 more where people were erased.
    """
    return (
        ResultsRollUp.objects.filter(
            pk=administration.pk, released_at__lt=administration.closes_at
        )
        .exclude(kept_schools=[])
        .exists()
    ) or counts_erased_people(administration)
