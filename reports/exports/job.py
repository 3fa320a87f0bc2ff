"""Make the file of an export: read one snapshot, shuffle it, write it, check it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts.permissions import Permissions
from reports.exports import codebook, codebook_table
from reports.exports.anonymise import Shuffle
from reports.exports.cells import Writer
from reports.exports.csv_file import CsvFile
from reports.exports.descriptions import described_columns
from reports.exports.destroyed import destroyed_message
from reports.exports.documents import archive
from reports.exports.long_rows import LongRowBuilder
from reports.exports.panel import join_waves
from reports.exports.reading import plan_of, read_snapshot, too_many_columns
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


Maker = Callable[[Export, Path, Progress], None]
# Formats that are made above this package, and their makers.
FURTHER_FORMATS: dict[str, Maker] = {}


class CountMismatch(Exception):
    """The file does not contain what the database counted in its snapshot."""


@dataclass
class ExportResult:
    """The rows as written, and the counts of the database."""

    rows: RowBuilder
    respondents: int
    responses: int


@makes(Export, "by", "project", waits=True)
def make_export(export: Export, folder: Path, progress: Progress) -> None:
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
    rows = write_data(export, folder, plan, reading.shuffle, progress)
    if (rows.respondents, rows.responses) != (people, responses):
        raise CountMismatch(
            _(
                "%(respondents)s of %(people)s respondents and %(responses)s"
                " of %(responses_2)s responses were written."
            )
            % {
                "respondents": rows.respondents,
                "people": people,
                "responses": rows.responses,
                "responses_2": responses,
            }
        )
    codebook.write(folder / CODEBOOK_FILE, export=export, rows=rows)
    codebook_table.write(folder / TABLE_FILE, export=export, rows=rows)
    documents, data = folder / DOCUMENTS_FILE, folder / DATA_FILE
    archive.write(documents, export=export, rows=rows, data=data)
    return ExportResult(rows, people, responses)


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
            notes = codebook.masked_columns(plan)
            writer: Writer = XlsxFile(path, headers, scratch=folder, notes=notes)
        elif export.is_typed:
            writer = stack.enter_context(
                open_typed_file(export, plan, path, scratch=folder)
            )
        else:
            file = stack.enter_context(path.open("wb"))
            writer = CsvFile(file, headers, bom=export.bom)
        rows: RowBuilder = builder(plan, writer)
        for lines in batches(shuffle.bundles()):
            rows.write(lines)
            progress.advance(len(lines))
        if isinstance(writer, XlsxFile):
            writer.write_codebook(
                codebook_table.headers(export, rows), codebook_table.lines(export, rows)
            )
        writer.close()
    return rows


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
