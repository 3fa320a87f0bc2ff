"""The measures sheet says which items together measure one idea."""

from __future__ import annotations

import pytest

from survey.instrument.xlsform import read_xlsform
from survey.tests.workbooks import SETTINGS, places, workbook

SURVEY = [
    ["type", "name", "label::English (en)", "label::Español (es)"],
    *(
        ["select_one agree", f"q{n}", f"Question {n}", f"Pregunta {n}"]
        for n in range(1, 8)
    ),
    ["select_one often", "often", "How often?", "¿Con qué frecuencia?"],
    ["text", "words", "In your words", "En sus palabras"],
]
CHOICES = [
    ["list_name", "name", "label::English (en)", "label::Español (es)"],
    *(["agree", value, f"Level {value}", f"Nivel {value}"] for value in range(1, 5)),
    ["agree", "dk", "I don't know", "No sé"],
    ["often", 1, "Never", "Nunca"],
    ["often", 2, "Often", "A menudo"],
]
HEADER = [
    *("type", "name", "label::English (en)", "label::Español (es)", "description"),
    *("essential", "direction", "items", "missing"),
]
SAFE = ["essential", "safe", "Safe school", "Escuela segura", "", "", "", "", ""]
TRUST = [
    *("measure", "trust", "Trust", "Confianza", "Between pupils and teachers."),
    *("safe", "", "q1, q2 -q3", "dk"),
]


def read_measures(*rows):
    sheets = {"survey": SURVEY, "choices": CHOICES, "settings": SETTINGS}
    return read_xlsform(workbook({**sheets, "measures": [HEADER, *rows]}))


def row(**changes):
    names = ["type", "name", "label", "es", "description"]
    names += ["essential", "direction", "items", "missing"]
    values = dict(zip(names, TRUST, strict=True)) | changes
    return [values[name] for name in names]


def test_a_measure_has_items_an_essential_and_texts_in_each_language():
    reading = read_measures(
        SAFE, TRUST, row(name="calm", items="q4 q5 q6", essential="")
    )
    assert reading.problems == []
    measures = reading.draft.measures
    assert measures["essentials"] == [
        {
            "name": "safe",
            "label": {"en": "Safe school", "es": "Escuela segura"},
            "description": {},
        }
    ]
    trust, calm = measures["measures"]
    assert trust == {
        "name": "trust",
        "label": {"en": "Trust", "es": "Confianza"},
        "description": {"en": "Between pupils and teachers."},
        "essential": "safe",
        "direction": "positive",
        "items": [
            {"name": "q1", "reversed": False},
            {"name": "q2", "reversed": False},
            {"name": "q3", "reversed": True},
        ],
        "missing": ["dk"],
    }
    assert calm["essential"] == ""


def test_a_survey_without_the_sheet_has_no_measures():
    sheets = {"survey": SURVEY, "choices": CHOICES, "settings": SETTINGS}
    reading = read_xlsform(workbook(sheets))
    assert reading.draft.measures is None


@pytest.mark.parametrize(
    ("changes", "column", "reason"),
    [
        ({"items": "q1 q2 q99"}, "items", "no item q99"),
        ({"items": "q1 q2 words"}, "items", "words does not have one answer"),
        ({"items": "q1 q2"}, "items", "at least 3 items"),
        ({"items": ""}, "items", "at least 3 items"),
        ({"items": "q1 q2 q2 q3"}, "items", "q2 is there twice"),
        ({"items": "q1 q2 often"}, "items", "different lists: agree, often"),
        ({"essential": "kind"}, "essential", "this name"),
        ({"type": "factor"}, "type", "neither measure nor essential"),
        ({"direction": "up"}, "direction", "neither positive nor negative"),
        ({"missing": "na"}, "missing", "not a value of its list"),
        ({"missing": "1 2 3 dk"}, "missing", "fewer than two answers"),
        ({"name": "my measure"}, "name", "a name begins with"),
        ({"name": "safe"}, "name", "row 2 already has this name"),
        ({"label": "", "es": ""}, "label", "has no label"),
    ],
)
def test_a_wrong_row_is_refused_with_its_place(changes, column, reason):
    reading = read_measures(SAFE, row(**changes))
    wrong = [problem for problem in reading.problems if reason in problem.reason]
    assert [place[:2] for place in places(wrong)] == [("measures", 3)], reading.problems
    assert wrong[0].column.startswith(column)
    assert reading.draft is None


def test_an_item_belongs_to_one_measure():
    reading = read_measures(SAFE, TRUST, row(name="calm", items="q4 q5 q1"))
    (problem,) = reading.problems
    assert (problem.row, problem.column) == (4, "items")
    assert "q1 belongs to the measure trust" in problem.reason


def test_an_essential_without_measures_gives_a_warning():
    reading = read_measures(SAFE, [*SAFE[:1], "empty", *SAFE[2:]], TRUST)
    assert reading.problems == []
    assert ("measures", 3, "name") in places(reading.warnings)
