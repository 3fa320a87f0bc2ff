"""What the endpoint reads in Redis, and how it is written there.

| key | holds |
|---|---|
| `platforms` | all platforms with the digests of their API keys, as JSON |
| `a:<administration>` | its window, and what its messages may say, as JSON |
| `r:<respondent>` | a hash: what a message may say about one person |
| `reading` | the people who are being read from the database at this moment |

A person's hash has the fields of `Field`. It expires some weeks after the closing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, cast

from django.conf import settings
from django.core.cache import caches

ALIAS = "messages"
PLATFORMS = "platforms"
READING = "reading"
# A rebuild has been completed since this Redis started.
BUILT = "built"


class Field:
    """One letter each: two million hashes repeat them."""

    ADMINISTRATION = b"a"
    DISTRICT = b"d"
    LANGUAGE = b"l"
    SCHOOL = b"s"
    # Only ever set, never cleared, when a person changes: finishing is final. So a
    # worker that read the person a moment before can't undo it.
    FINISHED = b"f"
    # Withdrawn or opted out.
    STOPPED = b"x"
    NAME = b"n"
    # The access code, encrypted; see `link_codes`.
    CODE = b"c"


Command = tuple[str | bytes | int, ...]


class Store(Protocol):
    """`settings.infrastructure.cache_backends.RedisCommands`.

    Both raise ConnectionError while Redis is down, at once after two time-outs.
    """

    def command(self, *command: str | bytes | int) -> Any: ...

    def pipeline(self, commands: Sequence[Command]) -> list[Any]: ...


def message_store() -> Store | None:
    """Return the connection to Redis, or None where there is none (embedded)."""
    if ALIAS not in settings.CACHES:
        return None
    return cast(Store, caches[ALIAS])


def key_of_person(respondent_id: int) -> str:
    return f"r:{respondent_id}"


def key_of_administration(administration_id: int) -> str:
    return f"a:{administration_id}"


def read_hash(store: Store, respondent_id: int) -> dict[bytes, bytes]:
    """Return a person's hash; empty if there is none. 1 command."""
    flat = store.command("HGETALL", key_of_person(respondent_id))
    return dict(zip(flat[::2], flat[1::2], strict=True))
