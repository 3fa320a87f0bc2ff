"""Private files in object storage (S3), where a fleet has no shared folder.

Only `files.py` knows of it. boto3 takes 40 MB, so it is imported only where files lie
in a bucket.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from boto3.exceptions import Boto3Error
from boto3.s3.transfer import TransferConfig
from botocore.client import Config
from botocore.exceptions import BotoCoreError, ClientError
from django.core.files import File
from storages.backends.s3 import S3Storage

from survey.work.files_away import FilesAway

# Both attempts end before the 15 seconds that a page of the console has.
CONNECT_SECONDS = 1
READ_SECONDS = 6
ATTEMPTS = 2
# Until nginx has begun to fetch a file.
ADDRESS_SECONDS = 60
MISSING = (404, "404", "NoSuchKey")
PROBE = "probes/is-this-private"


class PrivateBucket(S3Storage):
    """A bucket that nobody reads without a signature.

    Methods raise FilesAway while it can't be reached, or refuses.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(
            # Virtual hosts would need certificates for the names of buckets.
            client_config=Config(
                s3={"addressing_style": "path"},
                signature_version="s3v4",
                connect_timeout=CONNECT_SECONDS,
                read_timeout=READ_SECONDS,
                retries={"mode": "standard", "total_max_attempts": ATTEMPTS},
            ),
            # Parts of 8 MB, one after another: two are in memory, and 10,000 are 80 GB.
            transfer_config=TransferConfig(
                multipart_threshold=8 << 20,
                multipart_chunksize=8 << 20,
                use_threads=False,
            ),
            querystring_expire=ADDRESS_SECONDS,
            # Names can't be guessed, so none is taken.
            file_overwrite=True,
            max_memory_size=1 << 20,
            **options,
        )

    def _save(self, name: str, content: File[Any]) -> str:
        with reaching_files():
            return str(super()._save(name, content))

    def exists(self, name: str) -> bool:
        with reaching_files():
            return bool(super().exists(name))

    def delete(self, name: str) -> None:
        with reaching_files():
            super().delete(name)

    def put(self, path: Path, name: str) -> None:
        """Store a file: it is there as a whole or not at all."""
        with path.open("rb") as file:
            self.save(name, File(file))

    def fetch(self, name: str, path: Path) -> None:
        """Write a stored file to a path. Raises FileNotFoundError."""
        with reaching_files():
            self.bucket.download_file(name, str(path), Config=self.transfer_config)

    def delete_folder(self, folder: str) -> None:
        with reaching_files():
            self.bucket.objects.filter(Prefix=f"{folder}/").delete()

    def delete_old(self, folder: str, *, before: datetime, known: set[str]) -> None:
        """Delete what no row names, and unfinished uploads of dead workers."""
        with reaching_files():
            for each in self.bucket.objects.filter(Prefix=f"{folder}/"):
                # "feeds/<folder>/<file>" is named by its folder.
                names = {each.key, "/".join(each.key.split("/")[:2])}
                if each.last_modified < before and not names & known:
                    each.delete()
            for upload in self.bucket.multipart_uploads.filter(Prefix=f"{folder}/"):
                if upload.initiated < before:
                    upload.abort()

    def signed_path(self, name: str, content_type: str) -> str:
        """Return a file's path and signature, which nginx sends to the server."""
        parts = urlsplit(self.url(name, {"ResponseContentType": content_type}))
        return f"{parts.path}?{parts.query}"

    def refuse_public(self) -> None:
        """Raise FilesAway unless files can be stored, read and deleted, by us alone."""
        with reaching_files():
            self.bucket.Object(PROBE).put(Body=b"private", **self.object_parameters)
            try:
                if self.bucket.Object(PROBE).get()["Body"].read() != b"private":
                    raise FilesAway(f"The bucket {self.bucket_name} stores other bytes")
                stranger = self.unsigned_connection.Bucket(self.bucket_name)
                for does, what in (
                    (lambda: stranger.Object(PROBE).get(), "reads its files"),
                    (lambda: list(stranger.objects.limit(1)), "lists its files"),
                ):
                    if succeeds(does):
                        raise FilesAway(
                            f"The bucket {self.bucket_name} is not private: anybody"
                            f" {what}"
                        )
            finally:
                with suppress(ClientError):
                    self.bucket.Object(PROBE).delete()


def succeeds(call: Callable[[], object]) -> bool:
    try:
        call()
    except ClientError:
        return False
    return True


@contextmanager
def reaching_files() -> Iterator[None]:
    """Raise FilesAway for boto3's errors; FileNotFoundError of a missing file."""
    try:
        yield
    except ClientError as error:
        if error.response["Error"]["Code"] in MISSING:
            raise FileNotFoundError(2, "The file is missing in the bucket") from None
        raise FilesAway(str(error)) from error
    except (Boto3Error, BotoCoreError) as error:
        raise FilesAway(str(error)) from error
