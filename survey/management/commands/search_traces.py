from __future__ import annotations

import json
import os
import sys
from argparse import ArgumentParser
from dataclasses import asdict
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from survey.models import Identity
from survey.people.erasing.trace_stores import search_everything
from survey.people.erasing.traces import Mark, Marks, draw_marks

NOT_SEARCHED = (
    # `survey/tests/erasing/test_messages.py` holds this.
    "RabbitMQ: a message is the name of a task, and at most a number of a row",
    "backups: they end by themselves",
)


class Command(BaseCommand):
    help = (
        "Looks for people in every store after they were erased: every column of the"
        " database, private files, Redis, Memcached, and folders of logs. Before the"
        " erasing, --sample draws people of a survey round and keeps their IDs, names,"
        " addresses and codes in a file that only you can read; afterwards --search"
        " looks for them. Prints JSON. Exits with 1 if a trace is there or a store"
        " cannot be read. Delete the file at the end."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        add = parser.add_argument
        acts = parser.add_mutually_exclusive_group(required=True)
        acts.add_argument("--sample", type=int, metavar="COUNT")
        acts.add_argument("--respondent", type=int, nargs="+", metavar="NUMBER")
        acts.add_argument("--search", type=Path, metavar="FILE")
        add("--administration", type=int, metavar="NUMBER", help="With --sample.")
        add("--save", type=Path, metavar="FILE", help="A new file, of mode 0600.")
        add(
            "--logs",
            type=Path,
            action="append",
            default=[],
            metavar="FOLDER",
            help="With --search: also this folder, compressed files included.",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        if options["search"]:
            self._search(options["search"], options["logs"])
        else:
            self._save(options)

    def _save(self, options: dict[str, Any]) -> None:
        if options["save"] is None:
            raise CommandError("Name a new file for what is drawn: --save FILE")
        if options["sample"] is not None:
            if options["administration"] is None:
                raise CommandError("Name the survey round: --administration NUMBER")
            of_round = Identity.objects.filter(administration=options["administration"])
            drawn = of_round.order_by("?").values_list("pk", flat=True)
            keys = list(drawn[: options["sample"]])
        else:
            keys = options["respondent"]
        people = Identity.objects.filter(pk__in=keys)
        marks = draw_marks(people)
        if not marks:
            raise CommandError(
                "None of these people is there, with a name of their own."
            )
        try:
            descriptor = os.open(
                options["save"], os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600
            )
        except OSError as error:
            raise CommandError(
                f"{options['save']} cannot be made: {error.strerror}"
            ) from None
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            json.dump([asdict(mark) for mark in marks], file)
        self.stdout.write(
            f"{options['save']} has {len(marks)} marks of {people.count()} people."
        )

    def _search(self, path: Path, logs: list[Path]) -> None:
        try:
            read = json.loads(path.read_text(encoding="utf-8"))
            marks = Marks(Mark(row["kind"], tuple(row["words"])) for row in read)
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise CommandError(f"{path} has no marks of people: {error}") from None
        if not marks.marks:
            raise CommandError(f"{path} has no marks of people.")
        if missing := [str(folder) for folder in logs if not folder.is_dir()]:
            raise CommandError(f"There is no folder {', '.join(missing)}.")
        stores = search_everything(marks, logs)
        traces = sum(sum(searched.traces.values()) for searched in stores.values())
        unread = sum(len(searched.unread) for searched in stores.values())
        result = {
            "marks": len(marks.marks),
            "traces": traces,
            "unread": unread,
            "stores": {name: searched.described() for name, searched in stores.items()},
            "not_searched": NOT_SEARCHED,
        }
        self.stdout.write(json.dumps(result, indent=2))
        if traces or unread:
            sys.exit(1)
