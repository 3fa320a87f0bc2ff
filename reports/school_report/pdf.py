"""Make the file of a school's report."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import tempfile
import time
from base64 import b64encode
from collections.abc import Mapping, Sequence
from pathlib import Path

from django.conf import settings
from django.template.loader import render_to_string
from django.utils import translation

from accounts.place_settings import Brand
from reports.school_report.report import SchoolReport
from survey.fieldwork.login_cards.fonts import letters_without_font

log = logging.getLogger(__name__)

# As in `pdf_process`, which is not imported here because it loads WeasyPrint.
PNG = "data:image/png;base64,"
# A report takes two seconds, the first one of a process included.
SECONDS = 60
# More would take the processor from page saves.
PROCESSES = 2


class NoPdf(Exception):
    """WeasyPrint, or a library of Debian that it needs, has failed."""


def html_of(report: SchoolReport, brand: Brand | None = None) -> str:
    """Render the document of the file; it says if letters of it have no font."""
    shown: dict[str, object] = {}
    if brand is not None:
        logo = f"{PNG}{b64encode(brand.logo).decode()}" if brand.logo else ""
        shown = {"name": brand.name, "logo": logo, "size": brand.size}
    with translation.override(report.frame_language):
        context = {"report": report, "brand": shown, "version": settings.VERSION}
        html = render_to_string("reports/school_report_print.html", context)
        letters = letters_without_font(html)
        if not letters:
            return html
        log.warning("A report has letters without a font: %s", letters)
        context["lacks_fonts"] = True
        return render_to_string("reports/school_report_print.html", context)


def pdf_files(
    documents: Mapping[str, str], seconds: float | None = None
) -> dict[str, bytes]:
    """Turn HTML documents into tagged PDF files (PDF/UA-1). Raises NoPdf.

    Keys are names. Uses two processes at most, which have ended afterwards.
    """
    if seconds is None:
        seconds = SECONDS * max(1, len(documents) // (5 * PROCESSES))
    with tempfile.TemporaryDirectory() as top:
        folders = {
            name: Path(top, str(number % PROCESSES))
            for number, name in enumerate(documents)
        }
        for name, folder in folders.items():
            folder.mkdir(exist_ok=True)
            (folder / f"{name}.html").write_text(documents[name])
        _run_processes([*dict.fromkeys(folders.values())], seconds)
        return {
            name: (folder / f"{name}.pdf").read_bytes()
            for name, folder in folders.items()
        }


def _run_processes(folders: Sequence[Path], seconds: float) -> None:
    """Make the PDF files in folders, each in a process of its own."""
    deadline = time.monotonic() + seconds
    running: list[subprocess.Popen[bytes]] = []
    try:
        for folder in folders:
            command = [sys.executable, "-m", "reports.school_report.pdf_process"]
            with (folder / "log").open("wb") as output:
                process = subprocess.Popen(  # noqa: S603
                    [*command, folder, settings.BASE_DIR / "static"],
                    cwd=settings.BASE_DIR,
                    # Nothing of ours, such as the password of the database.
                    env={"PATH": os.environ.get("PATH", os.defpath), "LANG": "C.UTF-8"},
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                )
            running.append(process)
        for folder, process in zip(folders, running, strict=True):
            if process.wait(max(0.0, deadline - time.monotonic())):
                log.error("No PDF: %s", (folder / "log").read_text(errors="replace"))
                raise NoPdf
    except (OSError, subprocess.TimeoutExpired) as error:
        log.exception("No PDF")
        raise NoPdf from error
    finally:
        for process in running:
            process.kill()
            process.wait()
