from __future__ import annotations

from json import dumps, loads
from pathlib import Path

from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError, CommandParser

from survey.models import Administration
from survey.people.access_codes import CodeKeyMissing
from survey.simulation.load_survey import (
    MOST_ITEMS,
    MOST_PAGES,
    NotARehearsal,
    open_rehearsal,
    write_codes,
)
from survey.taking import rendering
from survey.taking.published import build_published


class Command(BaseCommand):
    help = (
        "Create a survey and people for load tests. The same name again adds missing"
        " people; a real administration is never changed."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--name", default="rehearsal", help="of the administration")
        parser.add_argument("--respondents", type=int, default=1000)
        parser.add_argument("--pages", type=int, default=10)
        parser.add_argument("--items", type=int, default=5, help="on each page")
        parser.add_argument(
            "--multilingual",
            action="store_true",
            help="in English, Spanish and Arabic, each for a third of the people",
        )
        parser.add_argument(
            "--codes",
            type=Path,
            help="write the access codes to this file, one per line",
        )
        parser.add_argument(
            "--unstarted",
            action="store_true",
            help="count only people who have not started, and write only their codes",
        )
        parser.add_argument(
            "--empty", action="store_true", help="delete every answer first"
        )
        parser.add_argument("--json", action="store_true", help="for programs")

    def handle(
        self,
        *,
        name: str,
        respondents: int,
        pages: int,
        items: int,
        multilingual: bool,
        codes: Path | None,
        unstarted: bool,
        empty: bool,
        json: bool,
        **options: object,
    ) -> None:
        for option, number, most in (
            ("respondents", respondents, 5_000_000),
            ("pages", pages, MOST_PAGES),
            ("items", items, MOST_ITEMS),
        ):
            if not 1 <= number <= most:
                raise CommandError(f"--{option} is a number from 1 to {most:,}.")
        try:
            rehearsal = open_rehearsal(
                name=name,
                respondents=respondents,
                pages=pages,
                items=items,
                multilingual=multilingual,
                unstarted=unstarted,
                empty=empty,
            )
            if codes is not None:
                write_codes(
                    rehearsal.administration,
                    codes,
                    most=respondents,
                    unstarted=unstarted,
                )
        except (NotARehearsal, CodeKeyMissing) as error:
            raise CommandError(str(error)) from error
        except ValidationError as error:
            raise CommandError("\n".join(error.messages)) from error
        except OSError as error:
            raise CommandError(f"{codes}: {error.strerror}.") from error
        if json:
            described = describe(rehearsal.administration)
            described["respondents"] = respondents
            described["codes"] = str(codes) if codes else None
            self.stdout.write(dumps(described))
        else:
            self.stdout.write(
                f"{name}: {pages} pages of {items} items, {rehearsal.people:,} people"
            )


def describe(administration: Administration) -> dict[str, object]:
    """Describe the pages and items as programs that send answers need them."""
    row = administration.published
    published = build_published(row.digest, loads(row.definition))
    option_sets = published.definition["option_sets"]
    pages = []
    for n, items in enumerate(published.answerable, start=1):
        described = [
            {
                "name": name,
                "id": item["id"],
                "kind": item["kind"],
                "values": [
                    option["value"] for option in option_sets[item["option_set"]]
                ],
            }
            for name, item in items.items()
        ]
        pages.append({"n": n, "items": described})
    return {
        "administration": administration.name,
        "administration_id": administration.pk,
        "digest": row.digest,
        "renderer": rendering.RENDERER,
        "language": published.languages[0],
        "pages": pages,
    }
