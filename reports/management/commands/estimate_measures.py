from __future__ import annotations

import csv
import math
from argparse import ArgumentParser
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
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
        people, row_of_person = rasch.ResponseTable.of_people(
            _read(options["file"], items)
        )
        found = rasch.examine(people)
        for problem in found:
            sentence = SENTENCES[problem.kind].format(category=problem.category)
            self.stderr.write(f"{items[problem.item]}: {sentence}.")
        left_out = {problem.item for problem in found if problem.excludes}
        kept = [number for number in range(len(items)) if number not in left_out]
        if len(kept) < 2:
            raise CommandError("At least two items with different answers are needed.")
        names = [items[number] for number in kept]
        # Rows stay as they are, so that each person still finds theirs.
        table, used = rasch.ResponseTable(
            people.categories[:, kept], people.people
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
        folder = options["output"]
        folder.mkdir(parents=True, exist_ok=True)
        _write(
            folder / "thresholds.csv",
            ("item", "step", "threshold", "standard_error"),
            _threshold_rows(names, used, calibration),
        )
        _write(
            folder / "items.csv",
            ("item", "infit", "outfit", "n"),
            zip(names, fit.infit, fit.outfit, fit.people, strict=True),
        )
        _write(
            folder / "persons.csv",
            ("row", "score", "mle", "wle", "standard_error"),
            _person_rows(table, measures, row_of_person),
        )
        separation = rasch.separation(table, measures)
        self.stdout.write(
            f"{len(row_of_person)} people, {len(kept)} items: reliability"
            f" {separation.reliability:.3f}, separation {separation.separation:.2f}."
            f" Written to {folder}."
        )


def _read(path: Path, items: Sequence[str]) -> Integers:
    """Return categories of a CSV file, with a row for each person."""
    if len(set(items)) < len(items):
        raise CommandError("--items names an item twice.")
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.reader(file)
            header = next(reader, [])
            if missing := [name for name in items if name not in header]:
                raise CommandError(f"{path} has no column {', '.join(missing)}.")
            places = [header.index(name) for name in items]
            rows = [
                [
                    _category(row[place] if place < len(row) else "", path, line, name)
                    for place, name in zip(places, items, strict=True)
                ]
                for line, row in enumerate(reader, start=2)
                if row
            ]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise CommandError(f"{path} cannot be read: {error}") from None
    if not rows:
        raise CommandError(f"{path} has no people.")
    return np.array(rows, dtype=np.int16)


def _category(text: str, path: Path, line: int, name: str) -> int:
    text = text.strip()
    if not text:
        return rasch.MISSING
    if not text.isdecimal() or int(text) > MOST_CATEGORIES:
        raise CommandError(
            f"{path}, line {line}, {name}: {text} is not a category,"
            f" which is a whole number from 0 to {MOST_CATEGORIES}."
        )
    return int(text)


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
    for number, row in enumerate(row_of_person, start=1):
        yield (
            *(number, int(table.scores[row]), measures.mle[row], measures.wle[row]),
            measures.standard_error[row],
        )


def _write(path: Path, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(header)
        writer.writerows([_cell(value) for value in row] for row in rows)


def _cell(value: Any) -> Any:
    if not isinstance(value, float):
        return value
    if math.isnan(value):
        return ""
    return int(value) if value.is_integer() else f"{value:.6f}"
