"""Make the file of an export: read one snapshot, shuffle it, write it, check it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts.permissions import Permissions
from reports.exports import codebook, codebook_table
from reports.exports.cells import Writer
from reports.exports.csv_file import CsvFile
from reports.exports.descriptions import described_columns
from reports.exports.destroyed import destroyed_message
from reports.exports.documents import archive
from reports.exports.long_rows import LongRowBuilder
from reports.exports.panel import join_waves
from reports.exports.reading import (
    Reading,
    plan_of,
    read_snapshot,
    too_many_columns,
)
from reports.exports.row_builder import ExportPlan, RowBuilder
from reports.exports.typed.dta_file import DtaFile
from reports.exports.typed.sav_file import SavFile
from reports.exports.typed.typed_file import TypedFile
from reports.exports.wide_rows import WideRowBuilder
from reports.exports.xlsx_file import MOST_COLUMNS, XlsxFile
from reports.models.exports import Export
from survey.work.jobs import JobRefused, Progress
from survey.work.requested_files import keep_files, makes

DATA_FILE, CODEBOOK_FILE, TABLE_FILE = "data", "codebook.html", "codebook.csv"
DOCUMENTS_FILE = "documents.zip"
# Bytes of the stream that are turned into rows at once: some thousand people
# of a usual survey. As Python objects their answers take 100 times as much.
BATCH_BYTES = 2**20
PERMISSIONS_CHANGED = gettext_lazy(
    "Your permissions have changed since you requested this"
    " export, so no file was made. Create a new export: it will"
    " contain what you may see now."
)
PROJECT_OVER = gettext_lazy(
    "The research project has ended, so no file was made for it."
)


Maker = Callable[[Export, Path, Progress], None]
# Formats that are made elsewhere, and their makers.
FURTHER_FORMATS: dict[str, Maker] = {}


class CountMismatch(Exception):
    """The file does not contain what the database counted in its snapshot."""


@dataclass
class ExportResult:
    """The rows as written, and the counts of the database."""

    rows: RowBuilder
    respondents: int
    responses: int


@dataclass
class DataFile:
    """A file of the rows; `export` has its format."""

    export: Export
    plan: ExportPlan
    path: Path


@makes(Export, "by", "project", waits=True)
def make_export(export: Export, folder: Path, progress: Progress) -> None:
    if export.project is not None and export.project.is_over:
        raise JobRefused(PROJECT_OVER)
    # The person may have lost the role since requesting it.
    if not export.is_allowed(Permissions(export.by)):
        raise JobRefused(PERMISSIONS_CHANGED)
    if message := destroyed_message(export.administrations.all(), export.identities):
        raise JobRefused(message)
    if maker := FURTHER_FORMATS.get(export.format):
        maker(export, folder, progress)
        return
    result = build_files(export, folder, progress)
    keep_export(export, folder, result, progress)
    # Not with `begin_step`, which raises if someone cancels: the file is kept.
    progress.message = _("Ready: %(rows)s rows.") % {"rows": f"{result.rows.rows:,}"}
    progress.done = progress.total = result.respondents


def build_files(export: Export, folder: Path, progress: Progress) -> ExportResult:
    """Write the file and its codebook into `folder`.

    Raises JobRefused if a sheet would be too large or a minimum group is not
    reached, and CountMismatch if the file is not complete.
    """
    reading = read_snapshot(export, folder, progress)
    if export.is_panel:
        join_waves(export, reading, folder, progress)
    people, responses = reading.respondents, reading.responses
    # The transaction is over: writing takes as long again, and a snapshot
    # keeps the database from removing dead rows.
    progress.begin_step(_("Writing the file."), total=people)
    plan = plan_of(export, reading)
    data = DataFile(export, plan, folder / DATA_FILE)
    [rows] = write_data([data], reading, progress)
    codebook.write(folder / CODEBOOK_FILE, export=export, rows=rows)
    codebook_table.write(folder / TABLE_FILE, export=export, rows=rows)
    documents = folder / DOCUMENTS_FILE
    archive.write(documents, export=export, rows=rows, data=data.path)
    return ExportResult(rows, people, responses)


def write_data(
    files: Sequence[DataFile], reading: Reading, progress: Progress
) -> list[RowBuilder]:
    """Write the same rows to each file, and compare them with the snapshot's counts.

    Each file has a folder of its own, for what it writes meanwhile. Raises JobRefused
    if a sheet would be too wide, and CountMismatch if a file is not complete.
    """
    with ExitStack() as stack:
        builders = [open_file(file, stack) for file in files]
        for lines in batches(reading.shuffle.bundles()):
            for rows in builders:
                rows.write(lines)
            progress.advance(len(lines))
        for file, rows in zip(files, builders, strict=True):
            if isinstance(rows.writer, XlsxFile):
                rows.writer.write_codebook(
                    codebook_table.headers(file.export, rows),
                    codebook_table.lines(file.export, rows),
                )
            rows.writer.close()
            check_counts(rows, reading)
    return builders


def open_file(file: DataFile, stack: ExitStack) -> RowBuilder:
    export, plan, path = file.export, file.plan, file.path
    is_long = export.format == Export.Format.LONG
    builder = LongRowBuilder if is_long else WideRowBuilder
    headers = builder.headers_of(plan)
    if export.format == Export.Format.XLSX:
        if len(headers) > MOST_COLUMNS:
            raise JobRefused(too_many_columns(len(headers)))
        # Not closed after an error: that would write the whole workbook.
        notes = codebook.masked_columns(plan)
        writer: Writer = XlsxFile(path, headers, scratch=path.parent, notes=notes)
    elif export.is_typed:
        typed = open_typed_file(export, plan, path, scratch=path.parent)
        writer = stack.enter_context(typed)
    else:
        opened = stack.enter_context(path.open("wb"))
        writer = CsvFile(opened, headers, bom=export.bom)
    return builder(plan, writer)


def check_counts(rows: RowBuilder, reading: Reading) -> None:
    counted = (reading.respondents, reading.responses)
    if (rows.respondents, rows.responses) != counted:
        raise CountMismatch(
            _(
                "%(respondents)s of %(people)s respondents and %(responses)s"
                " of %(responses_2)s responses were written."
            )
            % {
                "respondents": rows.respondents,
                "people": reading.respondents,
                "responses": rows.responses,
                "responses_2": reading.responses,
            }
        )


def open_typed_file(
    export: Export, plan: ExportPlan, path: Path, *, scratch: Path
) -> TypedFile:
    # PyArrow takes 0.3 s and 60 MB: not in each process.
    from reports.exports.typed.parquet_file import ParquetFile

    makers: dict[str, Callable[..., TypedFile]] = {
        Export.Format.SAV.value: SavFile,
        Export.Format.ZSAV.value: partial(SavFile, zlib_compressed=True),
        Export.Format.DTA.value: DtaFile,
        Export.Format.PARQUET.value: ParquetFile,
    }
    return makers[export.format](
        path,
        described_columns(plan),
        title=codebook.title_of(plan),
        scratch=scratch,
    )


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


def keep_export(
    export: Export, folder: Path, result: ExportResult, progress: Progress
) -> None:
    keep_files(
        export,
        {
            "file_name": (folder / DATA_FILE, export.suffix),
            "codebook_name": (folder / CODEBOOK_FILE, ".html"),
            "codebook_table_name": (folder / TABLE_FILE, ".csv"),
            "documents_name": (folder / DOCUMENTS_FILE, ".zip"),
        },
        progress,
        after={
            "respondents": result.respondents,
            "responses": result.responses,
            "identities": export.identities,
        },
        rows=result.rows.rows,
        respondents=result.respondents,
        responses=result.responses,
        joined_people=result.rows.plan.joined_people,
        people=result.rows.plan.people,
    )
