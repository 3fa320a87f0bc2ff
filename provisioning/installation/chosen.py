"""What `--port` and `--set` said, and said the last time that it came up."""

from __future__ import annotations

import argparse
import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

from provisioning.commands import Refusal

# In the home: what --port and --set said the last time that it came up.
CHOSEN = "etc/chosen.json"


@dataclass(frozen=True, slots=True)
class Chosen:
    """--port and --set, with those of the last time that nobody changed."""

    port: int
    settings: dict[str, str]


def chosen_of(home: Path, options: argparse.Namespace) -> Chosen:
    kept = _kept(home)
    given = dict(options.set)
    settings = {**kept.settings, **given}
    words = [
        f"--set={name}={value}"
        for name, value in kept.settings.items()
        if name not in given
    ]
    if kept.port and options.port is None:
        words.insert(0, f"--port={kept.port}")
    if words:
        print(f"As the last time: {' '.join(words)}", flush=True)
    return Chosen(
        port=kept.port if options.port is None else options.port,
        settings={name: value for name, value in settings.items() if value},
    )


def _kept(home: Path) -> Chosen:
    try:
        return Chosen(**json.loads((home / CHOSEN).read_text()))
    except FileNotFoundError:
        return Chosen(port=0, settings={})
    except (TypeError, ValueError):
        raise Refusal(f"{home / CHOSEN} can't be read; delete it") from None


def keep(home: Path, chosen: Chosen) -> None:
    for folder in (home, (home / CHOSEN).parent):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    # A setting may be a password.
    draft = home / f"{CHOSEN}.new"
    draft.unlink(missing_ok=True)
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as file:
        json.dump(asdict(chosen), file)
    draft.replace(home / CHOSEN)
