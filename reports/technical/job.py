"""Make technical reports in the job of exports."""

from __future__ import annotations

from pathlib import Path

from reports.exports.job import FURTHER_FORMATS
from reports.models.exports import TECHNICAL, Export
from survey.work.jobs import Progress


def make(export: Export, folder: Path, progress: Progress) -> None:
    # It needs SciPy, which takes 0.5 s and 40 MB: not in each process.
    from reports.technical.files import make_technical_report

    make_technical_report(export, folder, progress)


FURTHER_FORMATS[TECHNICAL] = make
