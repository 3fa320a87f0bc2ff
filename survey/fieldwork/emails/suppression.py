"""The addresses that get no e-mails: opted out, bounced, or complained.

The list holds digests: it outlives rosters, whose addresses are deleted.
Addresses can be guessed, so a digest is no secret from people who read the
database; but it is not a directory either.
"""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Iterable

from django.db import DEFAULT_DB_ALIAS
from django.utils import timezone

from survey.models import SuppressedAddress

BATCH = 500


def normalise_address(address: str) -> str:
    """Return an address without the differences that mail servers ignore."""
    return unicodedata.normalize("NFKC", address).strip().casefold()


def digest_of(address: str) -> str:
    return hashlib.sha256(normalise_address(address).encode()).hexdigest()


def suppress(digest: str, reason: SuppressedAddress.Reason) -> bool:
    """Send no more e-mails to an address; the first reason stays. 2 statements.

    Returns whether it got e-mails until now.
    """
    addresses = SuppressedAddress.objects.using(DEFAULT_DB_ALIAS)
    is_new = not addresses.filter(pk=digest).exists()
    SuppressedAddress.objects.bulk_create(
        [SuppressedAddress(digest=digest, reason=reason, at=timezone.now())],
        ignore_conflicts=True,
    )
    return is_new


def suppressed_among(addresses: Iterable[str]) -> set[str]:
    """Return the addresses that get no e-mails. 1 statement for each BATCH."""
    digests = {address: digest_of(address) for address in addresses}
    known = list(digests.values())
    suppressed: set[str] = set()
    for first in range(0, len(known), BATCH):
        rows = SuppressedAddress.objects.filter(pk__in=known[first : first + BATCH])
        suppressed.update(rows.values_list("pk", flat=True))
    return {address for address, digest in digests.items() if digest in suppressed}


def is_suppressed(address: str) -> bool:
    return SuppressedAddress.objects.filter(pk=digest_of(address)).exists()
