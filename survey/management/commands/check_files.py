"""See whether private files can be stored, and are private."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from survey.work.files import bucket
from survey.work.files_away import FilesAway


class Command(BaseCommand):
    help = (
        "See whether private files can be stored in the bucket of"
        " GROUNDSWELL_FILES_BUCKET, read and deleted, and whether a stranger can do it"
        " too. Each run of the playbook does so before a host serves. Exit status 1 if"
        " the bucket can't be reached, refuses, or is not private."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        if not (store := bucket()):
            self.stdout.write("Files are in a folder.")
            return
        try:
            store.refuse_public()
        except (FilesAway, FileNotFoundError) as error:
            raise CommandError(f"The bucket of files can't be used: {error}") from error
        self.stdout.write(f"The bucket {store.bucket_name} is private, and works.")
