"""Access codes: what a respondent types to begin.

A code is not stored anywhere. It is derived from a key, the respondent's id
and the issue number, so that cards can be printed again; the database keeps
a digest under another key, so that a stolen copy of it opens no survey.
"""

from __future__ import annotations

import hmac
import unicodedata
from contextlib import suppress
from functools import lru_cache
from itertools import count
from typing import Any

from django.conf import settings
from django.core import checks
from django.core.exceptions import ImproperlyConfigured
from django.db import IntegrityError, connection, transaction
from django.db.models import QuerySet

from survey.models import Respondent

# 31 symbols: I, J, O, 0 and 1 are left out, which look like others.
ALPHABET = "ABCDEFGHKLMNPQRSTUVWXYZ23456789"

# Twelve of 31 symbols, 7.9e17 codes: with two million live codes and a
# thousand addresses guessing ten times a minute, one hit is expected in 75
# years. That any two of two million are the same has a chance of 2.5e-6;
# `rosters.apply` then gives the second person issue 2.
LENGTH = 12

# Longer than any code typed with a separator after every symbol.
LONGEST_TYPED = 64

# A byte below 248 = 8 * 31 stands for each symbol equally often; the others
# are thrown away, since any remainder of 256 would favour some symbols.
_USABLE = 256 - 256 % len(ALPHABET)
_SYMBOL_OF_BYTE = bytes(ord(ALPHABET[byte % len(ALPHABET)]) for byte in range(256))
_UNUSABLE_BYTES = bytes(range(_USABLE, 256))

# Signs that people's keyboards make for a dash and that Unicode does not
# class as one: minus, hyphen bullet, box drawing, the Japanese long vowel.
_MORE_DASHES = frozenset("\u2212\u2043\u2500\u30fc\uff70")
_DROPPED_CATEGORIES = frozenset({"Zs", "Zl", "Zp", "Pd", "Cf"})

# Only an L, written small, is read as these two. A zero is not forgiven: it
# could be a D or a Q.
_READ_AS = str.maketrans({"I": "L", "1": "L"})


class CodeKeyMissing(ImproperlyConfigured):
    """ACCESS_CODE_KEYS has no key, or not the one that a row was made with."""


def current_version() -> int:
    if not settings.ACCESS_CODE_KEYS:
        raise CodeKeyMissing("ACCESS_CODE_KEYS holds no key for access codes.")
    return max(settings.ACCESS_CODE_KEYS)


def code_for(respondent_id: int, issue: int, version: int | None = None) -> str:
    """The twelve symbols; the version is the newest key's where none is given."""
    key = _subkey(_master_key(version), b"spell")
    code, block = b"", 0
    # One block of 32 bytes is enough but for once in 10^23 codes.
    while len(code) < LENGTH:
        message = b"%d/%d/%d" % (respondent_id, issue, block)
        mac = hmac.digest(key, message, "sha256")
        code += mac.translate(_SYMBOL_OF_BYTE, _UNUSABLE_BYTES)
        block += 1
    return code[:LENGTH].decode("ascii")


def shown(code: str) -> str:
    return f"{code[:4]}-{code[4:8]}-{code[8:]}"


def normalise(typed: str) -> str | None:
    """The code that was meant, or None where it cannot be one.

    Forgives case, spaces, every kind of dash, full-width characters, and I
    or 1 for L.
    """
    if len(typed) > LONGEST_TYPED:
        return None
    kept = (
        symbol
        for symbol in unicodedata.normalize("NFKC", typed)
        if not _dropped(symbol)
    )
    code = "".join(kept).upper().translate(_READ_AS)
    if len(code) == LENGTH and set(code) <= _SYMBOLS:
        return code
    return None


_SYMBOLS = frozenset(ALPHABET)


def _dropped(symbol: str) -> bool:
    return (
        symbol.isspace()
        or symbol in _MORE_DASHES
        or unicodedata.category(symbol) in _DROPPED_CATEGORIES
    )


def digest_for(code: str, version: int) -> bytes:
    """The 32 bytes that the database keeps for a code of this key's version."""
    key = _subkey(_master_key(version), b"digest")
    return hmac.digest(key, code.encode("ascii"), "sha256")


def digests(code: str) -> list[bytes]:
    """What the database may keep for this code: one per key, newest first."""
    current_version()
    versions = sorted(settings.ACCESS_CODE_KEYS, reverse=True)
    return [digest_for(code, version) for version in versions]


def code_of(respondent: Respondent) -> str:
    """The code on this person's card, to print it again."""
    return code_for(respondent.pk, respondent.issue, respondent.code_key_version)


def reissue(*, respondent: Respondent) -> str:
    """Give this person a new code, which ends the old one; returns it.

    One UPDATE, under the newest key. Two at once give two issues, of which
    the later one is valid.
    """
    while True:
        issue, version = respondent.issue + 1, current_version()
        code = code_for(respondent.pk, issue, version)
        changes = {
            "issue": issue,
            "code_key_version": version,
            "code_digest": digest_for(code, version),
        }
        unchanged = Respondent.objects.filter(pk=respondent.pk, issue=respondent.issue)
        if unchanged.update(**changes):
            for name, value in changes.items():
                setattr(respondent, name, value)
            return code
        respondent.refresh_from_db(fields=["issue"])


REISSUED_AT_ONCE = 2000


@transaction.atomic
def reissue_all(people: QuerySet[Respondent]) -> int:
    """Give each of these people a new code; how many there are.

    All or none. Their page saves wait until this is committed, about a second
    for 10,000 people.
    """
    version = current_version()
    # In the order of the key, so that two at once cannot wait for each other.
    chosen = Respondent.objects.filter(pk__in=people.order_by().values("pk"))
    locked = chosen.select_for_update(no_key=True).order_by("pk")
    rows = list(locked.values_list("pk", "issue"))
    for start in range(0, len(rows), REISSUED_AT_ONCE):
        batch = rows[start : start + REISSUED_AT_ONCE]
        try:
            with transaction.atomic():
                _replace(batch, version)
        except IntegrityError:
            _replace_one_by_one(batch, version)
    return len(rows)


_REPLACE = {
    "postgresql": """
        UPDATE survey_respondent AS r
        SET issue = new.issue, code_digest = new.digest, code_key_version = %s
        FROM unnest(%s::bigint[], %s::smallint[], %s::bytea[])
             AS new (id, issue, digest)
        WHERE r.id = new.id
        """,
    "sqlite": """
        UPDATE survey_respondent
        SET issue = %s, code_digest = %s, code_key_version = %s WHERE id = %s
        """,
}


def _replace(rows: list[tuple[int, int]], version: int) -> None:
    """By hand: `bulk_update` writes a CASE for each row, and takes ten times
    as long."""
    new = [(pk, issue + 1, _digest(pk, issue + 1, version)) for pk, issue in rows]
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            ids, issues, digests = map(list, zip(*new, strict=True))
            cursor.execute(_REPLACE["postgresql"], [version, ids, issues, digests])
        else:
            cursor.executemany(
                _REPLACE["sqlite"],
                [(issue, digest, version, pk) for pk, issue, digest in new],
            )


def _replace_one_by_one(rows: list[tuple[int, int]], version: int) -> None:
    """Whose next code is somebody else's by chance gets the one after it."""
    for pk, issue in rows:
        for passed_over in count():
            with suppress(IntegrityError), transaction.atomic():
                _replace([(pk, issue + passed_over)], version)
                break


def _digest(respondent_id: int, issue: int, version: int) -> bytes:
    return digest_for(code_for(respondent_id, issue, version), version)


def _master_key(version: int | None) -> str:
    version = current_version() if version is None else version
    try:
        return settings.ACCESS_CODE_KEYS[version]
    except KeyError:
        raise CodeKeyMissing(
            f"ACCESS_CODE_KEYS holds no key of version {version}."
        ) from None


@lru_cache(maxsize=64)
def _subkey(master: str, purpose: bytes) -> bytes:
    message = b"groundswell access code: " + purpose
    return hmac.digest(master.encode(), message, "sha256")


def check_access_code_keys(**_: Any) -> list[checks.CheckMessage]:
    """Registered for `check --deploy` by the app."""
    keys: dict[int, str] = settings.ACCESS_CODE_KEYS
    if not keys:
        return [
            checks.Error(
                "ACCESS_CODE_KEYS is empty: nobody can be given an access code.",
                hint="Set GROUNDSWELL_ACCESS_CODE_KEYS=1=<a long random text>.",
                id="survey.E001",
            )
        ]
    # The column of the version is a small integer.
    impossible = sorted(version for version in keys if not 0 <= version <= 32767)
    short = sorted(version for version, key in keys.items() if len(key) < 16)
    return [
        checks.Error(message, id=number)
        for found, number, message in (
            (impossible, "survey.E002", f"Key versions out of range: {impossible}."),
            (short, "survey.E003", f"Keys shorter than 16 characters: {short}."),
        )
        if found
    ]
