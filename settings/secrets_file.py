"""Generate and store the secrets of an embedded installation."""

from __future__ import annotations

import json
import os
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Secrets:
    secret_key: str
    access_code_keys: dict[int, str]


def load_secrets(path: Path) -> Secrets:
    """Read the secrets; generate them first if the file does not exist."""
    stored = _load(
        path,
        {
            "secret_key": secrets.token_urlsafe(48),
            "access_code_keys": {"1": secrets.token_urlsafe(32)},
        },
    )
    return Secrets(
        stored["secret_key"],
        {int(version): key for version, key in stored["access_code_keys"].items()},
    )


def load_feed_keys(path: Path) -> list[str]:
    """Read the keys of feeds' credentials; generate one if the file does not exist.

    A file of its own, because older installations have the other one without it.
    """
    return _load_keys(path, "feed_keys")


def load_certificate_keys(path: Path) -> list[str]:
    """Read the keys that sign certificates; generate one if there is no file."""
    return _load_keys(path, "certificate_keys")


def _load_keys(path: Path, name: str) -> list[str]:
    return list(_load(path, {name: [secrets.token_urlsafe(32)]})[name])


def _load(path: Path, content: dict[str, Any]) -> dict[str, Any]:
    """Read a file; write this content first if it does not exist.

    The file is readable only by its owner. Two processes that start at the same
    time get the same secrets: each writes a draft, and only one of them can link
    it to the final name.
    """
    if not path.exists():
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
    loaded: dict[str, Any] = json.loads(path.read_text())
    return loaded
