"""Make the file of an export: read one snapshot, shuffle it, write it, check it.

Until the very end everything is in a folder of this run's own. So a repeated
job starts from nothing, and a worker that was thought dead but still runs
cannot disturb its successor.
"""

from __future__ import annotations

import errno
import hashlib
import json
import secrets
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings
from django.db import DEFAULT_DB_ALIAS, transaction
from django.utils import timezone

from accounts import audit
from accounts.models import School
from accounts.permissions import Permissions
from reports.exports import codebook
from reports.exports.anonymise import Shuffle
from reports.exports.cells import Writer
from reports.exports.columns import ExportVersion, columns_of
from reports.exports.csv_file import CsvFile
from reports.exports.long_rows import LongRowBuilder
from reports.exports.minimum_group import (
    MinimumGroups,
    SavedDays,
    divide_respondents,
    is_too_few,
    too_few_people,
)
from reports.exports.missing_codes import choose_missing_codes, code_lookalikes
from reports.exports.row_builder import IDENTITY, ExportPlan, RowBuilder
from reports.exports.selection import Selection
from reports.exports.snapshot import snapshot
from reports.exports.wide_rows import WideRowBuilder
from reports.exports.xlsx_file import MOST_COLUMNS, MOST_ROWS, XlsxFile
from reports.models.exports import KEPT_FOR, Export
from survey.files import new_name, path_of, share
from survey.jobs import Cancelled, JobRefused, Progress, TakenOver, job
from survey.models import Administration, Identity, Job, PublishedSurvey

FOLDER = "exports"
DATA_FILE, CODEBOOK_FILE = "data", "codebook.html"
# Bytes of the stream that are turned into rows at once: some thousand people
# of a usual survey. As Python objects their answers take 100 times as much.
BATCH_BYTES = 2**20
REPORT_EVERY = 500
PERMISSIONS_CHANGED = (
    "Your permissions have changed since you requested this export, so no file was"
    " made. Create a new export: it will contain what you may see now."
)
DISK_FULL = (
    "The disk is full, so no file was made. Tell the system administrator, and"
    " start this export again."
)


class CountMismatch(Exception):
    """The file does not contain what the database counted in its snapshot."""


@dataclass
class ExportResult:
    """The rows as written, and the counts of the database."""

    rows: RowBuilder
    respondents: int
    responses: int


@job("export.make", long=True)
def make_export(job: Job, progress: Progress) -> None:
    # From the primary: on the replica the row may not have arrived yet.
    known = Export.objects.using(DEFAULT_DB_ALIAS).select_related("by")
    export = known.get(pk=job.subject_id or 0)
    if export.made_at is not None:
        return
    # The person may have lost the role since requesting it.
    if not export.is_allowed(Permissions(export.by)):
        raise JobRefused(PERMISSIONS_CHANGED)
    folder = path_of(f"{FOLDER}/.{export.pk}-{secrets.token_hex(8)}/any").parent
    try:
        result = build_files(export, folder, progress)
        keep_files(export, folder, result, progress)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise JobRefused(DISK_FULL) from error
        raise
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    # Not with `begin_step`, which raises if someone cancels: the file is kept.
    progress.message = f"Ready: {result.rows.rows:,} rows."
    progress.done = progress.total = result.respondents


@dataclass
class Reading:
    """What was read in the snapshot, and its own counts."""

    administrations: Sequence[Administration]
    versions: Mapping[str, ExportVersion]
    shuffle: Shuffle
    summary: StreamSummary
    groups: Mapping[int, MinimumGroups]
    respondents: int
    responses: int


def build_files(export: Export, folder: Path, progress: Progress) -> ExportResult:
    """Write the file and its codebook into `folder`.

    Raises JobRefused if a sheet would be too large or a minimum group is not
    reached, and CountMismatch if the file is not complete.
    """
    reading = read_snapshot(export, folder, progress)
    people, responses = reading.respondents, reading.responses
    # The transaction is over: writing takes as long again, and a snapshot
    # keeps the database from removing dead rows.
    progress.begin_step("Writing the file.", total=people)
    plan = plan_of(export, reading)
    rows = write_data(export, folder, plan, reading.shuffle, progress)
    if (rows.respondents, rows.responses) != (people, responses):
        raise CountMismatch(
            f"{rows.respondents} of {people} respondents and {rows.responses} of"
            f" {responses} responses were written."
        )
    codebook.write(folder / CODEBOOK_FILE, export=export, rows=rows)
    return ExportResult(rows, people, responses)


def read_snapshot(export: Export, folder: Path, progress: Progress) -> Reading:
    administrations = list(
        export.administrations.select_related("published__survey__corrects").order_by(
            "-opens_at", "pk"
        )
    )
    versions = versions_of(administrations)
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
        if not is_long:
            progress.begin_step("Counting the groups.", total=people)
            for administration in protected:
                counted = database.count_groups(administration, settings.TIME_ZONE)
                groups[administration.pk] = divide_respondents(administration, counted)
        progress.begin_step("Reading the responses.", total=people)

        def add(line: bytes) -> None:
            summary.add(line)
            if is_long and protected:
                saved_days.add(line)
            shuffle.add(line.split(b"\t", 2)[1], line)
            if shuffle.count % REPORT_EVERY == 0:
                progress.advance(REPORT_EVERY)

        # Adding may raise Cancelled, which stops the statement.
        database.read(add, versions, saved=is_long)
        progress.begin_step("Counting the responses.", total=people)
        responses = database.count_responses()
    if is_long:
        groups = {one.pk: saved_days.divide(one) for one in protected}
    return Reading(
        administrations, versions, shuffle, summary, groups, people, responses
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
        language=export.language,
        labels=export.labels,
        zone=timezone.get_default_timezone(),
        groups=reading.groups,
        identities=identity_cells if export.identities else None,
    )


def versions_of(administrations: Iterable[Administration]) -> dict[str, ExportVersion]:
    """Return the survey versions by digest, the newest first."""
    found: list[PublishedSurvey] = [
        administration.published for administration in administrations
    ]
    found.sort(key=lambda published: published.published_at, reverse=True)
    return {
        published.digest: ExportVersion(
            published.digest, json.loads(published.definition)
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
        key: tuple("" if cell is None else str(cell) for cell in cells)
        for key, *cells in known.values_list("respondent", *IDENTITY)
    }


def too_many_rows(people: int) -> str:
    return (
        f"An Excel sheet holds at most {MOST_ROWS - 1:,} respondents, and this export"
        f" has {people:,}. Choose CSV, or one district at a time."
    )


def too_many_columns(count: int) -> str:
    return (
        f"An Excel sheet holds at most {MOST_COLUMNS:,} columns, and this export has"
        f" {count:,}. Choose CSV, or fewer administrations."
    )


def write_data(
    export: Export,
    folder: Path,
    plan: ExportPlan,
    shuffle: Shuffle,
    progress: Progress,
) -> RowBuilder:
    is_long = export.format == Export.Format.LONG
    builder = LongRowBuilder if is_long else WideRowBuilder
    headers = builder.headers_of(plan)
    path = folder / DATA_FILE
    with ExitStack() as stack:
        if export.format == Export.Format.XLSX:
            if len(headers) > MOST_COLUMNS:
                raise JobRefused(too_many_columns(len(headers)))
            # Not closed after an error: that would write the whole workbook.
            writer: Writer = XlsxFile(path, headers, scratch=folder)
        else:
            file = stack.enter_context(path.open("wb"))
            writer = CsvFile(file, headers, bom=export.bom)
        rows: RowBuilder = builder(plan, writer)
        for lines in batches(shuffle.bundles()):
            rows.write(lines)
            progress.advance(len(lines))
        writer.close()
    return rows


def batches(bundles: Iterable[list[bytes]]) -> Iterator[list[bytes]]:
    """Regroup bundles, which may be tiny or large, into batches of BATCH_BYTES."""
    lines: list[bytes] = []
    size = 0
    for bundle in bundles:
        for line in bundle:
            lines.append(line)
            size += len(line)
            if size >= BATCH_BYTES:
                yield lines
                lines, size = [], 0
    if lines:
        yield lines


def keep_files(
    export: Export, folder: Path, result: ExportResult, progress: Progress
) -> None:
    """Move the files out of `folder`, and record them in one transaction."""
    data = folder / DATA_FILE
    with data.open("rb") as file:
        sha256 = hashlib.file_digest(file, "sha256").hexdigest()
    size = data.stat().st_size
    names = new_name(FOLDER, export.suffix), new_name(FOLDER, ".html")
    for path, name in zip((data, folder / CODEBOOK_FILE), names, strict=True):
        # On the same disk, so the file appears at once or not at all.
        share(path)
        path.rename(path_of(name))
    now = timezone.now()
    try:
        with transaction.atomic():
            Export.objects.filter(pk=export.pk, made_at=None).update(
                made_at=now,
                expires_at=now + KEPT_FOR,
                file_name=names[0],
                codebook_name=names[1],
                size=size,
                rows=result.rows.rows,
                respondents=result.respondents,
                responses=result.responses,
                sha256=sha256,
            )
            audit.record(
                "make export",
                by=export.by,
                subject=export,
                **export.place_for_audit(),
                after={
                    "respondents": result.respondents,
                    "responses": result.responses,
                    "sha256": sha256,
                    "identities": export.identities,
                },
            )
            progress.confirm()
    except (TakenOver, Cancelled):
        # After any other error it is not known whether the transaction was
        # committed. A file without a row is swept up later, but a row without
        # its file would be wrong for good.
        for name in names:
            path_of(name).unlink(missing_ok=True)
        raise
