"""The respondent's session: which person takes which survey in this browser.

Written at login, at finishing and once an hour while it is used; read once per
request, not written on a page turn. Where it can't be read, or is lost, the
cookie of `resume_cookie` takes its place. (A session store whose server is down
raises ConnectionError.)
"""

from __future__ import annotations

import base64
import hashlib
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from functools import wraps

from django.conf import settings
from django.contrib.sessions.backends.base import SessionBase, UpdateError
from django.core.cache import caches
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.utils.crypto import salted_hmac

from survey.taking import resume_cookie
from survey.taking.csrf_tokens import rotate_token
from survey.taking.published import published_survey
from survey.taking.unavailable import wants_json

# Long enough to read the thanks; then the next child finds nothing here.
SECONDS_AFTER_FINISHING = 10 * 60
# Seconds within which a person clicks again because nothing seems to happen.
IMPATIENCE = 10
# Seconds. A session that is used lasts at least three hours from each use.
EXTENDED_AFTER = 60 * 60
# In which browsers say that they load a page before anybody wants to see it.
PURPOSE_HEADERS = ("HTTP_SEC_PURPOSE", "HTTP_PURPOSE", "HTTP_X_MOZ")


@dataclass(frozen=True, slots=True)
class RespondentSession:
    administration_id: int
    respondent_id: int
    # Number of the access code that was typed; a reissued code ends the session.
    issue: int
    digest: str
    language: str
    # Identifies the respondent to the page without a name. A save with
    # another tag was answered by another person on the same computer.
    tag: str
    # When it was last written, in seconds since 1970.
    written_at: int = 0
    # Of a person who began with an open code in this browser: that code, and the
    # one with which only they continue.
    open_code: str = ""
    personal_code: str = ""
    # Of the form that was sent: its number, or a digest of what was typed.
    start_number: str = ""
    # Restored from the resume cookie. Not stored in the session.
    resumed: bool = False

    def needs_extension(self) -> bool:
        return not self.resumed and time.time() - self.written_at > EXTENDED_AFTER

    def has_ended(self, completed_at: datetime) -> bool:
        """Return whether a resumed session is over some minutes after finishing.

        Redis ends a stored session by itself. Finishing deletes the resume
        cookie too, but the reply that does so may be lost.
        """
        thanked_until = completed_at + timedelta(seconds=SECONDS_AFTER_FINISHING)
        return self.resumed and timezone.now() >= thanked_until


STORED_FIELDS = [
    field.name for field in fields(RespondentSession) if field.name != "resumed"
]


def start_session(
    request: HttpRequest, session: RespondentSession, *, is_new: bool = False
) -> None:
    """Replace the browser's session, the respondent's last one and the CSRF token.

    The reply has to set the cookie (`set_session_cookie`). 1 session write; 1 read
    and 1 write at the store's cache, 1 deletion if the respondent had a session.
    Where the browser had one, 1 session read, and 1 write and 1 deletion more.
    A person who `is_new` had none: no read at the store's cache.
    """
    give_up_seat(request, unless=session.respondent_id)
    request.session["taking"] = _stored(session)
    # Written here and not by the middleware, which chooses the key too late.
    request.session.create()
    request.session.modified = False
    # Otherwise one code could fill the session store with abandoned sessions.
    # Another device of the same person goes on with its resume cookie.
    sessions = caches[settings.SESSION_CACHE_ALIAS]
    live = f"live.{session.respondent_id}"
    if not is_new and (previous := sessions.get(live)):
        request.session.delete(previous)
    sessions.set(live, request.session.session_key, settings.SESSION_COOKIE_AGE)
    rotate_token(request)


def continue_session(request: HttpRequest, session: RespondentSession) -> None:
    """Let the browser's session go on with another part of the same visit.

    The cookies stay: a lost reply, or a second click, costs nothing. A login with the
    person's code elsewhere ends it, as it would have ended the first part. 1 session
    write, 1 write at the store's cache. A resumed session is started anew.
    """
    taking = request.session.get("taking")
    if taking is None:
        start_session(request, session)
        return
    request.session["taking"] = _stored(session)
    # Finishing the first part had shortened it.
    request.session.set_expiry(None)
    request.session.save()
    # Already written, so the middleware must not write it again.
    request.session.modified = False
    sessions = caches[settings.SESSION_CACHE_ALIAS]
    live = f"live.{session.respondent_id}"
    sessions.set(live, request.session.session_key, settings.SESSION_COOKIE_AGE)


def _stored(session: RespondentSession) -> dict[str, object]:
    stored = {name: getattr(session, name) for name in STORED_FIELDS}
    return stored | {"written_at": int(time.time())}


def set_session_cookie(response: HttpResponse, request: HttpRequest) -> None:
    """Do what Django's middleware does with a session that it has saved itself."""
    response.set_cookie(
        settings.SESSION_COOKIE_NAME,
        request.session.session_key or "",
        domain=settings.SESSION_COOKIE_DOMAIN,
        path=settings.SESSION_COOKIE_PATH,
        secure=settings.SESSION_COOKIE_SECURE,
        httponly=settings.SESSION_COOKIE_HTTPONLY,
        samesite=settings.SESSION_COOKIE_SAMESITE,  # type: ignore[arg-type]
    )


def give_up_seat(
    request: HttpRequest,
    *,
    unless: int = 0,
    resumed: RespondentSession | None = None,
) -> None:
    """End this browser's session, and the resume cookies of its respondent.

    Deleting the cookies in this browser would not end a copy of them. With
    `unless`, this respondent keeps them: the same person logs in again. `resumed`
    came from the resume cookie, in place of a session that was lost.
    """
    previous = resumed or parse_stored_session(request.session.get("taking"))
    # The person's login on a second device has ended the session, not the cookie.
    token = resume_cookie.read_token(request.COOKIES)
    taker = previous or token
    if taker is not None and taker.respondent_id != unless:
        sessions = caches[settings.SESSION_CACHE_ALIAS]
        now = int(time.time())
        # The cookie may be of a host whose clock is ahead of this one; it was set
        # within a second of the session.
        now = max(now, previous.written_at + 1 if previous else 0)
        now = max(now, token.issued_at if token else 0)
        # As long as any cookie of before this moment.
        left = f"left.{taker.respondent_id}"
        sessions.set(left, now, settings.SESSION_COOKIE_AGE)
        if previous is not None:
            sessions.delete(f"live.{taker.respondent_id}")
    request.session.flush()


def end_login(
    request: HttpRequest,
    response: HttpResponse,
    *,
    resumed: RespondentSession | None = None,
) -> None:
    """Give up the seat and delete its cookies. While Redis is down, only these."""
    try:
        give_up_seat(request, resumed=resumed)
    except ConnectionError:
        # Otherwise the middleware would try to store the session.
        request.session.modified = False
    resume_cookie.delete_login_cookies(response)


def was_given_up(token: resume_cookie.ResumeToken) -> bool:
    """Return whether the seat was given up after the cookie was set. 1 cache read.

    Unknown while Redis is down, which is what the cookie is for: it is valid then.
    """
    try:
        left = caches[settings.SESSION_CACHE_ALIAS].get(f"left.{token.respondent_id}")
    except ConnectionError:
        return False
    return left is not None and token.issued_at <= left


def extend_session(request: HttpRequest) -> None:
    """Let a session that is in use last longer. 1 session write.

    The cookie stays as it is: it has no expiry, and a reply that sets it could
    arrive after the next person's login. A failure costs nothing: the next
    page tries again.
    """
    request.session["taking"]["written_at"] = int(time.time())
    with suppress(ConnectionError, UpdateError):
        request.session.save()
    # Already written, so the middleware must not write it again.
    request.session.modified = False


def current_session(request: HttpRequest) -> RespondentSession | None:
    """Return this browser's session. 1 session read.

    With the resume cookie, 1 cache read more, and 1 statement per process and half
    minute.
    """
    return read_session(request.session, request.COOKIES)


def read_session(
    store: SessionBase, cookies: Mapping[str, str]
) -> RespondentSession | None:
    """Do the same as `current_session` where there is no request object."""
    try:
        stored = store.get("taking")
    except ConnectionError:
        stored = None
    session = parse_stored_session(stored)
    if session is not None:
        return session
    token = resume_cookie.read_token(cookies)
    if token is not None and was_given_up(token):
        token = None
    digest = resume_cookie.published_digest(token.administration_id) if token else None
    if token is None or digest is None:
        return None
    return RespondentSession(
        administration_id=token.administration_id,
        respondent_id=token.respondent_id,
        issue=token.issue,
        digest=digest,
        language=published_survey(digest).languages[0],
        tag=tag_for(token.respondent_id),
        resumed=True,
    )


def parse_stored_session(stored: object) -> RespondentSession | None:
    """Return the stored session, None if a field is missing.

    During a deploy, sessions of another release have fields more or fewer. If
    one is missing, the resume cookie lets the person go on.
    """
    if not isinstance(stored, Mapping):
        return None
    known = {name: stored[name] for name in STORED_FIELDS if name in stored}
    try:
        return RespondentSession(**known)
    except TypeError:
        return None


def has_just_begun(request: HttpRequest, number: str) -> bool:
    """Check if a form with this number began the browser's session, a moment ago.

    The second click of a double click sends the CSRF token that the first one
    replaced, with the cookies that came with the reply to it. Later, it is the next
    person who has gone back to the page. 1 session read, if there is a cookie.
    """
    if settings.SESSION_COOKIE_NAME not in request.COOKIES:
        return False
    try:
        stored = request.session.get("taking")
    except ConnectionError:
        return False
    session = parse_stored_session(stored)
    if session is None or not number or session.start_number != number:
        return False
    return time.time() - session.written_at < IMPATIENCE


def resume_token_for(session: RespondentSession) -> resume_cookie.ResumeToken:
    return resume_cookie.ResumeToken(
        respondent_id=session.respondent_id,
        administration_id=session.administration_id,
        issue=session.issue,
    )


def shorten_session(
    request: HttpRequest, response: HttpResponse, session: RespondentSession
) -> None:
    """Keep the session only for the page that says thank you. 1 session write.

    If the session can't be written, its cookie is deleted, in case Redis comes
    back with it, and the resume cookie stays for the thanks.
    """
    try:
        if not session.resumed:
            request.session.set_expiry(SECONDS_AFTER_FINISHING)
            request.session.save()
            # Already written, so the middleware must not write it again.
            request.session.modified = False
            resume_cookie.delete_resume_cookie(response)
            return
    except (ConnectionError, UpdateError):
        request.session.modified = False
    resume_cookie.delete_session_cookie(response)


def tag_for(respondent_id: int) -> str:
    return salted_hmac(
        "survey.taking.tag", str(respondent_id), algorithm="sha256"
    ).hexdigest()[:32]


def queue_key_for(respondent_id: int) -> str:
    """Return the key that encrypts answers waiting in a browser, in base64url.

    Derived from the respondent and not from the code, so that a reissued code
    still opens the answers that wait on the device.
    """
    digest = salted_hmac(
        "survey.taking.queue", str(respondent_id), algorithm="sha256"
    ).digest()
    return base64.urlsafe_b64encode(digest).decode().rstrip("=")


def seed_for(administration_id: int, respondent_id: int) -> int:
    """Return the seed that orders randomised options the same on every device."""
    text = f"{administration_id}:{respondent_id}"
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big")


def ends_previous_login(
    view: Callable[[HttpRequest], HttpResponse],
) -> Callable[[HttpRequest], HttpResponse]:
    """Make the login view log out the last person at this computer.

    Opening the page is enough, because the next child may type no code. It costs
    something only where there is a session cookie: 1 session read, and where the
    session lives 1 write and 2 deletions at its store's cache.

    After a login that fails, for a wrong code or because a server is down, the next
    child must not continue as the last one either. A person who mistyped the code
    loses only the earlier login. A login that succeeds replaces the cookies.

    Fetching only the CSRF token, which a running tab does before it logs in again,
    deletes the resume cookie alone, in case the reply to the login is lost: the
    last child's session is replaced by then, and the cookie would bring it back.
    """

    @wraps(view)
    def wrapper(request: HttpRequest) -> HttpResponse:
        opens = request.method == "GET" and not wants_json(request)
        is_logged_in = settings.SESSION_COOKIE_NAME in request.COOKIES
        if opens and is_logged_in and _is_loaded_ahead(request):
            # The browser asks again when somebody really opens the page.
            return HttpResponse(status=503)
        response = view(request)
        if opens and is_logged_in:
            end_login(request, response)
        elif request.method == "POST" and response.status_code >= 400:
            resume_cookie.delete_login_cookies(response)
        elif request.method != "HEAD" and resume_cookie.COOKIE not in response.cookies:
            resume_cookie.delete_resume_cookie(response)
        return response

    return wrapper


def _is_loaded_ahead(request: HttpRequest) -> bool:
    purposes = (request.META.get(name, "") for name in PURPOSE_HEADERS)
    return any("prefetch" in purpose for purpose in purposes)
