"""The keys under which a platform knows people.

A key is the respondent's id, encrypted and signed with the platform's own secret
(a synthetic initialisation vector, as in RFC 5297). The same person has another
key on each platform, and a key that was not handed out is recognised without
looking anything up.
"""

from __future__ import annotations

import hmac
import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error

# 16 bytes: guessing a key takes 2^64 requests, with a valid API key.
PERSON_KEY = re.compile(r"[A-Za-z0-9_-]{22}", re.ASCII)
_HALF = 8


def person_key(secret: bytes, respondent_id: int) -> str:
    plain = respondent_id.to_bytes(_HALF, "big")
    tag = hmac.digest(secret, b"tag" + plain, "sha256")[:_HALF]
    return urlsafe_b64encode(tag + _crypt(secret, tag, plain)).rstrip(b"=").decode()


def respondent_of(secret: bytes, key: str) -> int | None:
    """Return the id that a key was made from, or None if this secret made no such."""
    if not PERSON_KEY.fullmatch(key):
        return None
    try:
        both = urlsafe_b64decode(key + "==")
    except Error:
        return None
    tag, plain = both[:_HALF], _crypt(secret, both[:_HALF], both[_HALF:])
    expected = hmac.digest(secret, b"tag" + plain, "sha256")[:_HALF]
    if not hmac.compare_digest(tag, expected):
        return None
    respondent_id = int.from_bytes(plain, "big")
    # The last character holds two bits more than the bytes: one spelling only.
    return respondent_id if person_key(secret, respondent_id) == key else None


def _crypt(secret: bytes, tag: bytes, text: bytes) -> bytes:
    pad = hmac.digest(secret, b"pad" + tag, "sha256")[:_HALF]
    return bytes(a ^ b for a, b in zip(text, pad, strict=True))
