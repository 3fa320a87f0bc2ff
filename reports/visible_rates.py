"""Read response rates as one user may see them.

Who may see which numbers is decided by `reports.suppression` and by the user's
permissions. Everything here is read from the roll-up; no people are counted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, time
from typing import Protocol, cast

from django.db.models import (
    Aggregate,
    BooleanField,
    Case,
    Count,
    DateTimeField,
    F,
    Field,
    FloatField,
    IntegerField,
    Q,
    QuerySet,
    Sum,
    Value,
    When,
)
from django.db.models.functions import Coalesce
from django.utils import timezone

from accounts.models import District, School
from accounts.permissions import Capability, Permissions
from reports.models import GradeRate, SchoolRate
from reports.progress_pace import last_school_day
from reports.rate_lines import RateLine, RateTotal, SchoolRateLine, is_open
from reports.suppression import (
    SMALLEST_SCHOOL,
    hidden_grades,
    hides_counted_school,
    hides_school,
    last_start_to_show,
    sizes_for_hiding,
    today_to_show,
)
from survey.administrations import administrations_for
from survey.models import Administration, Denominator, Role
from survey.school_calendar import MONDAY_TO_FRIDAY, SchoolCalendar

# Sorts rows without a number behind all that have one.
LAST = 10**9
# Prefix of the totals in a query, which else would have the names of columns.
SUM = "sum_"


def administrations_with_rates(permissions: Permissions) -> list[Administration]:
    """Return the administrations whose rates may be seen, open ones first.

    Among the others, those that opened or will open closest to today. 1 statement.
    """
    found = administrations_for(permissions, Capability.SEE_RATES)
    now = timezone.now()
    return sorted(
        found.select_related("wave", "roll_up", "published__survey").defer(
            "published__definition", "published__survey__source"
        ),
        key=lambda administration: (
            # False sorts before True: open, then closed, then upcoming.
            not is_open(administration, now),
            administration.opens_at > now,
            abs((now - administration.opens_at).total_seconds()) // 60,
            list(Role).index(Role(administration.role)),
            administration.pk,
        ),
    )


# Schools ---------------------------------------------------------------------


class VisibleRate(Protocol):
    """A row of `rates_for`; the `shown_` columns are None where it is hidden."""

    school: School
    eligible: int
    students: int | None
    percent: int | None
    needed: int | None
    waiting: int
    opted_out: int
    unit: str
    hidden: bool
    shown_started: int | None
    shown_finished: int | None
    exact: bool
    shown_today: int | None
    shown_last: datetime | None


def rates_for(
    permissions: Permissions, administration: Administration
) -> QuerySet[SchoolRate]:
    """Return the schools the user may see, as `VisibleRate` rows."""
    smallest = SMALLEST_SCHOOL[administration.role]
    is_small = Q(eligible__lt=smallest) | Q(at_opening__gt=0, at_opening__lt=smallest)
    is_count = administration.denominator == Denominator.COUNT
    too_few = is_small & (Q(started__lt=smallest) if is_count else Q(eligible__gt=0))
    seen = permissions.places(Capability.SEE_RESPONSES)
    sees_all = Q(district_id__in=seen.districts) | Q(school_id__in=seen.schools)
    if seen.state or administration.coordinators_see_finished:
        # True for every row: `Q()` would not be allowed in `When`.
        sees_all = Q(pk__isnull=False)
    hidden = Case(
        When(sees_all, then=Value(False)),
        When(too_few, then=Value(True)),
        default=Value(False),
        output_field=BooleanField(),
    )

    def unless_hidden(column: str, kind: Field | None = None) -> Case:
        return Case(
            When(hidden=True, then=None),
            default=F(column),
            output_field=kind or IntegerField(),
        )

    rows = _rows_in_scope(permissions, administration).annotate(
        hidden=hidden,
        exact=Case(When(sees_all, then=Value(True)), default=Value(False)),
    )
    rows = rows.annotate(
        shown_started=unless_hidden("started"),
        shown_finished=unless_hidden("finished"),
        shown_today=unless_hidden("finished_today"),
        shown_last=unless_hidden("last_started_at", DateTimeField()),
    )
    return _with_order_columns(rows, administration)


def _with_order_columns(
    rows: QuerySet[SchoolRate], administration: Administration
) -> QuerySet[SchoolRate]:
    """Add columns for sorting and filtering, made of the `shown_` columns alone.

    The position of a school in a sorted list would give a hidden number away.
    """
    left_to_start = Q(shown_started__lt=F("eligible"))
    if administration.denominator == Denominator.COUNT:
        # Nobody knows that everyone has started.
        left_to_start = Q(shown_started__isnull=False)
    return rows.annotate(
        # Not NULL, which PostgreSQL and SQLite sort to different ends.
        rate_order=Case(
            When(shown_finished=None, then=Value(-1.0)),
            When(eligible=0, then=Value(-1.0)),
            default=F("shown_finished") * 1.0 / F("eligible"),
            output_field=FloatField(),
        ),
        missing_order=Case(
            When(Q(shown_finished=None) | Q(needed=None), then=Value(LAST)),
            When(needed__lte=F("shown_finished"), then=Value(LAST)),
            default=F("needed") - F("shown_finished"),
            output_field=IntegerField(),
        ),
        # Schools with people left to start come first, the longest without a
        # start at the top.
        quiet_order=Case(
            When(left_to_start, then=Value(0)),
            default=Value(1),
            output_field=IntegerField(),
        ),
        quiet_since=Coalesce("shown_last", Value(administration.opens_at)),
    )


def _rows_in_scope(
    permissions: Permissions, *administrations: Administration
) -> QuerySet[SchoolRate]:
    rows = SchoolRate.objects.filter(administration__in=administrations)
    own = permissions.places(Capability.SEE_RATES)
    if own.state:
        return rows
    return rows.filter(Q(district_id__in=own.districts) | Q(school_id__in=own.schools))


def people_by_administration(
    permissions: Permissions,
    administrations: Iterable[Administration],
    school: School | None = None,
) -> dict[int, int]:
    """Count the people of the user's schools, or of one school. 1 statement."""
    rows = _rows_in_scope(permissions, *administrations)
    if school is not None:
        rows = rows.filter(school=school)
    sums = rows.order_by().values_list("administration").annotate(Sum("eligible"))
    return dict(sums)


# Values of the filter "Show": label and condition. The keys are in addresses.
STATES = {
    "below": ("Below the threshold", Q(missing_order__lt=LAST)),
    "reached": ("Threshold reached", Q(needed__lte=F("shown_finished"))),
    "quiet": ("No start today", Q(quiet_order=0)),
    "few": ("Too few for a report", Q(needed=None, eligible__gt=0)),
    "nobody": ("No one invited yet", Q(eligible=0)),
}
# Other labels where schools supply numbers.
COUNT_LABELS = {"few": "Threshold unknown", "nobody": "No count yet"}


def in_state(
    rows: QuerySet[SchoolRate],
    state: str,
    calendar: SchoolCalendar = MONDAY_TO_FRIDAY,
) -> QuerySet[SchoolRate]:
    """Filter rows of `rates_for` by a key of STATES; any other text keeps all."""
    if state not in STATES:
        return rows
    rows = rows.filter(STATES[state][1])
    if state == "quiet":
        # On a weekend, schools that had a start on Friday are not quiet.
        latest = last_school_day(timezone.localdate(), calendar)
        day = datetime.combine(latest, time.min)
        midnight = timezone.make_aware(day)
        rows = rows.filter(Q(shown_last=None) | Q(shown_last__lt=midnight))
    return rows


def school_line(
    rate: SchoolRate,
    administration: Administration,
    calendar: SchoolCalendar = MONDAY_TO_FRIDAY,
) -> SchoolRateLine:
    """Make the line of a row of `rates_for` (with its school)."""
    row = cast("VisibleRate", rate)
    return SchoolRateLine(
        name=row.school.name,
        eligible=row.eligible,
        started=row.shown_started,
        finished=row.shown_finished,
        school=row.school,
        administration=administration,
        students=row.students,
        needed=None if row.hidden else row.needed,
        today=today_to_show(row.shown_today, exact=row.exact),
        last_started_at=last_start_to_show(row.shown_last, exact=row.exact),
        is_exact=row.exact,
        waiting=row.waiting,
        opted_out=row.opted_out,
        unit=row.unit,
        percent=row.percent,
        calendar=calendar,
    )


def lines_of_school(
    permissions: Permissions,
    school: School,
    administrations: Iterable[Administration],
    calendar: SchoolCalendar = MONDAY_TO_FRIDAY,
) -> list[SchoolRateLine]:
    """Make a school's lines in several administrations, in their order. 1 statement."""
    administrations = list(administrations)
    rows = SchoolRate.objects.filter(school=school, administration__in=administrations)
    by_administration = {row.administration_id: row for row in rows}
    lines = []
    for administration in administrations:
        row = by_administration.get(administration.pk)
        if row is None:
            continue
        sizes = (row.eligible, row.at_opening)
        if administration.denominator == Denominator.COUNT:
            is_small = hides_counted_school(administration.role, row.started, *sizes)
        else:
            is_small = hides_school(administration.role, *sizes)
        exact = sees_all_of(permissions, administration, school)
        hidden = is_small and not exact
        last = last_start_to_show(row.last_started_at, exact=exact)
        lines.append(
            SchoolRateLine(
                name=school.name,
                eligible=row.eligible,
                started=None if hidden else row.started,
                finished=None if hidden else row.finished,
                school=school,
                administration=administration,
                students=row.students,
                needed=None if hidden else row.needed,
                today=(
                    None if hidden else today_to_show(row.finished_today, exact=exact)
                ),
                last_started_at=None if hidden else last,
                is_exact=exact,
                waiting=row.waiting,
                opted_out=row.opted_out,
                unit=row.unit,
                percent=row.percent,
                calendar=calendar,
            )
        )
    return lines


def grade_lines(
    grades: Iterable[GradeRate], *, school_is_hidden: bool, sees_all: bool
) -> list[RateLine]:
    """Make the lines of a school's grades, in the given order.

    Empty if the roster has no grades: then the school's line has the same
    numbers.
    """
    rows = list(grades)
    # People without a grade are one group, with an empty name.
    if [row.grade for row in rows] == [""]:
        return []
    hidden: set[int] = set()
    if school_is_hidden:
        hidden = set(range(len(rows)))
    elif not sees_all:
        hidden = hidden_grades(
            sizes_for_hiding([(row.eligible, row.at_opening) for row in rows])
        )
    return [
        RateLine(
            name=row.grade or "No grade",
            eligible=row.eligible,
            started=None if position in hidden else row.started,
            finished=None if position in hidden else row.finished,
        )
        for position, row in enumerate(rows)
    ]


def sees_all_of(
    permissions: Permissions, administration: Administration, school: School
) -> bool:
    """Return whether nothing about this school is hidden from the user."""
    seen = permissions.places(Capability.SEE_RESPONSES)
    return administration.coordinators_see_finished or seen.has_school(school)


# Totals ----------------------------------------------------------------------


def districts_for(
    permissions: Permissions, administration: Administration
) -> QuerySet[District]:
    """Return whole districts with their totals.

    Only districts whose responses the user may see: elsewhere, the total minus
    the other schools would be the number of a school that is hidden.
    """
    seen = permissions.districts(Capability.SEE_RESPONSES)
    own = permissions.districts(Capability.SEE_RATES).filter(pk__in=seen.values("pk"))
    found = own.filter(rates__administration=administration).annotate(
        **_totals("rates__")
    )
    return found.annotate(
        rate_order=Case(
            When(sum_eligible=0, then=Value(-1.0)),
            default=F("sum_finished_of_eligible") * 1.0 / F("sum_eligible"),
            output_field=FloatField(),
        ),
        reached_order=Case(
            When(sum_reporting=0, then=Value(-1.0)),
            default=F("sum_reached") * 1.0 / F("sum_reporting"),
            output_field=FloatField(),
        ),
    )


def district_line(
    district: District,
    administration: Administration,
    calendar: SchoolCalendar = MONDAY_TO_FRIDAY,
) -> RateTotal:
    """Make the line of a row of `districts_for`."""
    return _rate_total(vars(district), administration, district, calendar)


def total_for(
    permissions: Permissions,
    administration: Administration,
    *,
    district: District | None = None,
    calendar: SchoolCalendar = MONDAY_TO_FRIDAY,
) -> RateTotal | None:
    """Return the total of all schools the user may see. 1 statement.

    None if one of them may be hidden: the total would give its number away.
    """
    own = permissions.places(Capability.SEE_RATES)
    seen = permissions.places(Capability.SEE_RESPONSES)
    if seen.state or administration.coordinators_see_finished:
        nothing_hidden = True
    elif district is not None:
        # With the responses of some of its schools, others may be hidden.
        nothing_hidden = seen.has_district(district.pk)
    else:
        nothing_hidden = (
            not own.state
            and own.districts <= seen.districts
            and own.schools <= seen.schools
        )
    if not nothing_hidden:
        return None
    rows = _rows_in_scope(permissions, administration)
    if district is not None:
        rows = rows.filter(district=district)
    sums = rows.aggregate(**_totals(""))
    return _rate_total(sums, administration, None, calendar)


def _rate_total(
    sums: Mapping[str, int],
    administration: Administration,
    district: District | None,
    calendar: SchoolCalendar,
) -> RateTotal:
    named = {
        name.removeprefix(SUM): total
        for name, total in sums.items()
        if name.startswith(SUM)
    }
    return RateTotal(administration, **named, district=district, calendar=calendar)


def _totals(rates: str) -> dict[str, Aggregate | Coalesce]:
    """Aggregates for the fields of RateTotal; `rates` is the path to the rates."""

    def total(column: str) -> Coalesce:
        return Coalesce(Sum(f"{rates}{column}"), 0)

    def count(condition: Q | None = None) -> Count:
        return Count(f"{rates}id", filter=condition)

    needed, finished = F(f"{rates}needed"), F(f"{rates}finished")
    before_today = finished - F(f"{rates}finished_today")
    # Comparisons with a NULL threshold are never true, so schools without
    # one are left out of these sums.
    below = Q(**{f"{rates}needed__gt": finished})
    below_this_morning = Q(**{f"{rates}needed__gt": before_today})
    return {
        "sum_eligible": total("eligible"),
        "sum_started": total("started"),
        "sum_finished": total("finished"),
        "sum_finished_of_eligible": Coalesce(
            Sum(f"{rates}finished", filter=Q(**{f"{rates}eligible__gt": 0})), 0
        ),
        "sum_needed": total("needed"),
        "sum_missing": Coalesce(Sum(needed - finished, filter=below), 0),
        "sum_shortfall": Coalesce(
            Sum(needed - before_today, filter=below_this_morning), 0
        ),
        "sum_today": Coalesce(
            Sum(f"{rates}finished_today", filter=below_this_morning), 0
        ),
        "sum_waiting": total("waiting"),
        "sum_opted_out": total("opted_out"),
        "sum_schools": count(),
        "sum_reporting": count(Q(**{f"{rates}needed__isnull": False})),
        "sum_reached": count(Q(**{f"{rates}needed__lte": finished})),
        "sum_not_invited": count(Q(**{f"{rates}eligible": 0})),
    }
