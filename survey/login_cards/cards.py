"""Access codes on their way to people: what is printed on login cards."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterator
from typing import TextIO

from django.db.models import QuerySet

from accounts.csv_injection import escape_formula
from accounts.models import School
from survey import access_codes
from survey.models import Administration, Respondent

HEADER = (
    "school",
    "grade",
    "class",
    "ID",
    "given name",
    "family name",
    "e-mail",
    "language",
    "code",
)
BY_CLASS = (
    "grade",
    "classroom",
    "identity__family_name",
    "identity__given_name",
    "pk",
)


def invited(administration: Administration) -> QuerySet[Respondent]:
    """Everybody who is given a code."""
    return administration.respondents.filter(withdrawn_at=None)


def write_access_codes(
    *,
    people: QuerySet[Respondent],
    file: TextIO,
    base_url: str = "",
    reissue: bool = False,
    written: Callable[[int], None] = lambda number: None,
) -> int:
    """Write one line for each person, school by school; how many.

    With `reissue` everybody gets a new code first, and the old one ends. With
    `base_url` each line has a link too. `written` is told each school's lines.
    """
    writer = csv.writer(file)
    writer.writerow([*HEADER, "link"] if base_url else HEADER)
    lines = 0
    schools = School.objects.filter(pk__in=people.order_by().values("school"))
    # A query for each school: memory stays flat without a cursor on the
    # server, which a transaction pool could not keep.
    for school in schools.order_by("district__name", "name", "pk"):
        of_school = people.filter(school=school)
        if reissue:
            # One commit for a school. Whoever's code was changed without
            # being written is found by writing the codes again.
            access_codes.reissue_all(of_school)
        rows = list(of_school.select_related("identity").order_by(*BY_CLASS))
        writer.writerows(_line(school, one, base_url) for one in rows)
        lines += len(rows)
        written(len(rows))
    return lines


def _line(school: School, respondent: Respondent, base_url: str) -> list[str]:
    # Gone where identities were destroyed; the code is valid all the same.
    identity = getattr(respondent, "identity", None)
    code = access_codes.shown(access_codes.code_of(respondent))
    cells = [school.name, respondent.grade, respondent.classroom]
    if identity:
        cells += [
            identity.external_id,
            identity.given_name,
            identity.family_name,
            identity.email,
        ]
    else:
        cells += ["", "", "", ""]
    line = [*map(escape_formula, [*cells, respondent.language]), code]
    if base_url:
        line.append(link_to(base_url, code))
    return line


def link_to(address: str, code: str) -> str:
    """What follows the # is never sent, so that it is in no server's log."""
    return f"{address.rstrip('/')}/#{code}"


def class_by_class(people: QuerySet[Respondent], role: str) -> Iterator[Respondent]:
    """In the order in which cards are handed out, with identities. 1 statement.

    Class 10A follows class 9B; who has no class comes last, grade by grade.
    """
    rows = list(people.select_related("identity").order_by(*BY_CLASS[2:]))
    rows.sort(key=lambda one: _handed_out(one, role))
    yield from rows


def _handed_out(respondent: Respondent, role: str) -> tuple[object, ...]:
    if role != "student":
        return ()
    if respondent.classroom:
        return (0, _counted(respondent.classroom), respondent.classroom)
    return (1, _counted(respondent.grade), respondent.grade)


def _counted(text: str) -> list[tuple[int, int, str]]:
    """For sorting "10A" behind "9B"."""
    return [
        (0, int(part), "") if part.isdecimal() else (1, 0, part.casefold())
        for part in re.split(r"(\d+)", text)
        if part
    ]
