"""Let changes of rosters count in the figures, many people at once.

When an administration opens, the school, grade, language and subgroups in which
each person counts are frozen. From the next day on a change counts, but never
alone: figures before and after it, subtracted, are figures about the people who
changed. So at least a minimum of people have to go the same way, out of people
who have gone the same ways until then (a cohort), and as many have to stay
behind, or nobody. Other changes wait. All that can be calculated by comparing
days is then about groups that are large enough.

Going the same way means between the same units of figures: a grade, or all
grades of a school together that `reports.suppression.rates` hides.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import connection, transaction
from django.db.models import Count, F, Max, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Coalesce
from django.utils import timezone

from reports.models import GradeRate, SchoolRate
from reports.suppression.rates import (
    SMALLEST_GRADE,
    hidden_grades,
    hides_school,
    sizes_for_hiding,
)
from survey.database import advisory_locks
from survey.models import Administration, CountedGroup, Respondent, Role

# Schools whose changes are in memory at once.
SCHOOLS = 100
UPDATED_AT_ONCE = 1000

# School and grade; the grade is None for hidden grades together.
Unit = tuple[int, str | None]
# A cohort, and where it counts: None if it does not.
Members = tuple[int, Unit | None]
NEVER_COUNTED: Members = (0, None)


@dataclass(frozen=True, slots=True)
class GroupChange:
    """A person whose groups in the roster are not those that they count in yet."""

    respondent: int
    cohort: int
    counted: Unit | None
    wanted: Unit | None
    # Language and subgroups before and after, if they change. People who go to
    # another unit keep them until the next day: else few would go the same way.
    details: str = ""


def common_changes(
    changes: Iterable[GroupChange], sizes: Counter[Members], minimum: int
) -> Iterator[list[GroupChange]]:
    """Return the changes that may count, each list at once.

    `sizes` is the number of people in each cohort and unit, and is reduced by
    those who leave it.
    """
    groups = defaultdict(list)
    for change in changes:
        members = (change.cohort, change.counted)
        groups[members, change.wanted, change.details].append(change)
    for (members, _, _), together in sorted(
        groups.items(), key=lambda item: len(item[1]), reverse=True
    ):
        left = sizes[members] - len(together)
        # People who were in no figure yet can be subtracted from none.
        stays_large = members == NEVER_COUNTED or left == 0 or left >= minimum
        if len(together) >= minimum and stays_large:
            sizes[members] = left
            yield together


@dataclass(frozen=True, slots=True)
class CountingGroups:
    """The state of an administration's groups before its people are counted."""

    # Changes of rosters count if they were made before; None before the opening.
    as_of: datetime | None
    # Whether no roster is being applied, which would be counted in part.
    is_complete: bool = True


def let_changes_count(
    administration: Administration, as_of: datetime | None
) -> CountingGroups:
    """Let changes from before today count, once a day.

    `as_of` is the time of the groups so far. Nothing changes while a roster is
    being applied. 1 statement on other roll-ups of the day.
    """
    now = timezone.now()
    if administration.opens_at > now:
        # It may have been open, and was moved to a later day.
        CountedGroup.objects.filter(administration=administration).delete()
        return CountingGroups(None)
    # The state's, also where somebody of a district in another zone asks.
    local = timezone.localtime(now, timezone.get_default_timezone())
    midnight = local.replace(hour=0, minute=0, second=0, microsecond=0)
    with transaction.atomic():
        if not _lock(administration):
            return CountingGroups(as_of, is_complete=False)
        if as_of is None or as_of >= midnight:
            return CountingGroups(as_of)
        _let_changes_count(administration, midnight)
    return CountingGroups(midnight)


def _let_changes_count(administration: Administration, before: datetime) -> None:
    changed = CountedGroup.objects.filter(administration=administration)
    schools = sorted(
        changed.filter(changed_at__lt=before)
        .values_list(Coalesce("school", "respondent__school"), flat=True)
        .distinct()
    )
    cohort = changed.aggregate(last=Max("cohort"))["last"] or 0
    # People who left count by cohort, whatever school they return to.
    sizes: Counter[Members] = Counter()
    for cohort_number, people in _sizes(changed.filter(school=None), "cohort"):
        sizes[cohort_number, None] = people
    minimum = max(SMALLEST_GRADE, administration.minimum_group)
    for start in range(0, len(schools), SCHOOLS):
        some = schools[start : start + SCHOOLS]
        units = _Units(administration)
        changes = list(_changes(administration, some, before, units))
        sizes += _sizes_in(administration, some, units)
        for together in common_changes(changes, sizes, minimum):
            cohort += 1
            _apply(together, cohort)


def _lock(administration: Administration) -> bool:
    """Take the lock that rosters take, unless one is being applied."""
    if connection.vendor != "postgresql":
        return True
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_try_advisory_xact_lock(%s, %s)",
            [advisory_locks.ROSTER, administration.pk],
        )
        [is_free] = cursor.fetchone()
    return bool(is_free)


class _Units:
    """The units of figures, as they were at the opening."""

    def __init__(self, administration: Administration) -> None:
        self.administration = administration
        # School -> hidden grades; None if the whole school is hidden.
        self._hidden: dict[int, set[str] | None] = {}

    def load(self, schools: Iterable[int]) -> None:
        missing = set(schools) - self._hidden.keys()
        of_schools = {"administration": self.administration, "school__in": missing}
        small = {
            rate.school_id
            for rate in SchoolRate.objects.filter(**of_schools)
            if hides_school(self.administration.role, rate.eligible, rate.at_opening)
        }
        grades = defaultdict(list)
        for rate in GradeRate.objects.filter(**of_schools).order_by("school", "grade"):
            grades[rate.school_id].append(rate)
        for school in missing:
            rates = grades[school]
            hidden = hidden_grades(
                sizes_for_hiding([(rate.eligible, rate.at_opening) for rate in rates])
            )
            self._hidden[school] = (
                None if school in small else {rates[place].grade for place in hidden}
            )

    def of(self, school: int | None, grade: str) -> Unit | None:
        if school is None:
            return None
        hidden = self._hidden[school]
        if hidden is None or grade in hidden:
            return (school, None)
        # Teachers have no figures by grade.
        return (school, "" if self.administration.role == Role.TEACHER else grade)


def _changes(
    administration: Administration,
    schools: Sequence[int],
    before: datetime,
    units: _Units,
) -> Iterator[GroupChange]:
    changed = CountedGroup.objects.filter(
        administration=administration, changed_at__lt=before
    )
    rows = changed.annotate(place=Coalesce("school", "respondent__school")).filter(
        place__in=schools
    )
    changes = list(rows.select_related("respondent"))
    units.load({*schools, *(row.respondent.school_id for row in changes)})
    for row in changes:
        person = row.respondent
        school = None if person.withdrawn_at else person.school_id
        old = [row.language, row.attributes]
        new = [person.language, person.attributes]
        groups = (row.school_id, row.grade, *old)
        if groups == (school, person.grade, *new) or row.school_id is school is None:
            continue
        counted = units.of(row.school_id, row.grade)
        wanted = units.of(school, person.grade)
        yield GroupChange(
            respondent=person.pk,
            cohort=row.cohort,
            counted=counted,
            wanted=wanted,
            details=f"{old} {new}" if counted == wanted and old != new else "",
        )


def _sizes_in(
    administration: Administration, schools: Sequence[int], units: _Units
) -> Counter[Members]:
    sizes: Counter[Members] = Counter()
    in_schools = {"administration": administration, "school__in": schools}
    unchanged = Respondent.objects.on_roster().filter(
        **in_schools, withdrawn_at=None, counted=None
    )
    for school, grade, people in _sizes(unchanged, "school", "grade"):
        sizes[0, units.of(school, grade)] += people
    changed = CountedGroup.objects.filter(**in_schools)
    for cohort, school, grade, people in _sizes(changed, "cohort", "school", "grade"):
        sizes[cohort, units.of(school, grade)] += people
    return sizes


def _sizes(rows: QuerySet[Any], *columns: str) -> QuerySet[Any, tuple[Any, ...]]:
    """Group the rows by columns, and count them."""
    return rows.order_by().values_list(*columns).annotate(people=Count("pk"))


def _apply(changes: Sequence[GroupChange], cohort: int) -> None:
    names, first = ["grade", "withdrawn_at"], changes[0]
    is_new = (first.cohort, first.counted) == NEVER_COUNTED
    if is_new or first.counted == first.wanted:
        names += ["language", "attributes"]
    people = Respondent.objects.filter(pk=OuterRef("pk"))
    actual = {name: Subquery(people.values(name)) for name in names}
    for start in range(0, len(changes), UPDATED_AT_ONCE):
        some = changes[start : start + UPDATED_AT_ONCE]
        CountedGroup.objects.filter(
            pk__in=[change.respondent for change in some]
        ).update(
            cohort=cohort,
            school=Subquery(people.filter(withdrawn_at=None).values("school")),
            **actual,
        )


def count_waiting(
    administrations: Sequence[int], alias: str
) -> dict[int, dict[int, int]]:
    """Count the people whose change waits, by administration and school."""
    actual = Q(respondent__withdrawn_at=None) & (
        Q(school=None)
        | ~Q(school=F("respondent__school"))
        | ~Q(grade=F("respondent__grade"))
    )
    withdrawn = Q(respondent__withdrawn_at__isnull=False, school__isnull=False)
    changed = CountedGroup.objects.using(alias).filter(
        actual | withdrawn, administration__in=administrations
    )
    waiting: dict[int, dict[int, int]] = defaultdict(dict)
    for key, school, people in _sizes(changed, "administration", "respondent__school"):
        waiting[key][school] = people
    return waiting
