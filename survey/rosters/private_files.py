"""Files that hold names or codes: nobody but their owner may read them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO


@contextmanager
def private_file(path: Path, *, replace: bool = False) -> Iterator[TextIO]:
    """A new text file of mode 0600, there under its name when it is whole.

    Raises FileExistsError for a file that is there and may not be replaced.
    UTF-8 with a mark, by which Excel knows it.
    """
    if not replace and os.path.lexists(path):
        raise FileExistsError(17, "the file exists already", str(path))
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8-sig", newline="") as file:
            yield file
        if replace:
            draft.replace(path)
        else:
            # Unlike a rename, a link never takes another file's place.
            os.link(draft, path)
    finally:
        draft.unlink(missing_ok=True)
