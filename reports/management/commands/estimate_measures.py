from __future__ import annotations

import csv
import math
from argparse import ArgumentParser
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from django.core.management.base import BaseCommand, CommandError

from reports import rasch
from reports.rasch import problems
from reports.rasch.responses import Integers

# Categories are kept in a byte; surveys have at most eleven.
MOST_CATEGORIES = 50
SENTENCES = {
    problems.UNANSWERED: "nobody answered it: left out",
    problems.ONE_CATEGORY: "all answers are the same: left out",
    problems.DISCONNECTED: "no people link it to the other items: left out",
    problems.UNUSED_CATEGORY: "nobody chose category {category}: it has no threshold",
}
# The files that are written, and their columns.
TABLES = {
    "thresholds.csv": ("item", "step", "threshold", "standard_error"),
    "items.csv": ("item", "infit", "outfit", "n"),
    "persons.csv": ("row", "score", "mle", "wle", "standard_error"),
}


class Command(BaseCommand):
    help = (
        "Estimate thresholds of items and measures of people by the Rasch model, from"
        " a CSV file with a row for each person and a column for each item:"
        " categories are whole numbers from 0, blank cells are missing answers. Writes"
        " thresholds.csv, items.csv and persons.csv. The thresholds' mean is 0."
    )
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path, metavar="FILE.csv")
        parser.add_argument("--items", required=True, help="columns, as in a,b,c")
        parser.add_argument("--output", required=True, type=Path, metavar="DIR")
        parser.add_argument(
            "--model",
            choices=(rasch.PARTIAL_CREDIT, rasch.RATING_SCALE),
            default=rasch.PARTIAL_CREDIT,
            help="%(default)s if not given",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        items = [name.strip() for name in options["items"].split(",")]
        folder = options["output"]
        _check_output(folder, options["file"])
        people, row_of_person = rasch.ResponseTable.of_people(
            _read(options["file"], items)
        )
        all_problems = rasch.examine(people)
        for problem in all_problems:
            sentence = SENTENCES[problem.kind].format(category=problem.category)
            self.stderr.write(f"{items[problem.item]}: {sentence}.")
        left_out = {problem.item for problem in all_problems if problem.excludes}
        usable = [number for number in range(len(items)) if number not in left_out]
        if len(usable) < 2:
            raise CommandError("At least two items with different answers are needed.")
        names = [items[number] for number in usable]
        # Rows stay as they are, so that each person still finds theirs.
        table, used = rasch.ResponseTable(
            people.categories[:, usable], people.people
        ).without_unused_categories()
        try:
            calibration = rasch.calibrate(table, model=options["model"])
        except ValueError as error:
            raise CommandError(f"{error}.") from None
        if not calibration.is_converged:
            raise CommandError(
                "The thresholds cannot be estimated: the likelihood has no maximum."
                " Are there categories that hardly anybody chose?"
            )
        measures = rasch.measure_people(table, calibration.thresholds)
        fit = rasch.fit_statistics(table, calibration.thresholds, measures)
        tables = (
            _threshold_rows(names, used, calibration),
            zip(names, fit.infit, fit.outfit, fit.people, strict=True),
            _person_rows(table, measures, row_of_person),
        )
        _write_all(folder, tables)
        separation = rasch.separation(table, measures)
        people_measured = int(np.isfinite(measures.wle[row_of_person]).sum())
        if people_measured < len(row_of_person):
            self.stderr.write(
                f"{len(row_of_person) - people_measured} of {len(row_of_person)} people"
                " answered none of these items, and have no measure."
            )
        reliability = (
            f"reliability {separation.reliability:.3f},"
            f" separation {separation.separation:.2f}"
            if np.isfinite(separation.reliability)
            else "too few differences for a reliability"
        )
        self.stdout.write(
            f"{people_measured} people, {len(usable)} items: {reliability}."
            f" Written to {folder}."
        )


def _check_output(folder: Path, source: Path) -> None:
    """Refuse before anything is estimated: that may take minutes."""
    try:
        for place in (folder, *folder.parents):
            if place.exists() and not place.is_dir():
                raise CommandError(f"--output: {place} is not a folder.")
        for name in TABLES:
            if (folder / name).is_dir():
                raise CommandError(f"--output: {folder / name} is a folder.")
            if (folder / name).resolve() == source.resolve():
                raise CommandError(f"--output: {source} would be overwritten.")
    except OSError as error:
        raise CommandError(f"--output: {folder}: {error.strerror}.") from None


def _read(path: Path, items: Sequence[str]) -> Integers:
    """Return categories of a CSV file, with a row for each person."""
    if not all(items):
        raise CommandError("--items has a name that is blank.")
    if len(set(items)) < len(items):
        raise CommandError("--items names an item twice.")
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.reader(file)
            header = next(reader, [])
            places = _columns(header, path, items)
            rows = []
            for line, row in enumerate(reader, start=2):
                if any(cell.strip() for cell in row[len(header) :]):
                    raise CommandError(
                        f"{path}, line {line}: there are more cells than columns."
                    )
                # Spreadsheet programs leave out blank cells at the end.
                cells = [row[n] if n < len(row) else "" for n in places]
                if row:
                    rows.append(
                        [
                            _category(cell, path, line, name)
                            for cell, name in zip(cells, items, strict=True)
                        ]
                    )
    except UnicodeDecodeError:
        raise CommandError(f"{path} is not UTF-8.") from None
    except OSError as error:
        raise CommandError(f"{path} cannot be read: {error.strerror}.") from None
    except csv.Error as error:
        raise CommandError(f"{path} cannot be read: {error}.") from None
    if not rows:
        raise CommandError(f"{path} has no people.")
    return np.array(rows, dtype=np.int16)


def _columns(header: Sequence[str], path: Path, items: Sequence[str]) -> list[int]:
    """Return the places of the items."""
    names = [name.strip() for name in header]
    if not any(names):
        raise CommandError(f"{path} is empty, or its first line is.")
    if missing := [name for name in items if name not in names]:
        separated = len(names) == 1 and (";" in names[0] or "\t" in names[0])
        hint = " Its columns have to be separated by commas." if separated else ""
        raise CommandError(f"{path} has no column {', '.join(missing)}.{hint}")
    if twice := [name for name in items if names.count(name) > 1]:
        raise CommandError(f"{path} has more than one column {', '.join(twice)}.")
    return [names.index(name) for name in items]


def _category(text: str, path: Path, line: int, name: str) -> int:
    text = text.strip()
    if not text:
        return rasch.MISSING
    digits = text.lstrip("0") or "0"
    if not text.isdecimal() or len(digits) > 2 or int(digits) > MOST_CATEGORIES:
        shown = text if len(text) <= 40 and text.isprintable() else ascii(text[:40])
        raise CommandError(
            f"{path}, line {line}, {name}: {shown} is not a category,"
            f" which is a whole number from 0 to {MOST_CATEGORIES}."
        )
    return int(digits)


def _threshold_rows(
    names: Sequence[str], used: Sequence[Integers], calibration: rasch.Calibration
) -> Iterator[Sequence[Any]]:
    """Yield the thresholds; a step is named by the category that it leads to."""
    for name, categories, thresholds, errors in zip(
        names, used, calibration.thresholds, calibration.standard_errors, strict=True
    ):
        for step, threshold, error in zip(
            categories[1:], thresholds, errors, strict=True
        ):
            yield name, step, threshold, error


def _person_rows(
    table: rasch.ResponseTable, measures: rasch.PersonMeasures, row_of_person: Integers
) -> Iterator[Sequence[Any]]:
    """Yield a row for each person, with blank cells for those without an answer."""
    has_answered = (table.categories != rasch.MISSING).any(axis=1)
    for number, row in enumerate(row_of_person, start=1):
        yield (
            *(number, int(table.scores[row]) if has_answered[row] else ""),
            *(measures.mle[row], measures.wle[row], measures.standard_error[row]),
        )


def _write_all(folder: Path, tables: Sequence[Iterable[Sequence[Any]]]) -> None:
    """Write all files or none."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=folder) as unfinished:
            for (name, header), rows in zip(TABLES.items(), tables, strict=True):
                with (Path(unfinished) / name).open(
                    "w", encoding="utf-8", newline=""
                ) as file:
                    writer = csv.writer(file)
                    writer.writerow(header)
                    writer.writerows([_cell(value) for value in row] for row in rows)
            for name in TABLES:
                (Path(unfinished) / name).replace(folder / name)
    except OSError as error:
        raise CommandError(f"{folder} cannot be written: {error.strerror}.") from None


def _cell(value: Any) -> Any:
    if not isinstance(value, float):
        return value
    if math.isnan(value):
        return ""
    return int(value) if value.is_integer() else f"{value:.6f}"
