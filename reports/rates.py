"""What the board shows of the roll-up, and to whom: see `reports.suppression`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from typing import Any

from django.db.models import (
    BooleanField,
    Case,
    Count,
    DateTimeField,
    F,
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
from reports.models import GradeRate, RollUp, SchoolRate
from reports.progress_pace import last_school_day
from reports.rate_lines import Line, SchoolLine, Total, is_open
from reports.suppression import (
    LEAST_IN_A_SCHOOL,
    hidden_grades,
    hides_school,
)
from survey.administrations import administrations_for
from survey.models import Administration, Role

# Figures that are older are called so.
FRESH_FOR = timedelta(minutes=2)
# Behind whatever has a number.
LAST = 10**9
# How the sums of schools are called in a query, beside the columns they are of.
SUM = "sum_"


# Which administration --------------------------------------------------------


def choices(permissions: Permissions) -> list[Administration]:
    """Those to look at: open ones first, then what was opened last."""
    found = administrations_for(permissions, Capability.SEE_RATES)
    now = timezone.now()
    return sorted(
        found.select_related("wave", "roll_up"),
        key=lambda one: (
            not is_open(one, now),
            one.opens_at > now,
            # The newest first; upcoming ones the other way round.
            abs((now - one.opens_at).total_seconds()) // 60,
            list(Role).index(Role(one.role)),
            one.pk,
        ),
    )


@dataclass(frozen=True, slots=True)
class Age:
    """How old figures are, and whether that has to be said aloud."""

    as_of: datetime | None
    seconds: int
    is_late: bool
    words: str


def age_of(administration: Administration) -> Age:
    now = timezone.now()
    try:
        as_of = administration.roll_up.as_of
    except RollUp.DoesNotExist:
        return Age(None, 0, True, "Not counted yet: the first figures come in a minute")
    old = max(now - as_of, timedelta())
    seconds = int(old.total_seconds())
    late = old > FRESH_FOR
    if late and as_of >= administration.closes_at:
        return Age(as_of, seconds, False, f"Counted after closing, {_ago(old)} ago")
    if late and now < administration.opens_at and old < timedelta(hours=2):
        words = f"Counted {_ago(old)} ago; once an hour until it opens"
        return Age(as_of, seconds, False, words)
    if late:
        words = f"These figures are {_ago(old)} old: counting is late"
        return Age(as_of, seconds, True, words)
    return Age(as_of, seconds, False, f"Counted {_ago(old)} ago")


def _ago(old: timedelta) -> str:
    seconds = int(old.total_seconds())
    for unit, size in (("day", 86400), ("hour", 3600), ("minute", 60)):
        if seconds >= 2 * size:
            return f"{seconds // size} {unit}s"
    return f"{seconds} second{'' if seconds == 1 else 's'}"


# Rows ------------------------------------------------------------------------


def rates_for(
    permissions: Permissions, administration: Administration
) -> QuerySet[SchoolRate]:
    """Schools that somebody may see, with what of them may be shown.

    `shown_…` and what is worked out of it is null where it is hidden: sorting
    or filtering by a hidden number would tell it as well.
    """
    rows = _own(permissions, administration)
    rows = rows.annotate(hidden=_hidden(permissions, administration))
    rows = rows.annotate(
        shown_started=_unless_hidden("started"),
        shown_finished=_unless_hidden("finished"),
        shown_today=_unless_hidden("finished_today"),
        shown_last=_unless_hidden("last_started_at", DateTimeField()),
    )
    return rows.annotate(
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
        # Where somebody could still start, the longest silence first.
        quiet_order=Case(
            When(shown_started__lt=F("eligible"), then=Value(0)),
            default=Value(1),
            output_field=IntegerField(),
        ),
        quiet_since=Coalesce("shown_last", Value(administration.opens_at)),
    )


def _own(
    permissions: Permissions, administration: Administration
) -> QuerySet[SchoolRate]:
    rows = SchoolRate.objects.filter(administration=administration)
    own = permissions.places(Capability.SEE_RATES)
    if own.state:
        return rows
    return rows.filter(Q(district_id__in=own.districts) | Q(school_id__in=own.schools))


def _hidden(permissions: Permissions, administration: Administration) -> Case:
    few = Q(eligible__gt=0, eligible__lt=LEAST_IN_A_SCHOOL[administration.role])
    seen = permissions.places(Capability.SEE_RESPONSES)
    sees = Q(district_id__in=seen.districts) | Q(school_id__in=seen.schools)
    if seen.state or administration.coordinators_see_finished:
        sees = Q(pk__isnull=False)
    return Case(
        When(sees, then=Value(False)),
        When(few, then=Value(True)),
        default=Value(False),
        output_field=BooleanField(),
    )


def _unless_hidden(name: str, kind: Any = None) -> Case:
    return Case(
        When(hidden=True, then=None),
        default=F(name),
        output_field=kind or IntegerField(),
    )


STATES = {
    "below": ("Below the threshold", Q(missing_order__lt=LAST)),
    "reached": ("Threshold reached", Q(needed__lte=F("shown_finished"))),
    "quiet": ("Quiet: no start today", Q(quiet_order=0)),
    "few": ("Too few for a report", Q(needed=None, eligible__gt=0)),
    "nobody": ("Nobody invited yet", Q(eligible=0)),
}


def in_state(rows: QuerySet[SchoolRate], state: str) -> QuerySet[SchoolRate]:
    """Those of one of STATES; all where it is none of them."""
    if state not in STATES:
        return rows
    rows = rows.filter(STATES[state][1])
    if state == "quiet":
        day = datetime.combine(last_school_day(timezone.localdate()), time.min)
        midnight = timezone.make_aware(day)
        rows = rows.filter(Q(shown_last=None) | Q(shown_last__lt=midnight))
    return rows


def districts_for(
    permissions: Permissions, administration: Administration
) -> QuerySet[District]:
    """Whole districts with their sums.

    Of those whose responses the reader may see: the sum of a district less
    its other schools would be the number of one that is hidden.
    """
    seen = permissions.districts(Capability.SEE_RESPONSES)
    own = permissions.districts(Capability.SEE_RATES).filter(pk__in=seen.values("pk"))
    found = own.filter(rates__administration=administration).annotate(
        **_sums("rates__")
    )
    return found.annotate(
        rate_order=Case(
            When(sum_eligible=0, then=Value(-1.0)),
            default=F("sum_finished") * 1.0 / F("sum_eligible"),
            output_field=FloatField(),
        ),
        reached_order=Case(
            When(sum_reporting=0, then=Value(-1.0)),
            default=F("sum_reached") * 1.0 / F("sum_reporting"),
            output_field=FloatField(),
        ),
    )


def summary_for(
    permissions: Permissions,
    administration: Administration,
    *,
    district: District | None = None,
) -> Total | None:
    """Everything that somebody may see, in one line; None where it would tell.

    1 statement.
    """
    if not _may_be_summed(permissions, administration, district):
        return None
    rows = _own(permissions, administration)
    if district is not None:
        rows = rows.filter(district=district)
    sums = rows.aggregate(**_sums(""))
    return Total(administration, **_named(sums))


def _may_be_summed(
    permissions: Permissions, administration: Administration, district: District | None
) -> bool:
    """Whether nothing is hidden in what would be summed."""
    own = permissions.places(Capability.SEE_RATES)
    seen = permissions.places(Capability.SEE_RESPONSES)
    if seen.state or administration.coordinators_see_finished:
        return True
    if district is not None:
        return seen.has_district(district.pk)
    inside = own.districts <= seen.districts and own.schools <= seen.schools
    return not own.state and inside


def _sums(rates: str) -> dict[str, Any]:
    def total(name: str, **only: Any) -> Coalesce:
        condition = Q(**{f"{rates}{key}": value for key, value in only.items()})
        return Coalesce(Sum(f"{rates}{name}", filter=condition), 0)

    needed, finished = F(f"{rates}needed"), F(f"{rates}finished")
    before_today = finished - F(f"{rates}finished_today")
    below = Q(**{f"{rates}needed__gt": finished})
    owing = Q(**{f"{rates}needed__gt": before_today})
    reporting = Q(**{f"{rates}needed__isnull": False})
    return {
        "sum_eligible": total("eligible"),
        "sum_started": total("started"),
        "sum_finished": total("finished"),
        "sum_needed": total("needed"),
        "sum_missing": Coalesce(Sum(needed - finished, filter=below), 0),
        "sum_owed": Coalesce(Sum(needed - before_today, filter=owing), 0),
        "sum_today": Coalesce(Sum(f"{rates}finished_today", filter=owing), 0),
        "sum_schools": Count(f"{rates}id" if rates else "id"),
        "sum_reporting": Count(f"{rates}id" if rates else "id", filter=reporting),
        "sum_reached": Count(
            f"{rates}id" if rates else "id",
            filter=Q(**{f"{rates}needed__lte": finished}),
        ),
        "sum_nobody": Count(
            f"{rates}id" if rates else "id", filter=Q(**{f"{rates}eligible": 0})
        ),
    }


# Lines -----------------------------------------------------------------------


def school_line(rate: SchoolRate, administration: Administration) -> SchoolLine:
    """Of a row of `rates_for`, with its school."""
    found: Any = rate
    return SchoolLine(
        name=rate.school.name,
        eligible=rate.eligible,
        started=found.shown_started,
        finished=found.shown_finished,
        school=rate.school,
        administration=administration,
        students=rate.students,
        needed=None if found.hidden else rate.needed,
        today=found.shown_today,
        last_started_at=found.shown_last,
    )


def lines_of(
    permissions: Permissions, school: School, administrations: Iterable[Administration]
) -> list[SchoolLine]:
    """One school in several administrations, in their order. 1 statement."""
    rows = SchoolRate.objects.filter(
        school=school, administration__in=list(administrations)
    )
    by_administration = {row.administration_id: row for row in rows}
    lines = []
    for one in administrations:
        if (row := by_administration.get(one.pk)) is None:
            continue
        hidden = hides_school(one.role, row.eligible) and not sees_everything(
            permissions, one, school
        )
        lines.append(
            SchoolLine(
                name=school.name,
                eligible=row.eligible,
                started=None if hidden else row.started,
                finished=None if hidden else row.finished,
                school=school,
                administration=one,
                students=row.students,
                needed=None if hidden else row.needed,
                today=None if hidden else row.finished_today,
                last_started_at=None if hidden else row.last_started_at,
            )
        )
    return lines


def district_line(district: District, administration: Administration) -> Total:
    """Of a row of `districts_for`."""
    return Total(administration, **_named(vars(district)), district=district)


def _named(sums: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name.removeprefix(SUM): value
        for name, value in sums.items()
        if name.startswith(SUM)
    }


def grade_lines(
    grades: Iterable[GradeRate], *, school_is_hidden: bool, sees_everything: bool
) -> list[Line]:
    """In order of the grades, with what must be hidden taken out.

    None where the roster has no grades: the school's line says it all.
    """
    rows = list(grades)
    if [row.grade for row in rows] == [""]:
        return []
    hidden: set[int] = set()
    if school_is_hidden:
        hidden = set(range(len(rows)))
    elif not sees_everything:
        hidden = hidden_grades([row.eligible for row in rows])
    return [
        Line(
            name=row.grade or "No grade",
            eligible=row.eligible,
            started=None if position in hidden else row.started,
            finished=None if position in hidden else row.finished,
        )
        for position, row in enumerate(rows)
    ]


def sees_everything(
    permissions: Permissions, administration: Administration, school: School
) -> bool:
    seen = permissions.places(Capability.SEE_RESPONSES)
    return administration.coordinators_see_finished or seen.has_school(school)


def opening_days(administration: Administration) -> tuple[date, date]:
    return (
        timezone.localdate(administration.opens_at),
        timezone.localdate(administration.closes_at),
    )
