"""Import rosters without the console, and the people in them."""

from __future__ import annotations

import io

from accounts.models import District, School
from survey.models import Identity, Respondent
from survey.people.rosters.apply import import_roster
from survey.people.rosters.file_reader import open_table

HEADER = (
    "district,school,role,grade,student ID,given name,family name,e-mail,birth date,"
    "language,lunch"
)
MAYA = "Riverside,Lincoln,student,7,00123,Maya,Lopez,maya@x.org,2014-03-04,Spanish,free"
ALI = "Riverside,Lincoln,student,8,00124,Ali,Diaz,,2013-12-31,,"
NOOR = "Lakeshore,Roosevelt,Students,8th,00123,Noor,Haddad,,5/26/2013,en,paid"


def run_import(administration, *lines, layout=None, known=None, **options):
    file = io.BytesIO("\n".join(lines).encode())
    with open_table(file, layout, known, role=administration.role) as table:
        return import_roster(administration=administration, table=table, **options)


def counts(report):
    return report.added, report.changed, report.unchanged, report.rejected


def all_rows():
    """Return all rows that an import can write."""
    return (
        list(Respondent.objects.order_by("pk").values()),
        list(Identity.objects.order_by("pk").values()),
        list(District.objects.order_by("pk").values()),
        list(School.objects.order_by("pk").values()),
    )


def many_rows(count):
    return [ALI.replace("00124", f"{number:06}") for number in range(count)]
