"""Collect everything with figures that a reader gets, over HTTP.

Nothing here knows what the product hides or why: files are read as they are sent.
"""

from __future__ import annotations

import csv
import io
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil, floor

from django.conf import settings
from django.test import Client
from django.urls import reverse

from accounts.models import User
from accounts.staff_cookies import PREFIX
from provisioning.prove.suppression_attack.database import (
    ANALYST,
    COORDINATOR,
    STATE,
    Stored,
    run_jobs,
)
from provisioning.prove.suppression_attack.states import (
    ATTRIBUTES,
    CHOICES,
    GRADE,
    MULTIPLE,
    NOT_APPLICABLE,
    NOT_REACHED,
    NUMBERS,
    SKIPPED,
    TEXT,
)
from survey.models import Administration

PUBLIC = "public"
Group = tuple[str, str]
EVERYONE: Group = ("", "")
# How many people are in categories of an item: at least and at most.
Row = tuple[frozenset[str], float, float]
STATES = (SKIPPED, NOT_APPLICABLE, NOT_REACHED)
# In place of an item: people with any answer.
PEOPLE = "people"
MISSING = {"-97": NOT_APPLICABLE, "-98": SKIPPED, "-99": NOT_REACHED}
CHOSEN, REST = "chosen", "not chosen"
# Of a school: score of a measure.
Scores = dict[tuple[int, str], float]


def categories_of(item: str) -> list[str]:
    """Return what an item's people are divided into, the options first."""
    if item.partition(" ")[0] in MULTIPLE:
        return [CHOSEN, REST]
    options = CHOICES.get(item) or [str(number) for number in NUMBERS[item]]
    return [*options, *STATES]


TABLES = [
    *CHOICES,
    *(f"{item} {option}" for item, options in MULTIPLE.items() for option in options),
    *NUMBERS,
]


@dataclass(frozen=True)
class Table:
    """Figures of one item for a group in some schools, or in some of these."""

    source: int
    schools: frozenset[int]
    group: Group
    item: str
    rows: tuple[Row, ...]
    label: str


@dataclass(frozen=True)
class ExportRow:
    """A row of an export: the cells and the answers that are not coarsened."""

    about: frozenset[tuple[str, str]]
    answers: frozenset[tuple[str, str]]


@dataclass(frozen=True)
class ExportFile:
    """The rows of an export of some schools."""

    source: int
    schools: frozenset[int]
    finished_only: bool
    rows: tuple[ExportRow, ...]
    label: str


@dataclass(frozen=True)
class Mean:
    """The score of a group on the measure; None: the number of people is not shown."""

    source: int
    schools: frozenset[int]
    group: Group
    people: int | None


@dataclass
class Outputs:
    tables: set[Table]
    files: list[ExportFile]
    scores: Scores
    means: set[Mean] = field(default_factory=set)

    def add(self, outputs: Outputs) -> None:
        self.tables |= outputs.tables
        self.files += outputs.files
        self.scores |= outputs.scores
        self.means |= outputs.means


class Reader:
    """Somebody who reads pages and files; the public without a user."""

    def __init__(self, stored: Stored, role: str) -> None:
        self.stored, self.role = stored, role
        self.client = Client()
        if role != PUBLIC:
            self.client.force_login(self.user)
            session = self.client.cookies[settings.SESSION_COOKIE_NAME].value
            self.client.cookies[PREFIX + settings.SESSION_COOKIE_NAME] = session
        everywhere = frozenset(range(len(stored.schools)))
        self.places: dict[str, frozenset[int]] = {"All schools": everywhere}
        for number, district in enumerate(stored.districts):
            own_schools = frozenset(stored.state.schools_of(number))
            self.places[district.name] = own_schools
        for number, school in enumerate(stored.schools):
            self.places[school.name] = frozenset([number])
        self.own_schools = frozenset([stored.school])
        if role != COORDINATOR:
            self.own_schools = frozenset(stored.state.schools_of(stored.district))
        if role in (STATE, PUBLIC):
            self.own_schools = everywhere

    @property
    def user(self) -> User:
        return self.stored.users[self.role]

    def read(
        self,
        administration: Administration,
        source: int,
        groups: Sequence[Group],
        export_source: int | None = None,
    ) -> Outputs:
        """Return all figures of an administration; exports only with their source."""
        pk = administration.pk
        if self.role == PUBLIC:
            scores = self._scores(pk)
            means = set(self._means(pk, source, scores))
            return Outputs(set(self._public_tables(pk, source)), [], scores, means)
        tables = set(self._result_tables(pk, source, groups))
        tables |= set(self._rate_tables(administration, source))
        files: list[ExportFile] = []
        if self.role == ANALYST and export_source is not None:
            files = list(self.exports(administration, export_source))
        scores = self._scores(pk)
        return Outputs(tables, files, scores, set(self._means(pk, source, scores)))

    def rows(self, address: str, **query: int | str) -> list[dict[str, str]]:
        """Return the lines of a file; none if there is no such file for this reader."""
        response = self.client.get(address, query)
        if response.status_code != 200:
            return []
        content = b"".join(response) if response.streaming else response.content
        return list(csv.DictReader(io.StringIO(content.decode("utf-8-sig"))))

    def menu(self, administration: Administration, **query: int | str) -> list[str]:
        """Return the groups that the results page offers."""
        address = reverse("results_page", args=[administration.pk])
        page = self.client.get(address, query).content.decode()
        select = re.search(r'<select name="group".*?</select>', page, re.DOTALL)
        return re.findall(r'value="([^"]*)"', select[0]) if select else []

    def _result_tables(
        self, pk: int, source: int, groups: Sequence[Group]
    ) -> Iterator[Table]:
        address = reverse("results_csv", args=[pk])
        schools, districts = self.stored.schools, self.stored.districts
        places: list[tuple[str, dict[str, int | str]]] = [
            (schools[school].name, {"school": schools[school].pk})
            for school in sorted(self.own_schools)
        ]
        if self.role != COORDINATOR:
            for number in sorted(
                {self.stored.state.districts[n] for n in self.own_schools}
            ):
                district = districts[number]
                places.append((district.name, {"district": district.pk}))
        if self.role == STATE:
            places.append(("All schools", {}))
        for group in groups:
            chosen = {"group": ":".join(group)} if group != EVERYONE else {}
            known: set[str] = set()
            hidden = {school.name for school in schools}
            for name, place in places:
                # A school's file has the figures of the places around it, but a
                # district's own file those of its small schools as well.
                has_small_schools = "district" in place and group == EVERYONE
                if has_small_schools or name not in known:
                    lines = self.rows(address, **place, **chosen)
                    known |= {line["place"] for line in lines}
                    hidden -= {
                        line["place"] for line in lines if figure_of(line["answered"])
                    }
                    for line in lines:
                        # Of a district: its schools without figures of their own.
                        if line["place"].startswith("Smaller schools of the district"):
                            small = [self.places[school] for school in hidden]
                            self.places[line["place"]] = self.places[name].intersection(
                                frozenset().union(*small)
                            )
                    yield from self._tables(lines, source, group)

    def _public_tables(self, pk: int, source: int) -> Iterator[Table]:
        addresses = {"All schools": reverse("published_answers", args=[pk])}
        for district in self.stored.districts:
            name = "published_answers_of_district"
            addresses[district.name] = reverse(name, args=[pk, district.pk])
        for school in self.stored.schools:
            name = "published_answers_of_school"
            addresses[school.name] = reverse(name, args=[pk, school.pk])
        for place, address in addresses.items():
            lines = [{**line, "place": place} for line in self.rows(address)]
            yield from self._tables(lines, source, EVERYONE)

    def _tables(
        self, lines: Iterable[Mapping[str, str]], source: int, group: Group
    ) -> Iterator[Table]:
        by_item: defaultdict[tuple[str, str], list[Mapping[str, str]]]
        by_item = defaultdict(list)
        for line in lines:
            by_item[line["place"], line["item"]].append(line)
        for (place, item), of_item in by_item.items():
            name = " ".join((place, *group))
            for table, rows in item_rows(item, of_item):
                label = f"{name}: {table}"
                yield Table(source, self.places[place], group, table, rows, label)

    def _rate_tables(
        self, administration: Administration, source: int
    ) -> Iterator[Table]:
        """Yield how many have started, which is how many have answered."""
        chosen = {"administration": administration.pk}
        lines: list[tuple[str, Group, str | None]] = []
        for number in sorted(self.own_schools):
            school = self.stored.schools[number]
            address = reverse("rates_school_csv", args=[school.pk])
            for line in self.rows(address, **chosen):
                grade = line["grade"]
                group = EVERYONE if grade == "all" else (GRADE, grade)
                lines.append((school.name, group, line["started"]))
        if self.role != COORDINATOR:
            for line in self.rows(reverse("rates_schools_csv"), **chosen):
                lines.append((line["school"], EVERYONE, line["started"]))
            for line in self.rows(reverse("rates_board_csv"), **chosen):
                lines.append((line["district"], EVERYONE, line["started"]))
        for place, group, started in lines:
            if (figure := figure_of(started)) and place in self.places:
                row = (frozenset([PEOPLE]), *figure)
                label = " ".join((place, *group, ": started"))
                yield Table(source, self.places[place], group, PEOPLE, (row,), label)

    def _scores(self, pk: int) -> Scores:
        """Return the scores of schools on the measure."""
        name = "published_scores" if self.role == PUBLIC else "scores_csv"
        numbers = {school.code: n for n, school in enumerate(self.stored.schools)}
        return {
            (numbers[line["code"]], "trust"): float(line["trust"])
            for line in self.rows(reverse(name, args=[pk]))
            if line["code"] in numbers and figure_of(line.get("trust"))
        }

    def _means(self, pk: int, source: int, scores: Scores) -> Iterator[Mean]:
        """Yield the scores of schools, and those of groups with their people."""
        for school, _measure in scores:
            yield Mean(source, frozenset([school]), EVERYONE, None)
        if self.role == PUBLIC:
            return
        for line in self.rows(reverse("scores_groups_csv", args=[pk])):
            place = line["school"] or line["district"] or "All schools"
            if people := figure_of(line["trust people"]):
                group = line["attribute"], line["group"]
                yield Mean(source, self.places[place], group, int(people[0]))

    def exports(
        self,
        administration: Administration,
        source: int,
        schools: Iterable[int] | None = None,
    ) -> Iterator[ExportFile]:
        """Ask for exports without names under every filter, and read them."""
        chosen: list[tuple[frozenset[int], dict[str, int | str]]] = [
            (self.own_schools, {})
        ]
        for number in sorted(self.own_schools) if schools is None else schools:
            key = self.stored.schools[number].pk
            chosen.append((frozenset([number]), {"school": key}))
        for places, place in chosen:
            for finished in ("", "1"):
                for kind in ("wide", "long"):
                    data = {
                        "administrations": [administration.pk],
                        "format": kind,
                        "language": "en",
                        "finished_only": finished,
                        **place,
                    }
                    response = self.client.post(reverse("export_new"), data)
                    if response.status_code != 302:
                        continue
                    run_jobs()
                    lines = self.rows(f"{response.headers['Location']}file/")
                    rows = wide_rows(lines) if kind == "wide" else long_rows(lines)
                    label = f"{kind} export {place or 'of all schools'} {finished}"
                    yield ExportFile(source, places, bool(finished), tuple(rows), label)


def figure_of(
    people: str | None,
    percent: str | None = "",
    whole: tuple[float, float] | None = None,
) -> tuple[float, float] | None:
    """Return the least and the largest number that two cells leave; None for any.

    A cell is a number, hidden, or the end of a scale, such as "under 5 %".
    """
    for text in (people or "", percent or ""):
        match = re.search(r"\d+(\.\d+)?", text.replace(",", ""))
        if not match:
            continue
        number = float(match[0])
        if text is people and re.fullmatch(r"[\d.,]+", text):
            return number, number
        if whole is None:
            continue
        low, high = 0.0, whole[1]
        is_people = text is people and "%" not in text
        # The bound itself is not one of the numbers.
        if re.search(r"under|below|fewer|less|<", text, re.IGNORECASE):
            high = ceil(number if is_people else high * number / 100) - 1
        elif re.search(r"over|above|more|>", text, re.IGNORECASE):
            low = floor(number if is_people else whole[0] * number / 100) + 1
        else:
            # Rounded to a whole number.
            low = whole[0] * max(number - 0.51, 0) / 100
            high = whole[1] * (number + 0.51) / 100
        return low, high
    return None


def item_rows(
    item: str, lines: Sequence[Mapping[str, str]]
) -> Iterator[tuple[str, tuple[Row, ...]]]:
    """Yield the tables of an item, and what the lines of a file say about them."""
    if item == TEXT:
        return
    first = lines[0]
    answered = figure_of(first["answered"])
    states = {
        name: figure
        for name, key in zip(
            STATES, ("skipped", "not applicable", "not reached"), strict=True
        )
        if (figure := figure_of(first[key]))
    }
    figures = {
        line["answer"]: figure
        for line in lines
        if (figure := figure_of(line["people"], line["percent"], answered))
    }
    if item in MULTIPLE:
        if answered and len(states) == len(STATES):
            ends = zip(answered, *states.values(), strict=True)
            base = tuple(sum(numbers) for numbers in ends)
            both = frozenset([CHOSEN, REST])
            for option in MULTIPLE[item]:
                rows: list[Row] = [(both, base[0], base[1])]
                if option in figures:
                    rows.append((frozenset([CHOSEN]), *figures[option]))
                yield f"{item} {option}", tuple(rows)
        return
    options = frozenset(categories_of(item)) - set(STATES)
    option_rows: list[Row] = [
        (frozenset([name]), *figure)
        for name, figure in {**figures, **states}.items()
        if name in options or name in STATES
    ]
    if answered:
        option_rows.append((options, *answered))
    if option_rows:
        yield item, tuple(option_rows)


def wide_rows(lines: Iterable[Mapping[str, str]]) -> Iterator[ExportRow]:
    for line in lines:
        about = {
            (name, value)
            for name, value in line.items()
            if name == "school_code" or name == GRADE or name in ATTRIBUTES
            if value != "*"
        }
        answers = set()
        for item in (*CHOICES, *NUMBERS):
            if line[item] != "*":
                answers.add((item, MISSING.get(line[item], line[item])))
        for item, options in MULTIPLE.items():
            cells = {option: line[f"{item}_{option}"] for option in options}
            if "*" in cells.values():
                continue
            missing = {MISSING[cell] for cell in cells.values() if cell in MISSING}
            chosen = " ".join(option for option in options if cells[option] == "1")
            answers.add((item, missing.pop() if missing else chosen))
        yield ExportRow(frozenset(about), frozenset(answers))


def long_rows(lines: Iterable[Mapping[str, str]]) -> Iterator[ExportRow]:
    items = (*CHOICES, *NUMBERS, *MULTIPLE)
    people: defaultdict[str, dict[str, str]] = defaultdict(dict)
    for line in lines:
        answers = people[line["research_id"]]
        if line["item"] in items:
            state = line["state"]
            answers[line["item"]] = line["value"] if state == "answered" else state
    # An item without a line was not reached, or is left out.
    for answers in people.values():
        yield ExportRow(frozenset(), frozenset(answers.items()))
