"""Who comes: their codes and answers, given or made up."""

from __future__ import annotations

import argparse
import csv
import shlex
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from provisioning.commands import Refusal, output_of, step
from provisioning.jmeter.shapes import Load, load_of

# Arrivals are drawn: a few more come than were computed.
SPARE = 1.1


@dataclass(frozen=True, slots=True)
class Data:
    """The files of `manage.py jmeter_data`."""

    codes: Path
    pages: Path


def given(options: argparse.Namespace) -> Data | None:
    if not options.codes:
        return None
    for path in (options.codes, options.pages):
        if not path.is_file():
            raise Refusal(f"{path} is not there")
    return Data(options.codes.absolute(), options.pages.absolute())


def made(options: argparse.Namespace, output: Path, tidy: ExitStack) -> Data:
    """By jmeter_data of the installation, for as many people as will come."""
    data = Data(output / "codes.csv", output / "pages.properties")
    name, people = options.administration, ""
    if name is None:
        pages, items = options.survey_pages, options.survey_items
        name = f"jmeter-{pages}x{items}"
        people = str(round(load_of(options, pages).people * SPARE) + 20)
        with step(f"Making up {int(people):,} people"):
            _manage(
                options,
                *("open_rehearsal", "--name", name, "--respondents", people),
                *("--pages", str(pages), "--items", str(items), "--unstarted"),
            )
    with step("Writing their codes and answers"):
        # Whoever has the codes can answer for these people.
        tidy.callback(data.codes.unlink, missing_ok=True)
        _manage(
            options,
            *("jmeter_data", "--administration", name),
            *("--codes", str(data.codes), "--pages", str(data.pages)),
            *(("--limit", people) if people else ()),
        )
    return data


def _manage(options: argparse.Namespace, *arguments: str) -> None:
    output_of(
        [*shlex.split(options.manage), *arguments], failing=f"{arguments[0]} failed"
    )


def check_enough(codes: Path, load: Load, remote: Sequence[str]) -> None:
    with codes.open(encoding="utf-8", newline="") as file:
        people = sum(1 for row in csv.reader(file) if row) - 1
    if people < load.people:
        raise Refusal(
            f"{people:,} people are waiting, and {load.people:,} would come: lower"
            " --rate or --duration, or add people"
        )
