"""Make the parts of the rates pages: filter, lists and panels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from operator import attrgetter
from typing import cast

from django.http import Http404
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts import forms
from accounts.console.listing import Listing
from accounts.http import StaffRequest
from accounts.models import District, School
from accounts.permissions import Permissions
from reports.models import Curve, GradeRate, SchoolRate
from reports.rates import time_series, visible_rates, visible_totals
from reports.rates.freshness import Freshness, freshness_of, groups_in_words
from reports.rates.rate_lines import RateLine, RateTotal, SchoolRateLine, is_open
from survey.fieldwork.school_calendar import MONDAY_TO_FRIDAY, SchoolCalendar
from survey.models import Administration, Denominator, Role

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
    administration = forms.ChoiceField(
        label=gettext_lazy("Survey round"), required=False
    )
    state = forms.ChoiceField(
        label=gettext_lazy("Show"),
        required=False,
        choices=[
            ("", gettext_lazy("All schools")),
            *((key, label) for key, (label, condition) in visible_rates.STATES.items()),
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
            groups.append((str(wave) if wave else _("Without a season"), options))
        form.fields["administration"] = forms.ChoiceField(
            label=_("Survey round"), required=False, choices=groups
        )
        if not with_state:
            del form.fields["state"]
        elif self.chosen.denominator == Denominator.COUNT:
            state = cast(forms.ChoiceField, form.fields["state"])
            state.choices = [
                ("", _("All schools")),
                *(
                    (key, visible_rates.COUNT_LABELS.get(key, label))
                    for key, (label, condition) in visible_rates.STATES.items()
                ),
            ]
        return form


def district_listing(
    request: StaffRequest, administration: Administration
) -> Listing[District]:
    return Listing(
        request,
        visible_totals.districts_for(request.permissions, administration),
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
    def hides_progress(self) -> bool:
        """Return whether the table shows only how many people are invited."""
        return self.line.started == 0 and not is_open(self.administration)

    @property
    def hides_numbers(self) -> bool:
        return self.line.is_hidden or any(grade.is_hidden for grade in self.grades)


def role_panels(
    permissions: Permissions,
    school: School,
    administrations: list[Administration],
    calendar: SchoolCalendar = MONDAY_TO_FRIDAY,
    curves: time_series.Curves | None = None,
) -> list[RolePanel]:
    """Read the rates of a school in several administrations. 2 statements.

    With the `curves` of the school, each line knows its last week.
    """
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
    lines = with_last_week(lines, curves)
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


def with_last_week(
    lines: Sequence[SchoolRateLine], curves: time_series.Curves | None
) -> list[SchoolRateLine]:
    """Add the finishes of the last week to lines that are below their threshold."""
    return [
        replace(
            line,
            last_week=time_series.last_week(
                curves.get((line.administration.pk, line.school.pk)),
                line.administration,
                line.calendar,
                is_exact=line.is_exact,
            ),
        )
        if curves is not None and line.pace
        else line
        for line in lines
    ]


def total_with_last_week(
    total: RateTotal | None, level: str, place: int
) -> tuple[RateTotal | None, time_series.Curves | None]:
    """Add the last week to a total that has a pace; also return the curve read.

    1 statement, or none.
    """
    if total is None or not total.pace or not (total.eligible or total.started):
        return total, None
    administration = total.administration
    curves = time_series.curves_of([administration], level, [place])
    curve = curves.get((administration.pk, place))
    week = time_series.last_week(curve, administration, total.calendar, is_exact=True)
    return replace(total, last_week=week), curves


def school_curves(lines: Sequence[SchoolRateLine]) -> time_series.Curves:
    """Return the curves of the lines of one administration that have a pace.

    1 statement, or none.
    """
    below = [line for line in lines if line.pace]
    if not below:
        return {}
    return time_series.curves_of(
        [below[0].administration],
        Curve.Level.SCHOOL,
        [line.school.pk for line in below],
    )


@dataclass(frozen=True, slots=True)
class EmptyColumns:
    """The columns of a list that have nothing to show on this page."""

    progress: bool
    missing: bool
    pace: bool
    quiet: bool

    @classmethod
    def of(
        cls,
        administration: Administration,
        lines: Sequence[RateTotal] | Sequence[SchoolRateLine],
    ) -> EmptyColumns:
        schools = [line for line in lines if isinstance(line, SchoolRateLine)]
        totals = [line for line in lines if isinstance(line, RateTotal)]
        return cls(
            # A hidden number is something.
            progress=not is_open(administration)
            and all(line.started == 0 for line in lines),
            missing=not any(line.missing for line in totals),
            pace=not any(line.pace for line in lines),
            quiet=not any(
                line.is_hidden or line.quiet or line.last_started_at for line in schools
            ),
        )
