"""Let a made-up message platform ask about the people of a rehearsal."""

from __future__ import annotations

from argparse import ArgumentParser
from json import dumps
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from survey.fieldwork.administrations import AdministrationNotFound, get_administration
from survey.fieldwork.message_platforms.hashes import BATCH
from survey.fieldwork.message_platforms.person_keys import person_key
from survey.fieldwork.message_platforms.platforms import (
    create_key,
    create_platform,
    revoke_key,
)
from survey.fieldwork.message_platforms.rebuild import rebuild
from survey.fieldwork.message_platforms.store import message_store
from survey.models import MessagePlatform
from survey.simulation.load_survey import is_rehearsal

NAME, BY = "Rehearsal", "open_message_rehearsal"


class Command(BaseCommand):
    help = (
        "Creates a message platform for load tests, writes the addresses at which it"
        " asks about the people of a rehearsal, one per line, and fills Redis. Ends"
        " with one line of JSON, which has a new API key."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--name", default="rehearsal", help="of the administration")
        parser.add_argument("--addresses", type=Path, required=True, metavar="FILE")
        parser.add_argument("--people", type=int, default=20_000, help="at most")

    def handle(
        self, *, name: str, addresses: Path, people: int, **options: Any
    ) -> None:
        try:
            administration = get_administration(name)
        except AdministrationNotFound as error:
            raise CommandError(str(error)) from None
        if not is_rehearsal(administration):
            raise CommandError(f"{name} is a real administration.")
        platform = MessagePlatform.objects.filter(
            name=NAME, district=None, revoked_at=None, created_by=None
        ).first() or create_platform(name=NAME, district=None, by=BY)
        # Only the newest key is known.
        for old in platform.keys.filter(revoked_at=None):
            revoke_key(key=old, by=BY)
        _, api_key = create_key(platform=platform, by=BY)
        secret, last, written = bytes(platform.person_secret), 0, 0
        invited = administration.respondents.on_roster().filter(withdrawn_at=None)
        with addresses.open("w") as file:
            while written < people:
                page = invited.filter(pk__gt=last).order_by("pk")
                size = min(BATCH, people - written)
                ids = list(page.values_list("pk", flat=True)[:size])
                if not ids:
                    break
                for pk in ids:
                    key = person_key(secret, pk)
                    file.write(f"/messages/{platform.pk}/{key}.json\n")
                last, written = ids[-1], written + len(ids)
        store = message_store()
        if store is not None:
            rebuild(store, administration.pk, restart=True)
        self.stdout.write(
            dumps({"platform": platform.pk, "api_key": api_key, "people": written})
        )
