"""Write and verify signed certificates, as JSON and as PDF.

JSON: {"certificate": {...}, "key": id, "signature": hexadecimal}, in one canonical
form, so that a file in any other form is a changed one. The signature is of the bytes
of the member "certificate". PDF: the signature of all bytes before it is in a comment
of the last line, after the end of the document.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from enum import Enum
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from survey.people.certificates.keys import (
    ID_LENGTH,
    is_signed,
    key_id,
    public_bytes,
)

SIGNATURE = re.compile(r"[0-9a-f]{128}")
LAST_LINE = re.compile(
    rb"\n%%GroundswellSignature ([0-9a-f]{%d}) ([0-9a-f]{128})\n" % ID_LENGTH
)
# Of that line: a break, the words, two spaces and the end.
LAST_LINE_LENGTH = len("\n%GroundswellSignature  ") + ID_LENGTH + 128 + 1


class Verdict(Enum):
    VALID = "valid"
    CHANGED = "changed"
    UNKNOWN_KEY = "unknown key"


def canonical(content: object) -> bytes:
    return json.dumps(
        content, sort_keys=True, ensure_ascii=False, separators=(",", ":")
    ).encode()


def sign_json(certificate: dict[str, Any], key: Ed25519PrivateKey) -> bytes:
    return canonical(
        {
            "certificate": certificate,
            "key": key_id(public_bytes(key)),
            "signature": key.sign(canonical(certificate)).hex(),
        }
    )


def sign_pdf(document: bytes, key: Ed25519PrivateKey) -> bytes:
    name = key_id(public_bytes(key))
    line = f"\n%GroundswellSignature {name} {key.sign(document).hex()}\n"
    return document + line.encode()


def verify(content: bytes, keys: Iterable[bytes]) -> Verdict:
    """Say whether a file is as it was signed by one of these public keys."""
    by_id = {key_id(public): public for public in keys}
    signed = _read(content)
    if signed is None:
        return Verdict.CHANGED
    name, signature, message = signed
    if name not in by_id:
        return Verdict.UNKNOWN_KEY
    is_valid = is_signed(by_id[name], signature, message)
    return Verdict.VALID if is_valid else Verdict.CHANGED


def name_of_key(content: bytes) -> str:
    """Return the ID of the key that a file says it was signed with, or ""."""
    signed = _read(content)
    return signed[0] if signed else ""


def _read(content: bytes) -> tuple[str, bytes, bytes] | None:
    return _read_pdf(content) if content[:4] == b"%PDF" else _read_json(content)


def _read_json(content: bytes) -> tuple[str, bytes, bytes] | None:
    """Return key, signature and what was signed; None of a file in no such form."""
    try:
        read = json.loads(content)
        # Half of a pair of surrogates can be read, and not be written.
        is_canonical = canonical(read) == content
    except (ValueError, RecursionError):
        return None
    if not isinstance(read, dict) or set(read) != {"certificate", "key", "signature"}:
        return None
    name, signature = read["key"], read["signature"]
    if not isinstance(name, str) or not isinstance(signature, str):
        return None
    if not SIGNATURE.fullmatch(signature) or not is_canonical:
        return None
    return name, bytes.fromhex(signature), canonical(read["certificate"])


def _read_pdf(content: bytes) -> tuple[str, bytes, bytes] | None:
    line = LAST_LINE.fullmatch(content[-LAST_LINE_LENGTH:])
    if line is None:
        return None
    name, signature = line[1].decode(), bytes.fromhex(line[2].decode())
    return name, signature, content[:-LAST_LINE_LENGTH]
