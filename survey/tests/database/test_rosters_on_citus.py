"""Which people of a Citus cluster a roster is compared with."""

from __future__ import annotations

import io

import pytest

from survey.people.rosters.diff import compare_roster
from survey.people.rosters.file_reader import open_table
from survey.tests.rosters import test_leavers as contract
from survey.tests.rosters.roster_imports import ALI, HEADER, MAYA, NOOR, run_import
from survey.tests.rosters.test_leavers import apply  # noqa: F401

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.usefixtures("product_on_cluster"),
]
for name in (
    "test_people_who_were_invited_are_withdrawn_by_a_file_of_changes",
    "test_they_count_once_in_a_complete_file",
    "test_somebody_who_has_moved_to_another_school_stays",
):
    globals()[name] = getattr(contract, name)


@pytest.mark.parametrize(
    ("complete_for", "compared"),
    [("changes", 2), ("schools", 2), ("districts", 2), ("state", 3)],
)
def test_only_people_of_the_files_districts_are_read(
    administration, complete_for, compared
):
    assert run_import(administration, HEADER, MAYA, ALI, NOOR).added == 3
    missing = {"changes": 0, "schools": 1, "districts": 1, "state": 2}
    file = io.BytesIO(f"{HEADER}\n{MAYA}".encode())
    with (
        open_table(file, role=administration.role) as table,
        compare_roster(
            administration=administration, table=table, complete_for=complete_for
        ) as diff,
    ):
        compared_people = diff.staging.fetch_all("SELECT id FROM roster_people")
        assert diff.report.unchanged == 1
        assert (
            sum(row.withdrawn for row in diff.report.schools) == missing[complete_for]
        )
    assert len(compared_people) == compared
