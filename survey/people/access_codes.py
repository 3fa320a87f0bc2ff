"""Access codes, which respondents type to log in.

A code is not stored anywhere. It is derived from a key, the respondent's id
and the issue number, so that cards can be printed again. The database keeps a
digest under another key, so that a stolen copy of it opens no survey.

Both keys are derived from one of ACCESS_CODE_KEYS. The respondents' pool has
only the keys of the digests, in ACCESS_CODE_DIGEST_KEYS.
"""

from __future__ import annotations

import hmac
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from django.conf import settings
from django.core import checks
from django.core.exceptions import ImproperlyConfigured
from django.utils.crypto import salted_hmac

from survey.models import Respondent

# 31 symbols, without I, J, O, 0 and 1, which look like others.
ALPHABET = "ABCDEFGHKLMNPQRSTUVWXYZ23456789"
_SYMBOLS = frozenset(ALPHABET)

# Twelve of 31 symbols, 7.9e17 codes: with two million live codes and a
# thousand addresses guessing ten times a minute, one hit is expected in 75
# years. Two of two million codes are equal with a probability of 2.5e-6;
# `rosters.apply` then gives the second person issue 2.
LENGTH = 12

# Longer than any code typed with a separator after every symbol.
LONGEST_TYPED = 64

# Each symbol stands for 8 of the bytes below 248 = 8 * 31. The bytes above are
# thrown away: a remainder of 256 would make some symbols likelier.
_USABLE = 256 - 256 % len(ALPHABET)
_SYMBOL_OF_BYTE = bytes(ord(ALPHABET[byte % len(ALPHABET)]) for byte in range(256))
_UNUSABLE_BYTES = bytes(range(_USABLE, 256))

# Between the symbols, everything is dropped that is no letter and no digit: spaces,
# dashes, dots, quotes, marks; and the Japanese long vowel, which is typed for a dash.
_DROPPED_CATEGORIES = frozenset("ZPSCM")
_LONG_VOWELS = frozenset("\u30fc\uff70")

# A small L looks like these two. A zero is not corrected: it could be a D or
# a Q.
_CORRECTIONS = str.maketrans({"I": "L", "1": "L"})


@dataclass(frozen=True, slots=True)
class ImpossibleSymbol:
    """A letter or digit that no code has."""

    symbol: str
    # Its index in the typed text, and its number among the symbols, from 1.
    at: int
    number: int


class CodeKeyMissing(ImproperlyConfigured):
    """ACCESS_CODE_KEYS is empty or lacks the key that a row was made with."""


def current_version() -> int:
    if not settings.ACCESS_CODE_KEYS:
        raise CodeKeyMissing("ACCESS_CODE_KEYS holds no key for access codes.")
    return max(settings.ACCESS_CODE_KEYS)


def code_for(respondent_id: int, issue: int, version: int | None = None) -> str:
    """Derive a code of twelve symbols; without a version, under the newest key."""
    key = _subkey(_master_key(version), b"spell")
    return _spell(key, b"%d/%d" % (respondent_id, issue))


def open_code_for(open_code_id: int, issue: int, version: int | None = None) -> str:
    """Derive the code that a school hands out to everybody."""
    key = _subkey(_master_key(version), b"spell")
    return _spell(key, b"open/%d/%d" % (open_code_id, issue))


def personal_code_for(start: str) -> str:
    """Derive a personal access code from the key of a start form.

    From the web servers' key, because the respondents' pool can't spell other codes.
    """
    key = salted_hmac("survey.open_codes", "personal code", algorithm="sha256").digest()
    return _spell(key, start.encode())


def _spell(key: bytes, message: bytes) -> str:
    code, block = b"", 0
    # One block of 32 bytes is too short once in 10^23 codes.
    while len(code) < LENGTH:
        mac = hmac.digest(key, b"%b/%d" % (message, block), "sha256")
        code += mac.translate(_SYMBOL_OF_BYTE, _UNUSABLE_BYTES)
        block += 1
    return code[:LENGTH].decode("ascii")


def format_code(code: str) -> str:
    """Return a code as cards show it: "ABCD-EFGH-KLMN"."""
    return f"{code[:4]}-{code[4:8]}-{code[8:]}"


def normalise(typed: str) -> str | None:
    """Return the code that was typed, or None if it cannot be a code.

    Ignores case, separators of every kind, accents and full-width characters, and
    reads I or 1 as L.
    """
    if len(typed) > LONGEST_TYPED:
        return None
    # Nearly all are typed as on cards.
    code = typed.replace("-", "").strip().upper()
    if len(code) == LENGTH and typed.isascii() and set(code) <= _SYMBOLS:
        return code
    code = "".join(symbol for _, symbol in _typed_symbols(typed))
    return code if len(code) == LENGTH and set(code) <= _SYMBOLS else None


def find_impossible_symbol(typed: str) -> ImpossibleSymbol | None:
    """Return the first letter or digit of a typed text that no code has."""
    symbols = _typed_symbols(typed[:LONGEST_TYPED])
    for number, (at, symbol) in enumerate(symbols, start=1):
        if symbol not in _SYMBOLS:
            return ImpossibleSymbol(symbol, at, number)
    return None


def count_symbols(typed: str) -> int:
    """Count the letters and digits of a typed text, up to `LONGEST_TYPED`."""
    return sum(1 for _ in _typed_symbols(typed[:LONGEST_TYPED]))


def _typed_symbols(typed: str) -> Iterator[tuple[int, str]]:
    """List the letters and digits as they are on cards, with their indices."""
    for at, character in enumerate(typed):
        for symbol in unicodedata.normalize("NFKD", character).upper():
            if symbol in _LONG_VOWELS:
                continue
            if unicodedata.category(symbol)[0] in _DROPPED_CATEGORIES:
                continue
            digit = unicodedata.decimal(symbol, None)
            symbol = symbol if digit is None else str(digit)
            yield at, symbol.translate(_CORRECTIONS)


def digest_for(code: str, version: int) -> bytes:
    """Return the 32 bytes that the database stores for a code of this key."""
    return hmac.digest(_digest_key(version), code.encode("ascii"), "sha256")


def module_digest_for(
    administration_id: int, respondent_id: int, version: int
) -> bytes:
    """Return what the database stores for a person who goes on to a module.

    Instead of a code's digest: no code has these characters, so nobody can type it.
    Only who has the key can tell which respondent of the state's round it is.
    """
    message = b"module/%d/%d" % (administration_id, respondent_id)
    return hmac.digest(_digest_key(version), message, "sha256")


def erased_id_digest(role: str, external_id: str, version: int | None = None) -> bytes:
    """Return what is stored of an erased person's ID; by default of the newest key."""
    key = _subkey(_master_key(version), b"erased")
    return hmac.digest(key, f"{role}/{external_id}".encode(), "sha256")


def digests(code: str) -> list[bytes]:
    """Return the digests that may be stored for a code: one per key, newest first."""
    return [digest_for(code, version) for version in digest_versions()]


def digest_versions() -> list[int]:
    """Return the versions of the digests' keys, newest first."""
    versions = {*settings.ACCESS_CODE_KEYS, *settings.ACCESS_CODE_DIGEST_KEYS}
    if not versions:
        raise CodeKeyMissing("There is no key for the digests of access codes.")
    return sorted(versions, reverse=True)


def code_of(respondent: Respondent) -> str:
    """Return the code that is printed on this person's card."""
    return code_for(respondent.pk, respondent.issue, respondent.code_key_version)


def _master_key(version: int | None) -> str:
    version = current_version() if version is None else version
    try:
        return settings.ACCESS_CODE_KEYS[version]
    except KeyError:
        raise CodeKeyMissing(
            f"ACCESS_CODE_KEYS holds no key of version {version}."
        ) from None


def _digest_key(version: int) -> bytes:
    if version in settings.ACCESS_CODE_DIGEST_KEYS:
        return bytes.fromhex(settings.ACCESS_CODE_DIGEST_KEYS[version])
    return _subkey(_master_key(version), b"digest")


@lru_cache(maxsize=64)
def _subkey(master: str, purpose: bytes) -> bytes:
    message = b"groundswell access code: " + purpose
    return hmac.digest(master.encode(), message, "sha256")


def check_access_code_keys(**_: object) -> list[checks.CheckMessage]:
    """Check the keys; a system check of `check --deploy`."""
    keys: dict[int, str] = settings.ACCESS_CODE_KEYS
    if not keys:
        return [
            checks.Error(
                "ACCESS_CODE_KEYS is empty, so no access codes can be issued.",
                hint="Set GROUNDSWELL_ACCESS_CODE_KEYS=1=<a long random text>.",
                id="survey.E001",
            )
        ]
    # The column of the version is a small integer.
    impossible = sorted(version for version in keys if not 0 <= version <= 32767)
    short = sorted(version for version, key in keys.items() if len(key) < 16)
    return [
        checks.Error(message, id=number)
        for versions, number, message in (
            (impossible, "survey.E002", f"Key versions out of range: {impossible}."),
            (short, "survey.E003", f"Keys shorter than 16 characters: {short}."),
        )
        if versions
    ]
