from __future__ import annotations

import csv
import random
from collections.abc import Iterator
from datetime import date, timedelta

from django.core.management.base import BaseCommand, CommandParser

GIVEN_NAMES = (
    "Aaliyah Ahmed Aiden Ana Benjamin Brooklyn Camila Chen Daniela Dmitri Elena Emma"
    " Fatima Gabriel Hannah Isaac Jada José Kai Leila Liam Lucía Malik María Mateo Mia"
    " Nadia Noah Olivia Omar Priya Quinn Rosa Santiago Sofía Thi Uma Victor Wei Zoë"
)
FAMILY_NAMES = (
    "Adams Álvarez Baker Brown Castillo Cohen Davis Díaz Edwards Flores García Gómez"
    " Hall Haddad Hernández Jackson Johnson Kim Kowalski Lee López Martínez Miller"
    " Nguyen Novak O'Brien Okafor Ortiz Patel Pérez Rivera Robinson Singh Smith Taylor"
    " Torres Tran Washington Williams Young"
)
GIVEN, FAMILY = GIVEN_NAMES.split(), FAMILY_NAMES.split()
PROGRAMS = ("", "", "", "IEP", "504", "ELL")
LUNCH = ("free", "reduced", "paid")
HEADER = (
    "District Code,District Name,School Code,School Name,Role,Grade,Student ID,"
    "Given Name,Family Name,E-mail,Birth Date,Language,Lunch,Program,Homeroom"
)
PER_SCHOOL = 500
SCHOOLS_PER_DISTRICT = 12


class Command(BaseCommand):
    help = "Write a large, plausible roster of students, to measure imports."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--rows", type=int, default=100_000)
        parser.add_argument(
            "--seed", type=int, default=1, help="the same seed gives the same people"
        )
        parser.add_argument(
            "--changed",
            type=float,
            default=0,
            metavar="PERCENT",
            help="change so many of the same people, as a year later: half have another"
            " homeroom, a quarter another school, a quarter have left and others come",
        )

    def handle(
        self, *, rows: int, seed: int, changed: float, **options: object
    ) -> None:
        writer = csv.writer(self.stdout)
        writer.writerow(HEADER.split(","))
        people = made_up_students(rows, random.Random(seed))  # noqa: S311
        if changed:
            chance = random.Random(seed + 1)  # noqa: S311
            people = one_year_later(people, changed / 100, chance)
        writer.writerows(people)


def one_year_later(
    people: Iterator[list[str]], share: float, chance: random.Random
) -> Iterator[list[str]]:
    places = HEADER.split(",")
    school, school_name, id_, homeroom = (
        places.index(name)
        for name in ("School Code", "School Name", "Student ID", "Homeroom")
    )
    # The school of an earlier person, to which others of the district move.
    earlier: list[str] = []
    for person in people:
        drawn = chance.random() / share
        here = person[: school_name + 1]
        if drawn < 0.5:
            person[homeroom] = f"{person[homeroom]}2"
        elif drawn < 0.75 and earlier and earlier[:school] == person[:school]:
            person[: school_name + 1] = earlier
        elif drawn < 1:
            person[id_] = f"N{person[id_]}"
        if chance.random() < 0.001:
            earlier = here
        yield person


def made_up_students(rows: int, chance: random.Random) -> Iterator[list[str]]:
    for number in range(rows):
        school = number // PER_SCHOOL
        district = school // SCHOOLS_PER_DISTRICT
        grade = 4 + number % 9
        given, family = chance.choice(GIVEN), chance.choice(FAMILY)
        born = date(2016 - number % 9, 9, 1) + timedelta(days=chance.randrange(365))
        yield [
            f"D{district:03}",
            f"{FAMILY[district % len(FAMILY)]} Unified {district:03}",
            f"S{school:05}",
            f"{FAMILY[school * 7 % len(FAMILY)]} School {school:05}",
            "student",
            f"{grade:02}",
            f"{number + 1:09}",
            given,
            family,
            f"student{number + 1}@d{district:03}.example.org",
            f"{born:%m/%d/%Y}",
            chance.choice(("en", "en", "en", "es")),
            chance.choice(LUNCH),
            chance.choice(PROGRAMS),
            f"{grade}{'ABCDE'[number % PER_SCHOOL // 100]}",
        ]
