"""Recognise the device on which a person has answered.

A code starts a survey and reveals none: saved answers, and whether the person has
finished, are shown only on the one device that was used before. From the second
device on they are shown on none, because nobody can tell which one is the
person's own. An administration may allow more (`replays_answers`).
"""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Mapping
from datetime import datetime

from django.conf import settings
from django.core.signing import BadSignature, Signer
from django.db import connection
from django.http import HttpResponse

COOKIE = "device"
SALT = "survey.taking.device"
FORMAT = re.compile(r"[0-9a-f]{32}")
# Marks for some minutes that the person has finished here.
FINISHED_COOKIE = "finished"
MINUTES_OF_THANKS = 10
YEAR = 365 * 24 * 60 * 60

# The only device of a respondent `r`, as digest: there from the start, so that
# answers of before were not given elsewhere. One that came after the person had
# finished has given no answers. None if the person stopped for now.
ONLY_DEVICE = """
    (SELECT CASE WHEN count(*) = 1 AND min(d.first_at) <= r.started_at
                  AND count(CASE WHEN d.forgets THEN 1 END) = 0
            THEN min(d.device) END
     FROM survey_devicelogin d
     WHERE d.respondent_id = r.id AND NOT d.after_finishing)
    """
INSERT = """
INSERT INTO survey_devicelogin
    (respondent_id, device, administration_id, first_at, after_finishing)
VALUES (%s, %s, %s, %s, %s)
ON CONFLICT (respondent_id, device) DO UPDATE SET first_at = excluded.first_at
WHERE survey_devicelogin.first_at > excluded.first_at
"""
FORGET = """
UPDATE survey_devicelogin SET forgets = true
WHERE respondent_id = %s AND device = %s AND NOT forgets
"""


def read_device_id(cookies: Mapping[str, str]) -> str:
    """Return the id in a browser's cookie, or "" if it has none of ours."""
    try:
        device_id = Signer(salt=SALT).unsign(cookies.get(COOKIE, ""))
    except BadSignature:
        return ""
    return device_id if FORMAT.fullmatch(device_id) else ""


def new_device_id() -> str:
    return secrets.token_hex(16)


def digest_of(device_id: str) -> str:
    """Return what the database stores: a copy of it makes no cookie."""
    return hashlib.sha256(device_id.encode()).hexdigest()[:32] if device_id else ""


def device_of(cookies: Mapping[str, str]) -> str:
    return digest_of(read_device_id(cookies))


def set_device_cookie(response: HttpResponse, device_id: str) -> None:
    """Mark the device. It stays when people log out, and names nobody."""
    response.set_cookie(
        COOKIE,
        Signer(salt=SALT).sign(device_id),
        max_age=YEAR,
        secure=settings.SESSION_COOKIE_SECURE,
        httponly=True,
        samesite="Lax",
    )


def set_finished_cookie(response: HttpResponse, respondent_id: int) -> None:
    """Let this browser thank a person who has used several devices."""
    response.set_cookie(
        FINISHED_COOKIE,
        Signer(salt=FINISHED_COOKIE).sign(str(respondent_id)),
        max_age=MINUTES_OF_THANKS * 60,
        path="/take/",
        secure=settings.SESSION_COOKIE_SECURE,
        httponly=True,
        samesite="Lax",
    )


def has_finished_here(cookies: Mapping[str, str], respondent_id: int) -> bool:
    signed = cookies.get(FINISHED_COOKIE, "")
    return signed == Signer(salt=FINISHED_COOKIE).sign(str(respondent_id))


def store_device_login(
    *,
    respondent_id: int,
    administration_id: int,
    device: str,
    at: datetime,
    after_finishing: bool,
) -> None:
    """Store when a code was first used on a device. 1 statement."""
    with connection.cursor() as cursor:
        first_at = connection.ops.adapt_datetimefield_value(at)
        cursor.execute(
            INSERT,
            (respondent_id, device, administration_id, first_at, after_finishing),
        )


def forget_device(respondent_id: int, device: str) -> None:
    """Never again show a person's answers on a device. 1 statement.

    The next child at a shared computer may have a look at this person's card.
    """
    with connection.cursor() as cursor:
        cursor.execute(FORGET, (respondent_id, device))
