"""Access codes on their way to people: what is printed on login cards."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from typing import TextIO

from django.db import transaction
from django.db.models import QuerySet

from accounts.formulas import defused
from accounts.models import School
from survey.models import Administration, Respondent
from survey.rosters import codes

HEADER = ("school", "grade", "ID", "given name", "family name", "code")


def invited(administration: Administration) -> QuerySet[Respondent]:
    """Everybody who is given a code."""
    return administration.respondents.filter(withdrawn_at=None)


def write_access_codes(
    *,
    people: QuerySet[Respondent],
    file: TextIO,
    base_url: str = "",
    reissue: bool = False,
) -> int:
    """Write one line for each person, school by school; how many.

    With `reissue` everybody gets a new code first, and the old one ends. With
    `base_url` each line has a link too.
    """
    writer = csv.writer(file)
    writer.writerow([*HEADER, "link"] if base_url else HEADER)
    written = 0
    schools = School.objects.filter(pk__in=people.values("school"))
    # A query for each school: memory stays flat without a cursor on the
    # server, which a transaction pool could not keep.
    for school in schools.order_by("district__name", "name", "pk"):
        of_school = list(
            people.filter(school=school)
            .select_related("identity")
            .order_by("grade", "identity__family_name", "identity__given_name", "pk")
        )
        if reissue:
            _reissue_all(of_school)
        writer.writerows(_line(school, one, base_url) for one in of_school)
        written += len(of_school)
    return written


def _reissue_all(people: Iterable[Respondent]) -> None:
    # One commit for a school, not one for each person. Whoever's code was
    # changed without being written is found by writing the codes again.
    with transaction.atomic():
        for respondent in people:
            codes.reissue(respondent=respondent)


def _line(school: School, respondent: Respondent, base_url: str) -> list[str]:
    # Gone where identities were destroyed; the code is valid all the same.
    identity = getattr(respondent, "identity", None)
    code = codes.shown(codes.code_of(respondent))
    cells = [school.name, respondent.grade]
    if identity:
        cells += [identity.external_id, identity.given_name, identity.family_name]
    else:
        cells += ["", "", ""]
    line = [*map(defused, cells), code]
    if base_url:
        # What follows the # is never sent, so that it is in no server's log.
        line.append(f"{base_url.rstrip('/')}/#{code}")
    return line
