"""Who is taking which survey here, as the login wrote it into the session.

Written at login and at finishing, read once a request, never written on a
page turn.
"""

from __future__ import annotations

import base64
import hashlib
from dataclasses import asdict, dataclass

from django.http import HttpRequest
from django.middleware.csrf import rotate_token
from django.utils.crypto import salted_hmac

# Long enough to read the thanks; then the next child finds nothing here.
LIFE_AFTER_FINISHING = 10 * 60


@dataclass(frozen=True, slots=True)
class Taking:
    """One person's taking of one survey, as this browser's session knows it."""

    administration_id: int
    respondent_id: int
    # Number of the access code that was typed; a reissue ends the session.
    issue: int
    digest: str
    language: str
    # Names the respondent to the page, and tells nobody who it is. A save
    # that names another tag was answered by somebody else on this computer.
    tag: str


def begin(request: HttpRequest, taking: Taking) -> None:
    """Replace session and CSRF token: a new person sits down. 1 write."""
    request.session.flush()
    request.session["taking"] = asdict(taking)
    rotate_token(request)


def taking_of(request: HttpRequest) -> Taking | None:
    """Who is taking a survey in this session. 1 session read."""
    kept = request.session.get("taking")
    return Taking(**kept) if kept else None


def end_soon(request: HttpRequest) -> None:
    """Keep the session for the thanks only. 1 write."""
    request.session.set_expiry(LIFE_AFTER_FINISHING)


def tag_for(respondent_id: int) -> str:
    return salted_hmac(
        "survey.taking.tag", str(respondent_id), algorithm="sha256"
    ).hexdigest()[:32]


def queue_key_for(respondent_id: int) -> str:
    """Encrypts the answers that wait in a browser; 32 bytes in base64url.

    By respondent and not by code, so that a reissued code still opens what
    its owner left waiting.
    """
    digest = salted_hmac(
        "survey.taking.queue", str(respondent_id), algorithm="sha256"
    ).digest()
    return base64.urlsafe_b64encode(digest).decode().rstrip("=")


def seed_for(administration_id: int, respondent_id: int) -> int:
    """Orders randomised options alike on every device of one person."""
    text = f"{administration_id}:{respondent_id}"
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big")
