"""Say why a person can't go on here: no session, another person, a refused code."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.utils import timezone, translation
from django.utils.formats import date_format

from survey.people.access_codes import LONGEST_TYPED
from survey.taking import messages
from survey.taking.login import LoginRefused
from survey.taking.page_save import RESPONDENT_HEADER
from survey.taking.refusals import refusal
from survey.taking.session import RespondentSession
from survey.taking.unavailable import wants_json


def refusal_message(refused: LoginRefused, language: str) -> str:
    message = messages.messages_in(language)[refused.key]
    if refused.impossible is not None:
        symbol, number = refused.impossible.symbol, refused.impossible.number
        return message.format(symbol=symbol, n=number)
    if refused.at is None:
        return message
    with translation.override(language):
        at = timezone.localtime(refused.at)
        written = f"{date_format(at, 'DATE_FORMAT')}, {date_format(at, 'TIME_FORMAT')}"
    return message.format(date=f"{written} ({at:%Z})")


def refused_code(
    request: HttpRequest, refused: LoginRefused, language: str
) -> dict[str, object]:
    """Return what the field of a code shows of a refused one."""
    code = request.POST.get("code", "")[:LONGEST_TYPED]
    marked = None
    if refused.impossible is not None:
        at = refused.impossible.at
        marked = {
            "at": at,
            "before": code[:at],
            "character": code[at],
            "after": code[at + 1 :],
        }
    error = refusal_message(refused, language)
    return {"error": error, "code": code, "marked": marked}


def chosen_language(request: HttpRequest) -> str:
    return request.POST.get("language") or request.GET.get("language") or ""


def login_language(request: HttpRequest) -> str:
    chosen = chosen_language(request)
    if chosen:
        return messages.language_for(chosen)
    return messages.language_accepted(request.META.get("HTTP_ACCEPT_LANGUAGE", ""))


def is_another_persons_tab(request: HttpRequest, session: RespondentSession) -> bool:
    """Return whether the tab that asks was opened for another respondent.

    The address names the tab's respondent, so a reload or the browser's
    history never shows one child's answers in another child's tab.
    """
    opened_for = (
        request.META.get(RESPONDENT_HEADER)
        or request.POST.get("for")
        or request.GET.get("for")
    )
    return bool(opened_for) and opened_for != session.tag


def refuse_other_person(request: HttpRequest) -> HttpResponse:
    if wants_json(request):
        return JsonResponse(refusal("person"), status=403)
    language = login_language(request)
    context = {
        "words": messages.messages_in(language),
        "language": language,
        "direction": messages.direction(language),
    }
    return render(request, "survey/survey_other_person.html", context, status=403)


def end_session(request: HttpRequest, reason: str = "session") -> HttpResponse:
    """Send a person without a valid session to the page that explains it."""
    if wants_json(request):
        status = 401 if reason in ("session", "reissued") else 409
        return JsonResponse(refusal(reason), status=status)
    if reason == "declined":
        response = redirect("survey_decline")
        response["Location"] += f"?declined&language={login_language(request)}"
        return response
    return redirect("survey_complete" if reason == "closed" else "survey_login")
