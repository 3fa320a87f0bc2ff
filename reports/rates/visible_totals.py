"""Sum response rates over schools, where none of them is hidden from the user.

The total minus the schools that are shown would be the number of a hidden one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import cast

from django.db.models import (
    Aggregate,
    Case,
    Count,
    F,
    FloatField,
    Max,
    Min,
    Q,
    QuerySet,
    Sum,
    Value,
    When,
)
from django.db.models.functions import Coalesce

from accounts.models import District
from accounts.permissions import Capability, Permissions, Places
from reports.models import SchoolRate
from reports.rates.rate_lines import RateTotal
from reports.rates.visible_rates import rows_in_scope
from survey.fieldwork.school_calendar import MONDAY_TO_FRIDAY, SchoolCalendar
from survey.models import Administration

# Prefix of the totals in a query, which else would have the names of columns.
SUM = "sum_"


def districts_for(
    permissions: Permissions, administration: Administration
) -> QuerySet[District]:
    """Return whole districts with their totals.

    Only districts whose responses the user may see: elsewhere, the total minus
    the other schools would be the number of a school that is hidden.
    """
    seen = permissions.districts(Capability.SEE_RESPONSES)
    districts = permissions.districts(Capability.SEE_RATES).filter(
        pk__in=seen.values("pk")
    )
    with_totals = districts.filter(rates__administration=administration).annotate(
        **_totals("rates__")
    )
    return with_totals.annotate(
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


def whole_places(permissions: Permissions) -> Places:
    """Return the state, or the districts, of which the user sees every number."""
    whole = permissions.places(Capability.SEE_RATES, Capability.SEE_RESPONSES)
    return Places(state=whole.state, districts=whole.districts)


def totals_of(
    whole: Places,
    administrations: Iterable[Administration],
    calendar: SchoolCalendar = MONDAY_TO_FRIDAY,
) -> dict[int, RateTotal]:
    """Return the total of all schools of `whole_places`, for each administration.

    1 statement, or none without such places. Administrations without a counted
    school there are left out.
    """
    by_administration = {
        administration.pk: administration for administration in administrations
    }
    if not whole or not by_administration:
        return {}
    rows = SchoolRate.objects.filter(administration__in=by_administration)
    if not whole.state:
        rows = rows.filter(district__in=whole.districts)
    totals = {}
    for sums in rows.order_by().values("administration").annotate(**_totals("")):
        administration = by_administration[sums["administration"]]
        numbers = cast("Mapping[str, int]", sums)
        totals[administration.pk] = _rate_total(numbers, administration, None, calendar)
    return totals


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
    places = permissions.places(Capability.SEE_RATES)
    seen = permissions.places(Capability.SEE_RESPONSES)
    if seen.state or administration.coordinators_see_finished:
        nothing_hidden = True
    elif district is not None:
        # With the responses of some of its schools, others may be hidden.
        nothing_hidden = seen.has_district(district.pk)
    else:
        nothing_hidden = (
            not places.state
            and places.districts <= seen.districts
            and places.schools <= seen.schools
        )
    if not nothing_hidden:
        return None
    rows = rows_in_scope(permissions, administration)
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
    return RateTotal(
        administration, **named, district=district, calendar=calendar, last_week=None
    )


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
    reporting = Q(**{f"{rates}needed__isnull": False})
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
        "sum_awaiting_consent": total("awaiting_consent"),
        "sum_schools": count(),
        "sum_reporting": count(reporting),
        "sum_usual": count(reporting & Q(**{f"{rates}percent__isnull": True})),
        "sum_least_percent": Coalesce(Min(f"{rates}percent", filter=reporting), 0),
        "sum_most_percent": Coalesce(Max(f"{rates}percent", filter=reporting), 0),
        "sum_reached": count(Q(**{f"{rates}needed__lte": finished})),
        "sum_not_invited": count(Q(**{f"{rates}eligible": 0})),
        "sum_without_threshold": count(
            Q(**{f"{rates}eligible__gt": 0, f"{rates}needed__isnull": True})
        ),
    }
