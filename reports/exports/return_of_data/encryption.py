"""Encrypt an archive with a district's public key (age) or a password (ZIP with AES).

The packages are imported where they are used: pages only check a key.
"""

from __future__ import annotations

import base64
import secrets
from collections.abc import Mapping
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile

from cryptography.fernet import Fernet, InvalidToken
from django.utils.crypto import salted_hmac
from django.utils.translation import gettext as _

# Without signs that look alike. 20 of these 31 are 99 bits: ZIP's way from a password
# to a key takes a microsecond, so only the length stops somebody who guesses.
LETTERS = "abcdefghjkmnpqrstuvwxyz23456789"
GROUPS, GROUP_LENGTH = 4, 5
# What private keys of age and SSH have in their text, without white space.
PRIVATE = ("AGE-SECRET-KEY", "PRIVATEKEY")
SSH_TYPES = ("ssh-ed25519", "ssh-rsa")
# How the second word of each public key of SSH begins.
SSH_KEY = "AAAA"


class BadPublicKey(Exception):
    """The message tells the user what is wrong with it."""


class PasswordLost(Exception):
    """The stored password cannot be read: the server's secret key has changed."""


def new_password() -> str:
    return "-".join(
        "".join(secrets.choice(LETTERS) for _ in range(GROUP_LENGTH))
        for _ in range(GROUPS)
    )


def seal_password(password: str) -> str:
    """Encrypt a password, for the time until the archive is made."""
    return _cipher().encrypt(password.encode()).decode()


def unseal_password(sealed: str) -> str:
    """Decrypt a password. Raises PasswordLost."""
    try:
        return _cipher().decrypt(sealed.encode()).decode()
    except InvalidToken:
        raise PasswordLost from None


def _cipher() -> Fernet:
    digest = salted_hmac("reports.exports.return_of_data", "key", algorithm="sha256")
    return Fernet(base64.urlsafe_b64encode(digest.digest()))


def check_public_key(text: str) -> str:
    """Return a public key of age or SSH without its comment. Raises BadPublicKey.

    Comments are not kept, because anything could be in them.
    """
    words = text.split()
    if any(private in "".join(words).upper() for private in PRIVATE):
        raise BadPublicKey(
            _(
                "This is a private key. It was not stored. Whoever has it can read what"
                " is encrypted for it, so ask the district for a new pair of keys, and"
                " enter the public one."
            )
        )
    kinds = [word.lower() for word in words]
    keys = sum(kind.startswith("age1") or kind in SSH_TYPES for kind in kinds)
    if max(keys, sum(word.startswith(SSH_KEY) for word in words)) > 1:
        raise BadPublicKey(_("Enter one key."))
    key = " ".join(words[: 2 if kinds and kinds[0] in SSH_TYPES else 1])
    _recipient(key)
    return key


def _recipient(key: str) -> object:
    import pyrage

    kind = pyrage.ssh if key.startswith("ssh-") else pyrage.x25519
    try:
        return kind.Recipient.from_str(key)
    except pyrage.RecipientError:
        raise BadPublicKey(
            _(
                "This is no public key of age (age1…) or SSH (ssh-ed25519 or ssh-rsa)."
                " Copy it as a whole from the district’s file or e-mail."
            )
        ) from None


def write_for_key(target: Path, members: Mapping[str, Path], key: str) -> None:
    """Write a ZIP file that only the owner of a public key can decrypt."""
    import pyrage

    plain = target.with_name(f"{target.name}.plain")
    try:
        with ZipFile(plain, "w", ZIP_DEFLATED) as archive:
            for name, path in members.items():
                archive.write(path, name)
        with plain.open("rb") as source, target.open("wb") as file:
            pyrage.encrypt_io(source, file, [_recipient(key)])
    finally:
        plain.unlink(missing_ok=True)


def write_for_password(
    target: Path, members: Mapping[str, Path], password: str
) -> None:
    """Write a ZIP file whose members are encrypted with AES-256."""
    import pyzipper

    with pyzipper.AESZipFile(
        target, "w", compression=ZIP_DEFLATED, encryption=pyzipper.WZ_AES
    ) as archive:
        archive.setpassword(password.encode())
        for name, path in members.items():
            archive.write(path, name)
