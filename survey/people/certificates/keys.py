"""The keys that sign certificates, and the public keys that others verify with."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import (
    Ed25519PrivateKey,
    Ed25519PublicKey,
)
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    PublicFormat,
    load_pem_public_key,
)
from django.conf import settings
from django.core import checks
from django.core.exceptions import ImproperlyConfigured

from survey.models import DestructionCertificate

# Of a fingerprint, in hexadecimal: enough to find a key by.
ID_LENGTH = 16
END = b"-----END PUBLIC KEY-----"


class SigningKeyMissing(ImproperlyConfigured):
    """CERTIFICATE_KEYS is empty."""


class KeyFileError(Exception):
    """A file has no public key. The text says so."""


def signing_key() -> Ed25519PrivateKey:
    """Return the key that signs: made of the first text of CERTIFICATE_KEYS."""
    if not settings.CERTIFICATE_KEYS:
        raise SigningKeyMissing(
            "CERTIFICATE_KEYS holds no key to sign certificates of destruction with."
            " Set GROUNDSWELL_CERTIFICATE_KEYS to a long random text."
        )
    return _private_key(settings.CERTIFICATE_KEYS[0])


@cache
def _private_key(text: str) -> Ed25519PrivateKey:
    seed = hashlib.sha256(f"groundswell certificate: {text}".encode()).digest()
    return Ed25519PrivateKey.from_private_bytes(seed)


def public_bytes(key: Ed25519PrivateKey) -> bytes:
    return key.public_key().public_bytes_raw()


def fingerprint(public: bytes) -> str:
    """Return the SHA-256 of a public key's 32 bytes."""
    return hashlib.sha256(public).hexdigest()


def key_id(public: bytes) -> str:
    return fingerprint(public)[:ID_LENGTH]


def is_signed(public: bytes, signature: bytes, message: bytes) -> bool:
    try:
        Ed25519PublicKey.from_public_bytes(public).verify(signature, message)
    except InvalidSignature:
        return False
    return True


def own_keys() -> list[bytes]:
    """Return the public keys of CERTIFICATE_KEYS, the newest first."""
    return [public_bytes(_private_key(text)) for text in settings.CERTIFICATE_KEYS]


def installation_keys() -> list[bytes]:
    """Return all public keys that this installation signs and has signed with.

    Those of certificates stay, when their keys are no longer in the settings. 1
    statement.
    """
    used = DestructionCertificate.objects.order_by("public_key").distinct()
    keys = [*own_keys(), *map(bytes, used.values_list("public_key", flat=True))]
    return list(dict.fromkeys(keys))


def pem_of(keys: Iterable[bytes]) -> bytes:
    """Return a file of public keys, each with its fingerprint."""
    return b"\n".join(
        f"# Groundswell, Ed25519, SHA-256 {fingerprint(public)}\n".encode()
        + Ed25519PublicKey.from_public_bytes(public).public_bytes(
            Encoding.PEM, PublicFormat.SubjectPublicKeyInfo
        )
        for public in keys
    )


def read_keys(path: Path) -> list[bytes]:
    """Read a file of public keys. Raises KeyFileError."""
    try:
        parts = path.read_bytes().split(END)[:-1]
        loaded = [load_pem_public_key(part + END) for part in parts]
    except (OSError, ValueError) as error:
        raise KeyFileError(f"{path} cannot be read: {error}") from None
    keys = [k.public_bytes_raw() for k in loaded if isinstance(k, Ed25519PublicKey)]
    if not keys:
        raise KeyFileError(f"{path} has no public key of Ed25519 in it.")
    return keys


def check_certificate_keys(**_: object) -> list[checks.CheckMessage]:
    """Check the length of the keys; a system check of `check --deploy`."""
    if any(len(key) < 32 for key in settings.CERTIFICATE_KEYS):
        return [
            checks.Error(
                "A key in CERTIFICATE_KEYS is shorter than 32 characters.",
                hint="Set GROUNDSWELL_CERTIFICATE_KEYS to a long random text.",
                id="survey.E006",
            )
        ]
    return []
