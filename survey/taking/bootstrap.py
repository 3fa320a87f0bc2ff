"""The data that the respondent's page starts with, as JSON in the document.

`static/js/take.js` reads its keys. It holds no personal data but the answers
themselves, which is why the page is never stored by any cache.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping

from django.conf import settings
from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html

from survey.models import Role
from survey.taking import messages, rendering
from survey.taking.csrf_tokens import get_token
from survey.taking.language_names import languages_of
from survey.taking.published import Published
from survey.taking.saved_answers import SavedAnswers
from survey.taking.session import RespondentSession, queue_key_for, seed_for
from survey.taking.storage import GRACE


def language_of(
    request: HttpRequest, session: RespondentSession, published: Published
) -> str:
    """Return the language named in the address, else the one of the login."""
    requested = request.POST.get("language") or request.GET.get("language", "")
    return requested if requested in published.languages else session.language


# What the buttons of the review say of a lost network or session.
FINISHING_WORDS = (
    "code_label",
    "finishing",
    "keep_going",
    "load_failed",
    "log_in_again",
    "not_finished",
    "not_logged_out",
    "not_logged_out_title",
    "overloaded",
    "session_over",
    "session_over_finishing",
    "still_there",
    "still_there_help",
    "stop",
    "stopping",
)


def frame_context(
    published: Published, language: str, role: str = Role.STUDENT
) -> dict[str, object]:
    """Return what the templates need around a survey in this language.

    There may be no messages in it: then the frame is in another language.
    """
    frame = messages.language_for(language)
    directions = {
        entry["code"]: entry["direction"] for entry in published.definition["languages"]
    }
    direction = directions[language]
    attributes = format_html(' lang="{}" dir="{}"', language, direction)
    words = messages.messages_in(language, role)
    return {
        "words": words,
        "finishing_words": {key: words[key] for key in FINISHING_WORDS},
        "language": frame,
        "direction": messages.direction(frame),
        "survey_language": language,
        # Empty where the frame is in the survey's language.
        "in_survey_language": "" if frame == language else attributes,
        "title": published.title_in(language),
    }


def shared_data(
    published: Published, language: str, role: str, person: Mapping[str, object]
) -> dict[str, object]:
    """Return what is the same for everyone, around the data of one person."""
    frame = messages.language_for(language)
    return {
        "digest": published.digest,
        # Answers that wait in a browser stay valid when texts are corrected.
        "answersOf": published.definition.get("corrects", published.digest),
        "renderer": rendering.RENDERER,
        "language": language,
        "title": published.title_in(language),
        "languages": languages_of(published.definition),
        "pages": len(published.answerable),
        **person,
        "messages": {
            key: text
            for key, text in messages.messages_in(language, role).items()
            if not key.startswith(messages.NOT_IN_TABS)
        },
        # The language that the messages are in.
        "frame": frame,
        "frameDirection": messages.direction(frame),
        "urls": addresses_of(published.digest, settings.WORKS_OFFLINE),
    }


def personal_data(
    request: HttpRequest,
    session: RespondentSession,
    published: Published,
    saved: SavedAnswers,
) -> dict[str, object]:
    now = timezone.localtime()
    items = published.definition["items"]
    return {
        "answers": {
            name: text.split(" ")
            if text is not None and items[name]["kind"] == "select_multiple"
            else text
            for name, text in saved.answers.items()
            if not saved.hidden
        },
        # Answered earlier: not shown on this device, and kept unless answered again.
        "earlier": list(saved.answers) if saved.hidden else [],
        "revision": saved.revision,
        "seen": saved.seen,
        "shown": saved.shown,
        "tag": session.tag,
        "queueKey": queue_key_for(session.respondent_id),
        "seed": seed_for(session.administration_id, session.respondent_id),
        "now": now.isoformat(timespec="seconds"),
        "today": now.date().isoformat(),
        "closesAt": saved.closes_at.isoformat(timespec="seconds"),
        "acceptedUntil": (saved.closes_at + GRACE).isoformat(timespec="seconds"),
        "csrf": get_token(request),
    }


@functools.lru_cache(maxsize=100)
def addresses_of(digest: str, works_offline: bool) -> dict[str, str]:
    """Return a survey's addresses, with places {n} and {language} to fill."""
    content = reverse("survey_content", args=[digest, rendering.RENDERER, "en", 0])
    return {
        "page": reverse("survey_change_page", args=[0]).replace("/0/", "/{n}/"),
        "content": content.replace("/en/0/", "/{language}/{n}/"),
        "complete": reverse("survey_complete"),
        "stop": reverse("survey_stop"),
        "login": reverse("survey_login"),
        "renew": reverse("survey_display"),
        "worker": reverse("survey_worker") if works_offline else "",
    }
