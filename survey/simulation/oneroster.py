"""Make up school districts as OneRoster ZIPs, and what changes in a night."""

from __future__ import annotations

import io
import random
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import BinaryIO

from survey.simulation.schools import BEGINNINGS, ENDINGS, PEOPLE

STUDENTS_OF_A_SCHOOL = 600
# Of 100 people; the others are parents.
STUDENTS, STAFF = 82, 7
GRADES = ("KG", *(f"{grade:02}" for grade in range(1, 13)))
_GIVEN = (
    "Maya Noor Ali Ana Luis Zoë Kofi Mei Omar Ivy Leo Eva Sam Ruth Tom Iris Jan Lena"
    " Amir Dana Nia Hugo Vera Paul Rosa Finn Ada Juan Kim Ben"
)
_FAMILY = (
    "Lopez Ortiz Chen Haddad Diaz Smith Novak Okafor Silva Kim Brown Garcia Nguyen"
    " Müller Rossi Cohen Patel Ivanov Sato Jones Moreno Ali Young Clark Reyes"
)
GIVEN_NAMES, FAMILY_NAMES = _GIVEN.split(), _FAMILY.split()
_USERS = (
    "sourcedId,status,dateLastModified,enabledUser,orgSourcedIds,role,username,userIds,"
    "givenName,familyName,middleName,identifier,email,sms,phone,agentSourcedIds,grades,"
    "password"
)
_ENROLLMENTS = (
    "sourcedId,status,dateLastModified,classSourcedId,schoolSourcedId,userSourcedId,"
    "role,primary,beginDate,endDate"
)
_CLASSES = (
    "sourcedId,status,dateLastModified,title,grades,courseSourcedId,classCode,classType,"
    "location,schoolSourcedId,termSourcedIds,subjects,subjectCodes,periods"
)
_DEMOGRAPHICS = (
    "sourcedId,status,dateLastModified,birthDate,sex,americanIndianOrAlaskaNative,asian,"
    "blackOrAfricanAmerican,nativeHawaiianOrOtherPacificIslander,white,"
    "demographicRaceTwoOrMoreRaces,hispanicOrLatinoEthnicity"
)
_FILES = (
    "orgs",
    "users",
    "academicSessions",
    "courses",
    "classes",
    "enrollments",
    "demographics",
)


@dataclass(frozen=True)
class SyntheticDistrict:
    """A district that is the same on every machine, for its number and seed.

    On night 0 nobody has changed; on each later night this share of the people
    has: a third have left, a third are new, and a third have another grade or
    e-mail address.
    """

    number: int
    people: int
    seed: int = 1
    night: int = 0
    changed: float = 0.01
    # The school year begins in it; the rest does not depend on the date.
    year: int = field(default_factory=lambda: date.today().year)

    @property
    def name(self) -> str:
        chance = self._random("name")
        return f"{chance.choice(BEGINNINGS)}{chance.choice(ENDINGS)} District"

    @property
    def code(self) -> str:
        return f"D{self.number:05}"

    def _random(self, purpose: str) -> random.Random:
        return random.Random(f"{purpose} {self.number} {self.seed}")  # noqa: S311

    def write(self, file: BinaryIO | Path) -> None:
        """Write a complete (bulk) ZIP of version 1.1."""
        contents = self._contents()
        properties = [
            "propertyName,value",
            "manifest.version,1.0",
            "oneroster.version,1.1",
            *(f"file.{name},bulk" for name in _FILES),
        ]
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=3) as out:
            for name, lines in {"manifest": properties, **contents}.items():
                # With a fixed date, so that the same people are the same bytes.
                entry = zipfile.ZipInfo(f"{name}.csv")
                entry.compress_type = zipfile.ZIP_DEFLATED
                with (
                    out.open(entry, "w") as binary,
                    io.TextIOWrapper(
                        binary, "utf-8", newline="", write_through=False
                    ) as text,
                ):
                    text.writelines(f"{line}\r\n" for line in lines)

    def _contents(self) -> dict[str, list[str]]:
        schools = max(1, self.people * STUDENTS // 100 // STUDENTS_OF_A_SCHOOL)
        chance = self._random("schools")
        code = self.code
        terms = f"{code}-T"
        orgs = [
            "sourcedId,status,dateLastModified,name,type,identifier,parentSourcedId"
        ]
        orgs.append(f"{code},,,{self.name},district,{code},")
        orgs += [
            f"{code}-S{school},,,{chance.choice(PEOPLE)} School {school + 1},school,"
            f"{code}-{school + 1:03},{code}"
            for school in range(schools)
        ]
        year = self.year
        lines: dict[str, list[str]] = {
            "orgs": orgs,
            "users": [_USERS],
            "academicSessions": [
                "sourcedId,status,dateLastModified,title,type,startDate,endDate,"
                "parentSourcedId,schoolYear",
                f"{terms},,,{year}/{year + 1},schoolYear,{year}-01-01,"
                f"{year + 1}-12-31,,{year + 1}",
            ],
            "courses": [
                "sourcedId,status,dateLastModified,schoolYearSourcedId,title,courseCode,"
                "grades,orgSourcedId,subjects,subjectCodes",
                f"{code}-K,,,{terms},Homeroom,HR,,{code},,",
            ],
            "classes": [_CLASSES],
            "enrollments": [_ENROLLMENTS],
            "demographics": [_DEMOGRAPHICS],
        }
        classes: set[tuple[int, str, int]] = set()
        for person in self._people(schools):
            person.add_to(lines, classes, code)
        for school, grade, number in sorted(classes):
            pk = f"{code}-C{school}-{grade}-{number}"
            lines["classes"].append(
                f"{pk},,,{grade}{chr(65 + number % 26)} {number + 1},{grade},{code}-K,"
                f"{grade}-{number + 1},homeroom,,{code}-S{school},{terms},,,"
            )
        return lines

    def _people(self, schools: int) -> Iterator[_Person]:
        """Yield the people of this night, in the order of their numbers."""
        people = self._random("people")
        changes = [
            (self._random(f"night {night}"), self.changed)
            for night in range(1, self.night + 1)
        ]
        total = self.people
        for number in range(self.people):
            person = _Person.draw(number, people, schools)
            for chance, share in changes:
                drawn = chance.random()
                if drawn < share / 3:
                    person.has_left = True
                elif drawn < share * 2 / 3:
                    person.change(chance)
            if not person.has_left:
                yield person
        for chance, share in changes:
            for _ in range(round(self.people * share / 3)):
                yield _Person.draw(total, chance, schools)
                total += 1


@dataclass
class _Person:
    number: int
    school: int
    kind: str
    given_name: str
    family_name: str
    grade: str
    year_of_birth: int
    month: int
    day: int
    sex: str
    flag: int
    email_version: int = 1
    has_left: bool = False

    @classmethod
    def draw(cls, number: int, chance: random.Random, schools: int) -> _Person:
        drawn = chance.getrandbits(64)
        kind = drawn % 100
        drawn //= 100
        drawn, school = divmod(drawn, schools)
        drawn, given = divmod(drawn, len(GIVEN_NAMES))
        drawn, family = divmod(drawn, len(FAMILY_NAMES))
        drawn, grade = divmod(drawn, len(GRADES))
        drawn, day = divmod(drawn, 28)
        drawn, month = divmod(drawn, 12)
        drawn, sex = divmod(drawn, 2)
        return cls(
            number,
            school,
            "student"
            if kind < STUDENTS
            else "staff"
            if kind < STUDENTS + STAFF
            else "parent",
            GIVEN_NAMES[given],
            FAMILY_NAMES[family],
            GRADES[grade],
            2020 - grade,
            month + 1,
            day + 1,
            ("female", "male")[sex],
            drawn % 7,
        )

    def change(self, chance: random.Random) -> None:
        if self.kind == "student" and chance.random() < 0.5:
            self.grade = GRADES[min(GRADES.index(self.grade) + 1, len(GRADES) - 1)]
        else:
            self.email_version += 1

    def add_to(
        self,
        lines: dict[str, list[str]],
        classes: set[tuple[int, str, int]],
        code: str,
    ) -> None:
        pk, school = f"{code}-{self.number}", f"{code}-S{self.school}"
        version = self.email_version if self.email_version > 1 else ""
        email = f"p{self.number}{version}@{code.lower()}.example.org"
        # A parent's child is the person before, who in most cases is a student.
        role, org, agents, grade = "student", school, "", self.grade
        if self.kind == "staff":
            role, grade = ("teacher", "") if self.number % 10 else ("administrator", "")
        elif self.kind == "parent":
            role, org, agents, grade = "parent", code, f"{code}-{self.number - 1}", ""
        lines["users"].append(
            f"{pk},,,true,{org},{role},u{self.number},{{SIS:{self.number}}},"
            f"{self.given_name},{self.family_name},,{code}{self.number:06},{email},,,"
            f"{agents},{grade},"
        )
        if self.kind != "student":
            return
        room = (self.school, self.grade, self.number // 13 % 2)
        classes.add(room)
        class_pk = f"{code}-C{room[0]}-{room[1]}-{room[2]}"
        lines["enrollments"].append(f"{pk}-E,,,{class_pk},{school},{pk},student,,,")
        flags = ",".join("true" if self.flag == n else "false" for n in range(7))
        lines["demographics"].append(
            f"{pk},,,{self.year_of_birth}-{self.month:02}-{self.day:02},{self.sex},{flags}"
        )


def district_sizes(districts: int, people: int, seed: int = 1) -> list[int]:
    """Return numbers of people, from few large to many small districts.

    Sizes fall with the square root of the rank: of 900 districts with two million
    people the largest has 34,000 and the median 1,600.
    """
    weights = [1 / rank**0.5 for rank in range(1, districts + 1)]
    unit = people / sum(weights)
    sizes = [max(20, round(weight * unit)) for weight in weights]
    random.Random(f"sizes {seed}").shuffle(sizes)  # noqa: S311
    return sizes
