"""Checks before publishing say what to look at, and where."""

from __future__ import annotations

import time

import pytest

from survey.instrument.drafts.checks import Check, Severity, check_draft
from survey.instrument.drafts.checks.answers import range_of
from survey.instrument.drafts.checks.structure import LONGEST_NOTE, MOST_ON_PAGE
from survey.instrument.drafts.checks.untranslated import MOST_LISTED
from survey.instrument.xlsform import read_xlsform
from survey.tests.drafts.drafts import CHOICES, SETTINGS, draft, kinds
from survey.tests.workbooks import workbook

BOTH = ("Do you like this school?", "¿Te gusta esta escuela?")


def test_checks_have_a_place_and_say_what_to_do():
    checks = check_draft(
        draft(
            ["select_one yes_no", "q1", "Don't you like this school?"],
            ["text", "gender", "What is your gender?", "¿Cuál es tu género?", "yes"],
        )
    )
    assert checks == [
        Check(
            "untranslated",
            Severity.PROBLEM,
            "“Don't you like this school?” has no Spanish text. Translate it.",
            "q1",
            2,
            "es",
        ),
        Check(
            "required_sensitive",
            Severity.PROBLEM,
            "“What is your gender?” is sensitive, and people must answer it. Make it"
            " optional, or add the answer “I prefer not to say”.",
            "gender",
            3,
        ),
        Check(
            "leading",
            Severity.HINT,
            "“Don't you” may lead people to one answer. Ask in a neutral way.",
            "q1",
            2,
            "en",
        ),
    ]


def test_a_survey_without_anything_to_look_at():
    assert kinds(["select_one yes_no", "q1", *BOTH]) == []


def test_a_text_that_was_left_in_the_first_language():
    text = "Do you like this school?"
    assert kinds(["text", "q1", text, text]) == [("same_as_original", "q1", "es")]
    # Words that two languages share.
    assert kinds(["text", "q1", "Internet", "Internet"]) == []


def test_headings_options_and_measures_are_translated_too():
    choices = [["subject", 1, "Math", ""], ["subject", 2, "Art", "Arte"]]
    rows = [
        ["begin_group", "p", "About you", ""],
        ["select_one subject", "q1", "Which do you like?", "¿Cuál te gusta?"],
        ["end_group", "p"],
    ]
    checks = check_draft(draft(*rows, choices=choices))
    assert [check.message for check in checks] == [
        "“About you” has no Spanish text. Translate it.",
        "“Math” has no Spanish text. Translate it.",
    ]
    assert {check.item for check in checks} == {"q1"}


AGREE_LAST = [
    ["how_true", 1, "Very true", "Muy cierto"],
    ["how_true", 2, "A little true", "Un poco cierto"],
    ["how_true", 3, "Not true", "Nada cierto"],
]


def grid(option_set, *names, group="g"):
    return [
        ["begin_group", group, "How is it?", "¿Cómo es?", "", "table-list"],
        *(
            [f"select_one {option_set}", name, f"Text {name}", f"Texto {name}"]
            for name in names
        ),
        ["end_group", group],
    ]


def grids(*rows, choices):
    header = ["type", "name", "label::English (en)", "label::Español (es)"]
    header += ["required", "appearance"]
    survey = [header, *([*row, *[""] * (6 - len(row))] for row in rows)]
    sheets = {"survey": survey, "choices": [*CHOICES, *choices], "settings": SETTINGS}
    reading = read_xlsform(workbook(sheets))
    assert reading.problems == []
    return [
        (check.kind, check.item, check.language) for check in check_draft(reading.draft)
    ]


def test_a_language_without_texts_is_reported_once():
    rows = [["text", f"q{n}", f"Why is it {n}?"] for n in range(MOST_LISTED + 1)]
    rows[0] = [*rows[0], "¿Por qué 0?"]
    assert len(kinds(*rows)) == MOST_LISTED
    rows.append(["text", "q", "What is it like?"])
    [check] = check_draft(draft(*rows))
    assert check.message == (
        "21 of 22 texts are missing in Spanish. Translate them, or remove the language."
    )
    assert (check.item, check.language) == ("", "es")


def test_scales_that_run_in_different_directions():
    agree, true = grid("agree", "a", "b", "c"), grid("how_true", "d", "e", group="h")
    assert grids(*agree, *true, choices=AGREE_LAST) == [("mixed_directions", "d", "")]
    # One direction only, whichever it is.
    assert grids(*true, choices=AGREE_LAST) == []


def test_a_scale_whose_labels_were_swapped_in_one_language():
    swapped = [
        ["how", 1, "Never", "Siempre"],
        ["how", 2, "Sometimes", "A veces"],
        ["how", 3, "Always", "Nunca"],
    ]
    assert grids(*grid("how", "a", "b"), choices=swapped) == [
        ("direction_by_language", "a", "es")
    ]


def test_lists_without_an_order_have_no_direction():
    places = [
        ["place", "x", "A good place", "Un buen lugar"],
        ["place", "y", "A bad place", "Un mal lugar"],
    ]
    rows = grid("agree", "a", "b"), ["select_one place", "q", *BOTH]
    assert grids(*rows[0], rows[1], choices=places) == []


@pytest.mark.parametrize(
    ("labels", "overlap"),
    [
        (("0-5", "5-10"), True),
        (("Less than 5", "5 to 10", "10 or more"), True),
        (("5-9 hours", "10-19 hours", "15 or more hours"), True),
        (("$10,000 to $20,000", "$20,000 to $30,000"), True),
        (("1–3", "2–4"), True),
        (("Less than 5", "5 to 10", "More than 10"), False),
        (("0-4", "5-9", "10+"), False),
        (("1 to 2 times a week", "1 to 2 times a month"), False),
        (("Grade 4", "Grade 5"), False),
        (("Kindergarten", "1-5", "6-8"), False),
        (("Yes", "No"), False),
    ],
)
def test_options_that_overlap(labels, overlap):
    choices = [["n", n, label, f"{label}."] for n, label in enumerate(labels)]
    row = ["select_one n", "q1", *BOTH]
    reported = [("overlapping_options", "q1", "en")] if overlap else []
    assert kinds(row, choices=choices) == reported
    # Several answers may well contain each other.
    assert kinds(["select_multiple n", "q1", *BOTH], choices=choices) == []


def test_how_a_range_is_read():
    parsed = range_of("Between 5 and 10 years")
    assert (parsed.low, parsed.high, parsed.unit) == (5, 10, "between year")
    assert range_of("10 years or more").low == 10
    assert range_of("menos de 3").high == 3
    assert range_of("I do not know") is None


DECLINE = ["gender", "no", "I prefer not to say", "Prefiero no decirlo"]
GENDERS = [["gender", "f", "Girl", "Niña"], ["gender", "m", "Boy", "Niño"]]


@pytest.mark.parametrize(
    ("name", "label", "required", "choices", "reported"),
    [
        ("q1", ("What is your gender?", "¿Tu género?"), "yes", GENDERS, True),
        ("sex", ("Are you…", "Eres…"), "yes", GENDERS, True),
        ("q1", ("Did anyone abuse you?", "¿Hubo abuso?"), "yes", GENDERS, True),
        ("q1", ("What is your gender?", "¿Tu género?"), "", GENDERS, False),
        ("q1", ("Your gender?", "¿Tu género?"), "yes", [*GENDERS, DECLINE], False),
        ("q1", ("Is the school clean?", "¿Está limpia?"), "yes", GENDERS, False),
        ("sextet", ("Do you play here?", "¿Tocas aquí?"), "yes", GENDERS, False),
    ],
)
def test_a_sensitive_question_can_be_declined(name, label, required, choices, reported):
    row = ["select_one gender", name, *label, required]
    expected = [("required_sensitive", name, "")] if reported else []
    assert kinds(row, choices=choices) == expected


def questions(count):
    return [["text", f"q{n}", f"Question {n}", f"Pregunta {n}"] for n in range(count)]


def page(*rows):
    return [["begin_group", "p", "Page", "Página"], *rows, ["end_group", "p"]]


def test_a_page_with_many_questions():
    assert kinds(*page(*questions(MOST_ON_PAGE))) == []
    assert kinds(*page(*questions(MOST_ON_PAGE + 1))) == [("long_page", "q0", "")]


def test_texts_that_are_very_long():
    long = " ".join(["We like it."] * 14)
    assert kinds(["text", "q1", long, "¿Te gusta?"]) == [("long_text", "q1", "en")]
    # Notes may be longer.
    assert kinds(["note", "n", long, "Nota"], *questions(1)) == []
    longer = " ".join(["We like it."] * LONGEST_NOTE)
    assert kinds(["note", "n", longer, "Nota"], *questions(1)) == [
        ("long_text", "n", "en")
    ]


def test_a_question_that_is_asked_twice():
    rows = ["text", "q1", *BOTH], ["text", "q2", *BOTH]
    assert kinds(*rows) == [("repeated", "q2", "en")]
    # Numbers make a difference.
    grades = [["text", f"q{n}", f"What is grade {n} like?", f"¿{n}?"] for n in (4, 5)]
    assert kinds(*grades) == []
    # A follow-up question.
    why = "Why?", "¿Por qué?"
    assert kinds(["text", "q1", *why], ["text", "q2", *why]) == []


def test_a_name_that_spss_does_not_take():
    assert kinds(["text", "q" * 64, *BOTH]) == []
    assert kinds(["text", "q" * 65, *BOTH]) == [("long_name", "q" * 65, "")]
    # Each answer of several is a column: name_value.
    name = "q" * 62
    assert kinds(["select_multiple yes_no", name, *BOTH]) == []
    name += "q"
    assert kinds(["select_multiple yes_no", name, *BOTH]) == [("long_name", name, "")]


def test_a_question_like_those_of_a_measure_that_is_in_none():
    survey = draft(
        *(["select_one agree", f"q{n}", f"Text {n}", f"Texto {n}"] for n in range(4)),
        ["select_one yes_no", "other", *BOTH],
    )
    assert check_draft(survey) == []
    survey.measures = {
        "essentials": [],
        "measures": [
            {
                "name": "m",
                "label": {"en": "Measure", "es": "Medida"},
                "description": {},
                "essential": "",
                "direction": "positive",
                "items": [{"name": f"q{n}", "reversed": False} for n in range(3)],
                "missing": [],
            }
        ],
    }
    [check] = check_draft(survey)
    assert (check.kind, check.item) == ("no_measure", "q3")


@pytest.mark.parametrize(
    "text",
    [
        "1" * 30_000,
        "a1 " * 10_000,
        "n't" * 10_000,
        "<" * 30_000,
        '!"' * 15_000,
        "and " * 7500,
        "no " * 10_000,
    ],
)
def test_time_grows_with_a_text_and_not_with_its_square(text):
    choices = [["long", 1, text, text], ["long", 2, "2-3", "2-3"]]
    survey = draft(["select_one long", "q1", text, f"{text}."], choices=choices)
    start = time.perf_counter()
    check_draft(survey)
    assert time.perf_counter() - start < 1
