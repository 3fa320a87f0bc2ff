from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError, CommandParser

from survey.access_codes import CodeKeyMissing
from survey.simulation.load_survey import (
    MOST_ITEMS,
    MOST_PAGES,
    NotARehearsal,
    Rehearsal,
    open_rehearsal,
    write_codes,
)
from survey.taking import rendering
from survey.taking.published import Published, build_published


class Command(BaseCommand):
    help = (
        "Make a survey of made-up statements and made-up people who may take it now,"
        " to measure with. The same name again adds the people that are missing; a"
        " real administration is never touched."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--name", default="rehearsal", help="of the administration")
        parser.add_argument("--respondents", type=int, default=1000)
        parser.add_argument("--pages", type=int, default=10)
        parser.add_argument("--items", type=int, default=5, help="on each page")
        parser.add_argument(
            "--codes", type=Path, help="write the access codes there, one a line"
        )
        parser.add_argument(
            "--unstarted",
            action="store_true",
            help="so many people who never started; only their codes are written",
        )
        parser.add_argument(
            "--empty", action="store_true", help="take every answer back first"
        )
        parser.add_argument("--json", action="store_true", help="for programs")

    def handle(self, *args: Any, **options: Any) -> None:
        _check_sizes(options)
        try:
            rehearsal = open_rehearsal(
                name=options["name"],
                respondents=options["respondents"],
                pages=options["pages"],
                items=options["items"],
                unstarted=options["unstarted"],
                empty=options["empty"],
            )
            self._write_codes(rehearsal, options)
        except (NotARehearsal, CodeKeyMissing) as error:
            raise CommandError(str(error)) from error
        except ValidationError as error:
            raise CommandError("\n".join(error.messages)) from error
        if options["json"]:
            self.stdout.write(json.dumps(_described(rehearsal, options)))
        else:
            self.stdout.write(
                f"{options['name']}: {options['pages']} pages of {options['items']}"
                f" items, {rehearsal.people:,} people"
            )

    def _write_codes(self, rehearsal: Rehearsal, options: dict[str, Any]) -> None:
        path: Path | None = options["codes"]
        if path is None:
            return
        try:
            write_codes(
                rehearsal.administration,
                path,
                most=options["respondents"],
                unstarted=options["unstarted"],
            )
        except OSError as error:
            raise CommandError(f"{path}: {error.strerror}.") from error


def _check_sizes(options: dict[str, Any]) -> None:
    for name, most in (
        ("respondents", 5_000_000),
        ("pages", MOST_PAGES),
        ("items", MOST_ITEMS),
    ):
        if not 1 <= options[name] <= most:
            raise CommandError(f"--{name} is a number from 1 to {most:,}.")


def _described(rehearsal: Rehearsal, options: dict[str, Any]) -> dict[str, Any]:
    row = rehearsal.administration.published
    published = build_published(row.digest, json.loads(row.definition))
    return {
        "administration": rehearsal.administration.name,
        "administration_id": rehearsal.administration.pk,
        "digest": row.digest,
        "renderer": rendering.RENDERER,
        "language": published.languages[0],
        "pages": [
            {"n": n, "items": _items(published, n)}
            for n in range(1, len(published.answerable) + 1)
        ],
        "respondents": options["respondents"],
        "codes": str(options["codes"]) if options["codes"] else None,
    }


def _items(published: Published, n: int) -> list[dict[str, Any]]:
    offered = published.definition["option_sets"]
    return [
        {
            "name": name,
            "id": item["id"],
            "kind": item["kind"],
            "values": [option["value"] for option in offered[item["option_set"]]],
        }
        for name, item in published.answerable[n - 1].items()
    ]
