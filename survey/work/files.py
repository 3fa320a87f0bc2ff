"""Private files: uploaded rosters, exports and login cards.

They lie in one folder, which web servers and workers of a fleet share, under
names that cannot be guessed. A view checks the permission; then nginx sends
the file (X-Accel-Redirect) or, without nginx, this process does.
"""

from __future__ import annotations

import secrets
import shutil
import time
from collections.abc import Callable, Collection
from contextlib import suppress
from pathlib import Path

from django.conf import settings
from django.core.files.storage import Storage, storages
from django.http import FileResponse, HttpResponse, HttpResponseBase
from django.utils.http import content_disposition_header

# In seconds. A younger file may still be being written, and its row still
# uncommitted.
ORPHANED_AFTER = 24 * 60 * 60


def private_files() -> Storage:
    return storages["private"]


def new_name(folder: str, ending: str) -> str:
    """Return a name for a new file: "exports/<unguessable>.csv"."""
    return f"{folder}/{secrets.token_urlsafe(24)}{ending}"


def path_of(name: str) -> Path:
    """Return a file's path, for code that opens it itself; make its folder."""
    path = Path(private_files().path(name))
    mode = settings.PRIVATE_FILES["OPTIONS"]["directory_permissions_mode"]
    path.parent.mkdir(mode=mode, parents=True, exist_ok=True)
    return path


def share(path: Path) -> None:
    """Let the console and the workers read a new file, if they are two users."""
    path.chmod(settings.PRIVATE_FILES["OPTIONS"]["file_permissions_mode"])


def delete_files(*names: str) -> None:
    for name in filter(None, names):
        with suppress(OSError):
            private_files().delete(name)


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


def download(name: str, *, as_name: str, content_type: str) -> HttpResponseBase:
    """Send a file as an attachment; the caller has checked the permission."""
    response: HttpResponseBase
    if settings.FILES_ADDRESS:
        response = HttpResponse(content_type=content_type)
        response["X-Accel-Redirect"] = settings.FILES_ADDRESS + name
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
