"""Encrypt the credentials of feeds with keys of their own."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from functools import cache

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from django.conf import settings
from django.core import checks
from django.utils.translation import gettext as _


class FeedKeyMissing(Exception):
    """FEED_KEYS is empty or lacks the key that encrypted these credentials."""


class Credentials(dict[str, str]):
    """Credentials whose values appear in no repr, so in no log or traceback."""

    def __repr__(self) -> str:
        return f"<credentials: {', '.join(sorted(self)) or 'none'}>"

    __str__ = __repr__


def seal(credentials: Mapping[str, str]) -> bytes:
    """Encrypt credentials with the first of FEED_KEYS."""
    return _cipher().encrypt(json.dumps(dict(credentials)).encode())


def unseal(sealed: bytes) -> Credentials:
    """Decrypt credentials. Raises FeedKeyMissing if no key of FEED_KEYS fits."""
    try:
        return Credentials(json.loads(_cipher().decrypt(bytes(sealed))))
    except InvalidToken:
        # Without its cause: that would say nothing more.
        raise FeedKeyMissing(
            _(
                "The stored credentials of this roster sync cannot be decrypted. Enter"
                " them again, or ask your engineers to add the key that they were"
                " saved with to GROUNDSWELL_FEED_KEYS."
            )
        ) from None


def reseal(sealed: bytes) -> bytes:
    """Encrypt sealed credentials again with the first of FEED_KEYS."""
    return seal(unseal(sealed))


def _cipher() -> MultiFernet:
    if not settings.FEED_KEYS:
        raise FeedKeyMissing(
            _(
                "There is no key to encrypt or decrypt credentials of roster syncs. Ask"
                " your engineers to set GROUNDSWELL_FEED_KEYS."
            )
        )
    return _cipher_of(tuple(settings.FEED_KEYS))


@cache
def _cipher_of(keys: tuple[str, ...]) -> MultiFernet:
    # Any long text becomes a key of the right length.
    return MultiFernet(
        Fernet(
            base64.urlsafe_b64encode(
                hashlib.sha256(f"groundswell feed: {key}".encode()).digest()
            )
        )
        for key in keys
    )


def check_feed_keys(**_: object) -> list[checks.CheckMessage]:
    """Check the length of the keys; a system check of `check --deploy`."""
    if any(len(key) < 32 for key in settings.FEED_KEYS):
        return [
            checks.Error(
                "A key in FEED_KEYS is shorter than 32 characters.",
                hint="Set GROUNDSWELL_FEED_KEYS to a long random text.",
                id="survey.E004",
            )
        ]
    return []
