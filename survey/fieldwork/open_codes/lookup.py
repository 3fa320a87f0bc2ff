"""Find an open code through the caches.

Each process remembers a code for two seconds, Memcached for five. So the page that
everybody opens at once costs no statement, and a revoked code shows it for at most
seven seconds, and as long as the replica is behind. It starts nothing meanwhile:
the statement of `starts` reads the row on the primary.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime

from django.core.cache import cache
from django.db import DEFAULT_DB_ALIAS, router

from survey.fieldwork.open_codes.limits import (
    most_per_address,
    most_per_hour,
    students_of_school,
)
from survey.models import OpenCode
from survey.people.access_codes import digests
from survey.taking.login import LoginRefused, read_code
from survey.taking.places import PlaceOnPage, place_of_school

SECONDS_IN_MEMORY = 2
SECONDS_IN_CACHE = 5
# Of different schools, at one web server.
MOST_IN_MEMORY = 10_000
COLUMNS = (
    "id",
    "administration_id",
    "administration__published_id",
    "administration__role",
    "school__name",
    "language",
    "limit",
    "hourly_limit",
    "revoked_at",
    "opens_at",
    "closes_at",
    "administration__opens_at",
    "administration__closes_at",
    "students",
    "school_id",
)


@dataclass(frozen=True, slots=True)
class KnownCode:
    """An open code as it was some seconds ago; times in seconds since 1970."""

    id: int
    administration_id: int
    # Of the published survey.
    digest: str
    role: str
    school: str
    language: str
    is_limited: bool
    is_revoked: bool
    opens_at: float
    closes_at: float
    # Starts.
    most_per_hour: int
    most_per_address: int
    place: PlaceOnPage

    def check_open(self, now: datetime) -> None:
        """Raise LoginRefused where nobody can begin with it now."""
        if self.is_revoked:
            raise LoginRefused("start_code_revoked")
        if now.timestamp() < self.opens_at:
            opens_at = datetime.fromtimestamp(self.opens_at, now.tzinfo)
            raise LoginRefused("not_open_yet", opens_at)
        if now.timestamp() >= self.closes_at:
            closes_at = datetime.fromtimestamp(self.closes_at, now.tzinfo)
            raise LoginRefused("closed_on", closes_at)


_in_memory: OrderedDict[str, tuple[float, KnownCode]] = OrderedDict()


def find_open_code(typed: str) -> tuple[KnownCode, Sequence[bytes]]:
    """Return a code and its digests: from memory, by 1 cache read, or 2 statements.

    A code that the replica lacks costs one statement more, on the primary. Codes
    that don't exist are not cached.

    Raises LoginRefused.
    """
    candidates = digests(read_code(typed))
    key = f"open_code.{candidates[0].hex()}"
    until, open_code = _in_memory.get(key, (0.0, None))
    if open_code is not None and time.monotonic() < until:
        return open_code, candidates
    open_code = _from_cache(key) or _read(candidates)
    if open_code is None:
        raise LoginRefused("start_code_wrong")
    _in_memory[key] = time.monotonic() + SECONDS_IN_MEMORY, open_code
    _in_memory.move_to_end(key)
    while len(_in_memory) > MOST_IN_MEMORY:
        _in_memory.popitem(last=False)
    return open_code, candidates


def _from_cache(key: str) -> KnownCode | None:
    stored = cache.get(key)
    try:
        place = PlaceOnPage(**stored["place"])
        return KnownCode(**{**stored, "place": place})
    # There is none, or it is of another release.
    except (TypeError, KeyError):
        return None


def _read(candidates: Sequence[bytes]) -> KnownCode | None:
    # The database is chosen once; see `survey.taking.published`.
    alias = router.db_for_read(OpenCode)
    known = read_open_code(alias, candidates)
    if known is None and alias != DEFAULT_DB_ALIAS:
        known = read_open_code(DEFAULT_DB_ALIAS, candidates)
    if known is not None:
        cache.set(f"open_code.{candidates[0].hex()}", asdict(known), SECONDS_IN_CACHE)
    return known


def read_open_code(alias: str, candidates: Sequence[bytes]) -> KnownCode | None:
    """Read a code from a database. 2 statements, or 1 if it has none."""
    rows = OpenCode.objects.using(alias).filter(code_digest__in=candidates)
    rows = rows.annotate(students=students_of_school())
    row = rows.values_list(*COLUMNS).first()
    if row is None:
        return None
    pk, administration, digest, role, school, language = row[:6]
    limit, hourly_limit, revoked_at, opens_at, closes_at, first, last = row[6:13]
    students, school_id = row[13:]
    return KnownCode(
        id=pk,
        administration_id=administration,
        digest=digest,
        role=role,
        school=school,
        language=language,
        is_limited=limit is not None,
        is_revoked=revoked_at is not None,
        opens_at=max(first, opens_at or first).timestamp(),
        closes_at=min(last, closes_at or last).timestamp(),
        most_per_hour=hourly_limit or most_per_hour(students),
        most_per_address=most_per_address(students),
        place=place_of_school(school_id),
    )


def read_hourly_limit(code: OpenCode) -> int:
    """Return how many may begin in an hour. 1 statement, if nobody chose a number."""
    if code.hourly_limit is not None:
        return code.hourly_limit
    students = OpenCode.objects.filter(pk=code.pk).values_list(students_of_school())
    return most_per_hour(students.get()[0])


def forget_open_codes() -> None:
    """Empty this process's cache, for tests that roll the database back."""
    _in_memory.clear()
