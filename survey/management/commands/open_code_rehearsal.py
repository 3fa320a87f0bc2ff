from __future__ import annotations

from json import dumps
from pathlib import Path

from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError, CommandParser

from survey.management.commands.open_rehearsal import describe
from survey.people.access_codes import CodeKeyMissing
from survey.simulation.load_survey import NotARehearsal, write_privately
from survey.simulation.open_codes import replace_open_codes


class Command(BaseCommand):
    help = (
        "Create a survey and open codes for load tests. The same name again deletes"
        " the codes and everybody who began with them; a real administration is never"
        " changed."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        add = parser.add_argument
        add("--name", default="open-code-rehearsal", help="of the administration")
        add("--pages", type=int, default=10)
        add("--items", type=int, default=5, help="on each page")
        add("--unlimited", type=int, default=1, help="number of unlimited codes")
        add("--seats", type=int, default=0, help="one more code, limited to so many")
        add("--codes", type=Path, help="write the codes to this file, one per line")
        add("--json", action="store_true", help="for programs")

    def handle(
        self,
        *,
        name: str,
        pages: int,
        items: int,
        unlimited: int,
        seats: int,
        codes: Path | None,
        json: bool,
        **options: object,
    ) -> None:
        try:
            administration, created = replace_open_codes(
                name=name, pages=pages, items=items, unlimited=unlimited, seats=seats
            )
            if codes is not None:
                write_privately(codes, created)
        except (NotARehearsal, CodeKeyMissing) as error:
            raise CommandError(str(error)) from error
        except ValidationError as error:
            raise CommandError("\n".join(error.messages)) from error
        except OSError as error:
            raise CommandError(f"{codes}: {error.strerror}.") from error
        if json:
            self.stdout.write(dumps(describe(administration)))
        else:
            self.stdout.write(f"{name}: {len(created)} open codes")
