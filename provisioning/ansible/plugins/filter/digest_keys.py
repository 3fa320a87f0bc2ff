"""`'1=key,2=key' | digest_keys`: derive the keys of access codes' digests."""

from __future__ import annotations

import hmac
from collections.abc import Callable


def digest_keys(access_code_keys: str) -> str:
    """Return the same list with derived keys, for ACCESS_CODE_DIGEST_KEYS.

    As survey.people.access_codes derives them, which a test compares: that module
    needs Django, and this one runs where Ansible does.
    """
    derived = []
    for pair in access_code_keys.split(","):
        version, _, master = pair.partition("=")
        message = b"groundswell access code: digest"
        key = hmac.digest(master.encode(), message, "sha256")
        derived.append(f"{version}={key.hex()}")
    return ",".join(derived)


class FilterModule:
    def filters(self) -> dict[str, Callable[[str], str]]:
        return {"digest_keys": digest_keys}
