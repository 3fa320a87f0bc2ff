from __future__ import annotations

import csv
import json
import random
from collections.abc import Iterable, Iterator
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
from survey.simulation.answers import Answers, NoAnswerFound, Turn, made_up_take
from survey.simulation.load_survey import is_rehearsal
from survey.taking import rendering
from survey.taking.published import Published, published_survey


class Command(BaseCommand):
    help = (
        "Write what jmeter/survey.jmx needs: a CSV of login codes, and the pages of"
        " made-up people that it sends. Whoever finished or was withdrawn is left"
        " out, and whoever did not begin yet comes first."
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
            "--limit", type=int, default=100_000, help="of codes, instead of 100,000"
        )
        parser.add_argument(
            "--takes", type=int, default=10, help="made-up people, instead of 10"
        )
        parser.add_argument("--seed", default="rehearsal", help="draws other answers")
        parser.add_argument(
            "--force", action="store_true", help="replace the files if they are there"
        )
        parser.add_argument(
            "--real-people",
            action="store_true",
            help="of an administration that is no rehearsal: JMeter then answers for"
            " its people with made-up answers, over their own, and finishes their"
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
        found = _administration(administration)
        if not real_people and not is_rehearsal(found):
            raise CommandError(
                f"{found} is no rehearsal: JMeter would answer and finish the"
                " surveys of real people; --real-people says that it may."
            )
        published = published_survey(found.published_id)
        turns = _takes(published, takes, seed)
        people = list(
            invited_people(found)
            .filter(completed_at=None)
            .only("issue", "code_key_version")
            .order_by(F("started_at").asc(nulls_first=True), "pk")[:limit]
        )
        if not people:
            raise CommandError(f"No one is left to take {found}.")
        try:
            _write(codes, force, _code_lines(people, len(turns)))
        except CodeKeyMissing as error:
            raise CommandError(str(error)) from error
        properties = _properties(found, published, turns)
        _write(pages, force, _property_lines(properties))
        self.stdout.write(
            f"{len(people):,} codes are in {codes}, {len(turns)} takes of"
            f" {len(published.answerable)} pages in {pages}"
        )


def _administration(name: str) -> Administration:
    try:
        return get_administration(name)
    except AdministrationNotFound as error:
        raise CommandError(str(error)) from None


def _takes(published: Published, number: int, seed: str) -> list[list[Turn]]:
    now = timezone.localtime()
    try:
        return [
            made_up_take(published, draw=_dice(seed, take), now=now)
            for take in range(number)
        ]
    except NoAnswerFound as error:
        raise CommandError(
            f"The survey's rules refuse every answer that was tried to: {error}."
        ) from None


def _dice(seed: str, take: int) -> random.Random:
    return random.Random(f"{seed}/{take}")  # noqa: S311


def _code_lines(people: Iterable[Respondent], takes: int) -> Iterator[list[str]]:
    yield ["code", "take"]
    for place, respondent in enumerate(people):
        yield [format_code(code_of(respondent)), str(place % takes + 1)]


def _write(path: Path, force: bool, lines: Iterable[list[str]]) -> None:
    try:
        with private_file(path, replace=force) as file:
            # Without the mark for Excel, which would be part of the first name.
            cast(TextIOWrapper, file).reconfigure(encoding="ascii")
            if path.suffix == ".csv":
                csv.writer(file).writerows(lines)
            else:
                file.writelines("".join(line) + "\n" for line in lines)
    except OSError as error:
        hint = "; --force replaces it" if isinstance(error, FileExistsError) else ""
        raise CommandError(f"{path}: {error.strerror}{hint}.") from error


# What the plan reads: see the comment at its beginning.


def _properties(
    administration: Administration, published: Published, takes: list[list[Turn]]
) -> Iterator[tuple[str, str]]:
    yield "survey.administration", administration.name
    yield "survey.digest", published.digest
    yield "survey.renderer", rendering.RENDERER
    yield "survey.language", published.languages[0]
    yield "survey.pages", str(len(published.answerable))
    yield "takes", str(len(takes))
    for t, turns in enumerate(takes, start=1):
        yield f"take.{t}.pages", str(len(turns))
        for s, turn in enumerate(turns, start=1):
            yield f"take.{t}.{s}.page", str(turn.page)
            yield f"take.{t}.{s}.items", str(len(turn.answers))
            yield f"take.{t}.{s}.answers", _json(turn.answers)
            yield f"take.{t}.{s}.changed", _json(turn.changed)


def _json(answers: Answers) -> str:
    return json.dumps(answers, ensure_ascii=False, separators=(",", ":"))


def _property_lines(properties: Iterable[tuple[str, str]]) -> Iterator[list[str]]:
    for name, value in properties:
        yield [f"{name}={_escaped(value)}"]


def _escaped(value: str) -> str:
    """As java.util.Properties reads it: backslashes doubled, ASCII only."""
    plain = value.replace("\\", "\\\\").encode("utf-16-be", "surrogatepass")
    units = (int.from_bytes(plain[i : i + 2], "big") for i in range(0, len(plain), 2))
    return "".join(
        chr(unit) if 0x20 <= unit < 0x7F else f"\\u{unit:04x}" for unit in units
    )
