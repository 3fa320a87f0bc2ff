"""Keep how far an upgrade is, and what a rollback goes back to, in two small files."""

from __future__ import annotations

import fcntl
import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path

from provisioning.commands import Refusal
from provisioning.installation.server.options import HOME

UPGRADE = HOME / "upgrade.json"
BEFORE = HOME / "release_before.json"


@dataclass(frozen=True, slots=True)
class Upgrade:
    """One upgrade: names of folders below `releases`, and since when it migrates."""

    old: str
    new: str
    # Of the database's clock, in UTC; empty until migrations begin.
    migrates_at: str = ""
    # Whether the site is closed meanwhile, for old code does not run on the schema.
    closes: bool = False
    # That the old release does not run on.
    too_new: list[str] = field(default_factory=list)
    # Of a rollback by a restore: the name under which the newer data are kept.
    aside: str = ""


def read(file: Path) -> Upgrade | None:
    try:
        return Upgrade(**json.loads(file.read_text()))
    except FileNotFoundError:
        return None
    except (TypeError, ValueError):
        raise Refusal(f"{file} can't be read; move it away") from None


def keep(file: Path, upgrade: Upgrade) -> None:
    draft = file.with_name(f"{file.name}.new")
    draft.write_text(json.dumps(asdict(upgrade), indent=1))
    draft.replace(file)


def forget(file: Path) -> None:
    with suppress(FileNotFoundError):
        file.unlink()


@contextmanager
def exclusively(name: str = "upgrade.lock") -> Iterator[None]:
    """Refuse a second upgrade or rollback at the same time."""
    with (HOME / name).open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Refusal("Another upgrade or rollback is under way here") from None
        yield
