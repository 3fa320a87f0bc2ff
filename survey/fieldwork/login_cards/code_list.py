"""Access codes as a CSV file, for mail merge and for the command line."""

from __future__ import annotations

import csv
from collections.abc import Callable
from typing import TextIO

from django.db.models import QuerySet

from accounts.csv_injection import escape_formula
from accounts.models import School
from survey.models import Respondent
from survey.people import access_codes
from survey.people.new_codes import reissue_all

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


def write_access_codes(
    *,
    people: QuerySet[Respondent],
    file: TextIO,
    base_url: str = "",
    reissue: bool = False,
    advance: Callable[[int], None] = lambda number: None,
) -> int:
    """Write one row per person, school by school; return the number of rows.

    With `reissue`, each person gets a new code first. With `base_url`, each
    row has a link too. `advance` is called with the number of each school's
    rows.
    """
    writer = csv.writer(file)
    writer.writerow([*HEADER, "link"] if base_url else HEADER)
    count = 0
    schools = School.objects.filter(pk__in=people.order_by().values("school"))
    # A query for each school: memory stays flat without a cursor on the
    # server, which pgbouncer's transaction pool could not keep.
    for school in schools.order_by("district__name", "name", "pk"):
        of_school = people.filter(school=school)
        if reissue:
            # One commit for a school. If the file is lost afterwards, writing
            # it again finds the new codes.
            reissue_all(of_school)
        respondents = of_school.select_related("identity").order_by(
            "grade",
            "classroom",
            "identity__family_name",
            "identity__given_name",
            "pk",
        )
        for respondent in respondents:
            writer.writerow(_row(school, respondent, base_url))
        count += len(respondents)
        advance(len(respondents))
    return count


def _row(school: School, respondent: Respondent, base_url: str) -> list[str]:
    # Identities may have been destroyed; the code is valid all the same.
    identity = getattr(respondent, "identity", None)
    code = access_codes.format_code(access_codes.code_of(respondent))
    cells = [
        school.name,
        respondent.grade,
        respondent.classroom,
        identity.external_id if identity else "",
        identity.given_name if identity else "",
        identity.family_name if identity else "",
        identity.email if identity else "",
        respondent.language,
    ]
    row = [*map(escape_formula, cells), code]
    if base_url:
        # Browsers do not send the part behind the #, so that codes are in no
        # server's log.
        row.append(f"{base_url.rstrip('/')}/#{code}")
    return row
