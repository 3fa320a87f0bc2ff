"""Read response rates as one user may see them.

Who may see which numbers is decided by `reports.suppression.rates` and by the user's
permissions. Everything here is read from the roll-up; no people are counted.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import datetime, time
from typing import Protocol, cast

from django.db.models import (
    BooleanField,
    Case,
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
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts.models import School
from accounts.permissions import Capability, Permissions, Places
from reports.models import GradeRate, SchoolRate
from reports.rates.progress_pace import last_school_day
from reports.rates.rate_lines import RateLine, SchoolRateLine, is_open
from reports.suppression.rates import (
    SMALLEST_SCHOOL,
    hidden_grades,
    hides_counted_school,
    hides_school,
    last_start_to_show,
    sizes_for_hiding,
    today_to_show,
)
from survey.fieldwork.administrations import administrations_for
from survey.fieldwork.school_calendar import (
    MONDAY_TO_FRIDAY,
    SchoolCalendar,
    SchoolCalendars,
)
from survey.models import Administration, Denominator, Role

# Sorts rows without a number behind all that have one.
LAST = 10**9


def administrations_with_rates(permissions: Permissions) -> list[Administration]:
    """Return the administrations whose rates may be seen, open ones first.

    Among the others, those that opened or will open closest to today. 1 statement.
    """
    administrations = administrations_for(permissions, Capability.SEE_RATES)
    now = timezone.now()
    return sorted(
        administrations.select_related("wave", "roll_up", "published__survey").defer(
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
    awaiting_consent: int
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
    seen = permissions.places(Capability.SEE_RESPONSES)
    sees_all = Q(district_id__in=seen.districts) | Q(school_id__in=seen.schools)
    if seen.state or administration.coordinators_see_finished:
        # True for every row: `Q()` would not be allowed in `When`.
        sees_all = Q(pk__isnull=False)
    hidden = Case(
        When(sees_all, then=Value(False)),
        When(_is_hidden_school(administration), then=Value(True)),
        default=Value(False),
        output_field=BooleanField(),
    )

    def unless_hidden(column: str, kind: Field | None = None) -> Case:
        return Case(
            When(hidden=True, then=None),
            default=F(column),
            output_field=kind or IntegerField(),
        )

    rows = rows_in_scope(permissions, administration).annotate(
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


def _is_hidden_school(administration: Administration) -> Q:
    """Return the condition of `hides_school` or `hides_counted_school`."""
    smallest = SMALLEST_SCHOOL[administration.role]
    is_small = Q(eligible__lt=smallest) | Q(at_opening__gt=0, at_opening__lt=smallest)
    if administration.denominator == Denominator.COUNT:
        return is_small & Q(started__lt=smallest)
    return is_small & Q(eligible__gt=0)


def schools_with_reports(administration: Administration) -> QuerySet[SchoolRate]:
    """Return the schools that have reached their threshold, as everybody may know."""
    reached = administration.rates.filter(needed__lte=F("finished"))
    return reached.exclude(_is_hidden_school(administration))


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


def rows_in_scope(
    permissions: Permissions, *administrations: Administration
) -> QuerySet[SchoolRate]:
    rows = SchoolRate.objects.filter(administration__in=administrations)
    places = permissions.places(Capability.SEE_RATES)
    if places.state:
        return rows
    return rows.filter(
        Q(district_id__in=places.districts) | Q(school_id__in=places.schools)
    )


def people_by_administration(
    permissions: Permissions,
    administrations: Iterable[Administration],
    school: School | None = None,
) -> dict[int, int]:
    """Count the people of the user's schools, or of one school. 1 statement."""
    rows = rows_in_scope(permissions, *administrations)
    if school is not None:
        rows = rows.filter(school=school)
    sums = rows.order_by().values_list("administration").annotate(Sum("eligible"))
    return dict(sums)


# Values of the filter "Show": label and condition. The keys are in addresses.
STATES = {
    "below": (gettext_lazy("Below the threshold"), Q(missing_order__lt=LAST)),
    "reached": (gettext_lazy("Threshold reached"), Q(needed__lte=F("shown_finished"))),
    "quiet": (gettext_lazy("No start today"), Q(quiet_order=0)),
    "few": (gettext_lazy("Too few for a report"), Q(needed=None, eligible__gt=0)),
    "nobody": (gettext_lazy("No one invited yet"), Q(eligible=0)),
}
# Other labels where schools supply numbers.
COUNT_LABELS = {
    "few": gettext_lazy("Threshold unknown"),
    "nobody": gettext_lazy("No count yet"),
}


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
        # The state's days: see `last_start_to_show`.
        zone = timezone.get_default_timezone()
        latest = last_school_day(timezone.localdate(timezone=zone), calendar)
        midnight = datetime.combine(latest, time.min, zone)
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
        awaiting_consent=row.awaiting_consent,
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
    return lines_of_schools(permissions, [school], administrations, calendar)[school.pk]


def lines_of_schools(
    permissions: Permissions,
    schools: Iterable[School],
    administrations: Iterable[Administration],
    calendar: SchoolCalendar = MONDAY_TO_FRIDAY,
) -> dict[int, list[SchoolRateLine]]:
    """Make the lines of several schools, by school. 1 statement."""
    schools, administrations = list(schools), list(administrations)
    rows = SchoolRate.objects.filter(
        school__in=schools, administration__in=administrations
    )
    row_of = {(row.school_id, row.administration_id): row for row in rows}
    return {
        school.pk: [
            _line_of(
                row_of[school.pk, administration.pk],
                administration,
                school,
                calendar,
                exact=sees_all_of(permissions, administration, school),
            )
            for administration in administrations
            if (school.pk, administration.pk) in row_of
        ]
        for school in schools
    }


def lines_for_everybody(
    administration: Administration,
    calendar: SchoolCalendar = MONDAY_TO_FRIDAY,
    *,
    only: Collection[int] | None = None,
) -> list[SchoolRateLine]:
    """Make the lines of schools, without what only staff may see. 1 statement.

    Of all schools, or of those with these keys.
    """
    rows = SchoolRate.objects.filter(administration=administration)
    if only is not None:
        rows = rows.filter(school__in=only)
    return [
        _line_of(row, administration, row.school, calendar, exact=False)
        for row in rows.select_related("school__district")
    ]


def lines_of_single_schools(
    permissions: Permissions,
    administrations: Iterable[Administration],
    calendars: SchoolCalendars,
    *,
    without: Places,
) -> dict[int, list[SchoolRateLine]]:
    """Make the lines of the schools where the user has a role in that school alone.

    By administration, and in each by name. Leaves out the schools of the places
    `without`. 1 statement, or none for users without such schools.
    """
    schools = permissions.places(Capability.SEE_RATES).schools
    by_administration = {
        administration.pk: administration for administration in administrations
    }
    lines: dict[int, list[SchoolRateLine]] = {}
    if without.state or not schools or not by_administration:
        return lines
    rows = (
        SchoolRate.objects.filter(
            school__in=schools, administration__in=by_administration
        )
        .exclude(district__in=without.districts)
        .select_related("school")
        .order_by("school__name", "school_id")
    )
    for row in rows:
        administration = by_administration[row.administration_id]
        calendar = calendars.of(row.district_id)
        exact = sees_all_of(permissions, administration, row.school)
        line = _line_of(row, administration, row.school, calendar, exact=exact)
        lines.setdefault(administration.pk, []).append(line)
    return lines


def _line_of(
    row: SchoolRate,
    administration: Administration,
    school: School,
    calendar: SchoolCalendar,
    *,
    exact: bool,
) -> SchoolRateLine:
    sizes = (row.eligible, row.at_opening)
    if administration.denominator == Denominator.COUNT:
        is_small = hides_counted_school(administration.role, row.started, *sizes)
    else:
        is_small = hides_school(administration.role, *sizes)
    hidden = is_small and not exact
    last = last_start_to_show(row.last_started_at, exact=exact)
    return SchoolRateLine(
        name=school.name,
        eligible=row.eligible,
        started=None if hidden else row.started,
        finished=None if hidden else row.finished,
        school=school,
        administration=administration,
        students=row.students,
        percent=row.percent,
        needed=None if hidden else row.needed,
        today=None if hidden else today_to_show(row.finished_today, exact=exact),
        last_started_at=None if hidden else last,
        is_exact=exact,
        waiting=row.waiting,
        opted_out=row.opted_out,
        awaiting_consent=row.awaiting_consent,
        unit=row.unit,
        calendar=calendar,
    )


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
            name=row.grade or _("No grade"),
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
