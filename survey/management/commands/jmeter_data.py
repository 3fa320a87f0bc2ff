from __future__ import annotations

import csv
import json
import random
from collections.abc import Iterable, Iterator
from functools import partial
from io import TextIOWrapper
from pathlib import Path
from typing import cast

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db.models import F
from django.utils import timezone

from survey.access_codes import CodeKeyMissing, code_of, format_code
from survey.administrations import (
    AdministrationNotFound,
    get_administration,
    invited_people,
)
from survey.models import Administration, Respondent
from survey.rosters.private_files import private_file
from survey.simulation.answers import NoAnswerFound, SimulatedPage, simulate_take
from survey.simulation.load_survey import is_rehearsal
from survey.taking import rendering
from survey.taking.published import Published, published_survey


class Command(BaseCommand):
    help = (
        "Write the data of jmeter/survey.jmx: a CSV file of login codes, and the"
        " pages that its simulated people send. People who have finished or were"
        " withdrawn are left out; people who have not started come first."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--administration", required=True, help="its short name")
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
        try:
            found = get_administration(administration)
        except AdministrationNotFound as error:
            raise CommandError(str(error)) from None
        if not real_people and not is_rehearsal(found):
            raise CommandError(
                f"{found} is not a rehearsal: JMeter would answer and finish the"
                " surveys of real people. To allow that, add --real-people."
            )
        published = published_survey(found.published_id)
        now = timezone.localtime()
        simulated = []
        try:
            for number in range(takes):
                draw = random.Random(f"{seed}/{number}")  # noqa: S311
                simulated.append(simulate_take(published, draw=draw, now=now))
        except NoAnswerFound as error:
            raise CommandError(
                "The survey's rules refuse every answer that was tried for these"
                f" items: {error}."
            ) from None
        people = list(
            invited_people(found)
            .filter(completed_at=None)
            .only("issue", "code_key_version")
            .order_by(F("started_at").asc(nulls_first=True), "pk")[:limit]
        )
        if not people:
            raise CommandError(f"No one is left to take {found}.")
        write_file(codes, force, code_lines(people, takes))
        properties = jmeter_properties(found, published, simulated)
        lines = ([f"{name}={escaped(value)}"] for name, value in properties)
        write_file(pages, force, lines)
        self.stdout.write(
            f"{len(people):,} codes are in {codes}, {takes} takes of"
            f" {len(published.answerable)} pages in {pages}"
        )


def code_lines(people: Iterable[Respondent], takes: int) -> Iterator[list[str]]:
    yield ["code", "take"]
    for place, respondent in enumerate(people):
        yield [format_code(code_of(respondent)), str(place % takes + 1)]


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
) -> Iterator[tuple[str, str]]:
    """List the properties that jmeter/survey.jmx describes at its beginning."""
    yield "survey.administration", administration.name
    yield "survey.digest", published.digest
    yield "survey.renderer", rendering.RENDERER
    yield "survey.language", published.languages[0]
    yield "survey.pages", str(len(published.answerable))
    yield "takes", str(len(takes))
    to_json = partial(json.dumps, ensure_ascii=False, separators=(",", ":"))
    for t, pages in enumerate(takes, start=1):
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
