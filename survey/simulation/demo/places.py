"""Give the demo's schools their places on the map, and a district its own questions."""

from __future__ import annotations

from pathlib import Path

from accounts.models import District
from survey.fieldwork.administrations.modules import add_module
from survey.models import Administration, PublishedSurvey
from survey.people.rosters.file_reader import open_list
from survey.people.schools.columns import SCHOOL_HEADER
from survey.people.schools.importing import SchoolReport, import_schools

# Students of this district go on to its pages; others may add some too.
DISTRICT, PAGES_LIMIT = "Riverside", 3


def place_schools(path: Path) -> SchoolReport:
    """Read addresses and coordinates of the schools that the rosters have added."""
    with path.open("rb") as file, open_list(file, SCHOOL_HEADER) as table:
        return import_schools(table)


def add_district_pages(state_round: Administration, published: PublishedSurvey) -> None:
    add_module(
        state_round=state_round,
        district=District.objects.get(name=DISTRICT),
        published=published,
        by="load_demo",
    )
