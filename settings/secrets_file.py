"""The embedded installation makes its own secrets once, and keeps them."""

from __future__ import annotations

import json
import os
import secrets
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Secrets:
    secret_key: str
    access_code_keys: dict[int, str]


def load_secrets(path: Path) -> Secrets:
    """Read the secrets, after writing fresh ones (mode 0600) where none are.

    Two processes that start at once agree: the file appears complete, by a
    link that only one of them can make.
    """
    if not path.exists():
        _write_once(
            path,
            {
                "secret_key": secrets.token_urlsafe(48),
                "access_code_keys": {"1": secrets.token_urlsafe(32)},
            },
        )
    kept = json.loads(path.read_text())
    return Secrets(
        kept["secret_key"],
        {int(version): key for version, key in kept["access_code_keys"].items()},
    )


def _write_once(path: Path, content: dict[str, object]) -> None:
    draft = path.with_name(f"{path.name}.{os.getpid()}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as file:
        json.dump(content, file)
    try:
        os.link(draft, path)
    except FileExistsError:
        pass
    finally:
        draft.unlink()
