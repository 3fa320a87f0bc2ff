"""Render the most requested pages once, and fill in what differs per request.

The login page and the survey's page are the same for nearly everyone, and
rendering their templates takes as long as saving a page.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from functools import lru_cache

from django.conf import settings
from django.http import HttpRequest
from django.middleware.csrf import get_token
from django.template.loader import render_to_string
from django.utils import timezone
from django.utils.html import conditional_escape, json_script
from django.utils.safestring import SafeString

from survey.taking import messages
from survey.taking.bootstrap import frame_context
from survey.taking.language_names import languages_of, missing_language_notice
from survey.taking.places import NOWHERE, PlaceOnPage, place_of_state
from survey.taking.published import published_survey

# Random, so that no text of a survey can contain a placeholder.
MARK = secrets.token_hex(8)
NOW, TOKEN, TAG, DATA, ACCENT, LOGO, HELP, MISSING, NOTICE, DECLINE = (
    f"{MARK}-{key}"
    for key in ("now", "token", "tag", "data", "accent", "logo", "help")
    + ("missing", "notice", "decline")
)


def login_page(request: HttpRequest, language: str, chosen: str) -> str:
    make = prepared_login if settings.COMPRESS_OFFLINE else render_login
    page = make(language, chosen, place_of_state())
    return fill_in(page, {TOKEN: get_token(request)})


def survey_page(
    digest: str,
    role: str,
    data: Mapping[str, object],
    place: PlaceOnPage = NOWHERE,
    missing: str = "",
    *,
    may_decline: bool = False,
) -> str:
    """Return the survey's page. `data` are `bootstrap_data` of the request.

    `missing` is the language chosen at login, if the survey lacks it. With
    `may_decline`, the first page offers not to take part.
    """
    make = prepared_survey if settings.COMPRESS_OFFLINE else render_survey
    language = str(data["language"])
    accent, mark, help = render_place(place, language, role)
    return fill_in(
        make(digest, language, role),
        {
            # Holds the tag's place.
            DECLINE: render_decline(language, role) if may_decline else "",
            TAG: str(data["tag"]),
            DATA: json_script(data, "take"),
            ACCENT: accent,
            LOGO: mark,
            HELP: help,
            MISSING: missing,
            NOTICE: missing_language_notice(
                missing, published_survey(digest).definition, language
            ),
        },
    )


def fill_in(page: str, values: Mapping[str, str]) -> str:
    """Replace the placeholders; escape what is not marked as safe."""
    now = timezone.localtime().isoformat()
    for placeholder, value in {NOW: now, **values}.items():
        page = page.replace(placeholder, conditional_escape(value))
    return page


def render_login(language: str, chosen: str, place: PlaceOnPage) -> str:
    return render_to_string(
        "survey/survey_login.html",
        {
            **login_context(language, chosen),
            "place": place,
            "csrf_token": TOKEN,
            "now": NOW,
        },
    )


def login_context(language: str, chosen: str) -> dict[str, object]:
    return {
        "words": messages.messages_in(language),
        "language": language,
        "direction": messages.direction(language),
        "chosen": chosen,
        "languages": messages.languages(),
    }


def render_survey(digest: str, language: str, role: str) -> str:
    published = published_survey(digest)
    take = {
        "language": language,
        "languages": languages_of(published.definition),
        "pages": len(published.answerable),
        "tag": TAG,
    }
    return render_to_string(
        "survey/survey_display.html",
        {
            **frame_context(published, language, role),
            "take": take,
            "data": DATA,
            "now": NOW,
            "accent": ACCENT,
            "mark": LOGO,
            "help": HELP,
            "missing": MISSING,
            "language_notice": NOTICE,
            "decline": DECLINE,
        },
    )


@lru_cache(maxsize=256)
def render_decline(language: str, role: str) -> SafeString:
    """Return the link by which a person does not take part."""
    words = messages.messages_in(language, role)
    context = {"words": words, "survey_language": language, "tag": TAG}
    return render_to_string("survey/_decline.html", context)


@lru_cache(maxsize=1024)
def render_place(
    place: PlaceOnPage, language: str, role: str
) -> tuple[SafeString, ...]:
    """Return the color, the logo, and whom to ask for help.

    A school's people share them.
    """
    context = {
        "place": place,
        "words": messages.messages_in(language, role),
        "language": messages.language_for(language),
        # Leads to no page where people would lose sight of their survey.
        "take": True,
    }
    parts = ("survey/_accent.html", "survey/_mark.html", "survey/_help.html")
    return tuple(render_to_string(part, context) for part in parts)


prepared_login = lru_cache(maxsize=32)(render_login)
prepared_survey = lru_cache(maxsize=256)(render_survey)
