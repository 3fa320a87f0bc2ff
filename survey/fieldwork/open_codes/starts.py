"""Create the respondent of a person who begins with an open code.

The personal code is derived from the key of the form that the person sends, and its
digest is unique: forms with one key make one respondent (`start_forms`).
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from hashlib import sha256

from django.conf import settings
from django.core.cache import caches
from django.db import DEFAULT_DB_ALIAS, connection, transaction
from django.utils import timezone

from survey.database import code_routes
from survey.fieldwork.open_codes.lookup import KnownCode, read_open_code
from survey.models import OpenDecline
from survey.people.access_codes import digest_for, digest_versions, personal_code_for
from survey.taking.devices import store_device_login
from survey.taking.login import Login, LoginRefused
from survey.taking.storage import as_datetime
from survey.taking.wrong_codes import block_of

# What a statement of this module takes.
Parameter = int | str | bytes | datetime | None
# A family has a few children, a school's tablet at a parents' evening more people.
# Beyond this, a program fills the table.
MOST_PER_DEVICE_AND_HOUR = 60
# After this, a form that was used begins nothing any more: at a shared
# computer, the next person may go back to it.
REPEATABLE = timedelta(minutes=2)

# Nothing is locked. The rows of the code and the administration are read in the
# statement, so that revoking, replacing and closing apply at once.
START = """
INSERT INTO survey_respondent
    (administration_id, school_id, open_code_id, grade, language, classroom,
     attributes, issue, code_digest, code_key_version, started_at)
SELECT c.administration_id, c.school_id, c.id, '', %s, '', '{{}}', 1, %s, %s, %s
FROM survey_opencode c
JOIN survey_administration a ON a.id = c.administration_id
WHERE c.code_digest IN ({places}) AND c.revoked_at IS NULL
  AND a.opens_at <= %s AND a.closes_at > %s
  AND (c.opens_at IS NULL OR c.opens_at <= %s)
  AND (c.closes_at IS NULL OR c.closes_at > %s)
ON CONFLICT (code_digest) DO NOTHING
RETURNING id
"""
# On a cluster, the key names the shard, and the route of the digest is unique.
START_ON_CLUSTER = (
    START.replace("(administration_id", "(id, administration_id")
    .replace("SELECT c.", "SELECT nextval('survey_respondent_id_seq'), c.")
    .replace("ON CONFLICT (code_digest) DO NOTHING\n", "")
)
BEGUN = """
SELECT id, started_at, completed_at, withdrawn_at, issue FROM survey_respondent
WHERE code_digest = %s AND open_code_id = %s
"""
BEGUN_ON_CLUSTER = f"{BEGUN} AND id = %s"
# Free seats that another start has locked are passed over, and not waited for.
CLAIM = """
UPDATE survey_opencodeseat SET respondent_id = %s, claimed_at = %s
WHERE id = (SELECT id FROM survey_opencodeseat
            WHERE open_code_id = %s AND respondent_id IS NULL
            LIMIT 1 {lock})
"""


def begin(
    code: KnownCode,
    candidates: Sequence[bytes],
    *,
    key: str,
    device: str,
    language: str,
    address: str = "",
) -> Login:
    """Create the respondent. 2 statements: their own row, and their device.

    A limited code costs 1 statement more, for the seat. A key that is sent again
    costs 1 more, and returns the respondent that it made. A cluster costs 1 more.

    Raises LoginRefused.
    """
    now = timezone.now()
    code.check_open(now)
    _limit_starts(code, device, address, now)
    version = digest_versions()[0]
    digest = digest_for(personal_code_for(key), version)
    at = connection.ops.adapt_datetimefield_value(now)
    values: list[Parameter] = [language, digest, version, at, *candidates]
    values += [at] * 4
    if code.is_limited:
        lock = "FOR UPDATE SKIP LOCKED" if connection.vendor == "postgresql" else ""
        # The respondent comes first: a start that finds no seat has locked none.
        with transaction.atomic(), connection.cursor() as cursor:
            respondent_id = _insert(candidates, digest, values)
            if respondent_id is not None:
                cursor.execute(CLAIM.format(lock=lock), [respondent_id, at, code.id])
                if not cursor.rowcount:
                    raise LoginRefused("start_code_full")
    else:
        respondent_id = _insert(candidates, digest, values)
    started_at, issue = now, 1
    is_new = respondent_id is not None
    if respondent_id is None:
        respondent_id, started_at, issue = _find_begun(code, candidates, digest, now)
    store_device_login(
        respondent_id=respondent_id,
        administration_id=code.administration_id,
        device=device,
        at=started_at,
        after_finishing=False,
    )
    return Login(
        respondent_id=respondent_id,
        administration_id=code.administration_id,
        issue=issue,
        digest=code.digest,
        language=language,
        completed=False,
        is_new=is_new,
    )


def decline(code: KnownCode, *, form: str, device: str) -> None:
    """Count a decision not to take part. 1 statement; nothing of the person is kept.

    Raises LoginRefused.
    """
    now = timezone.now()
    if _count(device, now) > MOST_PER_DEVICE_AND_HOUR:
        raise LoginRefused("start_too_often")
    row = OpenDecline(
        form_digest=sha256(form.encode()).digest(), open_code_id=code.id, at=now
    )
    OpenDecline.objects.bulk_create([row], ignore_conflicts=True)


def _limit_starts(code: KnownCode, device: str, address: str, now: datetime) -> None:
    """Refuse a device, an address or a code that begins too often in an hour.

    A network that is refused does not count for the code: with one address alone, a
    program can't keep everybody else out.
    """
    if _count(device, now) > MOST_PER_DEVICE_AND_HOUR:
        raise LoginRefused("start_too_often")
    block = block_of(address) if address else ""
    if block and _count(f"{code.id}.{block}", now) > code.most_per_address:
        raise LoginRefused("start_code_busy")
    if _count(str(code.id), now) > code.most_per_hour:
        raise LoginRefused("start_code_busy")


def _count(subject: str, now: datetime) -> int:
    """Count the starts in one hour of the clock, this one included.

    0 while the counts can't be reached: then nobody is refused.
    """
    sessions = caches[settings.SESSION_CACHE_ALIAS]
    key = f"starts.{subject}.{now:%d%H}"
    with suppress(ConnectionError):
        # Two hours, so that the count can't expire between the two calls.
        return 1 if sessions.add(key, 1, 2 * 60 * 60) else sessions.incr(key)
    return 0


def _insert(
    candidates: Sequence[bytes], digest: bytes, values: Sequence[Parameter]
) -> int | None:
    """Return the new respondent; None if the form was used or the code has ended."""
    places = ", ".join(["%s"] * len(candidates))
    with connection.cursor() as cursor:
        if not settings.IS_DISTRIBUTED:
            cursor.execute(START.format(places=places), values)
            row = cursor.fetchone()
            return row and row[0]
        with transaction.atomic():
            cursor.execute(START_ON_CLUSTER.format(places=places), values)
            row = cursor.fetchone()
            if row and not code_routes.add_new_route(cursor, digest, row[0]):
                transaction.set_rollback(True)
                return None
    return row and row[0]


def _find_begun(
    code: KnownCode, candidates: Sequence[bytes], digest: bytes, now: datetime
) -> tuple[int, datetime, int]:
    """Return the respondent of a form that was sent before. 1 statement; else 2."""
    query = BEGUN
    parameters: list[Parameter] = [digest, code.id]
    with connection.cursor() as cursor:
        if settings.IS_DISTRIBUTED:
            query = BEGUN_ON_CLUSTER
            parameters.append(code_routes.find_respondent(cursor, [digest]))
        cursor.execute(query, parameters)
        row = cursor.fetchone()
    if row is None:
        # It ended after the caches were filled.
        current = read_open_code(DEFAULT_DB_ALIAS, candidates)
        if current is None:
            raise LoginRefused("start_code_revoked")
        current.check_open(now)
        # It was opened again a moment ago: the form is still good.
        raise LoginRefused("start_form_used")
    respondent_id, started_at, completed_at, withdrawn_at, issue = row
    started_at = as_datetime(started_at)
    if completed_at or withdrawn_at or now - started_at > REPEATABLE:
        raise LoginRefused("start_form_used")
    return respondent_id, started_at, issue
