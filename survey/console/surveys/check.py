"""Check a draft before it is published: problems, hints and minutes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import urlencode
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_safe

from accounts.access import needs
from accounts.http import StaffRequest
from accounts.permissions import Capability
from survey.console.surveys.places import Key, places_of, problem_places
from survey.console.surveys.views import survey_or_404
from survey.instrument.definitions.ownership import may_change
from survey.instrument.drafts.checks import (
    Audience,
    check_draft,
    minutes_of,
    page_lengths,
)
from survey.instrument.drafts.checks.texts import shortened
from survey.instrument.drafts.checks.untranslated import UNTRANSLATED
from survey.instrument.drafts.commands import languages_of
from survey.instrument.drafts.comments import open_comments
from survey.instrument.drafts.problem_words import DraftWords
from survey.instrument.drafts.reading import DraftReading, read_rows_of
from survey.instrument.drafts.recorded_times import recorded_times
from survey.instrument.drafts.rule_hints import rule_hints
from survey.instrument.drafts.texts import texts_in
from survey.instrument.xlsform.draft import Draft
from survey.instrument.xlsform.languages import Language
from survey.models import Survey

AUDIENCES = {
    Audience.STUDENTS: gettext_lazy("Students"),
    Audience.ADULTS: gettext_lazy("Adults"),
}


# Words in the names of surveys that adults answer.
ADULTS = re.compile(
    r"staff|teacher|educator|famil|parent|caregiver|adult|personal|docente|padres"
    r"|working at|trabajar en",
    re.I,
)


@needs(Capability.MANAGE_SURVEYS)
@require_safe
def survey_check(request: StaffRequest, pk: int) -> HttpResponse:
    """Show what keeps a draft from being published, and what to look at."""
    survey = survey_or_404(request, pk)
    if survey.published_at is not None:
        return redirect("survey_detail", pk)
    reading = read_rows_of(survey)
    words = DraftWords(reading)
    audience = _audience(request, survey)
    noticed = [
        *_comments(survey),
        *_texts_apart(reading),
        *_warnings(reading, words),
    ]
    length: dict[str, object] = {}
    if reading.draft is not None and not reading.problems:
        length, seconds = _length(survey, reading.draft, audience)
        noticed += _rule_hints(reading, reading.draft, words)
        noticed += [
            (_key_at(reading, check.row), check.language, check.message)
            for check in check_draft(reading.draft, audience=audience, seconds=seconds)
            # They are counted by language.
            if check.kind != UNTRANSLATED
        ]
    hints = places_of(survey, words, noticed)
    return render(
        request,
        "survey/console/survey_check.html",
        {
            "survey": survey,
            "problems": problem_places(survey, reading),
            "problem_count": len(reading.problems),
            "hints": hints,
            "hint_count": sum(len(place.sentences) for place in hints),
            **length,
            "audiences": [(row.value, words) for row, words in AUDIENCES.items()],
            "audience": audience.value,
            "may_change": may_change(request.permissions, survey),
            "translations": _translations(survey, reading),
            "first_language": languages_of(reading.book)[0],
        },
    )


@dataclass(frozen=True, slots=True)
class Translation:
    """How many of a draft's texts a language lacks, and where they are written."""

    language: Language
    missing: int
    texts: int
    address: str


def _translations(survey: Survey, reading: DraftReading) -> list[Translation]:
    """Return the languages that lack texts."""
    translations = []
    for language in languages_of(reading.book)[1:]:
        texts = [row for row in texts_in(reading.book, language) if row.original]
        missing = sum(row.state == "missing" for row in texts)
        if missing:
            query = urlencode({"language": language.code, "show": "missing"})
            address = reverse("survey_edit_texts", args=[survey.pk])
            translations.append(
                Translation(language, missing, len(texts), f"{address}?{query}")
            )
    return translations


def _length(
    survey: Survey, draft: Draft, audience: Audience
) -> tuple[dict[str, object], Mapping[str, float]]:
    """Return what is shown of the length, and recorded seconds by names of items."""
    times = recorded_times(survey)
    pages = page_lengths(draft, audience, times.seconds if times else {})
    estimated = sum(not page.is_recorded for page in pages)
    # An earlier version may have had other questions altogether.
    if times is None or estimated == len(pages):
        return {"minutes": minutes_of(draft, audience)}, {}
    minutes = minutes_of(draft, audience, times.seconds)
    shown = {"minutes": minutes, "times": times, "pages": pages, "estimated": estimated}
    return shown, times.seconds


def _audience(request: StaffRequest, survey: Survey) -> Audience:
    """Return who the draft is checked for, as chosen, or as its title tells."""
    name = f"check-audience-{survey.pk}"
    chosen = request.GET.get("audience", "")
    if chosen in set(Audience):
        if request.session.get(name) != chosen:
            request.session[name] = chosen
        return Audience(chosen)
    if name in request.session:
        return Audience(request.session[name])
    is_of_adults = ADULTS.search(f"{survey.name} {' '.join(survey.title.values())}")
    return Audience.ADULTS if is_of_adults else Audience.STUDENTS


# Where, the code of a language or "", and what to look at.
Noticed = tuple[Key, str, str]


def _comments(survey: Survey) -> Iterator[Noticed]:
    for comment in open_comments(survey):
        words = _("A comment is open: “%(text)s”") % {"text": shortened(comment.text)}
        yield ("survey", comment.key), "", words


def _texts_apart(reading: DraftReading) -> Iterator[Noticed]:
    """Yield translations that are older than the text, or have none to translate."""
    first, *translations = languages_of(reading.book)
    for language in translations:
        for text in texts_in(reading.book, language):
            place = text.sheet, text.key
            if text.state == "stale":
                words = _("The translation is older than the text.")
                yield place, language.code, words
            elif text.text and not text.original and text.field == "label":
                words = _(
                    "“%(text)s” has no %(language)s text, so people who read"
                    " %(language)s see it as it is. Write it."
                ) % {"text": shortened(text.text), "language": first.name}
                yield place, "", words


def _warnings(reading: DraftReading, words: DraftWords) -> Iterator[Noticed]:
    """Yield what the reader leaves out or reads otherwise than it is written."""
    for warning in reading.warnings:
        place = warning.sheet, reading.key_of(warning)
        yield place, "", words.sentence(warning)


def _rule_hints(
    reading: DraftReading, draft: Draft, words: DraftWords
) -> Iterator[Noticed]:
    for hint in rule_hints(draft):
        message = hint.message
        if hint.kind == "later":
            questions = ", ".join(words.question(name) for name in hint.names)
            message = _(
                "This depends on %(questions)s, which comes after it. Move one of"
                " them, or change the rule."
            ) % {"questions": questions}
        yield _key_at(reading, hint.row), "", message


def _key_at(reading: DraftReading, number: int | None) -> Key:
    row = reading.rows.get(number or 0)
    return "survey", row.key if row else ""
