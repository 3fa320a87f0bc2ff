"""Files that are nobody else's: rosters on their way in, exports on theirs out.

In one folder, which on a fleet is shared by web servers and workers; under
names that cannot be guessed. A view asks who may have one, and then either
nginx sends it (X-Accel-Redirect) or, where there is none, this process.
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

FORGOTTEN_AFTER = 24 * 60 * 60


def private_files() -> Storage:
    return storages["private"]


def new_name(folder: str, ending: str) -> str:
    """Where to put a new file: "exports/<unguessable>.csv"."""
    return f"{folder}/{secrets.token_urlsafe(24)}{ending}"


def path_of(name: str) -> Path:
    """For a worker, which writes and reads by itself. Its folder is made."""
    path = Path(private_files().path(name))
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    return path


def sweep(folder: str, named: Callable[[], Collection[str]]) -> None:
    """Delete what a dead worker left: files and folders that no row names.

    `named` is asked first. What is younger than a day may be one that somebody
    is writing, whose row is still to come.
    """
    known = named()
    before = time.time() - FORGOTTEN_AFTER
    for path in path_of(f"{folder}/any").parent.iterdir():
        # Somebody else may delete it in between.
        with suppress(FileNotFoundError):
            if f"{folder}/{path.name}" in known or path.stat().st_mtime > before:
                continue
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink()


def download(name: str, *, as_name: str, content_type: str) -> HttpResponseBase:
    """Send a file, once it is clear that whoever asks may have it."""
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
