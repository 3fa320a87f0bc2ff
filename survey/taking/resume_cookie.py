"""A signed cookie that takes the session's place while Redis is down.

It holds respondent, administration, number of the access code and expiry.
Signed and not encrypted: these numbers mean nothing elsewhere, and scripts
can't read them. The statement that runs anyway decides whether the person may
go on, so a person who has finished, was withdrawn or got a new code gets no
further with the cookie than with a session. When somebody else logs in at the
computer, Redis remembers the time, and older cookies end there as well.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from dataclasses import dataclass

from django.conf import settings
from django.core.signing import BadSignature, Signer
from django.http import HttpRequest, HttpResponse

from survey.models import Administration

COOKIE = "resume"
# Only these pages need it: it is not sent with content or static files.
PATH = "/take/"
SALT = "survey.taking.resuming"
FORMAT = re.compile(r"(\d{1,19})\.(\d{1,19})\.(\d{1,5})\.(\d{1,12})", re.ASCII)

# Seconds. The survey of an open administration is only replaced by a version
# with corrected texts, so an old digest for half a minute asks the same items.
DIGEST_LIFETIME = 30


@dataclass(frozen=True, slots=True)
class ResumeToken:
    respondent_id: int
    administration_id: int
    issue: int
    # Seconds since 1970; of a cookie that was read.
    issued_at: int = 0


def set_resume_cookie(response: HttpResponse, token: ResumeToken) -> None:
    """Set the cookie, valid as long as the session that starts with this reply."""
    expires = int(time.time()) + settings.SESSION_COOKIE_AGE
    numbers = (token.respondent_id, token.administration_id, token.issue, expires)
    response.set_cookie(
        COOKIE,
        Signer(salt=SALT).sign(".".join(map(str, numbers))),
        path=PATH,
        secure=settings.SESSION_COOKIE_SECURE,
        httponly=True,
        samesite="Lax",
    )


def delete_resume_cookie(response: HttpResponse) -> None:
    response.delete_cookie(COOKIE, path=PATH, samesite="Lax")


def delete_session_cookie(response: HttpResponse) -> None:
    response.delete_cookie(
        settings.SESSION_COOKIE_NAME,
        path=settings.SESSION_COOKIE_PATH,
        domain=settings.SESSION_COOKIE_DOMAIN,
        samesite=settings.SESSION_COOKIE_SAMESITE,  # type: ignore[arg-type]
    )


def delete_login_cookies(response: HttpResponse) -> None:
    """Log this browser out. The CSRF cookie stays, for the next login."""
    delete_resume_cookie(response)
    delete_session_cookie(response)


def is_login_attempt(request: HttpRequest) -> bool:
    match = request.resolver_match
    return (
        request.method == "POST"
        and match is not None
        and match.url_name in ("survey_login", "open_begin")
    )


def read_token(cookies: Mapping[str, str]) -> ResumeToken | None:
    """Return the cookie's token, None unless it is complete, signed and current."""
    try:
        numbers = FORMAT.fullmatch(Signer(salt=SALT).unsign(cookies.get(COOKIE, "")))
    except BadSignature:
        return None
    if numbers is None or int(numbers[4]) <= time.time():
        return None
    respondent, administration, issue, expires = map(int, numbers.groups())
    issued_at = expires - settings.SESSION_COOKIE_AGE
    return ResumeToken(respondent, administration, issue, issued_at)


_digests: dict[int, tuple[str, float]] = {}


def published_digest(administration_id: int) -> str | None:
    """Return the digest of an administration's survey. 1 statement per half minute."""
    digest, until = _digests.get(administration_id, ("", 0.0))
    if time.monotonic() < until:
        return digest
    current = (
        Administration.objects.filter(id=administration_id)
        .values_list("published_id", flat=True)
        .first()
    )
    if current is not None:
        _digests[administration_id] = (current, time.monotonic() + DIGEST_LIFETIME)
    return current


def forget_digests() -> None:
    """Empty this process's cache, for tests that roll the database back."""
    _digests.clear()
