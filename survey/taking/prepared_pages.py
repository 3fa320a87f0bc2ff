"""Render the most requested pages once, and fill in what differs per request.

The login page, the survey's page, reviews and thanks are the same for nearly everyone
but for texts, and rendering their templates takes longer than saving a page.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from functools import lru_cache
from html import escape
from typing import NamedTuple, cast

from django.conf import settings
from django.http import HttpRequest
from django.template import Context
from django.template.loader import render_to_string
from django.utils import timezone
from django.utils.html import json_script
from django.utils.safestring import SafeString, mark_safe

from survey.taking import messages
from survey.taking.bootstrap import frame_context, shared_data
from survey.taking.completion import Review
from survey.taking.csrf_tokens import get_token
from survey.taking.language_names import languages_of, missing_language_notice
from survey.taking.places import NOWHERE, PlaceOnPage, place_of_state
from survey.taking.published import published_survey
from survey.templatetags.respondent_words import reviewed_pages

# Random, so that no text of a survey can contain a placeholder.
MARK = secrets.token_hex(8)
NOW, TOKEN, TAG, DATA, ACCENT, LOGO, HELP, MISSING, NOTICE, MAIN, DECLINE = (
    f"{MARK}-{key}-{MARK}"
    for key in ("now", "token", "tag", "data", "accent", "logo", "help")
    + ("missing", "notice", "main", "decline")
)
SAVED, REVIEWED, ANSWERS, BLANK, FIRST_PAGE, FIRST_ITEM = (
    f"{MARK}-{key}-{MARK}"
    for key in ("saved", "reviewed", "answers", "blank", "first-page", "first-item")
)


# As in Django's `json_script`.
ESCAPES = {"<": "\\u003C", ">": "\\u003E", "&": "\\u0026"}


class PreparedPage(NamedTuple):
    """A page in pieces; every other one is a placeholder, from the second on."""

    pieces: tuple[bytes, ...]
    placeholders: tuple[str, ...]


def login_page(request: HttpRequest, language: str, chosen: str) -> bytes:
    make = prepared_login if settings.COMPRESS_OFFLINE else render_login
    page = make(language, chosen, place_of_state())
    return fill_in(page, {TOKEN: get_token(request)})


def survey_page(
    digest: str,
    language: str,
    role: str,
    person: Mapping[str, object],
    place: PlaceOnPage = NOWHERE,
    missing: str = "",
    *,
    may_decline: bool = False,
) -> bytes:
    """Return the survey's page. `person` is `personal_data` of the request.

    `missing` is the language chosen at login, if the survey lacks it. With
    `may_decline`, the first page offers not to take part.
    """
    make = prepared_survey if settings.COMPRESS_OFFLINE else render_survey
    accent, mark, help = render_place(place, language, role, is_inside=True)
    tag, decline = str(person["tag"]), ""
    if may_decline:
        link = render_decline(language, role).replace(TAG, escape(tag))
        decline = mark_safe(link)  # noqa: S308
    return fill_in(
        make(digest, language, role),
        {
            DECLINE: decline,
            TAG: tag,
            DATA: members_of(person),
            ACCENT: accent,
            LOGO: mark,
            HELP: help,
            MISSING: missing,
            NOTICE: missing_language_notice(
                missing, published_survey(digest).definition, language
            ),
        },
    )


def complete_page(
    digest: str,
    language: str,
    role: str,
    context: Mapping[str, object],
    place: PlaceOnPage = NOWHERE,
) -> bytes:
    """Return the review, or the page that says thank you.

    Mostly only texts differ from person to person. Otherwise all is the same for
    everyone around `survey/_complete.html` with this context.
    """
    accent, mark, help = render_place(place, language, role, is_inside=False)
    common = {TAG: str(context["tag"]), ACCENT: accent, LOGO: mark, HELP: help}
    kind = kind_of(context) if settings.COMPRESS_OFFLINE else None
    if kind == THANKS:
        page = prepared_complete(digest, language, role, kind)
        return fill_in(page, {**common, SAVED: cast(str, context["saved_text"])})
    frame = frame_context(published_survey(digest), language, role)
    if kind is None:
        make = prepared_frame if settings.COMPRESS_OFFLINE else render_frame
        page = make(digest, language, role, bool(context["is_finished"]))
        main = render_to_string("survey/_complete.html", {**frame, **context})
        return fill_in(page, {**common, MAIN: main})
    first_page, first_item = cast("tuple[int, str]", context["first_blank"] or (0, ""))
    return fill_in(
        prepared_complete(digest, language, role, kind),
        {
            **common,
            TOKEN: str(context["csrf_token"]),
            REVIEWED: cast(str, context["reviewed"]),
            ANSWERS: reviewed_pages(
                Context(),
                cast(Review, context["review"]).pages,
                cast("dict[str, str]", frame["words"]),
                cast(str, frame["in_survey_language"]),
            ),
            BLANK: str(context["blank"]),
            FIRST_PAGE: str(first_page),
            FIRST_ITEM: first_item,
        },
    )


# Kinds of pages that differ in texts alone, and what decides in their template.
THANKS, ALL_ANSWERED, ONE_BLANK, SOME_BLANK = range(4)


def kind_of(context: Mapping[str, object]) -> int | None:
    """Return the kind of this page, None if more differs than texts."""
    if context["is_finished"]:
        has_more = context["next_part"] or context["open_code"]
        return None if has_more else THANKS
    if context["missing"] or not context["review"]:
        return None
    if not context["blank"]:
        return ALL_ANSWERED
    return ONE_BLANK if context["is_one_blank"] else SOME_BLANK


def render_complete(digest: str, language: str, role: str, kind: int) -> PreparedPage:
    frame = frame_context(published_survey(digest), language, role)
    main = {
        **frame,
        "tag": TAG,
        "finished_at": kind == THANKS,
        "saved_text": SAVED,
        "csrf_token": TOKEN,
        "reviewed": REVIEWED,
        "review": True,
        "review_list": ANSWERS,
        "blank": "" if kind == ALL_ANSWERED else BLANK,
        "is_one_blank": kind == ONE_BLANK,
        "first_blank": (FIRST_PAGE, FIRST_ITEM),
    }
    text = render_to_string("survey/_complete.html", main)
    page = render_frame_text(digest, language, role, kind == THANKS)
    return split_page(page.replace(MAIN, text))


def render_frame(
    digest: str, language: str, role: str, is_finished: bool
) -> PreparedPage:
    return split_page(render_frame_text(digest, language, role, is_finished))


def render_frame_text(digest: str, language: str, role: str, is_finished: bool) -> str:
    published = published_survey(digest)
    return render_to_string(
        "survey/survey_complete.html",
        {
            **frame_context(published, language, role),
            "languages": languages_of(published.definition),
            "is_finished": is_finished,
            "tag": TAG,
            "now": NOW,
            "accent": ACCENT,
            "mark": LOGO,
            "help": HELP,
            "main": MAIN,
        },
    )


def prepare(template: str, context: dict[str, object]) -> PreparedPage:
    return split_page(render_to_string(template, context))


def split_page(page: str) -> PreparedPage:
    # Every other part is the name of a placeholder.
    parts = page.split(MARK)
    placeholders = tuple(f"{MARK}{name}{MARK}" for name in parts[1::2])
    return PreparedPage(tuple(part.encode() for part in parts), placeholders)


def fill_in(page: PreparedPage, values: Mapping[str, str]) -> bytes:
    """Replace the placeholders; escape what is not marked as safe."""
    known = {
        key: (text if isinstance(text, SafeString) else escape(text)).encode()
        for key, text in values.items()
    }
    known[NOW] = timezone.localtime().isoformat().encode()
    pieces = list(page.pieces)
    pieces[1::2] = [known[placeholder] for placeholder in page.placeholders]
    return b"".join(pieces)


def members_of(person: Mapping[str, object]) -> SafeString:
    """Return the members of a JSON object, as they are within a script of the page."""
    text = json.dumps(person)[1:-1]
    for character, escaped in ESCAPES.items():
        text = text.replace(character, escaped)
    return mark_safe(text)  # noqa: S308


def render_login(language: str, chosen: str, place: PlaceOnPage) -> PreparedPage:
    return prepare(
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


def render_survey(digest: str, language: str, role: str) -> PreparedPage:
    published = published_survey(digest)
    data = shared_data(published, language, role, {DATA: 0})
    script = json_script(data, "take").replace(f'"{DATA}": 0', DATA)
    take = {
        "language": language,
        "languages": languages_of(published.definition),
        "pages": len(published.answerable),
        "tag": TAG,
    }
    return prepare(
        "survey/survey_display.html",
        {
            **frame_context(published, language, role),
            "take": take,
            "data": mark_safe(script),  # noqa: S308
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
    place: PlaceOnPage, language: str, role: str, *, is_inside: bool
) -> tuple[SafeString, ...]:
    """Return the color, the logo, and whom to ask for help.

    A school's people share them. What is inside of the survey leads to no page where
    people would lose sight of it.
    """
    context = {
        "place": place,
        "words": messages.messages_in(language, role),
        "language": messages.language_for(language),
        "take": is_inside,
    }
    parts = ("survey/_accent.html", "survey/_mark.html", "survey/_help.html")
    return tuple(render_to_string(part, context) for part in parts)


prepared_login = lru_cache(maxsize=32)(render_login)
prepared_survey = lru_cache(maxsize=256)(render_survey)
prepared_frame = lru_cache(maxsize=256)(render_frame)
prepared_complete = lru_cache(maxsize=256)(render_complete)
