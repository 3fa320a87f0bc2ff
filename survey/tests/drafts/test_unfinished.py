"""The check names options, numbers and names that an author has not finished."""

from __future__ import annotations

import pytest

from survey.instrument.drafts.checks import check_draft
from survey.instrument.drafts.limits import limits_of, message_of
from survey.tests.drafts.drafts import draft, kinds

QUESTION = ["select_one pets", "pet", "Which pet?", "¿Qué mascota?"]


def messages_of(*rows, choices=()) -> list[str]:
    return [check.message for check in check_draft(draft(*rows, choices=choices))]


def test_options_with_the_text_that_they_began_with():
    choices = [["pets", 1, "Cat", "Gato"], ["pets", 2, "Option 2", "Opción 2"]]
    assert messages_of(QUESTION, choices=choices) == [
        "“Option 2” is still the text that this answer began with. Write the answer,"
        " or delete it."
    ]
    # What an author calls so in another place is meant.
    choices = [["pets", "a", "Option 2", "Opción 2"], ["pets", "b", "B", "B"]]
    assert kinds(QUESTION, choices=choices) == []


def test_options_that_are_there_twice():
    choices = [
        ["pets", 1, "Grade 8", "8.º grado"],
        ["pets", 2, "Grade 9", "9.º grado"],
        ["pets", 3, "grade 8", "8.º grado"],
    ]
    [message] = messages_of(QUESTION, choices=choices)
    assert message == "The answer “grade 8” is there twice. Delete one."


def test_options_without_a_text():
    choices = [["pets", 1, "Cat", "Gato"], ["pets", 2, "", ""], ["pets", 3, "", ""]]
    assert kinds(QUESTION, choices=choices) == [("option_without_text", "pet", "")]
    [message] = messages_of(QUESTION, choices=choices)
    assert message.startswith("2 answers have no text, such as “2”")


def test_numbers_without_limits_and_names_that_say_nothing():
    number = ["integer", "age", "How old are you?", "¿Cuántos años tienes?"]
    assert kinds(number) == [("no_limits", "age", "")]
    unnamed = ["text", "question_2", "Why not?", "¿Por qué no?"]
    assert kinds(unnamed) == [("made_up_name", "question_2", "")]


def test_a_repeated_question_is_called_by_its_number():
    text = "Do you like this school?", "¿Te gusta esta escuela?"
    rows = [["text", "first", "Who?", "¿Quién?"]]
    rows += [["select_one yes_no", name, *text] for name in ("liked", "likes")]
    [message] = messages_of(*rows)
    assert "asked twice: question 2 has the same text" in message


@pytest.mark.parametrize(
    ("constraint", "limits"),
    [
        ("", ("", "")),
        (". >= 0 and . <= 7", ("0", "7")),
        (".<=7.5 and .>=-2", ("-2", "7.5")),
        (". >= 1", ("1", "")),
        (". > 1", None),
        (". >= 1 or . <= 7", None),
        (". >= 1 and . >= 2", None),
        (". >= ${age}", None),
    ],
)
def test_limits_are_read_from_simple_rules_only(constraint, limits):
    assert limits_of(constraint) == limits


def test_the_message_says_the_limits():
    assert message_of("0", "7", "en") == "The number must be from 0 to 7."
    assert message_of("0", "", "en-US") == "The number must be 0 or more."
    assert message_of("", "7", "en") == "The number must be 7 or less."
    assert message_of("", "", "en") == message_of("0", "7", "tlh") == ""


@pytest.mark.parametrize(
    ("text", "sign"),
    [
        ("How **often** do you read?", "**often**"),
        ("How <b>often</b> do you read?", "<b>"),
        ('<span style="color:red">How often</span>?', '<span style="color:red">'),
        ("Read __this__ first.", "__this__"),
        ("Read [our page](https://school.example.org) first.", "[our page](https"),
        ("# Your school", "#"),
    ],
)
def test_markup_that_people_would_see(text, sign):
    [message] = messages_of(["text", "read_first", text, "Lee esto."])
    assert f"is formatted with “{sign}" in message
    assert message.endswith("which people see as it is written. Take it out.")


@pytest.mark.parametrize(
    "text",
    [
        "What is 2 * 3 * 4?",
        "Use ** for a power, as in 2**3.",
        "My favorite subject is _____ .",
        "Is 3 <5 and 7> 6? I <3 it!",
        "Question #3 of [8] (all)",
        "Which name: snake__case__name?",
    ],
)
def test_signs_that_people_write_are_no_markup(text):
    assert ("markup", "read_first", "en") not in kinds(
        ["text", "read_first", text, "Lee esto."]
    )
