"""Read a person from the database where Redis has no hash, and write the hash.

Few people are read at a time, on all web servers together, and each of them once:
who asks meanwhile waits for the hash for a moment.
"""

from __future__ import annotations

import json
import time
from dataclasses import astuple
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from django.db import DEFAULT_DB_ALIAS, connection, connections, router

from accounts.retry_delays import RetryDelays
from survey.database.routers import forced_reads
from survey.fieldwork.message_platforms.directory import (
    KEPT,
    Window,
    find_window,
    window_as_json,
)
from survey.fieldwork.message_platforms.hashes import fields_of, read_people
from survey.fieldwork.message_platforms.store import (
    READING,
    Field,
    Store,
    key_of_administration,
    key_of_person,
    read_hash,
)
from survey.models import Administration, PublishedSurvey, Respondent

# People who are read at the same time; a read takes a millisecond or two.
MOST_READS = 4
# A read that takes longer counts as dead.
READ_SECONDS = 2
# How long, and how often, somebody else's read is waited for.
WAITS = RetryDelays(first=timedelta(milliseconds=5), attempts=5)

# 1: read it. 0: somebody else reads it. -1: too many are being read.
CLAIM = """
local now = redis.call('TIME')
local at = now[1] + now[2] / 1000000
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', at - ARGV[2])
if redis.call('ZSCORE', KEYS[1], ARGV[1]) then return 0 end
if redis.call('ZCARD', KEYS[1]) >= tonumber(ARGV[3]) then return -1 end
redis.call('ZADD', KEYS[1], at, ARGV[1])
redis.call('EXPIRE', KEYS[1], 60)
return 1
"""
# What a worker has written meanwhile is newer, and stays.
FILL = """
redis.call('ZREM', KEYS[1], ARGV[1])
if ARGV[2] == '' then return 0 end
if redis.call('EXISTS', KEYS[3]) == 0 then redis.call('SET', KEYS[3], ARGV[3]) end
if redis.call('HEXISTS', KEYS[2], 'a') == 1 then return 0 end
redis.call('HSET', KEYS[2], unpack(ARGV, 4))
redis.call('EXPIREAT', KEYS[2], ARGV[2])
return 1
"""
READ = "SELECT * FROM survey_read_for_message(%s)"


class TooManyReads(Exception):
    """Answered with 503: the platform asks again."""


class Found(NamedTuple):
    """What is known about one person."""

    fields: dict[bytes, bytes]
    window: Window


def read_and_fill(store: Store, respondent_id: int) -> Found | None:
    """Return a person from the database, and write the hash; None if there is none.

    1 statement, on the replica; a second one, on the primary, for people whom the
    replica lacks. Raises TooManyReads, and ConnectionError while Redis is down.
    """
    limits = (READ_SECONDS, MOST_READS)
    claimed = store.command("EVAL", CLAIM, 1, READING, respondent_id, *limits)
    if claimed < 0:
        raise TooManyReads
    if claimed == 0:
        return _wait_for_other(store, respondent_id)
    expires_at: int | str = ""
    key_of_window, text, flat = key_of_administration(0), "", list[bytes]()
    try:
        person = read_person(respondent_id)
        if person is not None:
            closes_at = datetime.fromtimestamp(person.window.closes_at, UTC)
            expires_at = int((closes_at + KEPT).timestamp())
            pk = int(person.fields[Field.ADMINISTRATION])
            key_of_window = key_of_administration(pk)
            text = json.dumps(astuple(person.window))
            flat = [part for field in person.fields.items() for part in field]
        return person
    finally:
        keys = (READING, key_of_person(respondent_id), key_of_window)
        store.command("EVAL", FILL, 3, *keys, respondent_id, expires_at, text, *flat)


def _wait_for_other(store: Store, respondent_id: int) -> Found | None:
    for seconds in WAITS:
        time.sleep(seconds)
        fields = read_hash(store, respondent_id)
        if Field.ADMINISTRATION in fields:
            window = find_window(store, int(fields[Field.ADMINISTRATION]))
            return Found(fields, window) if window else None
    raise TooManyReads


def read_person(respondent_id: int) -> Found | None:
    """Read one person. 1 statement; 2 if the replica lacks the person."""
    if connection.vendor != "postgresql":
        return _read_with_models(respondent_id)
    with forced_reads(PublishedSurvey):
        alias = router.db_for_read(PublishedSurvey)
        row = _read(alias, respondent_id)
    if row is None and alias != DEFAULT_DB_ALIAS:
        row = _read(DEFAULT_DB_ALIAS, respondent_id)
    if row is None:
        return None
    (administration, district, language, school, is_finished, is_stopped) = row[:6]
    name, opens_at, closes_at, has_names, has_codes, first_language = row[6:]
    fields = {
        Field.ADMINISTRATION: b"%d" % administration,
        Field.DISTRICT: b"%d" % district,
        Field.LANGUAGE: language.encode(),
        Field.SCHOOL: school.encode(),
        Field.STOPPED: b"1" if is_stopped else b"0",
        Field.NAME: name.encode(),
        # This pool can't spell codes. The next check by the workers adds it.
        Field.CODE: b"",
    }
    if is_finished:
        fields[Field.FINISHED] = b"1"
    window = Window(
        opens_at.timestamp(),
        closes_at.timestamp(),
        has_names,
        has_codes,
        first_language or "",
    )
    return Found(fields, window)


def _read(alias: str, respondent_id: int) -> tuple[Any, ...] | None:
    with connections[alias].cursor() as cursor:
        cursor.execute(READ, [respondent_id])
        return cursor.fetchone()


def _read_with_models(respondent_id: int) -> Found | None:
    people = Respondent.objects.on_roster().filter(identity__isnull=False)
    rows = read_people(people, [respondent_id])
    if not rows:
        return None
    administration = Administration.objects.get(pk=rows[0].administration_id)
    window = Window(*json.loads(window_as_json(administration)))
    return Found(fields_of(rows)[respondent_id], window)
