"""The public pages on which people begin with an open code."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import wraps
from http import HTTPStatus

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.csrf import (
    csrf_exempt,
    csrf_protect,
    ensure_csrf_cookie,
)
from django.views.decorators.http import require_http_methods

from accounts.audit import address_of
from survey.database.routers import uses_forced_read_router
from survey.fieldwork.open_codes import start_forms, starts
from survey.fieldwork.open_codes.lookup import KnownCode, find_open_code
from survey.models import OpenCode, PublishedSurvey, Respondent, Role
from survey.people.access_codes import (
    LONGEST_TYPED,
    format_code,
    normalise,
    personal_code_for,
)
from survey.taking import devices, messages
from survey.taking.access_refusals import (
    chosen_language,
    login_language,
    refusal_message,
    refused_code,
)
from survey.taking.csrf_tokens import rotate_token
from survey.taking.language_names import (
    languages_of,
    missing_language,
    missing_language_notice,
)
from survey.taking.login import LoginRefused
from survey.taking.login_session import begin_session, set_login_cookies
from survey.taking.published import published_survey
from survey.taking.security_headers import never_cache
from survey.taking.session import current_session, has_just_begun
from survey.taking.unavailable import retry_once
from survey.taking.wrong_codes import count_wrong_code


def _public(view: Callable[[HttpRequest], HttpResponse]) -> Callable[..., HttpResponse]:
    """Apply what these views share; a refusal shows the page for typing a code."""

    @never_cache
    @ensure_csrf_cookie
    @require_http_methods(["GET", "HEAD", "POST"])
    @retry_once
    @uses_forced_read_router(OpenCode, PublishedSurvey)
    @wraps(view)
    def wrapper(request: HttpRequest) -> HttpResponse:
        try:
            return view(request)
        except LoginRefused as refused:
            if refused.key == "start_code_wrong":
                count_wrong_code(address_of(request))
            return _ask_for_code(request, refused)

    return wrapper


@_public
def open_start(request: HttpRequest) -> HttpResponse:
    """Ask for an open code; with one, say who asks, and offer to begin.

    0 statements when warm, and nothing is stored.
    """
    if request.method != "POST":
        return _ask_for_code(request)
    code, _ = find_open_code(request.POST.get("code", ""))
    code.check_open(timezone.now())
    return _offer(request, code)


@csrf_exempt
@_public
def open_begin(request: HttpRequest) -> HttpResponse:
    """Create a respondent, and start a session as after a login.

    2 statements, of which neither waits for another start; 1 session write.
    """
    if request.method != "POST":
        return redirect("open_start")
    response = _begin(request)
    if response.status_code == HTTPStatus.FORBIDDEN:
        number = start_forms.number_of(request.POST.get("form", ""))
        if has_just_begun(request, number):
            return redirect("open_begun")
    return response


@csrf_protect
def _begin(request: HttpRequest) -> HttpResponse:
    typed = request.POST.get("code", "")
    code, candidates = find_open_code(typed)
    device_id = devices.read_device_id(request.COOKIES)
    device = devices.digest_of(device_id)
    turn, form = start_forms.turn_of(request), request.POST.get("form", "")
    try:
        key = start_forms.read_key(form, code, device, turn)
        login = starts.begin(
            code,
            candidates,
            key=key,
            device=device,
            language=_survey_language(request, code),
            address=address_of(request),
        )
    except LoginRefused as refused:
        if refused.key not in ("start_form_used", "start_code_busy"):
            raise
        return _offer(request, code, error=refused)
    session = begin_session(
        request,
        login,
        open_code=normalise(typed) or "",
        personal_code=personal_code_for(key),
        start_number=start_forms.number_of(form),
    )
    response = redirect("open_begun")
    set_login_cookies(response, request, login, session, device_id)
    return response


@_public
def open_begun(request: HttpRequest) -> HttpResponse:
    """Show the code with which the person continues elsewhere. 1 session read."""
    session = current_session(request)
    if session is None or not session.personal_code:
        return redirect("open_start" if session is None else "survey_display")
    context: dict[str, object] = {
        "personal_code": format_code(session.personal_code),
        "tag": session.tag,
    }
    # Unless the code was revoked meanwhile.
    with suppress(LoginRefused):
        context["place"] = find_open_code(session.open_code)[0].place
    return _render(request, session.language, Role.PARENT, context)


@_public
def open_decline(request: HttpRequest) -> HttpResponse:
    """Count a decision not to take part. 1 statement."""
    if request.method != "POST":
        return redirect("open_start")
    code, _ = find_open_code(request.POST.get("code", ""))
    device = devices.device_of(request.COOKIES)
    turn, form = start_forms.turn_of(request), request.POST.get("form", "")
    try:
        start_forms.read_key(form, code, device, turn)
        starts.decline(code, form=form, device=device)
    except LoginRefused as refused:
        if refused.key != "start_form_used":
            raise
        return _offer(request, code, error=refused)
    language = _survey_language(request, code)
    return _render(
        request, language, code.role, {"declined": True, "place": code.place}
    )


def _ask_for_code(
    request: HttpRequest, refused: LoginRefused | None = None
) -> HttpResponse:
    language = login_language(request)
    context: dict[str, object] = {
        "chosen": chosen_language(request),
        "languages": messages.languages(),
        "code": request.POST.get("code", "")[:LONGEST_TYPED],
    }
    if refused:
        context |= refused_code(request, refused, language)
    status = 422 if refused else 200
    response = _render(request, language, Role.STUDENT, context, status=status)
    # Before a code is typed: one that is sent many times at once then has one device.
    if not devices.read_device_id(request.COOKIES):
        devices.set_device_cookie(response, devices.new_device_id())
    return response


def _offer(
    request: HttpRequest, code: KnownCode, error: LoginRefused | None = None
) -> HttpResponse:
    """Show the page of a code, with a new form that begins one respondent."""
    language = _survey_language(request, code)
    device_id = devices.read_device_id(request.COOKIES) or devices.new_device_id()
    if error:
        # The turn of the form that was sent is over.
        rotate_token(request)
    published = published_survey(code.digest)
    context = {
        "school": code.school,
        "place": code.place,
        "survey": published.title_in(language),
        "languages": languages_of(published.definition),
        "code": request.POST.get("code", "")[:64],
        "form": start_forms.new_form(
            code, devices.digest_of(device_id), start_forms.turn_of(request)
        ),
        "unfinished": _unfinished_tag(request, code),
        "error": refusal_message(error, language) if error else "",
        "language_missing": missing_language_notice(
            missing_language(chosen_language(request), published.definition),
            published.definition,
            language,
        ),
    }
    status = 422 if error else 200
    response = _render(request, language, code.role, context, status=status)
    # The form is valid on this device alone.
    devices.set_device_cookie(response, device_id)
    return response


def _unfinished_tag(request: HttpRequest, code: KnownCode) -> str:
    """Return the tag of a person who began here with this code and has not finished.

    1 session read and 1 statement; nothing for a browser without a session. Only a
    session counts, as where an address of the survey is opened again: the device's
    cookie is there for a year, and other people use the device.
    """
    if settings.SESSION_COOKIE_NAME not in request.COOKIES:
        return ""
    session = current_session(request)
    if session is None or session.administration_id != code.administration_id:
        return ""
    unfinished = Respondent.objects.filter(
        pk=session.respondent_id,
        issue=session.issue,
        open_code=code.id,
        completed_at=None,
        withdrawn_at=None,
    )
    return session.tag if unfinished.exists() else ""


def _render(
    request: HttpRequest,
    language: str,
    role: str,
    context: Mapping[str, object],
    *,
    status: int = 200,
) -> HttpResponse:
    # A survey may come in more languages than these words.
    of_words = messages.language_for(language)
    shared = {
        "words": messages.messages_in(of_words, role),
        "language": of_words,
        "direction": messages.direction(of_words),
        "survey_language": language,
        "survey_direction": messages.direction(language),
    }
    return render(
        request, "survey/open_start.html", {**shared, **context}, status=status
    )


def _survey_language(request: HttpRequest, code: KnownCode) -> str:
    """Choose among the survey's languages: chosen, the code's, the browser's."""
    offered = published_survey(code.digest).languages
    accepted = messages.language_accepted(request.headers.get("Accept-Language", ""))
    wanted = (chosen_language(request), code.language, accepted)
    return next((language for language in wanted if language in offered), offered[0])
