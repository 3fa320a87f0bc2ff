"""Estimate the school grade in which a text can be read, in English and Spanish."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from django.utils.translation import gettext as _

from accounts.templatetags.console import language_name
from survey.instrument.drafts.checks.check import (
    Audience,
    Check,
    hint,
    is_language,
)
from survey.instrument.drafts.checks.syllables import (
    english_syllables,
    spanish_syllables,
)
from survey.instrument.drafts.checks.texts import (
    DraftText,
    sentences,
    shortened,
    texts_of,
    words,
)
from survey.instrument.xlsform.draft import Draft

# A survey that starts in grade 4 is read to the youngest; plain language for the
# public aims at grade 8.
MOST_GRADE = {Audience.STUDENTS: 5, Audience.ADULTS: 8}
# The formulas were made for passages of 100 words. A single sentence has to be far
# above the limit, and long enough, before it says anything.
ABOVE_LIMIT = 5
FEWEST_WORDS = 15
FEWEST_WORDS_OF_SURVEY = 50
READ: frozenset[str] = frozenset({"label", "hint", "heading"})
HIGHEST_GRADE = 16
# Lowest scores and their grades, from 4.
SPANISH_GRADES = ((90, 4), (80, 5), (70, 6), (60, 8), (50, 12), (30, 13))


@dataclass(frozen=True, slots=True)
class Counts:
    sentences: int
    words: int
    syllables: int


def reading_grade(texts: Iterable[str], language: str) -> float | None:
    """Return the grade of several texts together; None in languages not known."""
    for primary, (syllables, formula) in FORMULAS.items():
        if is_language(language, primary):
            counts = count(texts, syllables)
            return formula(counts) if counts.words else None
    return None


def count(texts: Iterable[str], syllables: Callable[[str], int]) -> Counts:
    parts = [sentence for text in texts for sentence in sentences(text)]
    spoken = [word for sentence in parts for word in words(sentence)]
    return Counts(len(parts), len(spoken), sum(map(syllables, spoken)))


def flesch_kincaid(counts: Counts) -> float:
    """Return the Flesch-Kincaid grade level.

    Kincaid, Fishburne, Rogers and Chissom (1975), Derivation of new readability
    formulas for Navy enlisted personnel, Research Branch Report 8-75.
    """
    return (
        0.39 * counts.words / counts.sentences
        + 11.8 * counts.syllables / counts.words
        - 15.59
    )


def fernandez_huerta(counts: Counts) -> float:
    """Return the readability of Fernández Huerta, from 100 (easy) to 0.

    Fernández Huerta (1959), Medidas sencillas de lecturabilidad, Consigna 214. Words
    per sentence, as Law (2011, LINGUIST List 22.2332) corrected the formula, which is
    often printed with sentences per 100 words.
    """
    return (
        206.84
        - 60 * counts.syllables / counts.words
        - 1.02 * counts.words / counts.sentences
    )


def spanish_grade(counts: Counts) -> float:
    """Return the grade that Fernández Huerta's table gives to a readability."""
    score = fernandez_huerta(counts)
    return next((g for lowest, g in SPANISH_GRADES if score >= lowest), HIGHEST_GRADE)


Formula = tuple[Callable[[str], int], Callable[[Counts], float]]
FORMULAS: dict[str, Formula] = {
    "en": (english_syllables, flesch_kincaid),
    "es": (spanish_syllables, spanish_grade),
}


def check_reading_level(draft: Draft, audience: Audience) -> Iterator[Check]:
    most = MOST_GRADE[audience]
    read = [text for text in texts_of(draft) if text.kind in READ]
    for language in draft.languages:
        code = language["code"]
        texts = [text.texts[code] for text in read if code in text.texts]
        grade = reading_grade(texts, code)
        length = sum(len(words(text)) for text in texts)
        if (
            grade is not None
            and round(grade) > most
            and length >= FEWEST_WORDS_OF_SURVEY
        ):
            message = _(
                "The %(language)s texts of this survey read at grade %(grade)s or so."
                " Aim for grade %(most)s: use shorter sentences and everyday words."
            ) % {
                "language": language_name(code),
                "grade": min(round(grade), HIGHEST_GRADE),
                "most": most,
            }
            yield hint("reading_level", message, None, code)
        for text in read:
            yield from _check_text(text, code, most)


def _check_text(text: DraftText, code: str, most: int) -> Iterator[Check]:
    content = text.texts.get(code, "")
    if len(words(content)) < FEWEST_WORDS:
        return
    grade = reading_grade([content], code)
    if grade is not None and grade >= most + ABOVE_LIMIT:
        message = _(
            "“%(text)s” is hard to read (grade %(grade)s or so). Divide it into"
            " shorter sentences, or use shorter words."
        ) % {"text": shortened(content), "grade": min(round(grade), HIGHEST_GRADE)}
        yield hint("hard_text", message, text.item, code)
