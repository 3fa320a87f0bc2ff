"""Figures of open codes: how they fill, and signs of abuse."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from django.db import connection
from django.db.models import (
    BigIntegerField,
    BooleanField,
    Case,
    Count,
    Exists,
    Expression,
    ExpressionWrapper,
    F,
    Func,
    OuterRef,
    Q,
    QuerySet,
    Subquery,
    Value,
    When,
    Window,
)
from django.db.models.functions import Coalesce, Lag

from accounts.permissions import Capability, Permissions
from survey.fieldwork.open_codes.limits import (
    LEAST_UNUSUAL,
    students_of_school,
    unusual_number,
)
from survey.models import (
    Administration,
    Denominator,
    DeviceLogin,
    OpenCode,
    OpenCodeSeat,
    OpenDecline,
    Respondent,
    Response,
)

# As in `reports.suppression`: of fewer people, it would be known who has finished.
SMALLEST_GROUP = 10
# A family has a few children. Six starts on one device within ten minutes are a
# program, or a tablet that is handed around.
BURST = 6
BURST_WITHIN = timedelta(minutes=10)
# Seconds; migration 0004 counts with the same.
PERIOD = 600


@dataclass(frozen=True, slots=True)
class CrowdedPeriod:
    """Ten minutes of the clock in which unusually many people began with a code."""

    began_at: datetime
    starts: int
    # Of these; the others are in no result.
    answered: int
    finished: int
    # From so many on, it is unusual for the school.
    unusual: int


@dataclass(frozen=True, slots=True)
class CodeFigures:
    starts: int
    # These are None where so few people have begun that this user may not see them.
    answered: int | None
    finished: int | None
    declined: int | None
    # None for unlimited codes.
    seats_left: int | None
    # Only for administrators: % of starts without answers, and devices with bursts.
    empty_percent: int | None = None
    bursts: int | None = None
    # Of these devices, those on which as many of the surveys are finished.
    finished_bursts: int | None = None
    # Of the unusual ones, that with the most finished surveys.
    crowded: CrowdedPeriod | None = None


def figures_of(
    codes: Sequence[OpenCode], permissions: Permissions
) -> dict[int, CodeFigures]:
    """Return the figures of these codes, by their keys.

    2 statements, 2 more for users who see signs of abuse, and 2 more if many began at
    once.

    The codes are of one administration; `school` and `administration` are selected.
    """
    if not codes:
        return {}
    counts = {row["pk"]: row for row in _count_all(codes)}
    too_small = {
        row["school_id"]
        for row in counts.values()
        if 0 < row["starts"] < SMALLEST_GROUP
    }
    sees_numbers = permissions.places(Capability.SEE_RESPONSES)
    sees_abuse = permissions.places(Capability.SEE_AUDIT)
    watched = [code.pk for code in codes if sees_abuse.has_school(code.school)]
    bursts = count_bursts(watched)
    crowded = {}
    if watched:
        crowded = crowded_periods(OpenCode.objects.filter(pk__in=watched))
    figures = {}
    for code in codes:
        row = counts[code.pk]
        starts, answered = row["starts"], row["answered"]
        # If one of a school's codes is hidden, all are: the rest of the school's
        # number would tell it.
        hides = (
            code.school_id in too_small
            and not sees_numbers.has_school(code.school)
            and code.administration.is_completion_confidential
        )
        empty = round(100 * (starts - answered) / starts) if starts else None
        figures[code.pk] = CodeFigures(
            starts=starts,
            answered=None if hides else answered,
            finished=None if hides else row["finished"],
            declined=None if hides else row["declined"],
            seats_left=None if code.limit is None else row["seats_left"],
            empty_percent=empty if code.pk in bursts else None,
            bursts=bursts[code.pk].devices if code.pk in bursts else None,
            finished_bursts=bursts[code.pk].finished if code.pk in bursts else None,
            crowded=crowded.get(code.pk),
        )
    return figures


def _count_all(codes: Sequence[OpenCode]) -> Iterator[Mapping[str, Any]]:
    """Count the starts of all codes of these codes' schools. 2 statements.

    People have one of their own: on a Citus cluster, none of another table may refer to
    them row by row.
    """
    of_schools = OpenCode.objects.filter(
        administration=codes[0].administration_id,
        school__in={code.school_id for code in codes},
    ).order_by()
    people = Respondent.objects.filter(open_code__in=of_schools.values("pk"))
    counted = people.values("open_code").annotate(
        starts=Count("pk"),
        finished=Count("pk", filter=Q(completed_at__isnull=False)),
    )
    begun = {
        row["open_code"]: (row["starts"], row["finished"]) for row in counted.order_by()
    }
    for row in of_schools.values(
        "pk",
        "school_id",
        "empty_starts_deleted",
        answered=_answered(),
        declined=_number(OpenDecline.objects.all()),
        seats_left=_number(OpenCodeSeat.objects.filter(respondent=None)),
    ):
        starts, finished = begun.get(row["pk"], (0, 0))
        # Those without answers are deleted after the closing.
        starts += row["empty_starts_deleted"]
        yield {**row, "starts": starts, "finished": finished}


def _number(rows: QuerySet) -> Coalesce:
    of_code = rows.filter(open_code=OuterRef("pk")).order_by()
    counts = of_code.values("open_code").annotate(n=Count("pk")).values("n")
    return Coalesce(Subquery(counts), 0)


def _answered() -> Expression:
    """Return the number of starts with an answer, for a query of open codes."""
    if connection.vendor == "postgresql":
        # A function that runs as the tables' owner: migration 0004.
        return Func(
            "pk",
            function="survey_answered_starts",
            output_field=BigIntegerField(),
        )
    return _number(_people_with_answers())


def _people_with_answers() -> QuerySet[Respondent]:
    answers = Response.objects.filter(
        administration_id=OuterRef("administration_id"), respondent_id=OuterRef("pk")
    )
    return Respondent.objects.filter(Exists(answers))


class Bursts(NamedTuple):
    """On how many devices many people began in a short time."""

    devices: int
    # Devices on which as many of those who began so have finished.
    finished: int


def count_bursts(codes: Sequence[int]) -> dict[int, Bursts]:
    """Return the bursts of codes by their keys. 1 statement.

    Every code is in the result.
    """
    if not codes:
        return {}
    is_finished = ExpressionWrapper(
        Q(respondent__completed_at__isnull=False), output_field=BooleanField()
    )
    starts = DeviceLogin.objects.filter(
        respondent__open_code__in=codes, first_at=F("respondent__started_at")
    ).annotate(
        is_finished=is_finished,
        earlier=_earlier_on_device(),
        # Among finished surveys, or among the others.
        earlier_alike=_earlier_on_device("is_finished"),
    )
    earliest = F("first_at") - BURST_WITHIN
    bursts = starts.filter(earlier__gte=earliest).values_list(
        "respondent__open_code",
        "device",
        ExpressionWrapper(
            Q(is_finished=True, earlier_alike__gte=earliest),
            output_field=BooleanField(),
        ),
    )
    devices: dict[int, set[str]] = {code: set() for code in codes}
    finished: dict[int, set[str]] = {code: set() for code in codes}
    for code, device, of_finished in bursts:
        devices[code].add(device)
        if of_finished:
            finished[code].add(device)
    return {code: Bursts(len(devices[code]), len(finished[code])) for code in codes}


def _earlier_on_device(*also: str) -> Window:
    """Return when the first of so many starts as make a burst was, up to this one."""
    return Window(
        Lag("first_at", BURST - 1),
        partition_by=["respondent__open_code", "device", *also],
        order_by="first_at",
    )


def watched_codes(
    permissions: Permissions, administration: Administration
) -> QuerySet[OpenCode]:
    """Return the codes of which a user sees signs of abuse."""
    codes = administration.open_codes.all()
    if administration.denominator != Denominator.COUNT:
        # Without a statement.
        return codes.none()
    if not permissions.has(Capability.SEE_AUDIT):
        return codes.none()
    return codes.filter(school__in=permissions.schools(Capability.SEE_AUDIT))


def crowded_periods(codes: QuerySet[OpenCode]) -> dict[int, CrowdedPeriod]:
    """Return ten minutes of each code that has unusual ones: the most finished.

    1 statement that counts all starts of these codes, 1 for the sizes of schools if
    there is anything to judge, and 1 for the answers if anything is unusual.
    """
    people = Respondent.objects.filter(open_code__in=codes.order_by().values("pk"))
    rows = (
        people.annotate(period=_period_of("started_at"))
        .values("open_code", "period")
        .annotate(
            starts=Count("pk"),
            finished=Count("pk", filter=Q(completed_at__isnull=False)),
        )
        .filter(starts__gte=LEAST_UNUSUAL)
        .order_by("finished", "starts")
    )
    periods: defaultdict[int, list[Mapping[str, Any]]] = defaultdict(list)
    for row in rows:
        periods[row["open_code"]].append(row)
    if not periods:
        return {}
    sizes = OpenCode.objects.filter(pk__in=periods).values_list(
        "pk", "administration__role", students_of_school()
    )
    unusual = {pk: unusual_number(role, size) for pk, role, size in sizes.order_by()}
    # An empty crowd, which harms no result, hides none that has finished.
    chosen = {
        pk: row
        for pk, of_code in periods.items()
        for row in of_code
        if row["starts"] >= unusual[pk]
    }
    answered = _count_answered({pk: row["period"] for pk, row in chosen.items()})
    return {
        pk: CrowdedPeriod(
            datetime.fromtimestamp(row["period"] * PERIOD, UTC),
            row["starts"],
            answered.get(pk) or 0,
            row["finished"],
            unusual[pk],
        )
        for pk, row in chosen.items()
    }


def _count_answered(periods: Mapping[int, int]) -> dict[int, int]:
    """Count the starts with an answer in one period of each code. 1 statement."""
    if not periods:
        return {}
    period_of_code = Case(
        *(When(pk=pk, then=Value(period)) for pk, period in periods.items()),
        output_field=BigIntegerField(),
    )
    codes = OpenCode.objects.filter(pk__in=periods).annotate(period=period_of_code)
    return dict(codes.order_by().values_list("pk", _answered_in_crowd()))


def _answered_in_crowd() -> Expression:
    if connection.vendor == "postgresql":
        # A function that runs as the tables' owner: migration 0004.
        return Func(
            "pk",
            "period",
            function="survey_answered_in_crowd",
            output_field=BigIntegerField(),
        )
    people = _people_with_answers().annotate(period=_period_of("started_at"))
    return _number(people.filter(period=OuterRef("period")))


def _period_of(name: str) -> Func:
    """Return the number of a moment's ten minutes of the clock, since 1970."""
    seconds = {
        "postgresql": "extract(epoch FROM %(expressions)s)",
        # Doubled: once for this template, once for the parameters.
        "sqlite": "CAST(strftime('%%%%s', %(expressions)s) AS integer)",
    }[connection.vendor]
    template = f"CAST(floor({seconds} / {PERIOD}) AS bigint)"
    return Func(name, template=template, output_field=BigIntegerField())
