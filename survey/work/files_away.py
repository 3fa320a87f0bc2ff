"""The error while private files can't be reached."""

from __future__ import annotations

from django.db import OperationalError


class FilesAway(OperationalError):
    """Object storage does not answer, or refuses.

    What waits for a database that is away waits for files too: jobs run again, and the
    console answers 503.
    """

    # In templates/console/errors.
    page = "503_files.html"
