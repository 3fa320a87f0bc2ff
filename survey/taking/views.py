"""The five hot views. What each may cost is held by `tests/test_budgets.py`."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

from django.http import (
    Http404,
    HttpRequest,
    HttpResponse,
    JsonResponse,
)
from django.middleware.csrf import get_token
from django.shortcuts import redirect, render
from django.utils import timezone, translation
from django.utils.formats import date_format
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_exempt, ensure_csrf_cookie
from django.views.decorators.http import require_http_methods, require_POST

from survey.database.routers import uses_forced_read_router
from survey.models import PublishedSurvey
from survey.taking import bootstrap, messages, rendering, resume_cookie, session
from survey.taking.completion import finish, review
from survey.taking.login import Admitted, NotAdmitted, admit
from survey.taking.page_save import process_page
from survey.taking.published import Published, SurveyNotFound, published_survey
from survey.taking.save_request import (
    PERSON,
    BadRequest,
    check_origin,
    read_save,
    wants_json,
)
from survey.taking.saved_answers import SavedAnswers, SessionEnded, read_saved_answers
from survey.taking.session import RespondentSession, taking_of
from survey.taking.unavailable import retried

DIGEST = re.compile(r"[0-9a-f]{64}")
YEAR = 365 * 24 * 60 * 60


@never_cache
@ensure_csrf_cookie
@require_http_methods(["GET", "HEAD", "POST"])
@resume_cookie.seat_asked_for
@retried
@uses_forced_read_router(PublishedSurvey)
def survey_login(request: HttpRequest) -> HttpResponse:
    """A code becomes a person; always asks, whoever sat here before.

    POST: 1 read by unique index, 1 write at the first start, 1 session write.
    """
    if request.method != "POST":
        return _ask_for_code(request)
    try:
        admitted = admit(request.POST.get("code", ""))
    except NotAdmitted as refused:
        return _refuse_code(request, refused)
    taking = _taking_for(admitted, request.POST.get("language", ""))
    session.begin(request, taking)
    response = _welcome(request, taking, admitted)
    # Who has finished has nothing to come back to.
    if not admitted.completed:
        resume_cookie.hand_out(response, session.seat(taking))
    return response


@never_cache
@require_http_methods(["GET", "HEAD"])
@retried
@uses_forced_read_router(PublishedSurvey)
def survey_display(request: HttpRequest) -> HttpResponse:
    """The shell, or only its data for a tab that goes on. 1 read, 1 session read."""
    taking = taking_of(request)
    if taking is None:
        return _session_over(request)
    published = published_survey(taking.digest)
    try:
        taken = _taken(taking, published)
    except SessionEnded as gone:
        return _session_over(request, gone.reason)
    language = bootstrap.language_of(request, taking, published)
    data = bootstrap.take(request, taking, published, taken, language)
    if wants_json(request):
        if taken.completed_at:
            return JsonResponse({"error": "finished"}, status=409)
        return JsonResponse(data)
    if taken.completed_at:
        return redirect("survey_complete")
    return render(
        request,
        "survey/survey_display.html",
        {**_frame(published, language), "take": data},
    )


@csrf_exempt
@require_POST
@retried
@uses_forced_read_router(PublishedSurvey)
def survey_change_page(request: HttpRequest, n: int) -> HttpResponse:
    """Save one page. 1 statement, 1 session read; 2 statements when refused."""
    try:
        check_origin(request)
        taking = taking_of(request)
        if taking is None:
            raise BadRequest(401, "session")
        if request.META[PERSON] != taking.tag:
            raise BadRequest(403, "person")
        save = read_save(request)
        turned = process_page(taking, published_survey(taking.digest), n, save)
    except BadRequest as bad:
        return JsonResponse({"error": bad.key}, status=bad.status)
    response = JsonResponse(turned.content, status=turned.status)
    # For whoever counts; nobody is told.
    response.outcome = turned.outcome  # type: ignore[attr-defined]
    return response


@retried
@uses_forced_read_router(PublishedSurvey)
def survey_content(
    request: HttpRequest, digest: str, renderer: str, language: str, n: int
) -> HttpResponse:
    """A page's HTML, or for page 0 the outline: the same for everyone. 0 SQL."""
    # Anybody can ask for anything here; what is no digest costs nobody a read.
    if not DIGEST.fullmatch(digest):
        raise Http404
    try:
        published = published_survey(digest)
    except SurveyNotFound:
        raise Http404 from None
    if language not in published.languages or n > len(published.answerable):
        raise Http404
    response = (
        HttpResponse(rendering.render_page(published.definition, language, n))
        if n
        else JsonResponse(rendering.outline(published.definition, language))
    )
    # A page rendered by an older version is kept by the caches until nobody
    # asks for it; from here it is only approximate, so nobody keeps it.
    current = renderer == rendering.RENDERER
    response["Cache-Control"] = (
        f"public, max-age={YEAR}, immutable" if current else "no-store"
    )
    return response


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
@retried
@uses_forced_read_router(PublishedSurvey)
def survey_complete(request: HttpRequest) -> HttpResponse:
    """GET reviews or thanks, 1 read. POST finishes, 1 write, 1 session write."""
    taking = taking_of(request)
    if taking is None:
        return _session_over(request)
    if request.method == "POST" and finish(taking, request.POST.get("reviewed", "")):
        thanks = redirect("survey_complete")
        session.end_soon(request, thanks, taking)
        return thanks
    published = published_survey(taking.digest)
    try:
        taken = _taken(taking, published)
    except SessionEnded as gone:
        if gone.reason == "closed":
            return _render_complete(request, taking, published, closed=True)
        return _session_over(request, gone.reason)
    response = _show_review(request, taking, published, taken)
    # The reply that ended the seat was lost, and the browser asks again.
    if request.method == "POST" and taken.completed_at is not None:
        session.end_soon(request, response, taking)
    return response


# Login


def _taking_for(admitted: Admitted, asked: str) -> RespondentSession:
    offered = published_survey(admitted.digest).languages
    language = next(
        (one for one in (admitted.language, asked) if one in offered), offered[0]
    )
    return RespondentSession(
        administration_id=admitted.administration_id,
        respondent_id=admitted.respondent_id,
        issue=admitted.issue,
        digest=admitted.digest,
        language=language,
        tag=session.tag_for(admitted.respondent_id),
    )


def _welcome(
    request: HttpRequest, taking: RespondentSession, admitted: Admitted
) -> HttpResponse:
    if wants_json(request):
        return JsonResponse({"tag": taking.tag, "csrf": get_token(request)})
    return redirect("survey_complete" if admitted.completed else "survey_display")


def _refuse_code(request: HttpRequest, refused: NotAdmitted) -> HttpResponse:
    language = _login_language(request)
    message = messages.words(language)[refused.key]
    if refused.moment:
        with translation.override(language):
            moment = timezone.localtime(refused.moment)
            message = message.format(date=date_format(moment, "DATETIME_FORMAT"))
    if wants_json(request):
        return JsonResponse({"error": refused.key, "message": message}, status=422)
    return _ask_for_code(request, error=message, code=request.POST.get("code", ""))


def _ask_for_code(
    request: HttpRequest, *, error: str = "", code: str = ""
) -> HttpResponse:
    language = _login_language(request)
    if wants_json(request) and not error:
        return JsonResponse({"csrf": get_token(request)})
    return render(
        request,
        "survey/survey_login.html",
        {
            "words": messages.words(language),
            "language": language,
            "direction": messages.direction(language),
            "languages": messages.languages(),
            "error": error,
            "code": code[:64],
        },
        status=422 if error else 200,
    )


def _login_language(request: HttpRequest) -> str:
    asked = request.POST.get("language") or request.GET.get("language")
    if asked:
        return messages.language_for(asked)
    return messages.language_accepted(request.headers.get("Accept-Language", ""))


# Finishing


def _show_review(
    request: HttpRequest,
    taking: RespondentSession,
    published: Published,
    taken: SavedAnswers,
) -> HttpResponse:
    now = timezone.localtime()
    seen = review(
        taking,
        published,
        taken,
        today=now.date().isoformat(),
        now=now.isoformat(timespec="seconds"),
        language=bootstrap.language_of(request, taking, published),
    )
    return _render_complete(
        request,
        taking,
        published,
        missing=seen.gaps,
        reviewed=seen.reviewed,
        finished_at=taken.completed_at,
        pages=seen.pages,
        tag=taking.tag,
    )


def _render_complete(
    request: HttpRequest,
    taking: RespondentSession,
    published: Published,
    **context: Any,
) -> HttpResponse:
    return render(
        request,
        "survey/survey_complete.html",
        {
            **_frame(published, bootstrap.language_of(request, taking, published)),
            "languages": published.definition["languages"],
            **context,
        },
    )


def _frame(published: Published, language: str) -> dict[str, Any]:
    """What every page of a survey needs around its content."""
    return {
        "words": messages.words(language),
        "language": language,
        "direction": messages.direction(language),
        "title": published.title_in(language),
    }


# Shared


def _taken(taking: RespondentSession, published: Published) -> SavedAnswers:
    """1 statement. Raises NoLongerTaking."""
    taken = read_saved_answers(taking, published)
    # A session ends some minutes after its person has finished. The cookie is
    # taken back then, but the reply that does so may be lost.
    if taking.resumed and taken.completed_at is not None:
        thanked = taken.completed_at + timedelta(seconds=session.LIFE_AFTER_FINISHING)
        if timezone.now() >= thanked:
            raise SessionEnded("session")
    return taken


def _session_over(request: HttpRequest, reason: str = "session") -> HttpResponse:
    if wants_json(request):
        status = 401 if reason in ("session", "reissued") else 409
        return JsonResponse({"error": reason}, status=status)
    closed = reason == "closed"
    return redirect("survey_complete" if closed else "survey_login")
