from __future__ import annotations

import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from survey.people.certificates.documents import Verdict, verify
from survey.people.certificates.keys import (
    KeyFileError,
    installation_keys,
    key_id,
    read_keys,
)


class Command(BaseCommand):
    help = (
        "Says whether certificates of destruction (JSON or PDF) are as this"
        " installation signed them: valid, changed, or of an unknown key. Exits with 0"
        " if all are valid, else with 1."
    )
    # It also verifies on a machine without a database: with --key.
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("files", nargs="+", type=Path, metavar="FILE")
        parser.add_argument(
            "--key",
            type=Path,
            metavar="FILE",
            help="A file with public keys, from the page of a certificate; without it,"
            " all keys that this installation has ever signed with.",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            keys = read_keys(options["key"]) if options["key"] else installation_keys()
        except KeyFileError as error:
            raise CommandError(str(error)) from None
        is_wrong = False
        for path in options["files"]:
            try:
                verdict = verify(path.read_bytes(), keys)
            except OSError as error:
                raise CommandError(f"{path} cannot be read: {error.strerror}") from None
            is_wrong |= verdict is not Verdict.VALID
            self.stdout.write(f"{path}: {verdict.value}")
        if is_wrong:
            known = ", ".join(key_id(public) for public in keys) or "none"
            self.stderr.write(f"Known keys: {known}")
            sys.exit(1)
