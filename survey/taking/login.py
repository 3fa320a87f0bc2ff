"""Log a respondent in by access code, or say why not."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.core.cache import caches
from django.db import connection
from django.utils import timezone

from survey.database import code_routes
from survey.people.access_codes import (
    LENGTH,
    LONGEST_TYPED,
    ImpossibleSymbol,
    count_symbols,
    digests,
    find_impossible_symbol,
    normalise,
)
from survey.taking.devices import ONLY_DEVICE, store_device_login
from survey.taking.prepared_statements import execute_where_possible
from survey.taking.storage import GRACE, as_datetime


@dataclass(frozen=True, slots=True)
class Login:
    respondent_id: int
    administration_id: int
    # Number of the access code that was typed.
    issue: int
    digest: str
    language: str
    # False too where this device may not learn it.
    completed: bool
    # Nobody can have a session of theirs: they begin with this request.
    is_new: bool = False


class LoginRefused(Exception):
    """`key` names the message; `at` is when the survey opens or closed.

    `impossible` is a symbol of the typed code that no code has.
    """

    def __init__(
        self,
        key: str,
        at: datetime | None = None,
        impossible: ImpossibleSymbol | None = None,
    ) -> None:
        super().__init__(key)
        self.key = key
        self.at = at
        self.impossible = impossible


# A person types a code a few times a day. Beyond this, somebody fills the session
# store or tries what a code shows.
MOST_LOGINS_PER_HOUR = 60

# Written by hand: building the ORM's queries took longer than all the rest.
FIRST_START = """
UPDATE survey_respondent SET started_at = %s WHERE id = %s AND started_at IS NULL
"""
RESPONDENT = """
SELECT r.id, r.administration_id, r.issue, a.published_id, r.language,
       r.started_at, r.completed_at, r.withdrawn_at, a.opens_at, a.closes_at,
       a.replays_answers, r.awaits_consent, r.declined_at, {clock}, {only_device},
       EXISTS (SELECT 1 FROM survey_devicelogin d
               WHERE d.respondent_id = r.id AND d.device = %s)
FROM survey_respondent r
JOIN survey_administration a ON a.id = r.administration_id
WHERE r.code_digest IN ({places})
"""
# That of the host that answers may be wrong.
CLOCK = {
    "postgresql": "statement_timestamp()",
    "sqlite": "strftime('%%Y-%%m-%%d %%H:%%M:%%f', 'now')",
}
# On a cluster, where the route of the code names the shard.
OF_SHARD = f"{RESPONDENT} AND r.id = %s"


def log_in_respondent(typed: str, device: str = "") -> Login:
    """Find the respondent of a code. 1 read by unique index; 1 write at the first
    start, and 1 for a code that is new on this device.

    1 or 2 writes at the session store's cache, which count the code's logins.

    `device` is the digest of `survey.taking.devices`; without one, nothing of an
    earlier login is told.

    Raises LoginRefused. Saying that a person was withdrawn gives nothing away:
    only people who hold the code can learn it.
    """
    candidates = digests(read_code(typed))
    places = ", ".join(["%s"] * len(candidates))
    with connection.cursor() as cursor:
        query = RESPONDENT
        parameters: list[Any] = [device, *candidates]
        if settings.IS_DISTRIBUTED:
            query = OF_SHARD
            parameters.append(code_routes.find_respondent(cursor, candidates))
        query = query.format(
            places=places, clock=CLOCK[connection.vendor], only_device=ONLY_DEVICE
        )
        types = ("text", *["bytea"] * len(candidates))
        execute_where_possible(cursor, query, types, parameters)
        row = cursor.fetchone()
    if row is None:
        raise LoginRefused("code_wrong")
    respondent_id, administration_id, issue, digest, language = row[:5]
    started_at, completed_at, withdrawn_at = row[5:8]
    opens_at, closes_at = as_datetime(row[8]), as_datetime(row[9])
    replays_answers, awaits_consent, declined_at, clock, only_device, is_known = row[
        10:
    ]
    if withdrawn_at:
        if awaits_consent:
            raise LoginRefused("consent_missing")
        raise LoginRefused("withdrawn")
    if declined_at:
        raise LoginRefused("declined")
    now = as_datetime(clock)
    if _count_login(respondent_id, issue, now) > MOST_LOGINS_PER_HOUR:
        raise LoginRefused("code_used_too_often")
    # On another device, everything is as for a person who has not finished.
    completed = completed_at is not None and bool(
        replays_answers or (device and only_device == device)
    )
    if not completed:
        if now < opens_at:
            raise LoginRefused("not_open_yet", opens_at)
        # As a page save: only if the clock of this host says so too.
        earlier = min(now, timezone.now())
        if earlier >= closes_at + (GRACE if started_at else timedelta()):
            raise LoginRefused("closed_on", closes_at)
        if started_at is None and not completed_at:
            with connection.cursor() as cursor:
                at = connection.ops.adapt_datetimefield_value(now)
                cursor.execute(FIRST_START, [at, respondent_id])
                # The person started elsewhere a moment ago, or was deleted.
                if not cursor.rowcount:
                    cursor.execute(query, parameters)
                    if cursor.fetchone() is None:
                        raise LoginRefused("code_wrong")
    if device and not is_known:
        # At the very time of the first start, if this is it.
        store_device_login(
            respondent_id=respondent_id,
            administration_id=administration_id,
            device=device,
            at=now,
            after_finishing=completed_at is not None,
        )
    return Login(
        respondent_id=respondent_id,
        administration_id=administration_id,
        issue=issue,
        digest=digest,
        language=language,
        completed=completed,
    )


def read_code(typed: str) -> str:
    """Return the code that was typed. Raises LoginRefused, which says what is wrong."""
    code = normalise(typed)
    if code is not None:
        return code
    impossible = find_impossible_symbol(typed)
    if impossible is not None:
        raise LoginRefused("code_impossible", impossible=impossible)
    is_longer = len(typed) > LONGEST_TYPED or count_symbols(typed) > LENGTH
    raise LoginRefused("code_too_long" if is_longer else "code_incomplete")


def _count_login(respondent_id: int, issue: int, now: datetime) -> int:
    """Count the logins with one code in one hour of the clock, this one included."""
    sessions = caches[settings.SESSION_CACHE_ALIAS]
    key = f"logins.{respondent_id}.{issue}.{now:%d%H}"
    # Two hours, so that the count can't expire between the two calls.
    return 1 if sessions.add(key, 1, 2 * 60 * 60) else sessions.incr(key)
