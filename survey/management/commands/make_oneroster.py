from __future__ import annotations

import json
import os
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import TypedDict, Unpack

from django.core.management.base import BaseCommand, CommandError, CommandParser

from survey.simulation.oneroster import SyntheticDistrict, district_sizes


class Options(TypedDict):
    folder: Path
    districts: int
    people: int
    seed: int
    night: int
    changed: float
    processes: int


class Command(BaseCommand):
    help = (
        "Write made-up districts as OneRoster ZIPs: FOLDER/district-00001.zip, … The"
        " same options give the same files."
    )
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("folder", type=Path)
        parser.add_argument("--districts", type=int, default=1)
        parser.add_argument("--people", type=int, default=2000, help="of all districts")
        parser.add_argument("--seed", type=int, default=1)
        parser.add_argument(
            "--night", type=int, default=0, help="0 is the first one, before any change"
        )
        parser.add_argument(
            "--changed",
            type=_share,
            default=0.01,
            help="share of the people that changes in each later night (1%%)",
        )
        parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)

    def handle(self, *args: object, **options: Unpack[Options]) -> None:
        start = time.perf_counter()
        folder = options["folder"]
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise CommandError(f"{folder}: {error.strerror}.") from error
        sizes = district_sizes(options["districts"], options["people"], options["seed"])
        districts = [
            SyntheticDistrict(
                number,
                people,
                options["seed"],
                options["night"],
                options["changed"],
            )
            for number, people in enumerate(sizes, 1)
        ]
        paths = [folder / f"district-{made.number:05}.zip" for made in districts]
        with ProcessPoolExecutor(options["processes"]) as processes:
            written = sum(processes.map(_write, districts, paths, chunksize=4))
        figures = {
            "districts": len(districts),
            "people": sum(sizes),
            "mb": round(written / 2**20, 1),
            "seconds": round(time.perf_counter() - start, 1),
        }
        self.stdout.write(json.dumps(figures))


def _share(text: str) -> float:
    return float(text.removesuffix("%")) / 100 if "%" in text else float(text)


def _write(district: SyntheticDistrict, path: Path) -> int:
    """Write a ZIP, and return its size."""
    district.write(path)
    return path.stat().st_size
