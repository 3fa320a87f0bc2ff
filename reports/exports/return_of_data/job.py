"""Make archives for districts in the job of exports."""

from __future__ import annotations

from pathlib import Path

from reports.exports.job import FURTHER_FORMATS
from reports.models.exports import RETURN, Export
from survey.work.jobs import Progress


def make(export: Export, folder: Path, progress: Progress) -> None:
    # It needs what pages of the console need: not in each process.
    from reports.exports.return_of_data.district_archive import make_district_archive

    make_district_archive(export, folder, progress)


FURTHER_FORMATS[RETURN] = make
