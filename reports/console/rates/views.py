"""Response rates in the console: by district, by school, and of one school."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter

from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.cache import patch_vary_headers
from django.utils.text import slugify
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from accounts.access import needs
from accounts.audit import record
from accounts.http import StaffRequest, attachment
from accounts.models import District, School
from accounts.permissions import Capability
from reports.console.rates import csv_files
from reports.console.rates.board import (
    EmptyColumns,
    RatesBoard,
    district_listing,
    role_panels,
    school_curves,
    school_listing,
    total_with_last_week,
    with_last_week,
)
from reports.console.rates.charts import curve_context
from reports.console.rates.plots import place_bars
from reports.console.schools import coordinators_of
from reports.models import Curve
from reports.rates import time_series, visible_rates, visible_totals
from reports.rates.declines import declines_in_words
from reports.rates.freshness import groups_in_words
from reports.rates.progress_pace import calendars_for
from reports.rates.rate_lines import RateTotal, SchoolRateLine, is_open
from survey.fieldwork.open_codes.figures import crowded_periods, watched_codes
from survey.models import Administration

# In the query: the chart of days as a file.
PLOT = "svg"


@needs(Capability.SEE_RATES)
@require_safe
def rates_board(request: StaffRequest) -> HttpResponse:
    """List the districts, or redirect users with a single place to its page."""
    places = request.permissions.places(Capability.SEE_RATES)
    # A list with one row would be a detour. Users with districts and schools
    # of their own stay here.
    if not places.state:
        if len(places.districts) == 1 and not places.schools:
            return _redirect(request, "rates_district", *places.districts)
        if not places.districts and len(places.schools) == 1:
            return _redirect(request, "rates_school", *places.schools)
        if not places.districts:
            return _redirect(request, "rates_schools")
    board = RatesBoard.from_request(request)
    if board is None:
        return render(request, "reports/rates_nothing.html")
    chosen = board.chosen
    calendars = calendars_for([chosen])
    listing = district_listing(request, chosen)
    lines = [
        visible_totals.district_line(row, chosen, calendars.of(row.pk))
        for row in listing.page.object_list
    ]
    total = visible_totals.total_for(
        request.permissions, chosen, calendar=calendars.of(None)
    )
    # The stored curve is that of all districts together.
    of_all = total if places.state else None
    context = {
        **_list_context(request, board, lines, (total, of_all), Curve.Level.ALL, 0),
        "filter_form": board.filter_form(request),
    }
    if PLOT in request.GET:
        return _plot_file(request, chosen, context)
    return listing.render("reports/rates_districts.html", context)


@needs(Capability.SEE_RATES)
@require_safe
def rates_schools(request: StaffRequest, pk: int | None = None) -> HttpResponse:
    """List the schools of a district, or of all."""
    district = None if pk is None else _district_or_404(request, pk)
    board = RatesBoard.from_request(request)
    if board is None:
        return render(request, "reports/rates_nothing.html")
    chosen = board.chosen
    places = request.permissions.places(Capability.SEE_RATES)
    calendars = calendars_for([chosen])
    calendar = calendars.of(district.pk if district else None)
    total = visible_totals.total_for(
        request.permissions, chosen, district=district, calendar=calendar
    )
    # Only the lines of one page are made.
    listing = school_listing(request, chosen, district, calendar)
    lines = [
        visible_rates.school_line(row, chosen, calendars.of(row.school.district_id))
        for row in listing.page.object_list
    ]
    lines = with_last_week(lines, school_curves(lines))
    if district is not None:
        level, place, figures = Curve.Level.DISTRICT, district.pk, total
    else:
        # The stored curve is that of the whole state.
        level, place, figures = Curve.Level.ALL, 0, total if places.state else None
    context = {
        **_list_context(request, board, lines, (total, figures), level, place),
        "district": district,
        "sees_districts": places.state or len(places.districts) > 1,
        "can_remind": is_open(chosen)
        and request.GET.get("state") == "below"
        and bool(lines)
        and request.permissions.has(Capability.MANAGE_STAFF),
        "filter_form": board.filter_form(request, with_state=True),
    }
    if PLOT in request.GET:
        return _plot_file(request, chosen, context, district=district)
    return listing.render("reports/rates_schools.html", context)


def _list_context(
    request: StaffRequest,
    board: RatesBoard,
    lines: Sequence[RateTotal] | Sequence[SchoolRateLine],
    totals: tuple[RateTotal | None, RateTotal | None],
    level: str,
    place: int,
) -> dict[str, object]:
    """Return the context of a list, with the chart of its place.

    `totals` are that of the user's schools, and that of the place if it may be shown.
    """
    chosen = board.chosen
    total, figures = totals
    figures, curves = total_with_last_week(figures, level, place)
    total = figures or total
    schools = request.permissions.schools(Capability.SEE_RATES)
    if level == Curve.Level.DISTRICT:
        schools = schools.filter(district=place)
    return {
        **board.context(),
        # Totals are only made for users who see all of their schools.
        **curve_context(
            request, chosen, level, place, figures, sees_all=True, curves=curves
        ),
        "total": total,
        "declined": declines_in_words(chosen, schools) if total else "",
        "groups": groups_in_words(chosen, total.waiting if total else 0),
        "lines": lines,
        "empty": EmptyColumns.of(chosen, lines),
        "places": place_bars(lines),
    }


@needs(Capability.SEE_RATES)
@require_safe
def rates_school(request: StaffRequest, pk: int) -> HttpResponse:
    """Show each role of the wave in one school, and its grades."""
    permissions = request.permissions
    school = _school_or_404(request, pk)
    board = RatesBoard.from_request(request, school)
    if board is None:
        return render(request, "reports/rates_nothing.html")
    calendars = calendars_for(board.same_wave)
    curves = time_series.curves_of(board.same_wave, Curve.Level.SCHOOL, [school.pk])
    panels = role_panels(
        permissions, school, board.same_wave, calendars.of(school.district_id), curves
    )
    # The chosen one comes first: its days are below, and a link may have named it.
    panels.sort(key=lambda panel: panel.administration != board.chosen)
    chosen = panels[0]
    codes = watched_codes(permissions, board.chosen).filter(school=school)
    crowded = sorted(
        crowded_periods(codes).values(), key=attrgetter("answered", "starts")
    )
    context = {
        **board.context(),
        **curve_context(
            request,
            board.chosen,
            Curve.Level.SCHOOL,
            school.pk,
            chosen.line,
            sees_all=visible_rates.sees_all_of(permissions, board.chosen, school),
            curves=curves,
        ),
        "school": school,
        "manages_staff": permissions.has(Capability.MANAGE_STAFF),
        "coordinators": coordinators_of(permissions, [school]).get(school.pk, []),
        "crowded": crowded[-1] if crowded else None,
        "panels": panels,
        "filter_form": board.filter_form(request),
        "has_choices": len(board.choices) > 1,
        "sees_people": permissions.places(Capability.SEE_IDENTITIES).has_school(school),
        "sees_district": permissions.places(Capability.SEE_RATES).has_district(
            school.district_id
        ),
        "layout": "console/list_alone.html" if request.htmx else "console/base.html",
    }
    if PLOT in request.GET:
        return _plot_file(request, board.chosen, context, school=school)
    response = render(request, "reports/rates_school.html", context)
    patch_vary_headers(response, ("HX-Request",))
    return response


# Downloads -------------------------------------------------------------------


@needs(Capability.SEE_RATES)
@require_safe
def rates_board_csv(request: StaffRequest) -> HttpResponse:
    chosen = _board_or_404(request).chosen
    rows = district_listing(request, chosen).page.paginator.object_list
    lines = (visible_totals.district_line(row, chosen) for row in rows)
    _record_download(request, chosen)
    return csv_files.districts_csv(lines, chosen)


@needs(Capability.SEE_RATES)
@require_safe
def rates_schools_csv(request: StaffRequest, pk: int | None = None) -> HttpResponse:
    district = None if pk is None else _district_or_404(request, pk)
    chosen = _board_or_404(request).chosen
    calendars = calendars_for([chosen])
    calendar = calendars.of(district.pk if district else None)
    listing = school_listing(request, chosen, district, calendar)
    rows = listing.page.paginator.object_list
    lines = (visible_rates.school_line(row, chosen) for row in rows)
    _record_download(request, chosen, district=district)
    return csv_files.schools_csv(lines, chosen)


@needs(Capability.SEE_RATES)
@require_safe
def rates_school_csv(request: StaffRequest, pk: int) -> HttpResponse:
    school = _school_or_404(request, pk)
    board = _board_or_404(request, school)
    panels = role_panels(request.permissions, school, board.same_wave)
    _record_download(request, board.chosen, school=school)
    return csv_files.school_csv(school, panels, board.chosen)


def _plot_file(
    request: StaffRequest,
    administration: Administration,
    context: dict[str, object],
    district: District | None = None,
    school: School | None = None,
) -> HttpResponse:
    """Answer with the page's chart of days as a file."""
    if not context.get("days_plot"):
        raise Http404
    place = school or district or _("All schools")
    drawing = {
        "plot": context["days_plot"],
        "title": administration.title,
        "subtitle": f"{place}. {_('Day by day')}",
    }
    content = render_to_string("reports/rates_plot.svg", drawing)
    _record_download(request, administration, school, district)
    return attachment(
        content.encode(),
        filename=f"{slugify(administration.name)}-days.svg",
        content_type="image/svg+xml",
    )


def _record_download(
    request: StaffRequest,
    administration: Administration,
    school: School | None = None,
    district: District | None = None,
) -> None:
    record(
        "download response rates",
        by=request.user,
        request=request,
        subject=administration,
        school=school,
        district=district,
    )


def _board_or_404(request: StaffRequest, school: School | None = None) -> RatesBoard:
    board = RatesBoard.from_request(request, school)
    if board is None:
        raise Http404
    return board


def _district_or_404(request: StaffRequest, pk: int) -> District:
    """Return a district that the user sees as a whole."""
    districts = request.permissions.districts(Capability.SEE_RATES)
    return get_object_or_404(districts, pk=pk)


def _school_or_404(request: StaffRequest, pk: int) -> School:
    schools = request.permissions.schools(Capability.SEE_RATES)
    return get_object_or_404(schools.select_related("district"), pk=pk)


def _redirect(request: StaffRequest, route: str, *arguments: int) -> HttpResponse:
    """Redirect with the query, so that a link keeps its search and order."""
    query = request.GET.urlencode()
    address = reverse(route, args=arguments)
    return redirect(f"{address}?{query}" if query else address)
