"""Make the file of a school's report."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from django.conf import settings
from django.template.loader import render_to_string
from django.utils import translation

from reports.school_report.report import SchoolReport

log = logging.getLogger(__name__)

# A report takes two seconds, the first one of a process included.
SECONDS = 60


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

    By name, in one process, which ends when they are made.
    """
    if seconds is None:
        seconds = SECONDS * max(1, len(documents) // 5)
    with tempfile.TemporaryDirectory() as folder:
        for name, html in documents.items():
            Path(folder, f"{name}.html").write_text(html)
        command = [sys.executable, "-m", "reports.school_report.pdf_process"]
        try:
            subprocess.run(  # noqa: S603
                [*command, folder, settings.BASE_DIR / "static"],
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
        return {name: Path(folder, f"{name}.pdf").read_bytes() for name in documents}
