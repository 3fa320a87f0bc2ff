"""Hints about wording, in English and Spanish; good wording has none."""

from __future__ import annotations

import pytest

from survey.instrument.drafts.checks.double_barrelled import (
    english_joined_ideas,
    spanish_joined_ideas,
)
from survey.instrument.drafts.checks.wording import denies_twice, leading_words
from survey.tests.drafts.drafts import kinds


def test_wording_is_looked_at_in_both_languages():
    row = [
        *("select_one agree", "q1"),
        "Teachers are fair and helpful.",
        "¿No crees que los maestros son justos y amables?",
    ]
    assert kinds(row) == [
        ("double_barrelled", "q1", "en"),
        ("negative_statement", "q1", "es"),
        ("leading", "q1", "es"),
        ("double_barrelled", "q1", "es"),
    ]


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("en", "I do not feel unsafe at school."),
        ("en", "Teachers never ignore students who don't understand."),
        ("en", "It isn’t impossible to get help."),
        ("en", "Should the school not forbid phones?"),
        ("es", "No me siento inseguro en la escuela."),
        ("es", "No puedo aprender sin ayuda."),
        ("es-MX", "No es imposible recibir ayuda."),
    ],
)
def test_two_negatives(code, text):
    assert denies_twice(text, code)


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("en", "I do not feel safe at school."),
        ("en", "The rules are unfair."),
        ("en", "Do you know whether or not there is no longer a nurse?"),
        ("en", "No more than one answer is not sure."),
        ("en", "This is not a test. No one sees your name."),
        # In Spanish these are one negation.
        ("es", "No tengo nada que hacer en el recreo."),
        ("es", "Nunca me ayuda nadie."),
        ("es", "No solo aprendo en clase."),
        # Other languages are not read.
        ("de", "Ich bin nicht unzufrieden, no no."),
    ],
)
def test_one_negative_or_none(code, text):
    assert not denies_twice(text, code)


def test_a_negative_statement_is_hard_to_disagree_with():
    text = "I am not bored in class.", "Estoy atento en clase."
    assert kinds(["select_one agree", "q1", *text]) == [
        ("negative_statement", "q1", "en")
    ]
    assert kinds(["select_one yes_no", "q1", *text]) == []
    # Only a part of it is negative.
    text = "I know who to ask when I do not feel well.", "Sé a quién preguntar."
    assert kinds(["select_one agree", "q1", *text]) == []


@pytest.mark.parametrize(
    ("code", "text", "words"),
    [
        ("en", "Don't you think lunch is too short?", "Don't you"),
        ("en", "Do you agree that homework helps?", "Do you agree that"),
        ("en", "Most people think the rules are fair. Do you?", "Most people think"),
        ("en", "How wonderful is your teacher?", "How wonderful"),
        ("es", "¿No cree usted que hay mucha tarea?", "No cree usted que"),
        ("es", "La escuela es segura, ¿verdad?", "verdad?"),
        ("es", "¿Está de acuerdo en que la tarea ayuda?", "Está de acuerdo en que"),
    ],
)
def test_leading_words(code, text, words):
    assert leading_words(text, code) == words


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("en", "How much do you agree with each statement?"),
        ("en", "Teachers explain things clearly."),
        ("en", "I don't like lunch."),
        ("en", "How well do you sleep?"),
        ("es", "¿Qué tan de acuerdo está con cada afirmación?"),
        ("es", "Los maestros dicen la verdad."),
        ("es", "No creo que haya mucha tarea."),
    ],
)
def test_neutral_words(code, text):
    assert not leading_words(text, code)


@pytest.mark.parametrize(
    "text",
    [
        "The rules are clear and fair.",
        "My school is safe, and clean.",
        "Teachers and administrators listen to me.",
        "My teachers know me and believe in me.",
        "Adults help and support me.",
        "I like my school and I feel safe there.",
    ],
)
def test_two_ideas_in_english(text):
    assert english_joined_ideas(text) in text
    assert english_joined_ideas(text)


@pytest.mark.parametrize(
    "text",
    [
        "Teachers and students treat each other with respect.",
        "Families and staff make plans for a child together.",
        "I feel safe on the way to school and back.",
        "How easy or difficult is your homework?",
        "What do you use for paper and pencil work?",
        "Do you take music, dance or theater?",
        "I can ask for help if I am sick or get lost.",
        "Since the school year began, have you needed an interpreter or a translation?",
        "How good is the school (its lessons and its staff or parents)?",
    ],
)
def test_one_idea_in_english(text):
    assert english_joined_ideas(text) == ""


@pytest.mark.parametrize(
    "text",
    [
        "Las reglas son claras y justas.",
        "Los maestros y los directores me escuchan.",
        "Los adultos me escuchan y me ayudan.",
        "Mis maestros explican bien y tienen paciencia.",
        "La escuela es segura e interesante.",
    ],
)
def test_two_ideas_in_spanish(text):
    assert spanish_joined_ideas(text) in text
    assert spanish_joined_ideas(text)


@pytest.mark.parametrize(
    "text",
    [
        "¿Le ayudó un maestro o una maestra?",
        "Mi hijo o hija se siente a gusto.",
        "Los maestros y los estudiantes se respetan entre sí.",
        "¿Qué tan fácil o difícil es tu tarea?",
        "El camino de ida y vuelta es seguro.",
        "Las familias y el personal planean juntos.",
        "Tengo lápices y libros.",
    ],
)
def test_one_idea_in_spanish(text):
    assert spanish_joined_ideas(text) == ""


def test_people_who_mark_several_answers_can_be_asked_two_things():
    text = "What is clear and fair?", "¿Qué es claro?"
    assert kinds(["select_one yes_no", "q1", *text]) == [
        ("double_barrelled", "q1", "en")
    ]
    assert kinds(["select_multiple yes_no", "q1", *text]) == []
