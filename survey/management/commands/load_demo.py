from __future__ import annotations

from dataclasses import asdict
from json import dumps

from django.core.management.base import BaseCommand, CommandParser

from survey.simulation.demo.load import load_demo


class Command(BaseCommand):
    help = "Load the demonstration: three surveys, 17 schools, 519 people."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--json", action="store_true", help="for programs")
        parser.add_argument("--feed-folder", default="", help="for files of a feed")
        parser.add_argument("--feed-address", default="", help="that serves them")

    def handle(
        self, *, json: bool, feed_folder: str, feed_address: str, **options: object
    ) -> None:
        demo = load_demo(feed_folder=feed_folder, feed_address=feed_address)
        if json:
            self.stdout.write(dumps(asdict(demo), ensure_ascii=False))
            return
        first = "already there" if demo.already_there else "loaded"
        self.stdout.write(f"The demo is {first}.")
        for card in demo.cards:
            person = f"{card.name}, {card.school} ({card.language})"
            self.stdout.write(f"{card.role:<8} {card.code}  {person}")
        for code in demo.open_codes:
            limit = f"for {code.limit} people" if code.limit else "for anyone"
            self.stdout.write(
                f"{'parent':<8} {code.code}  {code.label}, {code.school} ({limit})"
            )
        password = demo.staff_password or "(its password was shown when it was made)"
        self.stdout.write(f"{'staff':<8} {demo.staff_email}  {password}")
        for login in demo.staff:
            self.stdout.write(f"{'staff':<8} {login.email}  {password}  {login.role}")
