"""Read the responses of an export in one snapshot, and plan its columns."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path

from django.db import DEFAULT_DB_ALIAS
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts.models import District, School
from reports.answers.selection import Selection
from reports.answers.snapshot import LineSink, Snapshot, snapshot
from reports.answers.versions import SurveyVersion, versions_of
from reports.exports.anonymise import Shuffle
from reports.exports.cells import Date
from reports.exports.columns import columns_of
from reports.exports.local_days import LocalDays
from reports.exports.minimum_group import too_few_people
from reports.exports.missing_codes import choose_missing_codes, code_lookalikes
from reports.exports.offered_versions import OfferedVersions, offered_versions
from reports.exports.panel_groups import PanelGroups
from reports.exports.release_mask import (
    COARSENED,
    ShownPlace,
    no_release,
    release_mask,
)
from reports.exports.released_rows import ReleasedRows, released_rows
from reports.exports.row_builder import ExportPlan
from reports.exports.xlsx_file import MOST_COLUMNS, MOST_ROWS
from reports.models.exports import Export
from survey.models import Administration, Identity
from survey.work.jobs import JobRefused, Progress

REPORT_EVERY = 500
# What the IDENTITY cells are read from.
IDENTITY_FIELDS = (
    "external_id",
    "given_name",
    "family_name",
    "email",
    "birth_date",
    "respondent__classroom",
)


@dataclass
class Reading:
    """What was read in the snapshot, and its own counts."""

    administrations: Sequence[Administration]
    versions: Mapping[str, SurveyVersion]
    shuffle: Shuffle
    summary: StreamSummary
    offered: Mapping[int, OfferedVersions]
    # By administration; empty for a file with names.
    releases: Mapping[int, ReleasedRows]
    respondents: int
    responses: int
    # Of a panel: the groups of the whole file, people with several joined rows, and
    # all people.
    panel: PanelGroups | None = None
    joined_people: int | None = None
    people: int | None = None


def read_snapshot(export: Export, folder: Path, progress: Progress) -> Reading:
    administrations = list(
        export.administrations.select_related("published__survey", "wave").order_by(
            "-opens_at", "pk"
        )
    )
    versions = versions_of(administrations)
    offered = offered_versions(administrations)
    is_long = export.format == Export.Format.LONG
    shuffle, summary = Shuffle(folder), StreamSummary()
    selection = Selection(administrations, export.scope, export.finished_only)
    releases: dict[int, ReleasedRows] = {}
    with snapshot(selection) as database:
        if export.identities:
            people = sum(database.count_people().values())
        else:
            progress.begin_step(_("Reading the people of the results."))
            releases = read_releases(export, database, offered)
            people = sum(int(release.is_in.sum()) for release in releases.values())
            selection = replace(
                selection,
                keys={key: release.keys_in_file() for key, release in releases.items()},
            )
            database.selection = replace(
                selection,
                keys={key: release.keys.tolist() for key, release in releases.items()},
            )
        if export.format == Export.Format.XLSX and people + 1 > MOST_ROWS:
            raise JobRefused(too_many_rows(people))
        progress.begin_step(_("Reading the responses."), total=people)

        def add(line: bytes) -> None:
            summary.add(line)
            shuffle.add(line.split(b"\t", 2)[1], line)
            if shuffle.count % REPORT_EVERY == 0:
                progress.advance(REPORT_EVERY)

        # Adding may raise Cancelled, which stops the statement.
        sink = only_in_file(releases, add) if releases else add
        database.read(sink, versions, saved=is_long)
        progress.begin_step(_("Counting the responses."), total=people)
        database.selection = selection
        responses = database.count_responses()
    for release in releases.values():
        if release.dates:
            release.dates.divide_classes()
    return Reading(
        administrations,
        versions,
        shuffle,
        summary,
        offered,
        releases,
        people,
        responses,
    )


def read_releases(
    export: Export, database: Snapshot, offered: Mapping[int, OfferedVersions]
) -> dict[int, ReleasedRows]:
    """Find the people of a file without names, who are those of the releases.

    Raises JobRefused if an administration has no release, or too few people here.
    """
    releases = {}
    days = LocalDays(timezone.get_default_timezone())
    for administration in database.selection.administrations:
        mask = release_mask(administration, database.alias)
        if mask is None:
            raise JobRefused(no_release(administration))
        rows = released_rows(
            mask,
            export.scope,
            offered[administration.pk],
            days,
            finished_only=export.finished_only,
            is_long=export.format == Export.Format.LONG,
        )
        if rows.is_too_small and mask.has_people_in(export.scope):
            raise JobRefused(too_few_people(administration))
        releases[administration.pk] = rows
    return releases


def only_in_file(releases: Mapping[int, ReleasedRows], sink: LineSink) -> LineSink:
    """Return where to read lines to: they are masked, and those of others left out."""
    by_administration = {
        str(key).encode(): release for key, release in releases.items()
    }

    def add(line: bytes) -> None:
        rows = by_administration[line.split(b"\t", 1)[0]]
        if masked := rows.line_in_file(line):
            sink(masked)

    return add


def plan_of(export: Export, reading: Reading) -> ExportPlan:
    versions, summary = reading.versions.values(), reading.summary
    # An option that nobody has chosen yet may look like a code as well.
    options = {
        code
        for version in versions
        for item in version.items.values()
        for option in version.options(item)
        for code in code_lookalikes(f"\x1f{option['value']}".encode())
    }
    # Older rosters stored columns that nobody has declared.
    declared = {
        name
        for administration in reading.administrations
        for name in administration.subgroups
    }
    return ExportPlan(
        columns=columns_of(versions),
        administrations={
            administration.pk: administration
            for administration in reading.administrations
        },
        places=place_cells(reading),
        attributes=sorted(summary.attributes & declared),
        missing=choose_missing_codes(summary.lookalikes | options),
        blank=export.blank_missing,
        language=export.language,
        labels=export.labels and not export.is_typed,
        zone=timezone.get_default_timezone(),
        offered=reading.offered,
        releases=reading.releases,
        panel=reading.panel,
        joined_people=reading.joined_people,
        people=reading.people,
        identities=identity_cells if export.identities else None,
    )


class StreamSummary:
    """Collects what must be known of all lines before the first row is written."""

    def __init__(self) -> None:
        # Keys of schools, or of `ShownPlace`.
        self.places: set[str] = set()
        self.attributes: set[str] = set()
        self.lookalikes: set[int] = set()

    def add(self, line: bytes) -> None:
        self.lookalikes |= code_lookalikes(line)
        _, _, place, _, _, _, about, _ = line.split(b"\t", 7)
        self.places.add(place.decode())
        # Most people have no attributes, and JSON takes time.
        if b", {}" not in about:
            self.attributes.update(json.loads(about)[2])


def place_cells(reading: Reading) -> Mapping[str, Sequence[str]]:
    """Return code and name of the district, and of the school, by place. 2 statements.

    A school is in the district in which it was when it was counted.
    """
    released = {
        cells.place.key: cells.place
        for release in reading.releases.values()
        for cells, _ in release.shown
    }
    hidden = (COARSENED, COARSENED)
    schools = {
        key: (district, cells)
        for key, district, *cells in School.objects.using(DEFAULT_DB_ALIAS)
        .filter(pk__in=[int(key) for key in reading.summary.places if key.isdecimal()])
        .values_list("pk", "district", "code", "name")
    }
    districts = {
        key: cells
        for key, *cells in District.objects.using(DEFAULT_DB_ALIAS)
        .filter(
            pk__in=[
                *(district for district, _ in schools.values()),
                *(place.district for place in released.values() if place.district),
            ]
        )
        .values_list("pk", "code", "name")
    }
    cells_of_place = {}
    for key in reading.summary.places:
        place = released.get(key) or ShownPlace(schools[int(key)][0], int(key))
        # A place of an older release may have been removed since.
        _, school = schools.get(place.school or 0, (None, hidden))
        cells_of_place[key] = (*districts.get(place.district or 0, hidden), *school)
    return cells_of_place


def identity_cells(respondents: Sequence[int]) -> Mapping[int, Sequence[str]]:
    """Return the IDENTITY cells by respondent.

    From the primary: the database role for reports cannot read names.
    """
    known = Identity.objects.using(DEFAULT_DB_ALIAS).filter(respondent__in=respondents)
    return {
        key: tuple(map(identity_cell, cells))
        for key, *cells in known.values_list("respondent", *IDENTITY_FIELDS)
    }


def identity_cell(value: str | date | None) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else Date(value)


def too_many_rows(people: int) -> str:
    return _(
        "An Excel sheet holds at most %(most_rows)s respondents, and"
        " this export has %(people)s. Choose CSV, or one district at"
        " a time."
    ) % {"most_rows": f"{MOST_ROWS - 1:,}", "people": f"{people:,}"}


def too_many_columns(count: int) -> str:
    return _(
        "An Excel sheet holds at most %(most_columns)s columns, and"
        " this export has %(count)s. Choose CSV, or fewer"
        " survey rounds."
    ) % {"most_columns": f"{MOST_COLUMNS:,}", "count": f"{count:,}"}
