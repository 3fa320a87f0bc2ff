"""Reading levels by published formulas, and minutes by published rules of thumb."""

from __future__ import annotations

import pytest

from survey.instrument.drafts.checks import Audience, minutes_of, reading_grade
from survey.instrument.drafts.checks.reading_level import (
    Counts,
    count,
    fernandez_huerta,
    flesch_kincaid,
    spanish_grade,
)
from survey.instrument.drafts.checks.syllables import (
    english_syllables,
    spanish_syllables,
)
from survey.tests.drafts.drafts import draft, kinds

HARD = (
    "Administrators systematically communicate organizational expectations regarding"
    " instructional accountability. Considerable professional development opportunities"
    " facilitate interdisciplinary collaboration. Multidisciplinary committees"
    " periodically reevaluate institutional disciplinary recommendations. Educational"
    " psychologists individually evaluate adolescents experiencing emotional"
    " difficulties. Comprehensive intervention documentation necessitates confidential"
    " administrative authorization immediately. Superintendents continuously reconsider"
    " organizational priorities, particularly transportation. Accountability"
    " mechanisms additionally incorporate independent educational evaluations."
)
EASY = "Sí, me gusta mucho."


def test_hard_texts_are_reported_one_by_one_and_for_the_survey():
    assert kinds(["note", "n", HARD, EASY], ["text", "q", "Why?", "¿Por qué?"]) == [
        ("reading_level", "", "en"),
        ("hard_text", "n", "en"),
    ]


def test_students_are_given_easier_texts_than_adults():
    text = "Our teachers explain a subject in ways that we understand"
    rows = [["text", f"q{n}", f"{text} in grade {n}.", EASY] for n in range(6)]
    for_students = kinds(*rows, audience=Audience.STUDENTS)
    assert ("reading_level", "", "en") in for_students
    assert ("reading_level", "", "en") not in kinds(*rows)


def test_flesch_kincaid_of_a_published_example():
    """Wikipedia, Flesch-Kincaid readability tests.

    "The Australian platypus is seemingly a hybrid of a mammal and reptilian creature"
    has 13 words and 24 syllables: grade 11.3.
    """
    counts = Counts(sentences=1, words=13, syllables=24)
    assert round(flesch_kincaid(counts), 1) == 11.3


def test_sentences_words_and_syllables_of_a_text():
    text = "The rules are **fair**. Do you know ${name}'s teacher?\nAsk (or write)!"
    counts = count([text], english_syllables)
    assert counts == Counts(sentences=3, words=12, syllables=14)
    assert reading_grade([text], "en-US") == flesch_kincaid(counts)


def test_flesch_kincaid_of_microsofts_averages():
    """16.0 words a sentence, as Word counted, and reading ease 59.5: grade 8.8."""
    words = 2475
    syllables = round((206.835 - 1.015 * 16.0 - 59.5) / 84.6 * words)
    counts = Counts(sentences=round(words / 16), words=words, syllables=syllables)
    assert round(flesch_kincaid(counts), 1) == pytest.approx(8.8, abs=0.15)


def test_longer_sentences_are_harder_in_spanish():
    """The formula that is often printed says the opposite (Law 2011)."""
    short = Counts(sentences=10, words=100, syllables=200)
    long = Counts(sentences=5, words=100, syllables=200)
    assert round(fernandez_huerta(short), 2) == 76.64
    assert fernandez_huerta(long) < fernandez_huerta(short)


@pytest.mark.parametrize(
    ("syllables", "grade"), [(190, 5), (200, 6), (220, 8), (230, 12), (300, 16)]
)
def test_grades_of_fernandez_huertas_table(syllables, grade):
    counts = Counts(sentences=10, words=100, syllables=syllables)
    assert spanish_grade(counts) == grade


def test_other_languages_have_no_level():
    assert reading_grade(["Das ist ein Satz."], "de") is None
    assert reading_grade(["…"], "en") is None


ENGLISH = {
    1: "school teach learned walked called through friend rules please asked",
    2: "teacher people question table lesson every sometimes wanted classes being",
    3: "another together family important everyone understand idea several behavior",
    4: "community education everybody activity responsible",
    5: "opportunity university coordinator administrator",
}
SPANISH = {
    1: "que y muy hay ley quien",
    2: "día país leer ciudad reunión mío leyes",
    3: "escuela maestro ahora guitarra vergüenza oído ayuda familia",
    4: "responsable estudiante aéreo murciélago",
    5: "aprendizaje oportunidad",
}


@pytest.mark.parametrize(
    ("counter", "words"), [(english_syllables, ENGLISH), (spanish_syllables, SPANISH)]
)
def test_syllables_as_in_dictionaries(counter, words):
    for number, listed in words.items():
        assert {word: counter(word) for word in listed.split()} == dict.fromkeys(
            listed.split(), number
        )


def test_minutes_by_rules_of_thumb():
    questions = [
        ["select_one yes_no", f"q{n}", f"Question {n}", f"Pregunta {n}"]
        for n in range(12)
    ]
    # Twelve single questions of 10 seconds.
    assert minutes_of(draft(*questions)) == 2
    assert minutes_of(draft(*questions, ["text", "t", "Why?", "¿Por qué?"])) == 3
    assert minutes_of(draft(questions[0])) == 1


def test_recorded_times_replace_rules_of_thumb():
    survey = draft(
        ["select_one yes_no", "a", "Is it?", "¿Es?"],
        ["select_one yes_no", "b", "Is it so?", "¿Es así?"],
    )
    assert minutes_of(survey, seconds={"a": 170}) == 3
    assert minutes_of(survey, seconds={"of another survey": 500}) == 1


def test_students_read_more_slowly():
    note = ["note", "n", "word " * 300, "nota"], ["text", "q", "Why?", "¿Por qué?"]
    survey = draft(*note)
    assert minutes_of(survey, Audience.STUDENTS) > minutes_of(survey)


def test_a_long_survey_is_reported():
    questions = [["text", f"q{n}", f"Why {n}?", f"¿Por qué {n}?"] for n in range(40)]
    assert kinds(*questions) == []
    questions.append(["text", "last", "What is last?", "¿Qué es lo último?"])
    assert kinds(*questions) == [("length", "", "")]
