"""The board of response rates: state, district, school, each a page to keep."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from typing import Any

from django import forms
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.cache import patch_vary_headers
from django.views.decorators.http import require_safe

from accounts.access import needs
from accounts.audit import record
from accounts.console.listing import Listing
from accounts.http import StaffRequest
from accounts.models import District, School
from accounts.permissions import Capability, Permissions
from reports import rates, time_series
from reports.console import rates_files
from reports.models import Curve, GradeRate, SchoolRate
from reports.rate_lines import Line, SchoolLine, Total, is_open
from survey.models import Administration

DISTRICT_SORTS = {
    "name": ("name",),
    "eligible": ("sum_eligible", "name"),
    "started": ("sum_started", "name"),
    "finished": ("sum_finished", "name"),
    "rate": ("rate_order", "name"),
    "reached": ("reached_order", "name"),
    "missing": ("sum_missing", "name"),
}
SCHOOL_SORTS = {
    "name": ("school__name",),
    "district": ("district__name", "school__name"),
    "eligible": ("eligible", "school__name"),
    "started": ("shown_started", "school__name"),
    "finished": ("shown_finished", "school__name"),
    "rate": ("rate_order", "school__name"),
    "missing": ("missing_order", "school__name"),
    "quiet": ("quiet_order", "quiet_since", "school__name"),
}


@needs(Capability.SEE_RATES)
@require_safe
def rates_board(request: StaffRequest) -> HttpResponse:
    """Districts; who has one place only is sent there."""
    permissions = request.permissions
    own = permissions.places(Capability.SEE_RATES)
    if not own.state and len(own.districts) != 1 and not _several_districts(own):
        return _sent_to_schools(request, own.schools)
    if not own.state and len(own.districts) == 1 and not own.schools:
        [only] = own.districts
        return _sent_on(request, "rates_district", only)
    board = Board(request)
    if board.chosen is None:
        return _nothing(request)
    listing = district_listing(request, board.chosen)
    lines = [rates.district_line(row, board.chosen) for row in listing.page.object_list]
    total = rates.summary_for(permissions, board.chosen)
    context = {
        **board.context(),
        **_curve(
            request, board.chosen, Curve.Level.ALL, 0, total if own.state else None
        ),
        "heading": "Response rates",
        "total": total,
        "lines": lines,
        "places": _places_chart(lines),
        "csv": "rates_board_csv",
        "filter_form": board.filter_form(),
    }
    return listing.render("reports/rates_districts.html", context)


@needs(Capability.SEE_RATES)
@require_safe
def rates_schools(request: StaffRequest) -> HttpResponse:
    """All schools that somebody may see, whatever their district."""
    return _schools_page(request, None)


@needs(Capability.SEE_RATES)
@require_safe
def rates_district(request: StaffRequest, pk: int) -> HttpResponse:
    return _schools_page(request, _district(request, pk))


@needs(Capability.SEE_RATES)
@require_safe
def rates_school(request: StaffRequest, pk: int) -> HttpResponse:
    """Each role of the wave, and the grades."""
    permissions = request.permissions
    school = _school(request, pk)
    board = Board(request, school=school)
    if board.chosen is None:
        return _nothing(request)
    panels = school_panels(permissions, school, board.of_the_wave)
    chosen = next(one for one in panels if one.administration == board.chosen)
    context = {
        **board.context(),
        **_curve(request, board.chosen, Curve.Level.SCHOOL, school.pk, chosen.line),
        "school": school,
        "panels": panels,
        "chosen_panel": chosen,
        "choices": board.choices,
        "sees_people": permissions.places(Capability.SEE_IDENTITIES).has_school(school),
        "sees_district": permissions.places(Capability.SEE_RATES).has_district(
            school.district_id
        ),
        "layout": "console/list_alone.html" if request.htmx else "console/base.html",
    }
    response = render(request, "reports/rates_school.html", context)
    patch_vary_headers(response, ("HX-Request",))
    return response


# Downloads -------------------------------------------------------------------


@needs(Capability.SEE_RATES)
@require_safe
def rates_board_csv(request: StaffRequest) -> HttpResponse:
    chosen = _chosen_or_404(request)
    rows = district_listing(request, chosen).page.paginator.object_list
    lines = (rates.district_line(row, chosen) for row in rows)
    _recorded(request, chosen)
    return rates_files.districts_csv(lines, chosen)


@needs(Capability.SEE_RATES)
@require_safe
def rates_schools_csv(request: StaffRequest) -> HttpResponse:
    return _schools_file(request, None)


@needs(Capability.SEE_RATES)
@require_safe
def rates_district_csv(request: StaffRequest, pk: int) -> HttpResponse:
    return _schools_file(request, _district(request, pk))


@needs(Capability.SEE_RATES)
@require_safe
def rates_school_csv(request: StaffRequest, pk: int) -> HttpResponse:
    school = _school(request, pk)
    board = Board(request, school=school)
    if board.chosen is None:
        raise Http404
    panels = school_panels(request.permissions, school, board.of_the_wave)
    _recorded(request, board.chosen, school=school)
    return rates_files.school_csv(school, panels, board.chosen)


def _schools_file(request: StaffRequest, district: District | None) -> HttpResponse:
    chosen = _chosen_or_404(request)
    rows = school_listing(request, chosen, district).page.paginator.object_list
    lines = (rates.school_line(row, chosen) for row in rows)
    _recorded(request, chosen, district=district)
    return rates_files.schools_csv(lines, chosen)


def _recorded(
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


# What a page is made of ------------------------------------------------------


class Board:
    """The administrations to choose from, and the chosen one. 1 statement.

    With a school, those that have a row of it: 2.
    """

    def __init__(self, request: StaffRequest, school: School | None = None) -> None:
        self.request = request
        self.choices = rates.choices(request.permissions)
        if school is not None:
            of_school = set(
                SchoolRate.objects.filter(school=school).values_list(
                    "administration", flat=True
                )
            )
            self.choices = [one for one in self.choices if one.pk in of_school]
        self.chosen = self._asked()

    def _asked(self) -> Administration | None:
        """Raises Http404 for one that is not to be seen."""
        asked = self.request.GET.get("administration", "")
        if not asked:
            return next(iter(self.choices), None)
        for one in self.choices:
            if str(one.pk) == asked:
                return one
        raise Http404

    @property
    def of_the_wave(self) -> list[Administration]:
        """The chosen one, with the other roles that are asked with it."""
        one = self.chosen
        assert one is not None  # noqa: S101
        if one.wave_id is None:
            return [one]
        found = [other for other in self.choices if other.wave_id == one.wave_id]
        return sorted(found, key=lambda other: (_role_order(other), other.name))

    def context(self) -> dict[str, Any]:
        assert self.chosen is not None  # noqa: S101
        return {
            "administration": self.chosen,
            "age": rates.age_of(self.chosen),
            "is_open": is_open(self.chosen),
            "query": f"?administration={self.chosen.pk}",
        }

    def filter_form(self, *, with_state: bool = False) -> forms.Form:
        groups: list[tuple[str, list[tuple[int, str]]]] = []
        by_wave = sorted(self.choices, key=lambda one: str(one.wave or ""))
        for wave, members in groupby(by_wave, key=lambda one: one.wave):
            options = [(one.pk, f"{one.name} ({one.role}s)") for one in members]
            groups.append((str(wave) if wave else "Outside of waves", options))
        chosen = {"administration": self.chosen.pk} if self.chosen else {}
        form = Filter({**self.request.GET.dict(), **chosen})
        form.fields["administration"].choices = groups  # type: ignore[attr-defined]
        if not with_state:
            del form.fields["state"]
        return form


class Filter(forms.Form):
    administration = forms.ChoiceField(required=False)
    state = forms.ChoiceField(
        label="Show",
        required=False,
        choices=[
            ("", "all schools"),
            *((key, words) for key, (words, _) in rates.STATES.items()),
        ],
    )


def _role_order(administration: Administration) -> int:
    return ("student", "teacher", "parent").index(administration.role)


def district_listing(
    request: StaffRequest, administration: Administration
) -> Listing[District]:
    return Listing(
        request,
        rates.districts_for(request.permissions, administration),
        search=("name", "code"),
        sorts=DISTRICT_SORTS,
    )


def school_listing(
    request: StaffRequest, administration: Administration, district: District | None
) -> Listing[SchoolRate]:
    rows = rates.rates_for(request.permissions, administration)
    if district is not None:
        rows = rows.filter(district=district)
    rows = rates.in_state(rows, request.GET.get("state", ""))
    return Listing(
        request,
        rows.select_related("school__district"),
        search=("school__name", "school__code", "district__name"),
        sorts=SCHOOL_SORTS,
    )


def _schools_page(request: StaffRequest, district: District | None) -> HttpResponse:
    permissions = request.permissions
    board = Board(request)
    if board.chosen is None:
        return _nothing(request)
    own = permissions.places(Capability.SEE_RATES)
    total = rates.summary_for(permissions, board.chosen, district=district)
    listing = school_listing(request, board.chosen, district)
    lines = [rates.school_line(row, board.chosen) for row in listing.page.object_list]
    level, place = Curve.Level.ALL, 0
    if district is not None:
        level, place = Curve.Level.DISTRICT, district.pk
    of_all = district is not None or own.state
    context = {
        **board.context(),
        **_curve(request, board.chosen, level, place, total if of_all else None),
        "district": district,
        "sees_state": own.state or len(own.districts) > 1,
        "total": total,
        "lines": lines,
        "places": _places_chart(lines),
        "filter_form": board.filter_form(with_state=True),
    }
    return listing.render("reports/rates_schools.html", context)


@dataclass(frozen=True, slots=True)
class Panel:
    """One role in a school."""

    administration: Administration
    line: SchoolLine
    grades: list[Line]
    age: rates.Age

    @property
    def has_stars(self) -> bool:
        return self.line.is_hidden or any(one.is_hidden for one in self.grades)


def school_panels(
    permissions: Permissions, school: School, administrations: list[Administration]
) -> list[Panel]:
    """2 statements: the roles, and their grades."""
    grades = GradeRate.objects.filter(
        school=school, administration__in=administrations
    ).order_by("administration", "grade")
    by_administration = {
        key: list(rows)
        for key, rows in groupby(grades, key=lambda row: row.administration_id)
    }
    return [
        Panel(
            administration=line.administration,
            line=line,
            grades=rates.grade_lines(
                by_administration.get(line.administration.pk, ()),
                school_is_hidden=line.is_hidden,
                sees_everything=rates.sees_everything(
                    permissions, line.administration, school
                ),
            ),
            age=rates.age_of(line.administration),
        )
        for line in rates.lines_of(permissions, school, administrations)
    ]


def _curve(
    request: StaffRequest,
    administration: Administration,
    level: str,
    place: int,
    figures: Total | SchoolLine | None,
) -> dict[str, Any]:
    """The curve of a place whose figures may be shown. 1 statement, or none."""
    if figures is None or figures.finished is None or not figures.eligible:
        return {"days": None}
    hours = time_series.hours_of(administration, level, place)
    eligible, needed = figures.eligible, figures.needed or 0
    days = time_series.by_day(hours, administration, eligible=eligible, needed=needed)
    day = time_series.day_to_show(hours, request.GET.get("day", ""))
    of_day = time_series.by_hour(hours, day, eligible=eligible) if day else []
    return {
        "days": days,
        "days_chart": time_series.for_chart(days),
        "days_sentence": _sentence(figures, days),
        "busy_days": {hour.date() for hour, *_ in hours},
        "day": day,
        "hours": of_day,
        "hours_chart": time_series.for_chart(of_day),
    }


def _sentence(figures: Total | SchoolLine, days: list[time_series.Point]) -> str:
    """What the chart shows, for who does not see it."""
    told = (
        f"Starts and finishes by day from {days[0].label} to {days[-1].label}:"
        f" {figures.finished:,} of {figures.eligible:,} have finished,"
        f" {figures.rate_words}"
    )
    reached = [point for point in days if point.rate is not None]
    pace = reached[-1].pace if reached else None
    if pace:
        told += f"; the pace asks for {pace:g} % by {reached[-1].label}"
    return f"{told}."


def _places_chart(lines: list[Any]) -> dict[str, Any]:
    """Each place's finished and started beside its threshold, in percent."""
    shown = [one for one in lines if one.finished is not None and one.eligible]
    return {
        "labels": [_name_of(one) for one in shown],
        "finished": [_percent(one.finished, one.eligible) for one in shown],
        "started": [
            _percent(one.started - one.finished, one.eligible) for one in shown
        ],
        "threshold": [
            _percent(one.needed, one.eligible) if one.needed else None for one in shown
        ],
    }


def _name_of(line: SchoolLine | Total) -> str:
    return line.name if isinstance(line, SchoolLine) else str(line.district)


def _percent(part: int, whole: int) -> float:
    return round(100 * part / whole, 1)


# Who may see what ------------------------------------------------------------


def _district(request: StaffRequest, pk: int) -> District:
    """A whole district that somebody sees, with all that is in it."""
    permissions = request.permissions
    return get_object_or_404(permissions.districts(Capability.SEE_RATES), pk=pk)


def _school(request: StaffRequest, pk: int) -> School:
    schools = request.permissions.schools(Capability.SEE_RATES)
    return get_object_or_404(schools.select_related("district"), pk=pk)


def _chosen_or_404(request: StaffRequest) -> Administration:
    chosen = Board(request).chosen
    if chosen is None:
        raise Http404
    return chosen


def _several_districts(own: Any) -> bool:
    return len(own.districts) > 1 or bool(own.districts and own.schools)


def _sent_to_schools(request: StaffRequest, schools: frozenset[int]) -> HttpResponse:
    if len(schools) == 1:
        [only] = schools
        return _sent_on(request, "rates_school", only)
    return _sent_on(request, "rates_schools")


def _sent_on(request: StaffRequest, route: str, *arguments: int) -> HttpResponse:
    query = request.GET.urlencode()
    address = reverse(route, args=arguments)
    return redirect(f"{address}?{query}" if query else address)


def _nothing(request: StaffRequest) -> HttpResponse:
    return render(request, "reports/rates_nothing.html")
