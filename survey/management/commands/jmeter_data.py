from __future__ import annotations

import csv
import json
import random
from collections.abc import Iterable, Iterator
from functools import partial
from io import TextIOWrapper
from itertools import zip_longest
from pathlib import Path
from typing import cast

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db.models import F
from django.utils import timezone

from survey.fieldwork.administrations import (
    AdministrationNotFound,
    get_administration,
    invited_people,
)
from survey.fieldwork.open_codes.codes import code_of as code_of_open_code
from survey.models import Administration, Denominator
from survey.people.access_codes import CodeKeyMissing, code_of, format_code
from survey.people.rosters.private_files import private_file
from survey.simulation.answers import NoAnswerFound, SimulatedPage, simulate_take
from survey.simulation.load_survey import is_rehearsal
from survey.taking import rendering
from survey.taking.published import Published, published_survey

# With an open code, for how many children a person answers. None: declines.
CHILDREN = (1, 1, 2, 1, 1, 0, 1, 1, 2, 1)


class Command(BaseCommand):
    help = (
        "Write the data of jmeter/survey.jmx: a CSV file of login codes, and the"
        " pages that its simulated people send. People who have finished or were"
        " withdrawn are left out; people who have not started come first. Where anyone"
        " can take part, everybody gets the same open code."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--administration",
            required=True,
            help="its short name; several, with commas in between, are mixed",
        )
        parser.add_argument(
            "--codes", required=True, type=Path, help="a new CSV file: code,take"
        )
        parser.add_argument(
            "--pages", required=True, type=Path, help="a new properties file"
        )
        parser.add_argument(
            "--limit",
            type=int,
            default=100_000,
            help="number of codes, 100,000 by default",
        )
        parser.add_argument(
            "--takes",
            type=int,
            default=10,
            help="number of simulated people, 10 by default",
        )
        parser.add_argument(
            "--seed", default="rehearsal", help="another seed draws other answers"
        )
        parser.add_argument(
            "--force", action="store_true", help="replace the files if they are there"
        )
        parser.add_argument(
            "--real-people",
            action="store_true",
            help="allow an administration that is not a rehearsal: JMeter then"
            " replaces its people's answers by made-up ones and finishes their"
            " surveys, so that they can't take them any more",
        )

    def handle(
        self,
        *,
        administration: str,
        codes: Path,
        pages: Path,
        limit: int,
        takes: int,
        seed: str,
        force: bool,
        real_people: bool,
        **options: object,
    ) -> None:
        if limit < 1 or takes < 1:
            raise CommandError("--limit and --takes are at least 1.")
        rows: list[list[list[str]]] = []
        properties: list[tuple[str, str]] = []
        for number, name in enumerate(administration.split(",")):
            chosen = find_administration(name, real_people=real_people)
            published = published_survey(chosen.published_id)
            simulated = make_takes(published, takes, seed)
            first = number * takes + 1
            rows.append(
                [
                    [code, str(first + place % takes)]
                    for place, code in enumerate(codes_of(chosen, limit))
                ]
            )
            properties += jmeter_properties(chosen, published, simulated, first)
        # Mixed, so that a run which ends early has people of each survey.
        mixed = [row for each in zip_longest(*rows) for row in each if row][:limit]
        write_file(codes, force, [["code", "take"], *mixed])
        properties.append(("takes", str(len(rows) * takes)))
        lines = ([f"{name}={escaped(value)}"] for name, value in properties)
        write_file(pages, force, lines)
        self.stdout.write(
            f"{len(mixed):,} codes are in {codes}, {len(rows) * takes} takes in {pages}"
        )


def find_administration(name: str, *, real_people: bool) -> Administration:
    try:
        administration = get_administration(name)
    except AdministrationNotFound as error:
        raise CommandError(str(error)) from None
    if not real_people and not is_rehearsal(administration):
        raise CommandError(
            f"{administration} is not a rehearsal: JMeter would answer and finish the"
            " surveys of real people. To allow that, add --real-people."
        )
    return administration


def make_takes(
    published: Published, takes: int, seed: str
) -> list[list[SimulatedPage]]:
    now = timezone.localtime()
    try:
        return [
            simulate_take(published, draw=random.Random(f"{seed}/{number}"), now=now)  # noqa: S311
            for number in range(takes)
        ]
    except NoAnswerFound as error:
        raise CommandError(
            "The survey's rules refuse every answer that was tried for these"
            f" items: {error}."
        ) from None


def codes_of(administration: Administration, limit: int) -> list[str]:
    """Return people's codes; for anyone, one open code as often as `limit` says."""
    if administration.denominator == Denominator.COUNT:
        unlimited = administration.open_codes.filter(revoked_at=None, limit=None)
        if (open_code := unlimited.order_by("pk").first()) is None:
            raise CommandError(f"{administration} has no unlimited open code.")
        return [format_code(code_of_open_code(open_code))] * limit
    people = (
        invited_people(administration)
        .filter(completed_at=None)
        .only("issue", "code_key_version")
        .order_by(F("started_at").asc(nulls_first=True), "pk")[:limit]
    )
    if not people:
        raise CommandError(f"No one is left to take {administration}.")
    return [format_code(code_of(respondent)) for respondent in people]


def write_file(path: Path, force: bool, lines: Iterable[list[str]]) -> None:
    try:
        with private_file(path, replace=force) as file:
            # Without the mark for Excel, which would be part of the first name.
            cast(TextIOWrapper, file).reconfigure(encoding="ascii")
            if path.suffix == ".csv":
                csv.writer(file).writerows(lines)
            else:
                file.writelines("".join(line) + "\n" for line in lines)
    except CodeKeyMissing as error:
        raise CommandError(str(error)) from error
    except OSError as error:
        hint = "; --force replaces it" if isinstance(error, FileExistsError) else ""
        raise CommandError(f"{path}: {error.strerror}{hint}.") from error


def jmeter_properties(
    administration: Administration,
    published: Published,
    takes: list[list[SimulatedPage]],
    first: int,
) -> Iterator[tuple[str, str]]:
    """List the properties that jmeter/survey.jmx describes at its beginning."""
    if first == 1:
        yield "survey.administration", administration.name
        yield "survey.digest", published.digest
        yield "survey.renderer", rendering.RENDERER
        yield "survey.language", published.languages[0]
        yield "survey.pages", str(len(published.answerable))
    is_open = administration.denominator == Denominator.COUNT
    to_json = partial(json.dumps, ensure_ascii=False, separators=(",", ":"))
    for t, pages in enumerate(takes, start=first):
        yield f"take.{t}.survey", administration.name
        yield f"take.{t}.language", published.languages[t % len(published.languages)]
        if is_open:
            children = CHILDREN[(t - first) % len(CHILDREN)]
            yield f"take.{t}.children", str(children or 1)
            yield f"take.{t}.choice", "begin" if children else "decline"
        yield f"take.{t}.pages", str(len(pages))
        for s, page in enumerate(pages, start=1):
            yield f"take.{t}.{s}.page", str(page.page)
            yield f"take.{t}.{s}.items", str(len(page.answers))
            yield f"take.{t}.{s}.answers", to_json(page.answers)
            yield f"take.{t}.{s}.changed", to_json(page.changed)


def escaped(value: str) -> str:
    """Escape a value for java.util.Properties: double backslashes, ASCII only."""
    plain = value.replace("\\", "\\\\").encode("utf-16-be", "surrogatepass")
    units = (int.from_bytes(plain[i : i + 2], "big") for i in range(0, len(plain), 2))
    return "".join(
        chr(unit) if 0x20 <= unit < 0x7F else f"\\u{unit:04x}" for unit in units
    )
