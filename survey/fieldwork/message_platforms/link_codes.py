"""Encrypt access codes for the hashes in Redis.

The workers can spell codes, the pool that serves the endpoint can't. Where an
administration allows codes in messages, the workers put them into the hashes,
encrypted: a copy of Redis alone is no list of codes. The pool decrypts them with a
key that it has anyway, for the digests of codes.
"""

from __future__ import annotations

import hmac

from survey.people.access_codes import LENGTH, code_for, digest_for, digest_versions


def encrypt_code(respondent_id: int, issue: int, version: int) -> bytes:
    """Return the version of the key, the issue and the encrypted code."""
    code = code_for(respondent_id, issue, version).encode("ascii")
    pad = _pad(respondent_id, issue, version)
    return b"%d.%d.%b" % (version, issue, bytes(map(int.__xor__, code, pad)))


def decrypt_code(respondent_id: int, stored: bytes) -> str:
    """Return the code; an empty string if its key is gone."""
    version, issue, hidden = stored.split(b".", 2)
    if int(version) not in digest_versions():
        return ""
    pad = _pad(respondent_id, int(issue), int(version))
    return bytes(map(int.__xor__, hidden, pad)).decode("ascii")


def _pad(respondent_id: int, issue: int, version: int) -> bytes:
    # Used for one text only: the code of this person's issue.
    key = digest_for("message link", version)
    return hmac.digest(key, b"%d/%d" % (respondent_id, issue), "sha256")[:LENGTH]
