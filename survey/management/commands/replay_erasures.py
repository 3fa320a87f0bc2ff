from __future__ import annotations

import json
from argparse import ArgumentParser
from dataclasses import asdict
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError

from survey.people.certificates import journal
from survey.people.certificates.journal import JournalError
from survey.people.certificates.replay import replay


class Command(BaseCommand):
    help = (
        "Erases once more, in a restored database, who was erased after its backup:"
        " reads the journal of destructions, the folder `erasures` of the private"
        " files. Run it before anybody may log in; `provisioning/stack restore` does."
        " Prints JSON. Exits with 1 if an entry cannot be read, and changes nothing."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "journal",
            nargs="+",
            type=Path,
            metavar="JOURNAL",
            help="A folder of entries, or one entry.",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            # All of them are read before the first one is carried out.
            entries = list(journal.read(options["journal"]))
            result = replay(entries)
        except JournalError as error:
            raise CommandError(
                f"{error}. Let nobody in: people who were erased may be there again."
            ) from None
        except DatabaseError as error:
            raise CommandError(
                f"The database refused to destroy what the journal names: {error}. Let"
                " nobody in: people who were erased may be there again."
            ) from error
        self.stdout.write(json.dumps(asdict(result)))
        if result.not_the_same:
            self.stderr.write(
                "These respondents were not erased: they have numbers of erased people"
                " and other IDs, or such an ID and came later. See whether they should"
                f" be erased: {result.not_the_same}"
            )
        if result.rounds_not_the_same:
            self.stderr.write(
                "These survey rounds have numbers of rounds whose data were destroyed,"
                " and another name, survey or opening. Nothing of them was destroyed."
                f" See whether they are the same: {result.rounds_not_the_same}"
            )
