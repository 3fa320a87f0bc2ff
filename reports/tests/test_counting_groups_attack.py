"""An attacker who edits rosters and calculates never finds out what one person did."""

from __future__ import annotations

import csv
import random
from collections import Counter
from datetime import datetime, time, timedelta
from typing import NamedTuple

import pytest
from django.utils import timezone
from hypothesis import given
from hypothesis import strategies as st

from accounts.tests.logging_in import log_in
from reports.rates import rollup_query, time_series, visible_rates
from reports.rates.counting_groups import GroupChange, common_changes
from reports.rates.rollup import roll_up
from reports.suppression import HIDDEN
from reports.tests.test_counting_groups import (  # noqa: F401
    TEN,
    Roster,
    open_now,
    planned,
    wait_a_day,
)
from survey.models import Identity, Respondent

pytestmark = pytest.mark.django_db


# The rule


class Equations:
    """What is known about sums over people, and what follows from it."""

    PRIME = 2**61 - 1

    def __init__(self):
        self.rows = {}

    def _rest(self, people):
        rest = dict.fromkeys(people, 1)
        for pivot, row in self.rows.items():
            if factor := rest.get(pivot):
                for unknown, value in row.items():
                    rest[unknown] = (rest.get(unknown, 0) - factor * value) % self.PRIME
        return {unknown: value for unknown, value in rest.items() if value}

    def know(self, people):
        rest = self._rest(people)
        if not rest:
            return
        pivot = min(rest)
        inverse = pow(rest[pivot], -1, self.PRIME)
        new = {unknown: value * inverse % self.PRIME for unknown, value in rest.items()}
        for row in self.rows.values():
            if factor := row.pop(pivot, 0):
                for unknown, value in new.items():
                    if unknown != pivot:
                        row[unknown] = (
                            row.get(unknown, 0) - factor * value
                        ) % self.PRIME
        self.rows[pivot] = new

    def reveal(self, people):
        return not self._rest(people)


units = st.sampled_from([(1, "6"), (1, "7"), (1, "8"), (2, None), None])
days = st.lists(
    st.lists(st.tuples(st.integers(0, 99), st.integers(1, 30), units), max_size=5),
    max_size=6,
)


def histories(days, minimum):
    """Return each person's units, day by day: 20 in each, and 20 not invited."""
    places = [(1, "6"), (1, "7"), (1, "8"), (2, None), None]
    wanted = {person: places[person // 20] for person in range(100)}
    counted, cohorts = dict(wanted), dict.fromkeys(wanted, 0)
    history = {person: [place] for person, place in counted.items()}
    for uploads in days:
        for first, many, place in uploads:
            wanted.update((p % 100, place) for p in range(first, first + many))
        changes = [
            GroupChange(person, cohorts[person], counted[person], wanted[person])
            for person in wanted
            if wanted[person] != counted[person]
        ]
        sizes = Counter((cohorts[person], counted[person]) for person in counted)
        for together in common_changes(changes, sizes, minimum):
            cohort = max(cohorts.values()) + 1
            for change in together:
                counted[change.respondent] = change.wanted
                cohorts[change.respondent] = cohort
        for person, place in counted.items():
            history[person].append(place)
    return history


def never_counted(history):
    return not any(history)


@given(days=days)
def test_people_with_the_same_history_are_enough(days):
    counter = Counter(map(tuple, histories(days, TEN).values()))
    assert all(
        many >= TEN for history, many in counter.items() if not never_counted(history)
    )


def test_without_the_minimum_single_people_have_a_history_of_their_own():
    alone = histories([[(0, 1, (1, "8"))]], 1)
    equations = Equations()
    for day in range(2):
        for unit in {places[day] for places in alone.values()} - {None}:
            equations.know(p for p, places in alone.items() if places[day] == unit)
    assert equations.reveal([0])
    assert not equations.reveal([1])


# An attacker


# Kind of figure -> the column of a respondent that it counts.
KINDS = {"started": "started_at", "finished": "completed_at"}


def hours_of_answering():
    """Return three hours of the day before yesterday, and three of yesterday."""
    today = timezone.localdate()
    return [
        timezone.make_aware(datetime.combine(today - timedelta(days), time(hour)))
        for days in (2, 1)
        for hour in (9, 10, 11)
    ]


def answer(administration, hours, dice, *, late):
    """Let most people answer in one of these hours, and `late` alone in the second."""
    quiet = hours[1]
    for person in Respondent.objects.filter(
        administration=administration
    ).select_related("identity"):
        is_late = person.identity.external_id == late
        if not is_late and dice.random() < 0.15:
            continue
        start = quiet if is_late else dice.choice([h for h in hours if h != quiet])
        person.started_at = start
        if is_late or dice.random() < 0.8:
            person.completed_at = start
        person.save(update_fields=["started_at", "completed_at"])


class Did(NamedTuple):
    """Whether one person started or finished in one hour: an unknown number."""

    kind: str
    person: str
    hour: datetime


class Coordinator:
    """Edits the roster, looks at pages and files, and calculates with them."""

    def __init__(self, client, staff, administration, roster, dice):
        self.client = log_in(client, staff.chen)
        self.school, self.administration = staff.lincoln, administration
        self.roster, self.dice = roster, dice
        self.real = list(roster.grades)
        self.target = dice.choice(self.real)
        self.hours = hours_of_answering()
        answer(administration, self.hours, dice, late=self.target)
        roll_up()
        self.known = Equations()
        self.seen = set()

    def act(self):
        dice, roster = self.dice, self.roster
        action = dice.choice(("move", "many", "withdraw", "return", "invent", "wait"))
        if action == "move":
            roster.move([self.target], dice.choice("678"))
        elif action == "many":
            movers = dice.sample(self.real, dice.choice((8, 9, 10, 12, 20)))
            roster.move({*movers, self.target}, dice.choice("678"))
        elif action == "withdraw":
            for person in {
                self.target,
                *dice.sample(self.real, dice.choice((0, 9, 12))),
            }:
                roster.grades.pop(person, None)
        elif action == "return":
            for person in sorted(set(self.real) - roster.grades.keys()):
                roster.grades[person] = dice.choice("678")
        elif action == "invent":
            # Nobody has finished for these.
            roster.add(dice.choice("6789"), dice.choice((1, 9, 15)))
        roster.upload()

    def look(self):
        """Learn every number of the school's page, its charts and the CSV files."""
        members = counted_people(self.administration)
        self.did = what_people_did(self.administration)
        page = f"/console/rates/schools/{self.school.pk}/"
        days = sorted({hour.date() for hour in self.hours})
        charts = [self.client.get(page, {"day": str(day)}).context for day in days]
        [panel] = charts[0]["panels"]
        self.read_line(members, "all", panel.line)
        for line in panel.grades:
            self.read_line(members, line.name, line)
        for row in self.download(f"{page}school.csv"):
            self.read_row(members, row["grade"], row)
        for row in self.download("/console/rates/schools.csv"):
            self.read_row(members, "all", row)
        # Of a day without numbers, the page shows another day.
        shown = [
            chart
            for day, chart in zip(days, charts, strict=True)
            if chart.get("day") == day
        ]
        self.read_charts(members, shown)

    def download(self, address):
        content = self.client.get(address).content.decode("utf-8-sig")
        return list(csv.DictReader(content.splitlines()))

    def read_line(self, members, grade, line):
        if not line.is_hidden:
            numbers = {kind: getattr(line, kind) for kind in KINDS}
            self.read_figures(members, grade, line.eligible, numbers)

    def read_row(self, members, grade, row):
        if row["finished"] != HIDDEN:
            numbers = {kind: int(row[kind]) for kind in KINDS}
            self.read_figures(members, grade, int(row["eligible"]), numbers)

    def read_figures(self, members, grade, eligible, numbers):
        people = [member for member in members if grade in ("all", members[member])]
        assert len(people) == eligible
        for kind, number in numbers.items():
            self.know(kind, people, self.hours, number)

    def read_charts(self, members, charts):
        """Learn from each hour shown, which holds those before that are not."""
        hours = [
            (
                timezone.make_aware(
                    datetime.combine(
                        chart["day"], datetime.strptime(point.label, "%I:%M %p").time()
                    )
                ),
                point,
            )
            for chart in charts
            for point in chart["hours"]
        ]
        for kind in KINDS:
            shown = [(hour, getattr(point, kind)) for hour, point in hours]
            shown = [(hour, number) for hour, number in shown if number]
            waiting = self.hours
            for hour, number in shown:
                is_last = hour == shown[-1][0]
                joined = [
                    person_hour
                    for person_hour in waiting
                    if is_last or person_hour <= hour
                ]
                waiting = waiting[len(joined) :]
                self.know(kind, list(members), joined, number)
            # The chart of days has sums of the same hours, and tells nothing else.
            by_day = Counter()
            for hour, number in shown:
                by_day[hour.date()] += number
            for day in charts[0]["days"] if charts else ():
                assert getattr(day, kind) == by_day[day.day]

    def know(self, kind, people, hours, number):
        """Add that so many of these people did it in one of these hours.

        Nobody did for invented people, and in the second hour only the target
        was in the room.
        """
        done = [self.did.get((kind, person)) for person in people]
        assert sum(hour in hours for hour in done) == number
        unknown = frozenset(
            Did(kind, person, hour)
            for person in set(people) & set(self.real)
            for hour in hours
            if hour != self.hours[1] or person == self.target
        )
        if unknown not in self.seen:
            self.seen.add(unknown)
            self.known.know(unknown)

    def singled_out(self):
        """Return the people whose completion or its hour can be worked out."""
        return [
            person
            for person in self.real
            if any(
                self.known.reveal([Did(kind, person, hour) for hour in some])
                for kind in KINDS
                for some in self.possible_hours(person)
            )
        ]

    def possible_hours(self, person):
        hours = [
            hour
            for hour in self.hours
            if hour != self.hours[1] or person == self.target
        ]
        return [hours, *([hour] for hour in hours)]

    def attack(self, days):
        self.look()
        for _ in range(days):
            self.act()
            roll_up()
            self.look()
            wait_a_day()
            self.look()
        return self.singled_out()


def counted_people(administration):
    """Return the grade in which each person counts, by student ID."""
    frozen = rollup_query.has_frozen_groups([administration])
    people = Identity.objects.filter(administration=administration).select_related(
        "respondent__counted"
    )
    grade_of = {}
    for identity in people:
        person = identity.respondent
        counted = getattr(person, "counted", None) if frozen else None
        if counted is None and person.withdrawn_at is None:
            grade_of[identity.external_id] = person.grade
        elif counted is not None and counted.school_id is not None:
            grade_of[identity.external_id] = counted.grade
    return grade_of


def what_people_did(administration):
    """Return the hour in which each person started and finished."""
    people = Respondent.objects.filter(administration=administration)
    rows = people.values_list("identity__external_id", *KINDS.values())
    return {
        (kind, person): moment
        for person, *moments in rows
        for kind, moment in zip(KINDS, moments, strict=True)
    }


@pytest.fixture
def attacker(client, staff, planned):  # noqa: F811
    def create(seed):
        dice = random.Random(seed)
        roster = Roster(planned, g6=14, g7=12, g8=24)
        roster.upload()
        open_now(planned)
        return Coordinator(client, staff, planned, roster, dice)

    return create


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 5))
def test_an_attacker_finds_nobody(attacker, seed):
    coordinator = attacker(seed)
    assert coordinator.attack(days=8) == []
    # Sums of schools would be one more equation.
    assert not coordinator.download("/console/rates/districts.csv")


@pytest.mark.slow
def test_without_frozen_groups_the_attacker_finds_people(attacker, monkeypatch):
    monkeypatch.setattr(rollup_query, "has_frozen_groups", lambda administrations: [])
    assert attacker(1).attack(days=8)


def test_without_joined_hours_the_chart_shows_who_was_alone(attacker, monkeypatch):
    monkeypatch.setattr(time_series, "join_small_hours", list)
    coordinator = attacker(1)
    coordinator.look()
    assert coordinator.singled_out() == [coordinator.target]


def test_if_the_opening_did_not_count_invented_people_would_show_one(
    client,
    staff,
    planned,  # noqa: F811
    monkeypatch,
):
    """The twin: without the sizes at the opening, 20 invented people show Maya."""
    roster = Roster(planned, g6=20, g8=1)
    roster.upload()
    open_now(planned)
    attacker = Coordinator(client, staff, planned, roster, random.Random(1))
    roster.add("8", 20)
    roster.upload()
    wait_a_day()
    attacker.look()
    maya = [person for person in attacker.real if roster.grades[person] == "8"]
    assert not attacker.singled_out()
    monkeypatch.setattr(
        visible_rates, "sizes_for_hiding", lambda grades: [now for now, _ in grades]
    )
    attacker.look()
    assert attacker.singled_out() == maya
