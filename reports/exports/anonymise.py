"""Research ids, and an order that tells nothing.

In the order of their keys, the rows of two exports could be laid side by
side, whatever ids they have. So a respondent's line gets its research id, a
hash under a key that nobody keeps, and the lines are sorted by it: into many
small bundles as they come, each of which is sorted when its turn comes. The
database has nothing to sort, its transaction ends as soon as the last line
has been read, and memory stays flat.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Iterator
from pathlib import Path

BUNDLES = 256
# Lines wait in memory up to so many bytes.
ROOM = 24 * 2**20


def new_key() -> bytes:
    return secrets.token_bytes(32)


class Shuffle:
    """`folder` is there, empty, and somebody else's to delete."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._key = new_key()
        self._waiting: list[list[bytes]] = [[] for _ in range(BUNDLES)]
        self._size = 0
        self._spilt = False
        self.count = 0

    def add(self, respondent: bytes, line: bytes) -> None:
        digest = hmac.digest(self._key, respondent, "sha256")
        # A letter first: no program takes it for a number. 80 bits: among two
        # million people no two are alike.
        bundle = self._waiting[digest[0]]
        bundle.append(b"r%b\t%b" % (digest[:10].hex().encode(), line))
        self.count += 1
        self._size += len(line) + 80
        if self._size > ROOM:
            self._spill()

    def _spill(self) -> None:
        for number, bundle in enumerate(self._waiting):
            if bundle:
                with self._path(number).open("ab") as file:
                    file.writelines(bundle)
                bundle.clear()
        self._size = 0
        self._spilt = True

    def bundles(self) -> Iterator[list[bytes]]:
        """All lines, each behind its research id and a tab, sorted by it."""
        for number, bundle in enumerate(self._waiting):
            lines = sorted(self._spilt_lines(number) + bundle)
            self._waiting[number] = []
            if lines:
                yield lines

    def _spilt_lines(self, number: int) -> list[bytes]:
        path = self._path(number)
        if not self._spilt or not path.exists():
            return []
        lines = path.read_bytes().split(b"\n")[:-1]
        path.unlink()
        return [line + b"\n" for line in lines]

    def _path(self, number: int) -> Path:
        return self._folder / f"{number}.lines"
