"""A signed cookie that stands in for the session while Redis is away.

It says who sits here: respondent, administration, number of the code, and
until when. Signed and not encrypted: these numbers mean nothing outside, and
scripts cannot read them. Whether the person may go on, the database says in
the statement that it runs anyway; so a finished, withdrawn or reissued one
comes no further with it than with a session.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import wraps

from django.conf import settings
from django.core.signing import BadSignature, Signer
from django.http import HttpRequest, HttpResponse

from survey.models import Administration

COOKIE = "resume"
# Nobody asks for it outside: it is not sent with content or static files.
PATH = "/take/"
SALT = "survey.taking.resuming"
FORM = re.compile(r"(\d{1,19})\.(\d{1,19})\.(\d{1,5})\.(\d{1,12})", re.ASCII)

# An open administration's survey is only exchanged for one whose texts are
# mended: whoever gets the old one for so long is asked the same.
REMEMBERED = 30


@dataclass(frozen=True, slots=True)
class ResumeToken:
    respondent_id: int
    administration_id: int
    issue: int


def hand_out(response: HttpResponse, seat: ResumeToken) -> None:
    """A cookie for as long as the session lives that begins in the same reply."""
    expires = int(time.time()) + settings.SESSION_COOKIE_AGE
    numbers = (seat.respondent_id, seat.administration_id, seat.issue, expires)
    response.set_cookie(
        COOKIE,
        Signer(salt=SALT).sign(".".join(map(str, numbers))),
        path=PATH,
        secure=settings.SESSION_COOKIE_SECURE,
        httponly=True,
        samesite="Lax",
    )


def take_back(response: HttpResponse) -> None:
    response.delete_cookie(COOKIE, path=PATH, samesite="Lax")


def take_session_back(response: HttpResponse) -> None:
    response.delete_cookie(
        settings.SESSION_COOKIE_NAME,
        path=settings.SESSION_COOKIE_PATH,
        domain=settings.SESSION_COOKIE_DOMAIN,
        samesite=settings.SESSION_COOKIE_SAMESITE,  # type: ignore[arg-type]
    )


def vacate(response: HttpResponse) -> None:
    """Leave nobody's seat behind. The CSRF cookie stays, for the next try."""
    take_back(response)
    take_session_back(response)


def asks_for_seat(request: HttpRequest) -> bool:
    match = request.resolver_match
    return (
        request.method == "POST"
        and match is not None
        and match.url_name == "survey_login"
    )


def seat_of(cookies: Mapping[str, str]) -> ResumeToken | None:
    """Who sits here by the cookie. Anything but a valid one is none."""
    try:
        numbers = FORM.fullmatch(Signer(salt=SALT).unsign(cookies.get(COOKIE, "")))
    except BadSignature:
        return None
    if numbers is None or int(numbers[4]) <= time.time():
        return None
    return ResumeToken(int(numbers[1]), int(numbers[2]), int(numbers[3]))


_digests: dict[int, tuple[str, float]] = {}


def digest_of(administration_id: int) -> str | None:
    """The survey that is taken there. 1 statement, every thirty seconds."""
    digest, until = _digests.get(administration_id, ("", 0.0))
    if time.monotonic() < until:
        return digest
    found = (
        Administration.objects.filter(id=administration_id)
        .values_list("published_id", flat=True)
        .first()
    )
    if found is not None:
        _digests[administration_id] = (found, time.monotonic() + REMEMBERED)
    return found


def forget_digests() -> None:
    """For tests that roll the database back."""
    _digests.clear()


def seat_asked_for(
    view: Callable[[HttpRequest], HttpResponse],
) -> Callable[[HttpRequest], HttpResponse]:
    """Whoever asks for the seat ends what the cookie would bring back.

    A login that succeeds replaces the cookies. One that fails, for a wrong
    code or because a server is away, must not leave the next child at this
    computer with the last one's: neither this one, nor a session whose server
    comes back. Who only mistyped loses no more than the older seat.

    Looking at the page takes this cookie back too, in case the reply to the
    login is lost: the last child's session has ended by then, and this would
    bring it back. Asking for the token alone is no exception: a running tab
    does that when its seat is over, and logs in next. A session in use is
    left alone, so who only looked goes on with it.
    """

    @wraps(view)
    def asked(request: HttpRequest) -> HttpResponse:
        response = view(request)
        if request.method == "POST" and response.status_code >= 400:
            vacate(response)
        elif COOKIE not in response.cookies:
            take_back(response)
        return response

    return asked
