from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand
from django.db import transaction

from survey.models import RosterFeed
from survey.people.rosters.feeds.credentials import FeedKeyMissing, reseal


class Command(BaseCommand):
    help = (
        "Encrypts the credentials of all feeds again with the first key in"
        " GROUNDSWELL_FEED_KEYS. Afterwards the other keys can be removed."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        count, unreadable = 0, []
        for pk in RosterFeed.objects.exclude(credentials=b"").values_list(
            "pk", flat=True
        ):
            with transaction.atomic():
                # Not while somebody stores other credentials.
                feed = RosterFeed.objects.select_for_update().get(pk=pk)
                try:
                    feed.credentials = reseal(bytes(feed.credentials))
                except FeedKeyMissing:
                    unreadable.append(feed.name)
                    continue
                feed.save(update_fields=["credentials"])
                count += 1
        self.stdout.write(f"Encrypted the credentials of {count} feeds.")
        for name in unreadable:
            self.stderr.write(f"No key decrypts the credentials of {name}.")
