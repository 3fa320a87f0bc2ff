"""Make the file of a school's report."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from django.conf import settings
from django.template.loader import render_to_string
from django.utils import translation

from reports.school_report.report import SchoolReport

log = logging.getLogger(__name__)

# A report takes two seconds, the first one of a process included.
SECONDS = 60
# More would take the processor from page saves.
PROCESSES = 2


class NoPdf(Exception):
    """WeasyPrint, or a library of Debian that it needs, has failed."""


def body_of(report: SchoolReport) -> str:
    """Render what the page and the file have in common."""
    with translation.override(report.frame_language):
        return render_to_string("reports/_school_report.html", {"report": report})


def html_of(report: SchoolReport) -> str:
    """Render the document of the file."""
    with translation.override(report.frame_language):
        return render_to_string(
            "reports/school_report_print.html",
            {"report": report, "body": body_of(report)},
        )


def pdf_files(
    documents: Mapping[str, str], seconds: float | None = None
) -> dict[str, bytes]:
    """Turn HTML documents into tagged PDF files (PDF/UA-1). Raises NoPdf.

    By name, in two processes at most, which end when they are made.
    """
    if seconds is None:
        seconds = SECONDS * max(1, len(documents) // 5)
    with tempfile.TemporaryDirectory() as top, ThreadPoolExecutor(PROCESSES) as threads:
        folders = {
            name: Path(top, str(n % PROCESSES)) for n, name in enumerate(documents)
        }
        for name, folder in folders.items():
            folder.mkdir(exist_ok=True)
            (folder / f"{name}.html").write_text(documents[name])
        made = [
            threads.submit(_make_pdf_files, folder, seconds)
            for folder in dict.fromkeys(folders.values())
        ]
        for each in made:
            each.result()
        return {
            name: (folder / f"{name}.pdf").read_bytes()
            for name, folder in folders.items()
        }


def _make_pdf_files(folder: Path, seconds: float) -> None:
    """Make a PDF file of each document in a folder, in a process of its own."""
    try:
        subprocess.run(  # noqa: S603
            [
                *(sys.executable, "-m", "reports.school_report.pdf_process"),
                *(folder, settings.BASE_DIR / "static"),
            ],
            cwd=settings.BASE_DIR,
            # Nothing of ours, such as the password of the database.
            env={"PATH": os.environ.get("PATH", os.defpath), "LANG": "C.UTF-8"},
            capture_output=True,
            check=True,
            text=True,
            timeout=seconds,
        )
    except subprocess.SubprocessError as error:
        log.exception("No PDF: %s", getattr(error, "stderr", ""))
        raise NoPdf from error
