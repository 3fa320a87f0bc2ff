from __future__ import annotations

from dataclasses import asdict
from json import dumps

from django.core.management.base import BaseCommand, CommandParser

from survey.simulation.demo.load import Demo, load_demo


class Command(BaseCommand):
    help = "Load the demonstration: two surveys, five schools, 200 people."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--json", action="store_true", help="for programs")

    def handle(self, *, json: bool, **options: object) -> None:
        demo = load_demo()
        if json:
            self.stdout.write(dumps(asdict(demo), ensure_ascii=False))
        else:
            self.stdout.write("\n".join(_lines(demo)))


def _lines(demo: Demo) -> list[str]:
    first = "already there" if demo.already_there else "loaded"
    password = demo.staff_password or "(its password was shown when it was made)"
    return [
        f"The demo is {first}.",
        *(
            f"{card.role:<8} {card.code}  {card.name}, {card.school} ({card.language})"
            for card in demo.cards
        ),
        f"{'staff':<8} {demo.staff_email}  {password}",
        *(f"{'staff':<8} {one.email}  {password}  {one.role}" for one in demo.staff),
    ]
