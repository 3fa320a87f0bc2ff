"""Start the session of a person who typed an access code."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress

from django.http import HttpRequest, HttpResponse
from django.utils.crypto import salted_hmac

from survey.people.access_codes import normalise
from survey.taking import devices, messages, resume_cookie
from survey.taking.access_refusals import chosen_language
from survey.taking.login import Login, LoginRefused, log_in_respondent
from survey.taking.published import published_survey
from survey.taking.session import (
    RespondentSession,
    give_up_seat,
    resume_token_for,
    set_session_cookie,
    start_session,
    tag_for,
)


def log_in(request: HttpRequest) -> tuple[Login, RespondentSession, str]:
    """Start a session for the code in a form. The last value is the device's id.

    1 read by unique index, 1 write at the first start, 1 on a new device, 1 session
    write. A refused code ends the session of the person before. Raises LoginRefused.
    """
    device_id = devices.read_device_id(request.COOKIES) or devices.new_device_id()
    try:
        code = request.POST.get("code", "")
        login = log_in_respondent(code, devices.digest_of(device_id))
    except LoginRefused:
        with suppress(ConnectionError):
            give_up_seat(request)
        raise
    session = begin_session(request, login, start_number=start_number_of(request))
    return login, session, device_id


def start_number_of(request: HttpRequest) -> str:
    """Return a digest of what was typed to log in: the code and the language."""
    code = normalise(request.POST.get("code", "")) or ""
    typed = f"{code} {chosen_language(request)}"
    return salted_hmac("survey.login", typed, algorithm="sha256").hexdigest()[:12]


def begin_session(
    request: HttpRequest,
    login: Login,
    *,
    open_code: str = "",
    personal_code: str = "",
    start_number: str = "",
) -> RespondentSession:
    """Start a session for a person who may answer. 1 session write."""
    offered = published_survey(login.digest).languages
    accepted = messages.language_accepted(request.META.get("HTTP_ACCEPT_LANGUAGE", ""))
    # What a person chose wins over what the roster says of them.
    wanted = (chosen_language(request), login.language, accepted)
    session = RespondentSession(
        administration_id=login.administration_id,
        respondent_id=login.respondent_id,
        issue=login.issue,
        digest=login.digest,
        language=choose_language(wanted, offered),
        tag=tag_for(login.respondent_id),
        open_code=open_code,
        personal_code=personal_code,
        start_number=start_number,
    )
    start_session(request, session, is_new=login.is_new)
    return session


def choose_language(wanted: Iterable[str], offered: Sequence[str]) -> str:
    """Return the first wanted language that is offered, else the first offered one.

    A person who wants Spanish reads that of Mexico, and the other way round.
    """
    by_base = {messages.base_of(code): code for code in reversed(offered)}
    for code in wanted:
        match = code if code in offered else by_base.get(messages.base_of(code))
        if match:
            return match
    return offered[0]


def set_login_cookies(
    response: HttpResponse,
    request: HttpRequest,
    login: Login,
    session: RespondentSession,
    device_id: str,
) -> None:
    set_session_cookie(response, request)
    devices.set_device_cookie(response, device_id)
    # A person who has finished has nothing to resume.
    if not login.completed:
        resume_cookie.set_resume_cookie(response, resume_token_for(session))
