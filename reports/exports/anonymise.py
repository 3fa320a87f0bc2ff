"""Replace primary keys by research ids, and shuffle respondents.

Each line gets a research id, a hash under a key that is thrown away, and lines
are sorted by it, because the order of primary keys would say who comes before
whom on the roster. (The rows of two exports can still be matched by their
answers.) They are sorted first into many small bundles as they arrive, then
bundle by bundle. The database need not sort, its transaction ends as soon as
the last line has been read, and memory stays flat.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Iterator
from pathlib import Path

BUNDLES = 256
# Bytes of lines that are kept in memory.
MEMORY = 24 * 2**20


def new_key() -> bytes:
    return secrets.token_bytes(32)


class Shuffle:
    """Collects lines in memory, and in `folder` if they become too many.

    `folder` must be empty; the caller deletes it.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._key = new_key()
        self._bundles: list[list[bytes]] = [[] for _ in range(BUNDLES)]
        self._size = 0
        self._is_on_disk = False
        self.count = 0

    def add(self, respondent: bytes, line: bytes) -> None:
        digest = hmac.digest(self._key, respondent, "sha256")
        # The letter keeps programs from reading it as a number. With 80 bits,
        # two of two million people do not get the same id.
        bundle = self._bundles[digest[0]]
        bundle.append(b"r%b\t%b" % (digest[:10].hex().encode(), line))
        self.count += 1
        self._size += len(line) + 80
        if self._size > MEMORY:
            self._move_to_disk()

    def _move_to_disk(self) -> None:
        for number, bundle in enumerate(self._bundles):
            if bundle:
                with self._path(number).open("ab") as file:
                    file.writelines(bundle)
                bundle.clear()
        self._size = 0
        self._is_on_disk = True

    def bundles(self) -> Iterator[list[bytes]]:
        """Return all lines, each after its research id and a tab, sorted by it."""
        for number, bundle in enumerate(self._bundles):
            path = self._path(number)
            lines = bundle
            if self._is_on_disk and path.exists():
                spilled = path.read_bytes().split(b"\n")[:-1]
                lines = [line + b"\n" for line in spilled] + bundle
                path.unlink()
            self._bundles[number] = []
            if lines:
                yield sorted(lines)

    def _path(self, number: int) -> Path:
        return self._folder / f"{number}.lines"
