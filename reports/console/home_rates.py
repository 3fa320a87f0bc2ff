"""Read the rates of several administrations for the home page.

The figures are those of the rates pages, with the same numbers hidden.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from django.urls import reverse
from django.utils.translation import gettext as _

from accounts.permissions import Permissions, Places
from reports.models import Curve
from reports.rates import visible_rates, visible_totals
from reports.rates.rate_lines import RateTotal, SchoolRateLine
from reports.rates.time_series import (
    Curves,
    Sparkline,
    curves_of,
    hours_of,
    last_week,
    sparkline,
)
from survey.fieldwork.school_calendar import SchoolCalendars
from survey.models import Administration

# Single schools shown in one administration; the pages of rates have all.
MAX_SCHOOLS = 8


@dataclass(frozen=True, slots=True)
class PlaceRate:
    """The rate of one school, or of whole districts together."""

    name: str
    figures: RateTotal | SchoolRateLine
    # Its page of response rates, and the schools there.
    address: str
    schools_address: str = ""
    sparkline: Sparkline | None = None

    @property
    def is_total(self) -> bool:
        return isinstance(self.figures, RateTotal)


def home_rates(
    permissions: Permissions,
    still_open: Sequence[Administration],
    closed: Sequence[Administration],
    calendars: SchoolCalendars,
) -> dict[int, list[PlaceRate]]:
    """Return the rates of the user's places, by administration.

    First the total of whole districts, and then single schools. With sparklines
    for the open ones. 2 statements for districts or the state, 2 for single schools.
    """
    administrations = [*still_open, *closed]
    whole = visible_totals.whole_places(permissions)
    rates: dict[int, list[PlaceRate]] = {}
    district = next(iter(whole.districts)) if len(whole.districts) == 1 else None
    if whole.state:
        curves = _curves(still_open, Curve.Level.ALL, [0])
    elif district is not None:
        curves = _curves(still_open, Curve.Level.DISTRICT, [district])
    else:
        curves = {}
    totals = visible_totals.totals_of(
        whole, administrations, calendars.of(None if whole.state else district)
    )
    for key, total in totals.items():
        curve = curves.get((key, 0 if whole.state else district or 0))
        rates[key] = [_rate_of_total(permissions, whole, total, curve)]

    lines = visible_rates.lines_of_single_schools(
        permissions, administrations, calendars, without=whole
    )
    shown = {
        line.school.pk
        for rate_lines in lines.values()
        for line in rate_lines[:MAX_SCHOOLS]
    }
    school_curves = _curves(still_open, Curve.Level.SCHOOL, shown)
    for key, rate_lines in lines.items():
        rates.setdefault(key, []).extend(
            _rate_of_school(line, school_curves if line.school.pk in shown else None)
            for line in rate_lines
        )
    return rates


def _curves(
    administrations: Sequence[Administration], level: str, places: Iterable[int]
) -> Curves:
    places = list(places)
    return curves_of(administrations, level, places) if places else {}


def _rate_of_total(
    permissions: Permissions, whole: Places, total: RateTotal, curve: str | None
) -> PlaceRate:
    query = f"?administration={total.administration.pk}"
    name, address = _("All schools"), f"{reverse('rates_board')}{query}"
    schools = f"{reverse('rates_schools')}{query}"
    if not whole.state and len(whole.districts) == 1:
        [district] = whole.districts
        names = {
            membership.district_id: membership.district
            for membership in permissions.memberships
        }
        name = str(names[district])
        address = schools = f"{reverse('rates_district', args=[district])}{query}"
    spark = None
    # The curve is that of all schools, also of some without a number.
    if curve is not None and not total.without_count:
        spark = sparkline(
            hours_of(curve, is_exact=True),
            total.administration,
            eligible=total.eligible,
            needed=total.drawn_threshold,
        )
    if total.pace and (whole.state or len(whole.districts) == 1):
        week = last_week(curve, total.administration, total.calendar, is_exact=True)
        total = replace(total, last_week=week)
    return PlaceRate(name, total, address, schools, spark)


def _rate_of_school(line: SchoolRateLine, curves: Curves | None) -> PlaceRate:
    administration, spark = line.administration, None
    curve = (curves or {}).get((administration.pk, line.school.pk))
    # Without a hidden number: summing the hours would give it away.
    if curve is not None and not line.is_hidden:
        spark = sparkline(
            hours_of(curve, is_exact=line.is_exact),
            administration,
            eligible=line.eligible,
            needed=line.drawn_threshold,
        )
    if line.pace and curves is not None:
        week = last_week(curve, administration, line.calendar, is_exact=line.is_exact)
        line = replace(line, last_week=week)
    address = reverse("rates_school", args=[line.school.pk])
    query = f"?administration={administration.pk}"
    return PlaceRate(line.name, line, f"{address}{query}", sparkline=spark)
