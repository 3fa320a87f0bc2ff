"""Make the parts of the rates pages: filter, lists, panels and charts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from typing import cast

from django import forms
from django.http import Http404

from accounts.console.listing import Listing
from accounts.http import StaffRequest
from accounts.models import District, School
from accounts.permissions import Permissions
from reports import time_series, visible_rates
from reports.freshness import Freshness, freshness_of, groups_in_words
from reports.models import GradeRate, SchoolRate
from reports.rate_lines import RateLine, RateTotal, SchoolRateLine, is_open
from reports.suppression import SMALLEST_HOUR, join_small_hours
from reports.time_series import percentage
from survey.models import Administration, Denominator, Role
from survey.school_calendar import MONDAY_TO_FRIDAY, SchoolCalendar

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
# Key in the session: the administration whose rates were shown last.
LAST_CHOICE = "rates_administration"


class RatesFilter(forms.Form):
    administration = forms.ChoiceField(required=False)
    state = forms.ChoiceField(
        label="Show",
        required=False,
        choices=[
            ("", "All schools"),
            *((key, label) for key, (label, _) in visible_rates.STATES.items()),
        ],
    )


def default_choice(
    request: StaffRequest, choices: Sequence[Administration], school: School | None
) -> Administration:
    """Return the administration that the user most likely wants to see.

    The open one that this session looked at last, or else the open one with the
    most of the user's people. A new one of somebody else has none of them yet.
    """
    current = [choice for choice in choices if is_open(choice)] or choices[:1]
    last = request.session.get(LAST_CHOICE)
    for administration in current:
        if administration.pk == last:
            return administration
    if len(current) == 1:
        return current[0]
    people = visible_rates.people_by_administration(
        request.permissions, current, school
    )
    # Of several with as many, the first: `max` keeps the order.
    return max(current, key=lambda choice: people.get(choice.pk, 0))


@dataclass(frozen=True, slots=True)
class RatesBoard:
    """The administrations that a reader can choose from, and the chosen one."""

    choices: Sequence[Administration]
    chosen: Administration

    @classmethod
    def from_request(
        cls, request: StaffRequest, school: School | None = None
    ) -> RatesBoard | None:
        """Read the choices, or return None if there are none. 1 statement.

        With a school, only administrations in this school are offered: 2
        statements. Where several are open and none was chosen before, 1 more.
        Raises Http404 if the address names any other.
        """
        choices = visible_rates.administrations_with_rates(request.permissions)
        if school is not None:
            rates = SchoolRate.objects.filter(school=school)
            of_school = set(rates.values_list("administration", flat=True))
            choices = [choice for choice in choices if choice.pk in of_school]
        wanted = request.GET.get("administration", "")
        if not wanted:
            chosen = default_choice(request, choices, school) if choices else None
            return cls(choices, chosen) if chosen else None
        for administration in choices:
            if str(administration.pk) == wanted:
                if request.session.get(LAST_CHOICE) != administration.pk:
                    request.session[LAST_CHOICE] = administration.pk
                return cls(choices, administration)
        raise Http404

    @property
    def same_wave(self) -> list[Administration]:
        """Return the chosen administration and the other roles of its wave."""
        if self.chosen.wave_id is None:
            return [self.chosen]
        wave, roles = self.chosen.wave_id, list(Role)
        return sorted(
            (choice for choice in self.choices if choice.wave_id == wave),
            key=lambda choice: (roles.index(Role(choice.role)), choice.name),
        )

    def context(self) -> dict[str, object]:
        return {
            "administration": self.chosen,
            "freshness": freshness_of(self.chosen),
            "is_open": is_open(self.chosen),
            "is_count": self.chosen.denominator == Denominator.COUNT,
            "query": f"?administration={self.chosen.pk}",
        }

    def filter_form(
        self, request: StaffRequest, *, with_state: bool = False
    ) -> RatesFilter:
        # Bound, so that the fields show what is in the address.
        form = RatesFilter({**request.GET.dict(), "administration": self.chosen.pk})
        titles = Counter(choice.title for choice in self.choices)
        groups: list[tuple[str, list[tuple[int, str]]]] = []
        by_wave = sorted(self.choices, key=lambda choice: str(choice.wave or ""))
        for wave, members in groupby(by_wave, key=attrgetter("wave")):
            options = []
            for choice in members:
                # The name tells administrations with the same title apart.
                name = "" if titles[choice.title] == 1 else f" ({choice.name})"
                options.append((choice.pk, f"{choice.title}{name}"))
            groups.append((str(wave) if wave else "Without a wave", options))
        form.fields["administration"] = forms.ChoiceField(
            required=False, choices=groups
        )
        if not with_state:
            del form.fields["state"]
        elif self.chosen.denominator == Denominator.COUNT:
            state = cast(forms.ChoiceField, form.fields["state"])
            state.choices = [
                ("", "All schools"),
                *(
                    (key, visible_rates.COUNT_LABELS.get(key, label))
                    for key, (label, _) in visible_rates.STATES.items()
                ),
            ]
        return form


def district_listing(
    request: StaffRequest, administration: Administration
) -> Listing[District]:
    return Listing(
        request,
        visible_rates.districts_for(request.permissions, administration),
        search=("name", "code"),
        sorts=DISTRICT_SORTS,
    )


def school_listing(
    request: StaffRequest,
    administration: Administration,
    district: District | None,
    calendar: SchoolCalendar,
) -> Listing[SchoolRate]:
    rows = visible_rates.rates_for(request.permissions, administration)
    if district is not None:
        rows = rows.filter(district=district)
    rows = visible_rates.in_state(rows, request.GET.get("state", ""), calendar)
    return Listing(
        request,
        rows.select_related("school__district"),
        search=("school__name", "school__code", "district__name"),
        sorts=SCHOOL_SORTS,
    )


@dataclass(frozen=True, slots=True)
class RolePanel:
    """The rates of one role in a school, and of its grades."""

    administration: Administration
    line: SchoolRateLine
    grades: list[RateLine]
    freshness: Freshness
    groups: str

    @property
    def hides_numbers(self) -> bool:
        return self.line.is_hidden or any(grade.is_hidden for grade in self.grades)


def role_panels(
    permissions: Permissions,
    school: School,
    administrations: list[Administration],
    calendar: SchoolCalendar = MONDAY_TO_FRIDAY,
) -> list[RolePanel]:
    """Read the rates of a school in several administrations. 2 statements."""
    grades = GradeRate.objects.filter(
        school=school, administration__in=administrations
    ).order_by("administration", "grade")
    by_administration = {
        key: list(rows)
        for key, rows in groupby(grades, key=lambda row: row.administration_id)
    }
    lines = visible_rates.lines_of_school(
        permissions, school, administrations, calendar
    )
    return [
        RolePanel(
            administration=line.administration,
            line=line,
            grades=visible_rates.grade_lines(
                by_administration.get(line.administration.pk, ()),
                school_is_hidden=line.is_hidden,
                sees_all=visible_rates.sees_all_of(
                    permissions, line.administration, school
                ),
            ),
            freshness=freshness_of(line.administration),
            groups=groups_in_words(line.administration, line.waiting),
        )
        for line in lines
    ]


def curve_context(
    request: StaffRequest,
    administration: Administration,
    level: str,
    place: int,
    figures: RateTotal | SchoolRateLine | None,
    *,
    sees_all: bool,
) -> dict[str, object]:
    """Return the chart by day and by hour, if the figures may be shown.

    Unless the user `sees_all`, hours of few people are joined. 1 statement, or none.
    """
    # Summing the hours would give a hidden number away.
    if figures is None or figures.finished is None:
        return {"days": None}
    eligible, needed = figures.eligible, figures.needed or 0
    if isinstance(figures, RateTotal) and figures.without_count:
        # The hours are those of all schools, also of some without a number.
        eligible = 0
    if not eligible and not figures.started:
        return {"days": None}
    hours = time_series.hours_of(administration, level, place)
    if not sees_all:
        hours = join_small_hours(hours)
    days = time_series.by_day(
        hours,
        administration,
        eligible=eligible,
        needed=needed,
        calendar=figures.calendar,
    )
    day = time_series.day_to_show(hours, request.GET.get("day", ""))
    of_day = time_series.by_hour(hours, day, eligible=eligible) if day else []

    # Describes the chart to people who cannot see it.
    sentence = (
        f"Starts and finishes by day from {days[0].label} to {days[-1].label}:"
        f" {figures.finished:,}"
    )
    if eligible:
        sentence += f" of {eligible:,} have finished, {figures.rate_words}"
    else:
        sentence += " have finished"
    past = [point for point in days if point.rate is not None]
    if past and past[-1].pace:
        sentence += f"; {past[-1].pace:g} % were needed by {past[-1].label}"
    return {
        "days": days,
        "smallest_hour": None if sees_all else SMALLEST_HOUR,
        "days_chart": time_series.chart_data(days),
        "days_sentence": f"{sentence}.",
        "active_days": {hour.date() for hour, *_ in hours},
        "day": day,
        "hours": of_day,
        "hours_chart": time_series.chart_data(of_day),
    }


def places_chart(lines: Sequence[RateTotal] | Sequence[SchoolRateLine]) -> object:
    """Return each place's finished, started and needed people in percent."""
    labels, finished, started, threshold = [], [], [], []
    for line in lines:
        # Hidden schools have no bar, and those without people no rate.
        if line.finished is None or line.started is None or not line.eligible:
            continue
        labels.append(line.name)
        finished.append(percentage(line.finished, line.eligible))
        started.append(percentage(line.started - line.finished, line.eligible))
        threshold.append(
            percentage(line.needed, line.eligible) if line.needed else None
        )
    return {
        "labels": labels,
        "finished": finished,
        "started": started,
        "threshold": threshold,
    }
