"""Who is taking which survey here, as the login wrote it into the session.

Written at login and at finishing, read once a request, never written on a
page turn. Where it cannot be read, or is lost, the cookie of `resuming` says
who it is. (A session store whose server is away raises a ConnectionError.)
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields

from django.contrib.sessions.backends.base import SessionBase, UpdateError
from django.http import HttpRequest, HttpResponse
from django.middleware.csrf import rotate_token
from django.utils.crypto import salted_hmac

from survey.taking import resume_cookie
from survey.taking.published import published_survey

# Long enough to read the thanks; then the next child finds nothing here.
LIFE_AFTER_FINISHING = 10 * 60


@dataclass(frozen=True, slots=True)
class RespondentSession:
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
    # By the cookie alone: a session that has ended is not to come back by it.
    resumed: bool = False


KEPT = {field.name for field in fields(RespondentSession)} - {"resumed"}


def begin(request: HttpRequest, taking: RespondentSession) -> None:
    """Replace session and CSRF token: a new person sits down. 1 write."""
    request.session.flush()
    kept = asdict(taking)
    del kept["resumed"]
    request.session["taking"] = kept
    rotate_token(request)


def taking_of(request: HttpRequest) -> RespondentSession | None:
    """Who is taking a survey here. 1 session read.

    By the cookie, 1 statement more where this process has not asked lately.
    """
    return taking_in(request.session, request.COOKIES)


def taking_in(
    store: SessionBase, cookies: Mapping[str, str]
) -> RespondentSession | None:
    """As `taking_of`, of a session and cookies that no request holds."""
    try:
        kept = store.get("taking")
    except ConnectionError:
        kept = None
    return _understood(kept) or _resumed(cookies)


def _understood(kept: object) -> RespondentSession | None:
    """None where something is missing that is needed.

    In a deploy, sessions of another release are read, with fields more or
    less: a person in the middle of a survey goes on, if need be by the cookie.
    """
    if not isinstance(kept, Mapping):
        return None
    try:
        return RespondentSession(**{name: kept[name] for name in KEPT if name in kept})
    except TypeError:
        return None


def seat(taking: RespondentSession) -> resume_cookie.ResumeToken:
    return resume_cookie.ResumeToken(
        respondent_id=taking.respondent_id,
        administration_id=taking.administration_id,
        issue=taking.issue,
    )


def _resumed(cookies: Mapping[str, str]) -> RespondentSession | None:
    seat = resume_cookie.seat_of(cookies)
    digest = resume_cookie.digest_of(seat.administration_id) if seat else None
    if seat is None or digest is None:
        return None
    return RespondentSession(
        administration_id=seat.administration_id,
        respondent_id=seat.respondent_id,
        issue=seat.issue,
        digest=digest,
        language=published_survey(digest).languages[0],
        tag=tag_for(seat.respondent_id),
        resumed=True,
    )


def end_soon(
    request: HttpRequest, response: HttpResponse, taking: RespondentSession
) -> None:
    """Keep the session for the thanks only. 1 write.

    Without a session that can be written, its key is taken away, in case it
    comes back, and the cookie stays for the thanks.
    """
    try:
        if not taking.resumed:
            request.session.set_expiry(LIFE_AFTER_FINISHING)
            request.session.save()
            # It is written; the middleware need not.
            request.session.modified = False
            resume_cookie.take_back(response)
            return
    except (ConnectionError, UpdateError):
        request.session.modified = False
    resume_cookie.take_session_back(response)


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
