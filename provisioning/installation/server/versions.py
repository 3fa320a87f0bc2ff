"""Compare releases, and what a database has with what their code knows."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping, Set
from pathlib import Path

from provisioning.commands import Refusal, output_of
from provisioning.installation.postgresql import run_sql
from provisioning.installation.server.options import HOME

NUMBERS = re.compile(r"(\d+)\.(\d+)\.(\d+)")
Version = tuple[int, ...]


def parse_version(text: str) -> Version:
    """Return the numbers of 1.2.0 or v1.2.0, which compare as releases do."""
    match = NUMBERS.fullmatch(text.removeprefix("v"))
    if not match:
        raise Refusal(f"{text} is no version such as 1.2.0")
    return tuple(map(int, match.groups()))


def version_in(release: Path) -> str:
    """Return the version that a folder of code says it is."""
    try:
        project = tomllib.loads((release / "pyproject.toml").read_text())["project"]
        version = str(project["version"])
    except (OSError, KeyError, ValueError):
        raise Refusal(f"{release} is no release: it has no version") from None
    parse_version(version)
    return version


def refuse_unless_newer(current: str, new: str, *, is_build: bool = False) -> None:
    """Refuse an older version and the same one.

    `is_build`: code without a signature, which may be another commit of the same.
    """
    if parse_version(new) < parse_version(current):
        raise Refusal(
            f"{new} is older than {current}, which serves; rollback goes back to the"
            " release before"
        )
    if parse_version(new) == parse_version(current) and not is_build:
        raise Refusal(f"{new} serves already")


def migrations_of(release: Path) -> dict[str, str]:
    """Return the oldest release that runs on each migration, as its code says."""
    printed = output_of(
        [release / "provisioning" / "stack", "manage", "release_migrations"],
        failing="The release can't list its migrations",
    )
    migrations: dict[str, str] = json.loads(printed)
    return migrations


def applied_migrations() -> set[str]:
    """Return what the database of this server has."""
    rows = run_sql(
        "SELECT app || '.' || name FROM django_migrations",
        run=HOME / "run",
        failing="The database does not say its migrations",
    )
    return {name for [name] in rows}


def too_new_for(
    version: str, names: Set[str], migrations: Mapping[str, str]
) -> dict[str, str]:
    """Return those on whose schema this version does not run, with what does.

    A migration that `migrations` does not know is too new, of an unknown release.
    """
    return {
        name: migrations.get(name, "")
        for name in sorted(names)
        if not (oldest := migrations.get(name))
        or parse_version(oldest) > parse_version(version)
    }


def refuse_skipped(current: str, new: str, too_new: Mapping[str, str]) -> None:
    """Refuse to leave out a release that can serve between these two."""
    between = {
        oldest: name
        for name, oldest in too_new.items()
        if parse_version(current) < parse_version(oldest) < parse_version(new)
    }
    if between:
        first = min(between, key=parse_version)
        raise Refusal(
            f"{new} can't follow {current}: upgrade to {first} first, without which"
            f" its migration {between[first]} would stop the site"
        )
