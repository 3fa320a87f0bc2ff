"""The console's home page: how surveys are doing, and the next step of each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Case, Exists, Q, When
from django.http import HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe

from accounts.access import staff
from accounts.console.navigation import sections_for
from accounts.http import StaffRequest
from accounts.permissions import Capability as C
from accounts.permissions import Permissions
from reports.console.attention import needing_attention
from reports.console.home_rates import MAX_SCHOOLS, PlaceRate, home_rates
from reports.console.next_steps import (
    NextStep,
    cards_step,
    next_step,
    without_printing_twice,
)
from reports.publishing.own_schools import own_pages
from reports.rates.freshness import Freshness, freshness_of
from reports.rates.progress_pace import calendars_for
from survey.fieldwork.administrations import administrations_for
from survey.models import Administration, Respondent

# Of each: open, planned and closed ones.
MAX_SHOWN = 6
# Administrations from which those are chosen: closed ones only if there is room.
MAX_CONSIDERED = 30
State = Administration.State


@dataclass(frozen=True, slots=True)
class HomeTask:
    """An administration, its rates, and the next steps of this user."""

    administration: Administration
    title: str
    state: State
    # Where several have the same title, the short name tells them apart.
    shows_name: bool
    # Whether people are invited in the user's own schools.
    has_people: bool
    freshness: Freshness
    rates: Sequence[PlaceRate]
    step: NextStep | None
    # The login cards of a person's own schools, where they are not the next step.
    cards: NextStep | None

    @property
    def days_left(self) -> int:
        """Days until the day on which it closes; 0 on that day."""
        closes = timezone.localdate(self.administration.closes_at)
        return (closes - timezone.localdate()).days

    @property
    def shown_rates(self) -> Sequence[PlaceRate]:
        return self.rates[:MAX_SCHOOLS]

    @property
    def more_schools(self) -> int:
        return len(self.rates) - len(self.shown_rates)


@staff
@require_safe
def console_home(request: StaffRequest) -> HttpResponse:
    """Show the home page. 8 statements; 10 for users with districts and schools.

    Memberships, administrations, people, school days, rates of districts or
    schools, and their curves; roster syncs and uploads that wait. One more where
    cards are to be printed, and for users of single schools 1 for public pages of
    closed administrations.
    """
    permissions, now = request.permissions, timezone.now()
    administrations, invited = home_administrations(permissions, now)
    shown: dict[str, list[Administration]] = {"open": [], "planned": [], "closed": []}
    for administration in administrations:
        state = administration.state_at(now)
        is_open = state not in (State.PLANNED, State.CLOSED)
        shown["open" if is_open else state.value].append(administration)
    more = {state: len(those) - MAX_SHOWN for state, those in shown.items()}
    shown = {state: those[:MAX_SHOWN] for state, those in shown.items()}
    tasks = home_tasks(permissions, shown, invited, now)
    return render(
        request,
        "reports/home.html",
        {
            **tasks,
            "has_tasks": any(tasks.values()),
            "more": more,
            "attention": needing_attention(permissions),
            "counted_at": counted_at(tasks["open"]),
            "draws_thresholds": any(
                rate.sparkline and rate.sparkline.threshold is not None
                for task in tasks["open"]
                for rate in task.shown_rates
            ),
            "pages": [
                page
                for section in sections_for(permissions)
                for page in section.pages
                if page.address != request.path
            ],
            "manages_surveys": permissions.has(C.MANAGE_SURVEYS),
        },
    )


def counted_at(tasks: Sequence[HomeTask]) -> datetime | None:
    """Return when the oldest of the figures shown was counted, unless it is late."""
    moments = [
        task.freshness.as_of
        for task in tasks
        if task.rates and task.freshness.as_of and not task.freshness.is_late
    ]
    return min(moments, default=None)


def home_tasks(
    permissions: Permissions,
    shown: Mapping[str, Sequence[Administration]],
    invited: Mapping[int, bool],
    now: datetime,
) -> dict[str, list[HomeTask]]:
    calendars = calendars_for(shown["open"])
    rates = home_rates(permissions, shown["open"], shown["closed"], calendars)
    public_pages = own_pages(permissions, [each.pk for each in shown["closed"]])
    titles = {
        administration.pk: administration.title
        for administrations in shown.values()
        for administration in administrations
    }
    same_title = Counter(titles.values())

    steps = without_printing_twice(
        permissions,
        {
            administration.pk: next_step(
                permissions,
                administration,
                administration.state_at(now),
                invited.get(administration.pk, True),
                rates.get(administration.pk, ()),
                public_pages.get(administration.pk),
            )
            for administrations in shown.values()
            for administration in administrations
        },
    )

    def task(administration: Administration) -> HomeTask:
        state = administration.state_at(now)
        has_people = invited.get(administration.pk, True)
        places = rates.get(administration.pk, ())
        step = steps[administration.pk]
        return HomeTask(
            administration=administration,
            title=titles[administration.pk],
            state=state,
            shows_name=same_title[titles[administration.pk]] > 1,
            has_people=has_people,
            freshness=freshness_of(administration),
            rates=places,
            step=step,
            cards=cards_step(permissions, administration, state, places, step),
        )

    return {
        state: [task(administration) for administration in administrations]
        for state, administrations in shown.items()
    }


def home_administrations(
    permissions: Permissions, now: datetime
) -> tuple[list[Administration], dict[int, bool]]:
    """Return administrations to choose from, and whether people are invited.

    Open and planned ones, the earliest first, and then closed ones, the latest
    first. 2 statements.
    """
    districts = permissions.places(C.SEE_RATES).districts
    administrations: list[Administration] = list(
        administrations_for(permissions, C.SEE_RATES)
        .annotate(
            rank=Case(
                When(closes_at__lte=now, then=2),
                When(district__in=districts, then=0),
                default=1,
            ),
            next_opening=Case(When(closes_at__gt=now, then="opens_at")),
        )
        .select_related("published__survey", "roll_up", "results_roll_up")
        .defer("published__definition", "published__survey__source")
        .defer("results_roll_up__layout", "results_roll_up__summed")
        .order_by("rank", "next_opening", "-closes_at", "name")[:MAX_CONSIDERED]
    )
    current = [
        administration
        for administration in administrations
        if administration.closes_at > now
    ]
    have_people = have_people_in_own_schools(permissions, current)
    invited = {
        administration.pk: has_people
        for administration, has_people in zip(current, have_people, strict=True)
    }
    # A new survey of the state, without people here yet, comes after those with
    # people and those of the own district.
    current.sort(
        key=lambda administration: (
            not (invited[administration.pk] or administration.district_id in districts),
            administration.opens_at,
            administration.name,
        )
    )
    return current + administrations[len(current) :], invited


def have_people_in_own_schools(
    permissions: Permissions, administrations: Sequence[Administration]
) -> Sequence[bool]:
    """Return for each administration whether people are invited. 1 statement."""
    if not administrations:
        return []
    people = Respondent.objects.on_roster()
    places = permissions.places(C.SEE_RATES)
    if not places.state:
        in_own_schools = Q(school__in=places.schools)
        if places.districts:
            in_own_schools |= Q(school__district__in=places.districts)
        people = people.filter(in_own_schools)
    # The keys are in the statement as numbers. With a reference to another
    # row, the planner would expect people in every administration, and read
    # two million rows to find that a new one has none.
    one_row = Administration.objects.filter(pk=administrations[0].pk)
    [flags] = one_row.order_by().values_list(
        *(
            Exists(people.filter(administration=administration.pk))
            for administration in administrations
        )
    )
    # People come to a module from the state's round.
    return [
        flag or administration.module_of_id is not None
        for flag, administration in zip(flags, administrations, strict=True)
    ]
