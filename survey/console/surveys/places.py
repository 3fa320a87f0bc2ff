"""List what was noticed in a draft by question, with links into the editor."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from django.urls import reverse
from django.utils.http import urlencode

from survey.instrument.drafts.commands import default_language
from survey.instrument.drafts.problem_words import DraftWords
from survey.instrument.drafts.reading import DraftReading
from survey.models import Survey

# A sheet and the key of a row in it; no row for the sheet or survey as a whole.
Key = tuple[str, str]


@dataclass(slots=True)
class Place:
    """A question, or the whole survey, with what was noticed there."""

    name: str
    address: str
    # (language code or "", sentence)
    sentences: list[tuple[str, str]] = field(default_factory=list)


def problem_places(survey: Survey, reading: DraftReading) -> list[Place]:
    """Put the problems that keep a draft from being published in author's words."""
    words = DraftWords(reading)
    return places_of(
        survey,
        words,
        (
            ((problem.sheet, reading.key_of(problem)), "", words.sentence(problem))
            for problem in reading.problems
        ),
    )


def places_of(
    survey: Survey, words: DraftWords, noticed: Iterable[tuple[Key, str, str]]
) -> list[Place]:
    """Gather what was noticed by rows, in the order in which they come."""
    places: dict[Key, Place] = {}
    first = default_language(words.reading.book).code
    for key, language, sentence in noticed:
        place = words.place_of(*key)
        if key not in places:
            address = (
                reverse("survey_measures", args=[survey.pk])
                if key[0] == "measures"
                else address_of_editor(survey, place.key)
            )
            places[key] = Place(str(place), address)
        if language not in ("", first) and place.key:
            places[key].address = address_of_translation(
                survey, place.key, language, field=":".join((*key, "label", language))
            )
        if (language, sentence) not in places[key].sentences:
            places[key].sentences.append((language, sentence))
    return [*places.values()]


def address_of_editor(survey: Survey, key: str = "") -> str:
    """Return where a row is edited; of a correction, only texts are."""
    if survey.corrects_id is not None:
        return reverse("survey_edit_texts", args=[survey.pk])
    address = reverse("survey_edit", args=[survey.pk])
    return f"{address}?at={key}" if key else address


def address_of_translation(survey: Survey, key: str, language: str, field: str) -> str:
    """Return where a row is translated, with the field to begin in."""
    address = address_of_editor(survey, key)
    if survey.corrects_id is not None:
        return f"{address}?{urlencode({'language': language})}"
    return f"{address}&{urlencode({'second': language, 'field': field})}"
