"""Write files that hold names or codes, readable by their owner only."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO


@contextmanager
def private_file(path: Path, *, replace: bool = False) -> Iterator[TextIO]:
    """Write a text file of mode 0600, which gets its name when it is complete.

    Raises FileExistsError if the file exists and must not be replaced. The
    encoding is UTF-8 with a byte order mark, for Excel.
    """
    if not replace and os.path.lexists(path):
        raise FileExistsError(17, "the file already exists", str(path))
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8-sig", newline="") as file:
            yield file
        if replace:
            draft.replace(path)
        else:
            # Unlike a rename, a link never replaces another file.
            os.link(draft, path)
    finally:
        draft.unlink(missing_ok=True)
