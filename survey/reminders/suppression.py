"""The addresses that get no e-mails: opted out, bounced, or complained.

The list holds digests: it outlives rosters, whose addresses are deleted.
Addresses can be guessed, so a digest is no secret from people who read the
database; but it is not a directory either.
"""

from __future__ import annotations

import hashlib
import unicodedata

from django.utils import timezone

from survey.models import SuppressedAddress


def normalise_address(address: str) -> str:
    """Return an address without the differences that mail servers ignore."""
    return unicodedata.normalize("NFKC", address).strip().casefold()


def digest_of(address: str) -> str:
    return hashlib.sha256(normalise_address(address).encode()).hexdigest()


def suppress(digest: str, reason: SuppressedAddress.Reason) -> None:
    """Send no more e-mails to an address. 1 statement; the first reason stays."""
    SuppressedAddress.objects.bulk_create(
        [SuppressedAddress(digest=digest, reason=reason, at=timezone.now())],
        ignore_conflicts=True,
    )


def is_suppressed(address: str) -> bool:
    return SuppressedAddress.objects.filter(pk=digest_of(address)).exists()
