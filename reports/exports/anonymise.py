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
ID_BYTES = 10


def new_key() -> bytes:
    return secrets.token_bytes(32)


def random_id(letter: str) -> bytes:
    return letter.encode() + secrets.token_hex(ID_BYTES).encode()


class Shuffle:
    """Collects lines in memory, and in `folder` if they become too many.

    `folder` must be empty; the caller deletes it. IDs begin with `letter`.
    """

    def __init__(
        self, folder: Path, *, key: bytes | None = None, letter: str = "r"
    ) -> None:
        folder.mkdir(exist_ok=True)
        self._folder = folder
        self._key = key or new_key()
        # The letter keeps programs from reading it as a number.
        self._letter = letter.encode()
        self._bundles: list[list[bytes]] = [[] for _ in range(BUNDLES)]
        self._size = 0
        self._is_on_disk = False
        self.count = 0

    def add(self, respondent: bytes, line: bytes) -> None:
        # With 80 bits, two of two million people do not get the same id.
        digest = hmac.digest(self._key, respondent, "sha256")[:ID_BYTES]
        self.add_under(self._letter + digest.hex().encode(), line)

    def add_under(self, key: bytes, line: bytes) -> None:
        """Add a line under an id that `add` or `random_id` has made."""
        self._bundles[int(key[1:3], 16)].append(b"%b\t%b" % (key, line))
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
