"""Private files: uploaded rosters, exports and login cards.

They lie in one folder, which web servers and workers of a fleet share, or in a bucket
of object storage, under names that cannot be guessed. A view checks the permission;
then nginx sends the file (X-Accel-Redirect) or, without nginx, this process does.

With a bucket, `path_of` is a place of this host alone: `keep` brings a finished file
from there into the bucket, and `local_copy` back.
"""

from __future__ import annotations

import secrets
import shutil
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, cast

from django.conf import settings
from django.core.files.storage import Storage, storages
from django.http import FileResponse, HttpResponse, HttpResponseBase
from django.utils._os import safe_join
from django.utils.http import content_disposition_header

from survey.work.files_away import FilesAway

if TYPE_CHECKING:
    from survey.work.bucket import PrivateBucket

# In seconds. A younger file may still be being written, and its row still
# uncommitted.
ORPHANED_AFTER = 24 * 60 * 60


def private_files() -> Storage:
    return storages["private"]


def bucket() -> PrivateBucket | None:
    """Return where files lie in object storage; None: in a folder."""
    if settings.FILES_BUCKET:
        return cast("PrivateBucket", private_files())
    return None


def new_name(folder: str, ending: str) -> str:
    """Return a name for a new file: "exports/<unguessable>.csv"."""
    return f"{folder}/{secrets.token_urlsafe(24)}{ending}"


def path_of(name: str) -> Path:
    """Return a file's path on this host, for code that writes it; make its folder."""
    if bucket():
        path = Path(safe_join(settings.FILES_FOLDER, name))
    else:
        path = Path(private_files().path(name))
    mode = settings.PRIVATE_FILES["OPTIONS"]["directory_permissions_mode"]
    path.parent.mkdir(mode=mode, parents=True, exist_ok=True)
    return path


def keep(path: Path, name: str) -> None:
    """Give a finished file of this disk its name: it is there as a whole or not at all.

    Raises FilesAway of a bucket that can't be reached; the file then stays.
    """
    # The console and the workers may be two users.
    path.chmod(settings.PRIVATE_FILES["OPTIONS"]["file_permissions_mode"])
    if store := bucket():
        store.put(path, name)
        path.unlink()
        # A folder of this file alone, such as a download's.
        if name.count("/") > 1:
            with suppress(OSError):
                path.parent.rmdir()
    elif path != (place := path_of(name)):
        path.rename(place)


@contextmanager
def local_copy(name: str) -> Iterator[Path]:
    """Have a stored file at a path of this disk, to read.

    Raises FileNotFoundError, and FilesAway of a bucket that can't be reached.
    """
    store = bucket()
    if store is None:
        path = path_of(name)
        if not path.exists():
            raise FileNotFoundError(2, "The file is missing", str(path))
        yield path
        return
    folder, _, rest = name.partition("/")
    # Of a killed worker, it is swept with its folder.
    path = path_of(f"{folder}/.{secrets.token_hex(8)}{Path(rest).suffix}")
    try:
        store.fetch(name, path)
        yield path
    finally:
        path.unlink(missing_ok=True)


def exists(name: str) -> bool:
    return private_files().exists(name)


def delete_files(*names: str) -> None:
    for name in filter(None, names):
        # What can't be reached now is deleted with the orphans.
        with suppress(OSError, FilesAway):
            if bucket():
                # Unless it was kept, it is still on this disk.
                path_of(name).unlink(missing_ok=True)
            private_files().delete(name)


def delete_folder(folder: str) -> None:
    shutil.rmtree(path_of(folder), ignore_errors=True)
    if store := bucket():
        with suppress(FilesAway):
            store.delete_folder(folder)


def delete_orphans(folder: str, known_names: Callable[[], Collection[str]]) -> None:
    """Delete files and folders that a dead worker left and no row names."""
    # The rows are read before the folder: a file that is younger than its row
    # is never missing among the names.
    known = known_names()
    before = time.time() - ORPHANED_AFTER
    for path in path_of(f"{folder}/any").parent.iterdir():
        # Another process may delete it in between.
        with suppress(FileNotFoundError):
            if f"{folder}/{path.name}" in known or path.stat().st_mtime > before:
                continue
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink()
    if store := bucket():
        store.delete_old(
            folder, before=datetime.fromtimestamp(before, UTC), known=set(known)
        )


def download(name: str, *, as_name: str, content_type: str) -> HttpResponseBase:
    """Send a file as an attachment; the caller has checked the permission."""
    response: HttpResponseBase
    if settings.FILES_ADDRESS:
        response = HttpResponse(content_type=content_type)
        # A signature for a minute, which nginx uses and no browser sees.
        store = bucket()
        path = store.signed_path(name, content_type).lstrip("/") if store else name
        response["X-Accel-Redirect"] = settings.FILES_ADDRESS + path
        disposition = content_disposition_header(True, as_name)
        response["Content-Disposition"] = disposition or "attachment"
    else:
        response = FileResponse(
            private_files().open(name),
            as_attachment=True,
            filename=as_name,
            content_type=content_type,
        )
    response["Cache-Control"] = "private, no-store"
    return response
