"""What a page in the browser works with: the data of the shell.

Its keys are read by `static/js/take.js`. No personal data but the answers
themselves, which is why the shell is never stored by any cache.
"""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest
from django.middleware.csrf import get_token
from django.urls import reverse
from django.utils import timezone

from survey.definitions.schema import ItemDefinition
from survey.taking import messages, rendering, session
from survey.taking.published import Published
from survey.taking.saved_answers import SavedAnswers
from survey.taking.session import RespondentSession


def language_of(
    request: HttpRequest, taking: RespondentSession, published: Published
) -> str:
    """The language asked for in the address, else the one of the login."""
    asked = request.GET.get("language", "")
    return asked if asked in published.languages else taking.language


def take(
    request: HttpRequest,
    taking: RespondentSession,
    published: Published,
    taken: SavedAnswers,
    language: str,
) -> dict[str, Any]:
    now = timezone.localtime()
    return {
        "digest": taking.digest,
        # Answers that wait in a browser outlive a correction of texts.
        "answersOf": published.definition.get("corrects", taking.digest),
        "renderer": rendering.RENDERER,
        "language": language,
        "title": published.title_in(language),
        "languages": published.definition["languages"],
        "pages": len(published.answerable),
        "answers": _answers(published, taken),
        "revision": taken.revision,
        "seen": taken.seen,
        "tag": taking.tag,
        "queueKey": session.queue_key_for(taking.respondent_id),
        "seed": session.seed_for(taking.administration_id, taking.respondent_id),
        "now": now.isoformat(timespec="seconds"),
        "today": now.date().isoformat(),
        "closesAt": taken.closes_at.isoformat(timespec="seconds"),
        "csrf": get_token(request),
        "messages": dict(messages.words(language)),
        "urls": _urls(taking.digest),
    }


def _answers(published: Published, taken: SavedAnswers) -> dict[str, object]:
    items = published.definition["items"]
    return {name: _wire(items[name], text) for name, text in taken.answers.items()}


def _wire(item: ItemDefinition, text: str | None) -> str | list[str] | None:
    if text is not None and item["kind"] == "select_multiple":
        return text.split(" ")
    return text


def _urls(digest: str) -> dict[str, str]:
    """Addresses, with ``{n}`` and ``{language}`` left for the browser to fill."""
    page = reverse("survey_change_page", args=[0])
    outline = reverse("survey_content", args=[digest, rendering.RENDERER, "en", 0])
    return {
        "page": page.replace("/0/", "/{n}/"),
        "content": outline.replace("/en/0/", "/{language}/{n}/"),
        "complete": reverse("survey_complete"),
        "login": reverse("survey_login"),
        "renew": reverse("survey_display"),
    }
