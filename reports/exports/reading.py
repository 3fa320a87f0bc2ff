"""Read the responses of an export in one snapshot, and plan its columns."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from django.conf import settings
from django.db import DEFAULT_DB_ALIAS
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts.models import School
from reports.exports.anonymise import Shuffle
from reports.exports.cells import Date
from reports.exports.columns import ExportVersion, columns_of
from reports.exports.minimum_group import (
    MinimumGroups,
    SavedDays,
    divide_respondents,
    is_too_few,
    too_few_people,
)
from reports.exports.missing_codes import choose_missing_codes, code_lookalikes
from reports.exports.offered_versions import OfferedVersions, offered_versions
from reports.exports.panel_groups import PanelGroups
from reports.exports.row_builder import ExportPlan
from reports.exports.selection import Selection
from reports.exports.snapshot import snapshot
from reports.exports.xlsx_file import MOST_COLUMNS, MOST_ROWS
from reports.models.exports import Export
from survey.jobs import JobRefused, Progress
from survey.models import Administration, Identity, PublishedSurvey, SurveyMeasures

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
    versions: Mapping[str, ExportVersion]
    shuffle: Shuffle
    summary: StreamSummary
    offered: Mapping[int, OfferedVersions]
    groups: Mapping[int, MinimumGroups]
    respondents: int
    responses: int
    # Of a panel: the groups of the whole file, people with several joined rows, and
    # all people.
    panel: PanelGroups | None = None
    joined_people: int | None = None
    people: int | None = None


def read_snapshot(export: Export, folder: Path, progress: Progress) -> Reading:
    administrations = list(
        export.administrations.select_related(
            "published__survey__corrects", "wave"
        ).order_by("-opens_at", "pk")
    )
    versions = versions_of(administrations)
    offered = offered_versions(administrations)
    is_long = export.format == Export.Format.LONG
    # In a file with names, coarser cells would protect nobody.
    protected = [
        administration
        for administration in administrations
        if administration.minimum_group > 1 and not export.identities
    ]
    shuffle, summary = Shuffle(folder), StreamSummary()
    saved_days = SavedDays(timezone.get_default_timezone())
    selection = Selection(
        administrations,
        export.scope,
        export.finished_only,
        without_names=not export.identities,
    )
    with snapshot(selection) as database:
        counts = database.count_people()
        people = sum(counts.values())
        for administration in protected:
            if is_too_few(administration, counts[administration.pk]):
                raise JobRefused(too_few_people(administration))
        if export.format == Export.Format.XLSX and people + 1 > MOST_ROWS:
            raise JobRefused(too_many_rows(people))
        groups = {}
        # In a panel, the groups of all waves together are counted later.
        if not is_long and not export.is_panel:
            progress.begin_step(_("Counting the groups."), total=people)
            for administration in protected:
                counted = database.count_groups(
                    administration, offered[administration.pk], settings.TIME_ZONE
                )
                groups[administration.pk] = divide_respondents(administration, counted)
        progress.begin_step(_("Reading the responses."), total=people)

        def add(line: bytes) -> None:
            summary.add(line)
            if is_long and protected:
                saved_days.add(line)
            shuffle.add(line.split(b"\t", 2)[1], line)
            if shuffle.count % REPORT_EVERY == 0:
                progress.advance(REPORT_EVERY)

        # Adding may raise Cancelled, which stops the statement.
        database.read(add, versions, saved=is_long)
        progress.begin_step(_("Counting the responses."), total=people)
        responses = database.count_responses()
    if is_long:
        groups = {one.pk: saved_days.divide(one) for one in protected}
    return Reading(
        administrations,
        versions,
        shuffle,
        summary,
        offered,
        groups,
        people,
        responses,
    )


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
        schools=school_cells(summary.schools),
        attributes=sorted(summary.attributes & declared),
        missing=choose_missing_codes(summary.lookalikes | options),
        blank=export.blank_missing,
        language=export.language,
        labels=export.labels,
        zone=timezone.get_default_timezone(),
        offered=reading.offered,
        groups=reading.groups,
        panel=reading.panel,
        joined_people=reading.joined_people,
        people=reading.people,
        identities=identity_cells if export.identities else None,
    )


def versions_of(administrations: Iterable[Administration]) -> dict[str, ExportVersion]:
    """Return the survey versions by digest, the newest first. 1 statement."""
    found: list[PublishedSurvey] = [
        administration.published for administration in administrations
    ]
    found.sort(key=lambda published: published.published_at, reverse=True)
    known = SurveyMeasures.objects.using(DEFAULT_DB_ALIAS)
    measures = known.in_bulk({published.survey_id for published in found})
    return {
        published.digest: ExportVersion(
            published.digest,
            json.loads(published.definition),
            measures[published.survey_id].content
            if published.survey_id in measures
            else None,
        )
        for published in found
    }


class StreamSummary:
    """Collects what must be known of all lines before the first row is written."""

    def __init__(self) -> None:
        self.schools: set[int] = set()
        self.attributes: set[str] = set()
        self.lookalikes: set[int] = set()

    def add(self, line: bytes) -> None:
        self.lookalikes |= code_lookalikes(line)
        _, _, school, _, _, _, about, _ = line.split(b"\t", 7)
        self.schools.add(int(school))
        # Most people have no attributes, and JSON takes time.
        if not about.endswith(b", {}]"):
            self.attributes.update(json.loads(about)[2])


def school_cells(keys: set[int]) -> Mapping[int, Sequence[str]]:
    """Return code and name of the district, and of the school, by school."""
    schools = School.objects.using(DEFAULT_DB_ALIAS).filter(pk__in=keys)
    rows = schools.values_list("pk", "district__code", "district__name", "code", "name")
    return {key: cells for key, *cells in rows}


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
        " administrations."
    ) % {"most_columns": f"{MOST_COLUMNS:,}", "count": f"{count:,}"}
