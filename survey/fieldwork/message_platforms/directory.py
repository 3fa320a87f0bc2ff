"""Platforms and administrations, remembered by each process for some seconds.

So a request costs one read in Redis, for the person. A revoked API key works for at
most five seconds more, and a changed window counts after one.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from datetime import timedelta
from functools import lru_cache
from typing import Any

from django.db.models import QuerySet
from django.utils import timezone

from survey.fieldwork.message_platforms.store import (
    PLATFORMS,
    Command,
    Store,
    key_of_administration,
    message_store,
)
from survey.instrument.definitions.schema import load_definition
from survey.models import (
    Administration,
    Denominator,
    MessagePlatform,
    PublishedSurvey,
)

PLATFORM_SECONDS = 5
WINDOW_SECONDS = 1
MOST_WINDOWS = 10_000
# How long after the closing the hashes of people are kept.
KEPT = timedelta(days=30)


@dataclass(frozen=True, slots=True)
class Platform:
    pk: int
    # None: the state's.
    district_id: int | None
    secret: bytes
    # SHA-256 of each valid API key.
    digests: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class Window:
    """When an administration is open, in seconds since 1970, and what it allows."""

    opens_at: float
    closes_at: float
    has_names: bool
    has_codes: bool
    first_language: str


_platforms: tuple[float, dict[int, Platform]] = (0.0, {})
_windows: dict[int, tuple[float, Window]] = {}


def find_platform(pk: int) -> Platform | None:
    """Return a platform that was not revoked. Mostly from memory.

    Every five seconds 1 command; where Redis has none, 1 statement. Raises
    ConnectionError.
    """
    global _platforms
    until, platforms = _platforms
    if time.monotonic() >= until:
        store = message_store()
        text = store.command("GET", PLATFORMS) if store else None
        if text is None:
            text = _platforms_as_json()
            if store:
                store.command("SET", PLATFORMS, text)
        platforms = {row.pk: row for row in map(_platform_from, json.loads(text))}
        _platforms = time.monotonic() + PLATFORM_SECONDS, platforms
    return platforms.get(pk)


def find_window(store: Store, administration_id: int) -> Window | None:
    """Return an administration's window; None if Redis lacks it.

    Mostly from memory, every second by 1 command. Raises ConnectionError.
    """
    until, window = _windows.get(administration_id, (0.0, None))
    if window is None or time.monotonic() >= until:
        text = store.command("GET", key_of_administration(administration_id))
        if text is None:
            return None
        window = Window(*json.loads(text))
        if len(_windows) >= MOST_WINDOWS:
            _windows.clear()
        _windows[administration_id] = time.monotonic() + WINDOW_SECONDS, window
    return window


def forget_directory() -> None:
    """Empty this process's memory, for tests and after an own change."""
    global _platforms
    _platforms = (0.0, {})
    _windows.clear()


def write_platforms(store: Store) -> int:
    """Write all platforms; return their number. 2 statements."""
    text = _platforms_as_json()
    store.command("SET", PLATFORMS, text)
    return len(json.loads(text))


def write_windows(store: Store, administration_ids: list[int] | None = None) -> None:
    """Write the windows of these administrations; without ids, of all current ones.

    None where there is no platform. Only for people of an administration that has
    one, finishing is noted: see `hooks.person_finished`.
    """
    if not MessagePlatform.objects.filter(revoked_at=None).exists():
        return
    rows = current_administrations()
    if administration_ids is not None:
        rows = rows.filter(pk__in=administration_ids)
    commands: list[Command] = [
        ("SET", key_of_administration(row.pk), window_as_json(row)) for row in rows
    ]
    if commands:
        store.pipeline(commands)


def current_administrations() -> QuerySet[Administration]:
    """Return administrations for people on rosters that are not long closed."""
    return Administration.objects.filter(
        denominator=Denominator.ROSTER,
        closes_at__gt=timezone.now() - KEPT,
        module_of=None,
    )


def window_as_json(row: Administration) -> str:
    return json.dumps(
        [
            row.opens_at.timestamp(),
            row.closes_at.timestamp(),
            row.messages_have_names,
            row.messages_have_codes,
            first_language(row.published_id),
        ]
    )


@lru_cache(maxsize=4096)
def first_language(digest: str) -> str:
    """Return the first language of a published survey, which never changes."""
    text = PublishedSurvey.objects.values_list("definition", flat=True).get(pk=digest)
    languages = load_definition(text)["languages"]
    return languages[0]["code"] if languages else ""


def _platforms_as_json() -> str:
    platforms = MessagePlatform.objects.filter(revoked_at=None)
    return json.dumps(
        [
            {
                "pk": row.pk,
                "district": row.district_id,
                "secret": bytes(row.person_secret).hex(),
                "digests": [
                    bytes(key.digest).hex()
                    for key in row.keys.all()
                    if key.revoked_at is None
                ],
            }
            for row in platforms.prefetch_related("keys")
        ]
    )


def _platform_from(row: dict[str, Any]) -> Platform:
    return Platform(
        pk=row["pk"],
        district_id=row["district"],
        secret=bytes.fromhex(row["secret"]),
        digests=tuple(map(bytes.fromhex, row["digests"])),
    )
