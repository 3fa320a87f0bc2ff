"""Write the technical report: a ZIP file of a PDF, CSV tables and a page about them."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile

from django.utils.translation import gettext as _

from accounts.csv_injection import escape_formula
from reports.models.exports import Export
from reports.school_report.archives import NO_PDF
from reports.school_report.pdf import NoPdf
from reports.technical.document import document_of
from reports.technical.effects import keep_effects
from reports.technical.people_tables import tables_of_people
from reports.technical.source import read_source
from reports.technical.tables import Row, tables_of_items
from survey.work.jobs import JobRefused, Progress
from survey.work.requested_files import keep_files

# What is in the tables, the formulas' sources, and what is hidden.
ABOUT = Path(__file__).with_name("about.txt")
DOCUMENT = "technical-report.pdf"


def make_technical_report(export: Export, folder: Path, progress: Progress) -> None:
    """Make the file of a request. The caller has checked the permission.

    Raises JobRefused without the library that makes PDF files.
    """
    administration = export.administrations.select_related(
        "published__survey", "wave"
    ).get()
    source = read_source(administration, progress)
    path = folder / "technical-report.zip"
    rows = 0
    with ZipFile(path, "w", ZIP_DEFLATED) as archive:
        archive.writestr("about.txt", ABOUT.read_bytes())
        makers = {**tables_of_items(source), **tables_of_people(source)}
        tables = {name: list(lines) for name, lines in makers.items()}
        progress.begin_step(_("Making the PDF file."))
        try:
            document = document_of(source, tables, ABOUT.read_text())
        except NoPdf as error:
            raise JobRefused(NO_PDF) from error
        archive.writestr(DOCUMENT, document)
        for name, lines in tables.items():
            content, written = csv_file(lines)
            archive.writestr(f"{name}.csv", content)
            rows += written
    keep_effects(source, tables)
    keep_files(
        export,
        {"file_name": (path, ".zip")},
        progress,
        after={"rows": rows},
        rows=rows,
        respondents=source.everyone.people,
    )
    progress.message = _("Ready: %(rows)s rows.") % {"rows": f"{rows:,}"}


def csv_file(lines: Iterable[Row]) -> tuple[bytes, int]:
    """Return a CSV file and its number of rows below the header."""
    file = io.StringIO(newline="")
    writer = csv.writer(file)
    # Not below the header.
    rows = -1
    for line in lines:
        writer.writerow(
            escape_formula(cell) if isinstance(cell, str) else cell for cell in line
        )
        rows += 1
    # With a byte order mark, so that Excel shows accents correctly.
    return file.getvalue().encode("utf-8-sig"), rows
