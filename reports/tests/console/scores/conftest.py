"""A survey with measures in three languages, and two waves with scores."""

from __future__ import annotations

from copy import deepcopy

import pytest

from reports.rates.rollup import roll_up
from reports.releases.apply_suppression import hide_small_groups
from reports.releases.rollup import roll_up_results
from reports.scores.scoring import score_administration
from reports.tests.scores.conftest import (  # noqa: F401
    closed,
    shared_staff,
    simulated,
    staff,
    take_part,
)
from survey.instrument.definitions.publishing import publish_survey
from survey.instrument.xlsform import import_survey, read_xlsform
from survey.models import Respondent
from survey.tests.conftest import empty_caches  # noqa: F401
from survey.tests.workbooks import workbook

ENGLISH, SPANISH = "label::English (en)", "label::Spanish (es)"
ARABIC = "label::Arabic (ar)"
MEASURES = [
    [
        *("type", "name", ENGLISH, SPANISH, ARABIC),
        *("essential", "direction", "items", "missing"),
    ],
    ["essential", "safe", "Safe school", "Escuela segura", "مدرسة آمنة", *[""] * 4],
    [
        *("measure", "trust", "Trust", "Confianza", "الثقة"),
        *("safe", "", "q1 q2 -q3 q4", "dk"),
    ],
    [
        *("measure", "noise", "Noise", "Ruido", "الضوضاء"),
        *("safe", "negative", "q5 q6 q7", "dk"),
    ],
]


def published_in_three_languages(name="climate"):
    rows = [["type", "name", ENGLISH, SPANISH, ARABIC, "appearance"]]
    for page, items in (("one", range(1, 5)), ("two", range(5, 8))):
        rows.append(["begin group", page, "", "", "", "field-list"])
        rows += [
            [
                "select_one agree",
                f"q{n}",
                f"Question <{n}>",
                f"Pregunta <{n}>",
                f"سؤال <{n}>",
                "",
            ]
            for n in items
        ]
        rows.append(["end group", "", "", "", "", ""])
    choices = [["list_name", "name", ENGLISH, SPANISH, ARABIC]]
    choices += [
        ["agree", str(n), f"Level {n}", f"Nivel {n}", f"مستوى {n}"] for n in range(1, 5)
    ]
    choices.append(["agree", "dk", "I don't know", "No sé", "لا أعرف"])
    content = workbook(
        {
            "survey": rows,
            "choices": choices,
            "measures": MEASURES,
            "settings": [
                ["form_title", "form_id", "version", "default_language"],
                ["School climate", name, "1", "English (en)"],
            ],
        }
    )
    reading = read_xlsform(content)
    assert reading.draft, [str(problem) for problem in reading.problems]
    return publish_survey(
        survey=import_survey(draft=reading.draft, source=content, district=None)
    )


def answered(administration, school, people, seed, finished=None, **options):
    """Enrol people who answer; all have finished unless a number is given."""
    answers = simulated(people, seed, **options)
    respondents = take_part(administration, school, answers, completed_at=None)
    keys = [person.pk for person in respondents[:finished]]
    finishers = Respondent.objects.filter(pk__in=keys)
    finishers.update(completed_at=administration.opens_at)


def scored(administration):
    roll_up()
    roll_up_results(administration)
    hide_small_groups(administration)
    score_administration(administration)
    return administration


def create_fall(staff):  # noqa: F811
    """Washington has answers, and too few who finished for a report."""
    administration = closed(published_in_three_languages(), "fall-2026")
    answered(administration, staff.lincoln, 60, 1, shift=0.5)
    answered(administration, staff.washington, 40, 2, finished=15)
    answered(administration, staff.roosevelt, 40, 3, shift=-0.5)
    return scored(administration)


@pytest.fixture(scope="module")
def shared_fall(shared_staff):  # noqa: F811
    return create_fall(shared_staff)


@pytest.fixture
def fall(shared_fall):
    return deepcopy(shared_fall)


@pytest.fixture
def survey(fall):
    return fall.published


@pytest.fixture
def new_survey(db):
    """Publish another survey, which has no earlier wave."""
    return published_in_three_languages("new")
