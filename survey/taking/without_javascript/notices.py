"""Say why a page without JavaScript was not saved, without losing its answers."""

from __future__ import annotations

from collections.abc import Mapping

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from accounts.audit import address_of
from survey.taking import messages, resume_cookie
from survey.taking.access_refusals import end_session, login_language, refused_code
from survey.taking.login import LoginRefused
from survey.taking.unavailable import seconds_until_retry
from survey.taking.without_javascript.answers import FIELD
from survey.taking.wrong_codes import count_wrong_code

# What a form sends besides its answers.
FORM_FIELDS = ("form", "plain", "for", "language", "review", "go")
# Titles for what a save can be refused for, while it can never be accepted.
FINAL = {
    "finished": "finished_elsewhere",
    "withdrawn": "withdrawn_while",
    "declined": "declined_while",
}


def cannot_go_on(request: HttpRequest, reason: str = "session") -> HttpResponse:
    """Say why this person can't go on here; ask for the code where it helps."""
    if request.method != "POST" or reason == "closed":
        return end_session(request, reason)
    if reason in FINAL:
        return _notice(request, FINAL[reason], status=409)
    title = "reissued_while" if reason == "reissued" else "session_over"
    return _notice(request, title, status=401)


def refuse_code(request: HttpRequest, refused: LoginRefused) -> HttpResponse:
    if refused.key == "code_wrong":
        count_wrong_code(address_of(request))
    field = refused_code(request, refused, login_language(request))
    response = _notice(request, "session_over", field, status=401)
    resume_cookie.delete_login_cookies(response)
    return response


def send_again(request: HttpRequest) -> HttpResponse:
    response = _notice(request, "not_saved_plain", status=503)
    response["Retry-After"] = seconds_until_retry()
    return response


def _notice(
    request: HttpRequest,
    title: str,
    field: Mapping[str, object] | None = None,
    *,
    status: int,
) -> HttpResponse:
    """Show a message and its help. The answers come with it, to be sent again."""
    language = login_language(request)
    # The role is not known here, and formal words suit everyone.
    words = messages.messages_in(language, role="")
    posted = [
        (name, value)
        for name, values in request.POST.lists()
        if name.startswith(FIELD) or name in FORM_FIELDS
        for value in values
    ]
    context = {
        "words": words,
        "language": language,
        "direction": messages.direction(language),
        "notice_title": words[title],
        "notice": words[f"{title}_help"],
        "posted": [] if status == 409 else posted,
        "asks_code": status == 401,
        **(field or {}),
        "action": request.path,
    }
    return render(request, "survey/plain_notice.html", context, status=status)
