"""*Stop for now*: end the session, and let the device forget its person."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_http_methods

from survey.database.routers import uses_forced_read_router
from survey.models import PublishedSurvey
from survey.taking import devices, messages
from survey.taking.access_refusals import (
    is_another_persons_tab,
    login_language,
    refuse_other_person,
)
from survey.taking.page_save import is_own_origin
from survey.taking.refusals import refusal
from survey.taking.security_headers import never_cache
from survey.taking.session import current_session, end_login
from survey.taking.unavailable import retry_once, wants_json


@never_cache
# A tab's token is replaced when another tab logs in. The session cookie is not sent
# with other sites' POST requests, and without it nothing ends.
@csrf_exempt
@require_http_methods(["GET", "HEAD", "POST"])
@retry_once
@uses_forced_read_router(PublishedSurvey)
def survey_stop(request: HttpRequest) -> HttpResponse:
    """End the session; say that it ended.

    GET: 0 SQL when warm, no session read: a person who came in the meantime is not
    touched.
    POST: 1 statement; 1 session read; 1 write and 2 deletions at the session
    store's cache. Repeating it changes nothing.
    """
    if request.method != "POST":
        # A form that was answered 503 loads this address again, and has not stopped.
        has_stopped = "language" in request.GET
        return _show_stopped(request) if has_stopped else redirect("survey_display")
    origin = request.META.get("HTTP_ORIGIN", "")
    if origin and not is_own_origin(request, origin):
        return JsonResponse(refusal("origin"), status=403)
    session = current_session(request)
    if session and is_another_persons_tab(request, session):
        return refuse_other_person(request)
    response: HttpResponse
    if wants_json(request):
        response = JsonResponse({"stopped": True})
    else:
        response = redirect("survey_stop")
        response["Location"] += f"?language={login_language(request)}"
    if session:
        device = devices.device_of(request.COOKIES)
        devices.forget_device(session.respondent_id, device)
    # A session that can still be read is found there again.
    resumed = session if session and session.resumed else None
    end_login(request, response, resumed=resumed)
    return response


def _show_stopped(request: HttpRequest) -> HttpResponse:
    language = login_language(request)
    context = {
        "words": messages.messages_in(language),
        "language": language,
        "direction": messages.direction(language),
        "languages": messages.languages(),
        # Answers that could not be sent are kept in the browser.
        "unsent": "unsent" in request.GET,
    }
    return render(request, "survey/survey_stopped.html", context)
