"""Compare a roster file with the people already invited.

Nothing is written to the survey's own tables. The file is loaded into temporary
tables, checked, and matched with respondents by SQL. A dry run ends with the
figures; `rosters.apply` goes on from the same tables.

The steps, in their order, with the temporary tables that they read and change. A
step that rejects rows removes them from what it changes.

| step | reads | changes |
|---|---|---|
| `read_rows` | the file | `roster_row`, `roster_exempt`, `roster_left` |
| `settle_rows` | | `roster_row`, `roster_left` |
| `match_places` | `roster_row`, `roster_left` | `roster_place`, `roster_district` |
| `settle_ids` | `roster_place`, people | `roster_row`, `_exempt`, `_left` |
| `match_people` | `roster_row`, `roster_place`, people | `roster_match` |
| `check_matches` | `roster_place`, people | `roster_match`, `roster_row`, `_exempt` |
| `list_missing` | `roster_match`, `_exempt`, `_left`, people | `roster_missing` |
| `complete_report` | all of them | |
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice

from django.utils.translation import gettext as _

from accounts.models import School
from survey.models import Administration, RosterUpload
from survey.people.erasing.erased_ids import skip_erased_people
from survey.people.rosters import leavers, row_checks
from survey.people.rosters.comparison import Comparison
from survey.people.rosters.identity_changes import (
    refuse_other_identifiers,
    reject_identity_conflicts,
)
from survey.people.rosters.joined_ids import replace_joined_ids
from survey.people.rosters.opted_out import note_opted_out
from survey.people.rosters.place_names import MOST_COMPARED
from survey.people.rosters.report import RosterReport
from survey.people.rosters.row_parser import (
    CellRejection,
    LeftPerson,
    OtherRole,
    RepeatedHeader,
    RosterPerson,
    UninvitedPerson,
)
from survey.people.rosters.school_counts import count_by_school
from survey.people.rosters.school_questions import school_questions
from survey.people.rosters.schools import SchoolMatches, match_schools
from survey.people.rosters.scope import RosterScope
from survey.people.rosters.staging import (
    ADDED,
    BACK,
    CHANGED,
    MOVED,
    NOT_IN_FILE,
    UNCHANGED,
    Staging,
    loading_rows,
    open_staging,
    sql_keys,
)
from survey.people.rosters.table import RosterTable
from survey.people.rosters.unstated_subgroups import (
    store_unstated_subgroups,
    with_unstated_subgroups,
)

CompleteFor = RosterUpload.CompleteFor
BATCH = 5000
# Called with the name of a step and the number of rows done in it.
ProgressCallback = Callable[[str, int], None]

# Field of the roster -> column. A column that the file lacks is not changed.
RESPONDENT_COLUMNS = {
    "grade": "grade",
    "classroom": "classroom",
    "language": "language",
    "attributes": "attributes",
}
IDENTITY_COLUMNS = ("given_name", "family_name", "email", "birth_date")


@dataclass
class RosterDiff:
    """The result of a comparison; valid while its temporary tables exist."""

    administration: Administration
    staging: Staging
    report: RosterReport
    schools: SchoolMatches

    def rejections(self) -> Iterator[CellRejection]:
        """Yield all rejections in the order of their rows."""
        after = (-1, -1)
        while batch := self.staging.fetch_all(
            "SELECT row, sequence, column_name, reason, cell FROM roster_rejection"
            " WHERE (row, sequence) > (%s, %s) ORDER BY row, sequence LIMIT 5000",
            after,
        ):
            for row, _sequence, *texts in batch:
                yield CellRejection(row, *texts)
            after = batch[-1][:2]


def ignore_progress(step: str, rows: int) -> None:
    pass


@contextmanager
def compare_roster(
    *,
    administration: Administration,
    table: RosterTable,
    get_scope: Callable[[], RosterScope] = RosterScope,
    complete_for: str = CompleteFor.CHANGES,
    on_progress: ProgressCallback = ignore_progress,
    lock: bool = False,
) -> Iterator[RosterDiff]:
    """Read the whole file and compare it with the people already invited.

    With `lock`, first wait until no other roster of the administration is being
    applied; until the end no other one starts, and the administration's schools
    cannot change. `get_scope` is called after that, and may raise.

    Raises RosterUnreadable if the file turns out to be damaged in the middle, or
    if one of its subgroups would identify people.
    """
    with open_staging() as staging:
        if lock:
            on_progress(_("Waiting for another roster of this survey round"), 0)
            staging.lock(administration.pk)
        c = Comparison.of(staging, administration, table, get_scope())
        read_rows(c, on_progress)
        on_progress(_("Comparing with the people already there"), c.report.rows)
        if table.is_partial:
            complete_for = CompleteFor.CHANGES
        notes = settle_rows(c)
        schools = match_places(c)
        notes |= settle_ids(c, complete_for)
        match_people(c)
        notes |= check_matches(c)
        list_missing(c, complete_for)
        complete_report(c, schools, notes)
        yield RosterDiff(administration, staging, c.report, schools)


def read_rows(c: Comparison, on_progress: ProgressCallback) -> None:
    """Read the file. Raises RosterUnreadable, also if subgroups identify people."""
    with loading_rows(c.staging):
        load_rows(c, on_progress)
    c.parser.refuse_nearly_unique_subgroups()


def settle_rows(c: Comparison) -> dict[str, int]:
    """Keep one row for each person, with unambiguous dates; return the notes."""
    row_checks.reject_repeated_people(c)
    notes = row_checks.settle_date_order(c)
    leavers.remove_repeated_leavers(c)
    return notes


def match_places(c: Comparison) -> SchoolMatches:
    """Find the districts and schools of all rows."""
    schools = match_schools(c)
    leavers.match_places_of_leavers(c)
    return schools


def settle_ids(c: Comparison, complete_for: str) -> dict[str, int]:
    """Give each person the ID of the roster, now that places are known.

    Returns the notes.
    """
    c.staging.copy_people(
        c.administration.pk, everybody=complete_for == CompleteFor.STATE
    )
    notes = skip_erased_people(c)
    notes |= replace_joined_ids(c)
    # Once more, now that a district's code and its name are known to be one.
    row_checks.reject_repeated_people(c, by_matched_district=True)
    return notes


def check_matches(c: Comparison) -> dict[str, int]:
    """Reject rows that would change the wrong people; return the notes."""
    notes = note_opted_out(c)
    reject_identity_conflicts(c)
    row_checks.reject_lost_zeros(c)
    refuse_other_identifiers(c)
    row_checks.reject_people_of_other_schools(c)
    row_checks.reject_new_addresses(c)
    return notes


def list_missing(c: Comparison, complete_for: str) -> None:
    """List the people to withdraw: those missing from the file, and leavers in it."""
    find_missing(c, complete_for)
    if c.report.left:
        leavers.add_leavers_to_missing(c)
        leavers.count_leavers(c)


def complete_report(
    c: Comparison, schools: SchoolMatches, notes: dict[str, int]
) -> None:
    """Count the changes, and add what the steps have noted."""
    report = c.report
    c.log.flush()
    # Keeps `RosterDiff.rejections` fast for a file whose rows are all bad.
    c.staging.execute(
        "CREATE INDEX roster_rejection_row ON roster_rejection (row, sequence)"
    )
    report.rejected, report.rejections = c.log.rows, c.log.first
    report.remarks = list(c.table.remarks)
    report.notes = {**c.parser.notes, **notes, **dict.fromkeys(c.table.notes, 1)}
    report.schools = count_by_school(c, schools)
    report_places(report, schools)
    report.school_questions = school_questions(c, schools)


def report_places(report: RosterReport, schools: SchoolMatches) -> None:
    """Add what the file says about districts and schools, with those to create."""
    report.districts_created = [new.code for new in schools.new_districts.values()]
    report.schools_created = [new.code for new in schools.new_schools.values()]
    for school in report.schools:
        new = schools.new_schools.get(school.school_id)
        if new is None:
            continue
        entry: dict[str, object] = {
            "district": school.district_name,
            "code": new.code,
            "name": new.name,
        }
        # Each name is compared with all known ones of its district.
        if len(report.unknown_schools) < MOST_COMPARED:
            entry["near"] = schools.near_names(school.school_id)
        report.unknown_schools.append(entry)
    report.places = schools.notes


def load_rows(c: Comparison, on_progress: ProgressCallback) -> None:
    """Copy valid rows into `roster_row`, and log the others."""
    # People whose row was rejected, or who come later; they are not withdrawn.
    exempt: list[tuple[str, str]] = []
    left: list[LeftPerson] = []

    def store_others(size: int = 0) -> None:
        if len(exempt) > size:
            c.staging.copy_rows("roster_exempt", exempt)
            exempt.clear()
        if len(left) > size:
            c.staging.copy_rows("roster_left", left)
            left.clear()

    def valid_rows() -> Iterator[RosterPerson]:
        for number, cells in c.table.rows:
            person = c.parser.parse(number, cells)
            if isinstance(person, RepeatedHeader):
                continue
            c.report.rows += 1
            if isinstance(person, RosterPerson):
                yield person
                continue
            if isinstance(person, OtherRole):
                c.report.other_roles[person.role] += 1
                continue
            if isinstance(person, LeftPerson):
                c.report.left += 1
                left.append(person)
            elif isinstance(person, UninvitedPerson):
                c.report.later += 1
                exempt.append(person)
            else:
                c.log.add_row(person.rejections)
                if person.district and person.external_id:
                    exempt.append((person.district, person.external_id))
                else:
                    # It may be any missing person's row, so nobody is withdrawn.
                    c.report.rows_without_id += 1
                if person.district and person.previous_id:
                    exempt.append((person.district, person.previous_id))
            store_others(BATCH)

    rows = valid_rows()
    while batch := list(islice(rows, BATCH)):
        c.staging.copy_rows("roster_row", batch)
        on_progress(_("Reading the file"), c.report.rows)
    store_others()


def columns_in_file(report: RosterReport) -> tuple[list[str], list[str]]:
    """Return the columns of respondents and of identities that the file has."""
    present = {*report.columns.fields}
    if report.columns.attributes:
        present.add("attributes")
    if "name" in present:
        present |= {"given_name", "family_name"}
    return (
        [column for field, column in RESPONDENT_COLUMNS.items() if field in present],
        [
            *(["external_id"] if "previous_id" in present else []),
            *(column for column in IDENTITY_COLUMNS if column in present),
        ],
    )


def any_column_differs(old: str, columns: list[str], staging: Staging) -> str:
    """Return an SQL condition that compares a table's alias with `new`."""
    parts = [f"{old}.{column} {staging.differs} new.{column}" for column in columns]
    return " OR ".join(parts) or "1 = 0"


def match_people(c: Comparison) -> None:
    """Find people by district and ID, and decide what changes for each row.

    People who are not on the roster under their ID are found by the previous one.
    """
    of_respondent, of_identity = columns_in_file(c.report)
    subgroups = with_unstated_subgroups(c)
    differs = any_column_differs("r", of_respondent, c.staging)
    differs = differs.replace("new.attributes", subgroups)
    by_id, known_as = "", "new.external_id"
    if "previous_id" in c.columns.fields:
        by_id = f"""
        LEFT JOIN survey_identity AS same
               ON same.administration_id = {int(c.administration.pk)}
              AND same.district_id = p.district_id
              AND same.external_id = new.external_id
        """
        known_as = "coalesce(same.external_id, nullif(new.previous_id, ''))"
    # Only the column names at the top of this file get into this text.
    c.staging.execute(
        f"""
        CREATE TEMPORARY TABLE roster_match AS
        SELECT new.row, r.id AS respondent_id, r.school_id AS old_school_id,
               CASE WHEN r.id IS NULL THEN '{ADDED}'
                    WHEN r.withdrawn_at IS NOT NULL AND r.opted_out_at IS NULL
                    THEN '{BACK}'
                    WHEN r.school_id <> p.school_id AND r.opted_out_at IS NULL
                    THEN '{MOVED}'
                    WHEN r.school_id <> p.school_id OR {differs}
                      OR {any_column_differs("i", of_identity, c.staging)}
                    THEN '{CHANGED}'
                    ELSE '{UNCHANGED}' END AS change
        FROM roster_row AS new
        JOIN roster_place AS p ON p.place = new.place
        {by_id}
        LEFT JOIN survey_identity AS i
               ON i.administration_id = %s AND i.district_id = p.district_id
              AND i.external_id = {known_as} AND {c.staging.identities_in_file}
        LEFT JOIN {c.staging.people} AS r ON r.id = i.respondent_id
        """,  # noqa: S608
        [c.administration.pk],
    )
    c.staging.execute(
        "CREATE UNIQUE INDEX roster_match_row ON roster_match (change, row)"
    )
    c.staging.execute(
        "CREATE INDEX roster_match_respondent ON roster_match (respondent_id)"
    )
    c.staging.analyze("roster_match")
    store_unstated_subgroups(c.staging, subgroups)


def find_missing(c: Comparison, complete_for: str) -> None:
    """List the people to withdraw: missing from places the file is complete for.

    People whose row was rejected are not missing. Nobody is if a rejected row
    lacks its ID, or if the file is a correction of rejected rows.
    """
    # The column is called `row` for `Staging.fetch_in_batches`.
    c.staging.execute(
        "CREATE TEMPORARY TABLE roster_missing"
        " (row bigint PRIMARY KEY, school_id bigint, has_left boolean)"
    )
    if (
        complete_for == CompleteFor.CHANGES
        or c.report.rows_without_id
        or c.columns.is_correction
    ):
        return
    schools = complete_schools(c, complete_for)
    for start in range(0, len(schools), 500):
        some = sql_keys(schools[start : start + 500])
        c.staging.execute(
            f"""
            INSERT INTO roster_missing
            SELECT r.id, r.school_id, FALSE
            FROM {c.staging.people} AS r
            JOIN survey_identity AS i ON i.respondent_id = r.id
            WHERE r.administration_id = %s AND r.withdrawn_at IS NULL
              AND r.school_id IN ({some})
              AND {NOT_IN_FILE}
            """,  # noqa: S608
            [c.administration.pk],
        )
    c.staging.analyze("roster_missing")


def complete_schools(c: Comparison, complete_for: str) -> list[int]:
    """Return the schools whose people are withdrawn if the file lacks them."""
    column = "school_id" if complete_for == CompleteFor.SCHOOLS else "district_id"
    rows = c.staging.fetch_all(
        f"""
        SELECT DISTINCT p.{column} FROM roster_match AS m
        JOIN roster_row AS new ON new.row = m.row
        JOIN roster_place AS p ON p.place = new.place
        """  # noqa: S608
    )
    in_file = {pk for (pk,) in rows if pk > 0}
    if complete_for == CompleteFor.SCHOOLS:
        return sorted(in_file)
    schools = School.objects.values_list("district_id", "pk")
    if complete_for == CompleteFor.DISTRICTS:
        schools = schools.filter(district__in=in_file)
    return sorted(pk for district, pk in schools if c.scope.includes(district, pk))
