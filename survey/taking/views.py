"""The views of the respondents. `tests/taking/test_budgets.py` holds costs."""

from __future__ import annotations

import re
from functools import cache
from http import HTTPStatus

from django.http import (
    Http404,
    HttpRequest,
    HttpResponse,
    HttpResponseRedirect,
    JsonResponse,
)
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.functional import SimpleLazyObject
from django.views.decorators.csrf import (
    csrf_exempt,
    csrf_protect,
)
from django.views.decorators.http import (
    require_http_methods,
    require_POST,
    require_safe,
)

from accounts.accent_color import send_accent
from accounts.audit import address_of
from accounts.logos import send_logo
from survey.database.routers import uses_forced_read_router
from survey.models import PublishedSurvey
from survey.people.access_codes import format_code
from survey.taking import devices, messages, rendering, resume_cookie
from survey.taking.access_refusals import (
    chosen_language,
    end_session,
    is_another_persons_tab,
    login_language,
    refusal_message,
    refuse_other_person,
    refused_code,
)
from survey.taking.bootstrap import (
    frame_context,
    language_of,
    personal_data,
    shared_data,
)
from survey.taking.completion import (
    count_stored_pages,
    finish,
    review,
    reviewed_fingerprint,
)
from survey.taking.csrf_tokens import get_token
from survey.taking.language_names import languages_of, missing_language
from survey.taking.login import LoginRefused
from survey.taking.login_session import log_in, set_login_cookies, start_number_of
from survey.taking.next_part import NextPart, begin_part, next_part, number_of
from survey.taking.page_save import (
    RESPONDENT_HEADER,
    BadRequest,
    check_origin,
    process_page,
    read_page_save,
)
from survey.taking.places import place_of_state
from survey.taking.prepared_pages import (
    complete_page,
    login_context,
    login_page,
    survey_page,
)
from survey.taking.published import Published, SurveyNotFound, published_survey
from survey.taking.refusals import refusal, set_outcome
from survey.taking.saved_answers import (
    SavedAnswers,
    SessionEnded,
    read_saved_answers,
)
from survey.taking.security_headers import never_cache
from survey.taking.session import (
    RespondentSession,
    continue_session,
    current_session,
    ends_previous_login,
    extend_session,
    has_just_begun,
    resume_token_for,
    set_session_cookie,
    shorten_session,
)
from survey.taking.unavailable import retry_once, wants_json
from survey.taking.without_javascript.tab import read_tab, review_addresses
from survey.taking.wrong_codes import count_wrong_code
from survey.templatetags.respondent_words import saved_text

DIGEST = re.compile(r"[0-9a-f]{64}")
COLOR = re.compile(r"[0-9a-f]{6}")
LOGO = re.compile(r"[0-9a-f]{32}-[0-9]{1,4}x[0-9]{1,4}")
YEAR = 365 * 24 * 60 * 60


@csrf_exempt
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def survey_login(request: HttpRequest) -> HttpResponse:
    """Ask for an access code, and start a session for its respondent."""
    response = _log_in(request)
    is_refused = response.status_code == HTTPStatus.FORBIDDEN
    is_form = is_refused and not wants_json(request)
    if is_form and has_just_begun(request, start_number_of(request)):
        return redirect("survey_display")
    return response


@csrf_protect
@ends_previous_login
@retry_once
@uses_forced_read_router(PublishedSurvey)
def _log_in(request: HttpRequest) -> HttpResponse:
    """Ask for a code, or start the session of its respondent.

    POST: 1 read by unique index, 1 write at the first start, 1 on a new device,
    1 session write.
    """
    if request.method != "POST":
        if wants_json(request):
            return JsonResponse({"csrf": get_token(request)})
        language, chosen = login_language(request), chosen_language(request)
        return HttpResponse(login_page(request, language, chosen))
    try:
        login, session, device_id = log_in(request)
    except LoginRefused as refused:
        refusal = _refuse_login(request, refused)
        if refused.key == "code_wrong":
            set_outcome(refusal, count_wrong_code(address_of(request)))
        return refusal
    response: HttpResponse
    if wants_json(request):
        response = JsonResponse({"tag": session.tag, "csrf": get_token(request)})
    else:
        response = _redirect("survey_complete" if login.completed else "survey_display")
        definition = published_survey(login.digest).definition
        missing = missing_language(chosen_language(request), definition)
        if missing and not login.completed:
            response["Location"] += f"?missing={missing}"
    set_login_cookies(response, request, login, session, device_id)
    return response


@never_cache
@require_http_methods(["GET", "HEAD"])
@retry_once
@uses_forced_read_router(PublishedSurvey)
def survey_display(request: HttpRequest) -> HttpResponse:
    """Show the survey; as JSON, renew the data of a running tab.

    1 read on the primary, 1 session read; once an hour 1 session write.
    """
    session = current_session(request)
    if session is None:
        return end_session(request)
    if is_another_persons_tab(request, session):
        return refuse_other_person(request)
    published = published_survey(session.digest)
    try:
        saved = read_saved_answers(
            session, published, devices.device_of(request.COOKIES)
        )
    except SessionEnded as ended:
        return end_session(request, ended.reason)
    language = language_of(request, session, published)
    person = personal_data(request, session, published, saved)
    if wants_json(request):
        if saved.completed_at:
            return JsonResponse(refusal("finished"), status=409)
        return JsonResponse(shared_data(published, language, saved.role, person))
    if saved.completed_at:
        return redirect("survey_complete")
    missing = missing_language(request.GET.get("missing", ""), published.definition)
    page = survey_page(
        session.digest,
        language,
        saved.role,
        person,
        saved.place,
        missing,
        may_decline=saved.may_decline,
    )
    response = HttpResponse(page)
    if session.needs_extension():
        extend_session(request)
        resume_cookie.set_resume_cookie(response, resume_token_for(session))
    return response


@csrf_exempt
@require_POST
@retry_once
@uses_forced_read_router(PublishedSurvey)
def survey_change_page(request: HttpRequest, n: int) -> HttpResponse:
    """Save one page. 1 statement, 1 session read; 2 statements when refused.

    Once an hour 1 session write, so that a session lasts while it is used.
    """
    try:
        check_origin(request)
        session = current_session(request)
        if session is None:
            raise BadRequest(401, "session")
        if request.META[RESPONDENT_HEADER] != session.tag:
            raise BadRequest(403, "person")
        save = read_page_save(request)
        reply = process_page(session, published_survey(session.digest), n, save)
    except BadRequest as bad:
        return JsonResponse(refusal(bad.key), status=bad.status)
    if session.needs_extension() and reply.status == 200:
        extend_session(request)
    response = JsonResponse(reply.content, status=reply.status)
    set_outcome(response, reply.outcome)
    return response


@retry_once
@uses_forced_read_router(PublishedSurvey)
def survey_content(
    request: HttpRequest, digest: str, renderer: str, language: str, n: int
) -> HttpResponse:
    """Return a page's HTML, or for page 0 the outline; the same for everyone. 0 SQL."""
    # This address is public: a value that is no digest must not cost a read.
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
    # Caches keep what an older renderer made until the last tab that uses it is
    # closed. A page rendered again under an old address is not exactly the
    # same, so it must not be cached.
    current = renderer == rendering.RENDERER
    response["Cache-Control"] = (
        f"public, max-age={YEAR}, immutable" if current else "no-store"
    )
    return response


@require_safe
@retry_once
def survey_logo(request: HttpRequest, name: str) -> HttpResponse:
    """Return a logo, the same for everyone. 1 statement; nginx answers most of them."""
    if not LOGO.fullmatch(name):
        raise Http404
    return send_logo(name)


@require_safe
def survey_accent(request: HttpRequest, digits: str) -> HttpResponse:
    """Return the style sheet of an accent color, the same for everyone. 0 SQL."""
    if not COLOR.fullmatch(digits):
        raise Http404
    return send_accent(digits)


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
@retry_once
@uses_forced_read_router(PublishedSurvey)
def survey_complete(request: HttpRequest) -> HttpResponse:
    """Review the answers, finish, or say thank you.

    GET: 1 read, 1 session read; 3 reads more at the end of a round to which districts
    may add pages. POST: 1 write, 1 session write.
    """
    session = current_session(request)
    if session is None:
        return end_session(request)
    if is_another_persons_tab(request, session):
        return refuse_other_person(request)
    published = published_survey(session.digest)
    language = language_of(request, session, published)
    if request.method == "POST":
        finished = _finish(request, session, published, language)
        if finished is not None:
            return finished
    context: dict[str, object] = {}
    tab = read_tab(request, session)
    if tab is not None:
        addresses = review_addresses(tab, session, language)
        context |= {"plain_tab": tab.signed(), "addresses": addresses}
    # Not known once the survey has closed: its page suits all roles.
    role, is_finished, saved = "", False, None
    try:
        saved = read_saved_answers(
            session, published, devices.device_of(request.COOKIES)
        )
    except SessionEnded as ended:
        if ended.reason != "closed":
            return end_session(request, ended.reason)
        context["closed"] = True
    else:
        role = saved.role
        context["place"] = saved.place
        is_finished = context["is_finished"] = _is_finished_here(
            request, session, saved
        )
        show = _thanks_context if is_finished else _review_context
        context |= show(session, published, saved, language)
        if is_finished:
            device = devices.device_of(request.COOKIES)
            context["next_part"] = next_part(session, saved, device)
    if saved is None or tab is not None:
        context |= frame_context(published, language, role)
        context["languages"] = languages_of(published.definition)
        response = render(request, "survey/survey_complete.html", context)
    else:
        context["csrf_token"] = SimpleLazyObject(lambda: get_token(request))
        page = complete_page(session.digest, language, role, context, saved.place)
        response = HttpResponse(page)
    # The reply that shortened the session was lost, and the browser asks again.
    if request.method == "POST" and is_finished:
        shorten_session(request, response, session)
    return response


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
@retry_once
@uses_forced_read_router(PublishedSurvey)
def survey_next_part(request: HttpRequest) -> HttpResponse:
    """Go on to the district's pages, in the same visit.

    POST: 4 reads, 2 writes, 1 session read and 1 session write.
    """
    session = current_session(request)
    if session is None:
        return end_session(request)
    if request.method != "POST":
        return redirect("survey_display")
    # The second click of a double click, or a lost reply.
    if session.start_number == number_of(request.POST.get("for", "")):
        return redirect("survey_display")
    if is_another_persons_tab(request, session):
        return refuse_other_person(request)
    part = _next_part_of(request, session)
    device_id = devices.read_device_id(request.COOKIES)
    device = devices.digest_of(device_id)
    next_session = part and begin_part(request, session, part, device)
    if not next_session:
        return redirect("survey_complete")
    continue_session(request, next_session)
    response = redirect("survey_display")
    # The browser's page tells it from a way back from the review.
    response["Location"] += "?next-part=1"
    resume_cookie.set_resume_cookie(response, resume_token_for(next_session))
    if session.resumed:
        set_session_cookie(response, request)
    return response


def _next_part_of(request: HttpRequest, session: RespondentSession) -> NextPart | None:
    device = devices.device_of(request.COOKIES)
    published = published_survey(session.digest)
    try:
        saved = read_saved_answers(session, published, device)
    except SessionEnded:
        return None
    if not _is_finished_here(request, session, saved):
        return None
    return next_part(session, saved, device)


def _is_finished_here(
    request: HttpRequest, session: RespondentSession, saved: SavedAnswers
) -> bool:
    """Return whether the person has finished, as far as this device may learn it."""
    return saved.completed_at is not None or (
        saved.is_finished
        and devices.has_finished_here(request.COOKIES, session.respondent_id)
    )


def _review_context(
    session: RespondentSession, published: Published, saved: SavedAnswers, language: str
) -> dict[str, object]:
    now = timezone.localtime()
    result = review(
        session,
        published,
        saved,
        language=language,
        today=now.date().isoformat(),
        now=now.isoformat(timespec="seconds"),
    )
    return {
        "tag": session.tag,
        "hidden": saved.hidden,
        "finished_at": None,
        "missing": result.gaps,
        "reviewed": result.reviewed,
        "review": None if saved.hidden else result,
        "blank": len(result.blank),
        "is_one_blank": len(result.blank) == 1,
        "first_blank": result.blank[0] if result.blank else None,
    }


def _thanks_context(
    session: RespondentSession, published: Published, saved: SavedAnswers, language: str
) -> dict[str, object]:
    now = timezone.localtime()
    pages, stored = count_stored_pages(
        published,
        saved,
        language=language,
        today=now.date().isoformat(),
        now=now.isoformat(timespec="seconds"),
    )
    # The true moment would tell whether it was another device.
    finished_at = saved.completed_at or now
    return {
        "tag": session.tag,
        "finished_at": finished_at,
        "saved_text": saved_text(
            messages.messages_in(language, saved.role),
            pages=pages,
            stored=stored,
            moment=finished_at,
        ),
        "open_code": session.open_code,
        "personal_code": format_code(session.personal_code),
    }


def _finish(
    request: HttpRequest,
    session: RespondentSession,
    published: Published,
    language: str,
) -> HttpResponse | None:
    """Finish, or return None where a form's sender is shown the review again.

    1 statement and 1 session write; 2 statements where a script's request
    does not finish.
    """
    response: HttpResponse
    # A device that has shown the review is told the same whether this request
    # finished or an earlier one had: its reply was lost, or another device's.
    is_finished = finish(session, request.POST.get("reviewed", ""), language)
    if not is_finished:
        is_finished = _was_finished(request, session, published)
    if wants_json(request):
        if not is_finished:
            return JsonResponse(refusal("changed"), status=409)
        response = JsonResponse({"finished": True})
    else:
        if not is_finished:
            return None
        response = _redirect("survey_complete")
        requested = request.POST.get("language", "")
        if requested in published.languages:
            response["Location"] += f"?language={requested}"
    shorten_session(request, response, session)
    devices.set_finished_cookie(response, session.respondent_id)
    return response


def _was_finished(
    request: HttpRequest, session: RespondentSession, published: Published
) -> bool:
    """Return whether an earlier request finished, for a script or a new device."""
    device = devices.device_of(request.COOKIES)
    try:
        saved = read_saved_answers(session, published, device)
    except SessionEnded:
        return False
    if saved.completed_at is not None:
        return wants_json(request)
    # Where this device may not learn it, only with a review that would have
    # finished: an invalid one must not tell the two apart.
    reviewed = reviewed_fingerprint(session, request.POST.get("reviewed", ""))
    return saved.is_finished and reviewed == saved.fingerprint


def _redirect(view: str) -> HttpResponse:
    return HttpResponseRedirect(_address_of(view))


@cache
def _address_of(view: str) -> str:
    return reverse(view)


def _refuse_login(request: HttpRequest, refused: LoginRefused) -> HttpResponse:
    language = login_language(request)
    if wants_json(request):
        more: dict[str, object] = {"message": refusal_message(refused, language)}
        if refused.impossible is not None:
            more["character"] = refused.impossible.at
        return JsonResponse(refusal(refused.key, **more), status=422)
    context = {
        **login_context(language, chosen_language(request)),
        **refused_code(request, refused, language),
        "place": place_of_state(),
    }
    return render(request, "survey/survey_login.html", context, status=422)
