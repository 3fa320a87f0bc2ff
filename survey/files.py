"""Files that are nobody else's: rosters on their way in, exports on theirs out.

In one folder, which on a fleet is shared by web servers and workers; under
names that cannot be guessed. A view asks who may have one, and then either
nginx sends it (X-Accel-Redirect) or, where there is none, this process.
"""

from __future__ import annotations

import secrets
from pathlib import Path

from django.conf import settings
from django.core.files.storage import Storage, storages
from django.http import FileResponse, HttpResponse, HttpResponseBase
from django.utils.http import content_disposition_header


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
