"""*I do not want to take part*: end a person's code, and keep what was answered out.

The person has `completed_at` and `declined_at` then, so that a save, a reminder and a
message are refused by the conditions that exist for people who have finished. Saves in
flight hold the person's row: they are stored before, or refused after.
"""

from __future__ import annotations

from django.db import connection
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_http_methods

from survey.database.routers import uses_forced_read_router
from survey.fieldwork.message_platforms.hooks import person_finished
from survey.models import PublishedSurvey
from survey.taking import devices, messages, resume_cookie
from survey.taking.access_refusals import (
    end_session,
    is_another_persons_tab,
    login_language,
    refuse_other_person,
)
from survey.taking.bootstrap import frame_context, language_of
from survey.taking.published import published_survey
from survey.taking.saved_answers import SessionEnded, read_saved_answers
from survey.taking.security_headers import never_cache
from survey.taking.session import RespondentSession, current_session
from survey.taking.storage import GRACE
from survey.taking.unavailable import retry_once

# Declining again changes nothing. The times are the web server's, as at a login: a
# Citus cluster refuses now() in COALESCE.
DECLINE = """
UPDATE survey_respondent AS r
SET declined_at = coalesce(r.declined_at, %s),
    completed_at = coalesce(r.completed_at, %s),
    started_at = coalesce(r.started_at, %s)
FROM survey_administration a
WHERE a.id = r.administration_id
  AND r.id = %s AND r.administration_id = %s AND r.issue = %s
  AND (r.completed_at IS NULL OR r.declined_at IS NOT NULL)
  AND r.withdrawn_at IS NULL AND r.open_code_id IS NULL
  AND a.allows_declining AND a.closes_at > %s
"""


def decline(session: RespondentSession) -> bool:
    """End the code of a person who does not want to take part. 1 statement.

    Afterwards 1 command in the Redis of message platforms, if there is one. False if
    the person has finished, or may not go on for another reason.
    """
    moment = timezone.now()
    adapt = connection.ops.adapt_datetimefield_value
    now, latest = adapt(moment), adapt(moment - GRACE)
    person = [session.respondent_id, session.administration_id, session.issue]
    with connection.cursor() as cursor:
        cursor.execute(DECLINE, [now, now, now, *person, latest])
        has_declined = cursor.rowcount == 1
    if has_declined:
        person_finished(session.respondent_id, session.administration_id)
    return has_declined


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
@retry_once
@uses_forced_read_router(PublishedSurvey)
def survey_decline(request: HttpRequest) -> HttpResponse:
    """Ask whether the person really does not want to take part; POST: record it.

    GET: 1 read, 1 session read; once recorded 0 SQL, no session read. POST: 1 write;
    1 session read and 1 deletion; 1 read where nothing is recorded.
    """
    if request.method != "POST" and "declined" in request.GET:
        return _show_declined(request)
    session = current_session(request)
    if session is None:
        return end_session(request)
    if is_another_persons_tab(request, session):
        return refuse_other_person(request)
    if request.method != "POST":
        return _ask(request, session)
    if not decline(session):
        return _ask(request, session, has_failed=True)
    response = redirect("survey_decline")
    response["Location"] += f"?declined&language={login_language(request)}"
    # Only here: other devices are told by the next save or page why it is refused.
    try:
        request.session.flush()
    except ConnectionError:
        # Otherwise the middleware would try to store the session.
        request.session.modified = False
    resume_cookie.delete_login_cookies(response)
    return response


def _ask(
    request: HttpRequest, session: RespondentSession, *, has_failed: bool = False
) -> HttpResponse:
    """Ask, or say that nothing was recorded.

    Where this device may learn why (the survey was finished or has closed, the code is
    another), it is led to the page that says so. Otherwise the words are the same for
    a person who has finished as for one who may not decline any more.
    """
    published = published_survey(session.digest)
    device = devices.device_of(request.COOKIES)
    try:
        saved = read_saved_answers(session, published, device)
    except SessionEnded as ended:
        return end_session(request, ended.reason)
    if saved.completed_at is not None or not (saved.may_decline or has_failed):
        return redirect("survey_display")
    language = language_of(request, session, published)
    context = {
        **frame_context(published, language, saved.role),
        "place": saved.place,
        "tag": session.tag,
        # The footer leads to no page where people would lose sight of their survey.
        "take": True,
        "has_failed": has_failed,
    }
    status = 409 if has_failed else 200
    return render(request, "survey/survey_decline.html", context, status=status)


def _show_declined(request: HttpRequest) -> HttpResponse:
    language = login_language(request)
    context = {
        # The role is not known here, and formal words suit everyone.
        "words": messages.messages_in(language, role=""),
        "language": language,
        "direction": messages.direction(language),
        "languages": messages.languages(),
        "has_declined": True,
    }
    return render(request, "survey/survey_decline.html", context)
