"""Write what message platforms read about everybody, or check it."""

from __future__ import annotations

import json
import time
from argparse import ArgumentParser
from dataclasses import asdict
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from survey.fieldwork.message_platforms.rebuild import (
    DOWN,
    NO_REDIS,
    check_all,
    rebuild,
)
from survey.fieldwork.message_platforms.store import message_store


class Command(BaseCommand):
    help = (
        "Writes what message platforms read about each person on a roster into Redis,"
        " from the database, in batches. A run that was interrupted goes on where it"
        " stopped. Ends with one line of JSON."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--restart", action="store_true", help="begin with the first person"
        )
        parser.add_argument(
            "--check",
            action="store_true",
            help="compare with the database and repair differences; end with 1 if"
            " there were any",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        store = message_store()
        if store is None:
            raise CommandError(NO_REDIS)
        began = time.monotonic()
        try:
            if options["check"]:
                check = check_all(store, advance=self.count)
                result = asdict(check)
            else:
                people = rebuild(store, restart=options["restart"], advance=self.count)
                result = {"people": people}
            memory = store.command("INFO", "memory")
        except ConnectionError:
            raise CommandError(DOWN) from None
        seconds = time.monotonic() - began
        result |= {"seconds": round(seconds, 1), "redis_bytes": used_memory(memory)}
        self.stdout.write(json.dumps(result))
        if result.get("drift"):
            raise SystemExit(1)

    def count(self, people: int) -> None:
        self.done = getattr(self, "done", 0) + people
        self.stderr.write(f"{self.done:,} people", ending="\r")


def used_memory(info: bytes) -> int:
    lines = info.decode().splitlines()
    return next(int(line[12:]) for line in lines if line.startswith("used_memory:"))
