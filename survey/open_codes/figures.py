"""Figures of open codes: how they fill, and signs of abuse."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db import connection
from django.db.models import (
    BigIntegerField,
    Count,
    Exists,
    Expression,
    F,
    Func,
    OuterRef,
    Q,
    QuerySet,
    Subquery,
    Window,
)
from django.db.models.functions import Coalesce, Lag

from accounts.permissions import Capability, Permissions
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
from survey.open_codes.limits import (
    LEAST_UNUSUAL,
    students_of_school,
    unusual_number,
)

# As in `reports.suppression`: of fewer people, it would be known who has finished.
SMALLEST_GROUP = 10
# A family has a few children. Six starts on one device within ten minutes are a
# program, or a tablet that is handed around.
BURST = 6
BURST_WITHIN = timedelta(minutes=10)


@dataclass(frozen=True, slots=True)
class CrowdedPeriod:
    """Ten minutes of the clock in which unusually many people began with a code."""

    began_at: datetime
    starts: int
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
    # The most crowded one, if any is unusual.
    crowded: CrowdedPeriod | None = None


def figures_of(
    codes: Sequence[OpenCode], permissions: Permissions
) -> dict[int, CodeFigures]:
    """Return the figures of these codes, by their keys.

    3 statements, 1 more for users who see signs of abuse, and 1 more if there are any.

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
            bursts=bursts.get(code.pk),
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
    if connection.vendor == "postgresql":
        # A function that runs as the tables' owner: migration 0029.
        return Func(
            "pk",
            function="survey_answered_starts",
            output_field=BigIntegerField(),
        )
    answers = Response.objects.filter(
        administration_id=OuterRef("administration_id"), respondent_id=OuterRef("pk")
    )
    return _number(Respondent.objects.filter(Exists(answers)))


def count_bursts(codes: Sequence[int]) -> dict[int, int]:
    """Return on how many devices many people began in a short time. 1 statement.

    Every code is in the result.
    """
    if not codes:
        return {}
    starts = DeviceLogin.objects.filter(
        respondent__open_code__in=codes, first_at=F("respondent__started_at")
    ).annotate(
        earlier=Window(
            Lag("first_at", BURST - 1),
            partition_by=["respondent__open_code", "device"],
            order_by="first_at",
        )
    )
    in_bursts = starts.filter(earlier__gte=F("first_at") - BURST_WITHIN)
    devices = set(in_bursts.values_list("respondent__open_code", "device"))
    counts = dict.fromkeys(codes, 0)
    for code, _ in devices:
        counts[code] += 1
    return counts


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
    """Return the most crowded ten minutes of the codes that have unusual ones.

    1 statement that counts all starts of these codes, and 1 for the sizes of schools
    if there is anything to judge.
    """
    people = Respondent.objects.filter(open_code__in=codes.order_by().values("pk"))
    periods = (
        people.annotate(period=_period_of("started_at"))
        .values("open_code", "period")
        .annotate(
            starts=Count("pk"),
            finished=Count("pk", filter=Q(completed_at__isnull=False)),
        )
        .filter(starts__gte=LEAST_UNUSUAL)
        .order_by("starts")
    )
    # The last of a code is the most crowded.
    busiest = {row["open_code"]: row for row in periods}
    if not busiest:
        return {}
    sizes = OpenCode.objects.filter(pk__in=busiest).values_list(
        "pk", "administration__role", students_of_school()
    )
    crowded = {}
    for pk, role, students in sizes.order_by():
        row, unusual = busiest[pk], unusual_number(role, students)
        if row["starts"] >= unusual:
            began_at = datetime.fromtimestamp(row["period"] * 600, UTC)
            crowded[pk] = CrowdedPeriod(
                began_at, row["starts"], row["finished"], unusual
            )
    return crowded


def _period_of(name: str) -> Func:
    """Return the number of a moment's ten minutes of the clock, since 1970."""
    seconds = {
        "postgresql": "extract(epoch FROM %(expressions)s)",
        # Doubled: once for this template, once for the parameters.
        "sqlite": "CAST(strftime('%%%%s', %(expressions)s) AS integer)",
    }[connection.vendor]
    template = f"CAST(floor({seconds} / 600) AS bigint)"
    return Func(name, template=template, output_field=BigIntegerField())
