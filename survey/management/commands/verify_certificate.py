from __future__ import annotations

import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from survey.people.certificates.documents import Verdict, name_of_key, verify
from survey.people.certificates.keys import (
    KeyFileError,
    installation_keys,
    key_id,
    own_keys,
    read_keys,
)


class Command(BaseCommand):
    help = (
        "Says whether certificates of destruction (JSON or PDF) are as this"
        " installation signed them: valid, changed, or of an unknown key; and by which"
        " key, and whether that is one of the settings. Exits with 0 if all are valid,"
        " else with 1."
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
                content = path.read_bytes()
            except OSError as error:
                raise CommandError(f"{path} cannot be read: {error.strerror}") from None
            verdict = verify(content, keys)
            signer = ""
            if verdict is Verdict.VALID:
                signer = self.describe_key(name_of_key(content), options["key"])
            is_wrong |= verdict is not Verdict.VALID
            self.stdout.write(f"{path}: {verdict.value}{signer}")
        if is_wrong:
            known = ", ".join(key_id(public) for public in keys) or "none"
            self.stderr.write(f"Known keys: {known}")
            sys.exit(1)

    def describe_key(self, name: str, file: Path | None) -> str:
        """Say where the key is known from: whoever writes rows can add keys to them."""
        if name in map(key_id, own_keys()):
            return f", key {name} of this installation's settings"
        if file:
            return f", key {name} of {file}, which is not one of the settings'"
        return (
            f", key {name} of an earlier certificate, which is not one of the"
            " settings'. Compare it with a file of public keys from before"
        )
