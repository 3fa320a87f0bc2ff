"""Surveys of LimeSurvey: the file of the structure, and the table."""

from __future__ import annotations

import pytest

from survey.instrument.foreign.conditions import Untranslatable, Variable
from survey.instrument.foreign.limesurvey_expressions import ExpressionManager
from survey.tests.foreign.converting import Result
from survey.tests.foreign.samples import lime_question, lss, school_lss, school_tsv


def test_survey_of_limesurvey_becomes_a_draft_and_a_report():
    result = Result(school_lss())
    assert [language["code"] for language in result.draft.languages] == ["en", "es"]
    assert [page.title.get("en") for page in result.draft.pages] == [None, "Animals"]
    welcome = result.draft.pages[0].blocks[0].items[0]
    assert (welcome.kind, welcome.label["en"]) == ("note", "Hello.\n\nPlease answer.")

    pet = result.row("pet")
    assert pet["label::English (en)"] == "Do you have a pet?"
    assert pet["label::español (es)"] == "¿Tienes una mascota?"
    assert result.options(pet["type"].split()[1]) == ["A1", "A2", "other"]
    assert result.row("pet_other")["relevant"] == "selected(${pet}, 'other')"
    assert result.row("many")["relevant"] == "${pet} = 'A1'"
    assert result.row("many")["constraint"] == ". <= 20"
    assert result.row("food")["constraint"] == "count-selected(.) <= 2"
    assert result.row("hay")["relevant"] == "selected(${food}, 'HAY')"
    (grid,) = [b for page in result.draft.pages for b in page.blocks if b.is_grid]
    assert [item.name for item in grid.items] == ["mood_S1", "mood_S2"]
    assert grid.label["en"] == "How do you feel?"
    assert all(item.rules["required"] for item in grid.items)

    (line,) = result.lines("pet")
    assert (line.outcome, line.reason) == ("changed", "formatting is lost")
    assert result.outcome("many") == "taken"
    (line,) = result.lines("rank")
    assert (line.outcome, line.reason) == ("refused", "ranking is not possible here")
    (line,) = result.lines("why", "rule")
    assert (line.outcome, line.text) == ("refused", "rand(1, 2) == 1")
    assert "relevant" not in result.row("why")
    assert result.outcome("end text", "setting") == "refused"


def test_every_part_of_the_original_has_a_line():
    report = Result(school_lss()).converted.report
    places = {line.place for line in report if line.part == "question"}
    assert places >= {"pet", "many", "mood", "rank", "food", "why", "hay"}
    assert all(line.reason for line in report if line.outcome == "refused")


def test_table_of_limesurvey_becomes_the_same_survey():
    result = Result(school_tsv())
    assert result.draft.title == {"en": "Pets"}
    assert result.row("pet")["required"] == "yes"
    assert result.options("pet") == ["A1", "A2"]
    assert result.row("name")["relevant"] == "${pet} = 'A1'"


def test_texts_in_tables_of_their_own_are_read_as_in_limesurvey_6():
    question = lime_question("1", "L", "pet", "")
    for key in ("question", "language"):
        del question[key]
    result = Result(
        lss(
            surveys=[
                {"sid": "99", "language": "en", "additional_languages": "de-informal"}
            ],
            groups=[{"gid": "7", "group_order": "0"}],
            group_l10ns=[{"gid": "7", "group_name": "Animals", "language": "en"}],
            questions=[question],
            question_l10ns=[
                {"qid": "1", "question": "A pet?", "language": "en"},
                {"qid": "1", "question": "Ein Tier?", "language": "de-informal"},
            ],
            answers=[{"aid": "5", "qid": "1", "code": "A1", "scale_id": "0"}],
            answer_l10ns=[
                {"aid": "5", "answer": "Yes", "language": "en"},
                {"aid": "5", "answer": "Ja", "language": "de-informal"},
            ],
        )
    )
    (item,) = [item for item in result.draft.items() if item.name == "pet"]
    assert item.label == {"en": "A pet?", "de-informal": "Ein Tier?"}
    assert result.draft.option_sets["pet"][0].label == {
        "en": "Yes",
        "de-informal": "Ja",
    }
    names = [language["name"] for language in result.draft.languages]
    assert names == ["English", "Deutsch, informal"]


def test_old_conditions_are_joined_by_question_and_scenario():
    conditions = [
        ("2", "1", "99X7X1", "A1", "1"),
        ("2", "1", "99X7X1", "A2", "1"),
        ("2", "3", "+99X7X3HAY", "Y", "1"),
        ("2", "1", "99X7X1", " ", "2"),
    ]
    keys = ("qid", "cqid", "cfieldname", "value", "scenario")
    result = Result(
        lss(
            surveys=[{"sid": "99", "language": "en"}],
            groups=[{"gid": "7", "group_name": "Animals", "language": "en"}],
            questions=[
                lime_question("1", "L", "pet", "A pet?"),
                lime_question("3", "M", "food", "Food?"),
                lime_question("2", "S", "4", "Why?"),
            ],
            subquestions=[lime_question("31", "T", "HAY", "Hay", parent_qid="3")],
            answers=[
                {"qid": "1", "code": code, "answer": code, "language": "en"}
                for code in ("A1", "A2")
            ],
            conditions=[
                {**dict(zip(keys, row, strict=True)), "method": "=="}
                for row in conditions
            ],
        )
    )
    assert result.row("q4")["relevant"] == (
        "((${pet} = 'A1' or ${pet} = 'A2') and selected(${food}, 'HAY'))"
        " or (${pet} = '')"
    )


@pytest.fixture
def manager():
    manager = ExpressionManager()
    manager.variables = {
        "age": Variable("age", "number"),
        "weight": Variable("weight", "number"),
        "sex": Variable("sex", "one", "", {"M": "M", "F": "F"}),
        "food_HAY": Variable("food", "flag", "HAY"),
        "why": Variable("why", "text"),
        "later": Variable("later", "one", "", {"Y": "Y"}),
    }
    manager.conditional = {"later"}
    return manager


@pytest.mark.parametrize(
    ("source", "written"),
    [
        ("!is_empty(age)", "not(${age} = '')"),
        ("age.NAOK >= 18 && sex == 'M'", "${age} >= 18 and ${sex} = 'M'"),
        (
            "(sex eq 'M' or age lt 5) and why ne ''",
            "(${sex} = 'M' or ${age} < 5) and ${why} != ''",
        ),
        ("food_HAY != 'Y'", "not(selected(${food}, 'HAY'))"),
        ("age <= 0", "${age} = '' or ${age} <= 0"),
        (
            "count(food_HAY, sex) > 1",
            "(if(selected(${food}, 'HAY'), 1, 0) + if(${sex} != '', 1, 0)) > 1",
        ),
        ("later == 'Y'", "${later} = 'Y'"),
        ("later.NAOK != 'Y'", "${later} != 'Y'"),
        ("1", "true()"),
    ],
)
def test_condition_means_the_same_here(manager, source, written):
    assert manager.condition(source) == written


@pytest.mark.parametrize(
    "source",
    [
        "rand(1, 5) > 2",
        "sex == 'X'",
        "gone == 'Y'",
        "age + 1 > 5",
        # LimeSurvey takes it as false while the question is not asked.
        "later != 'Y'",
        "sex.shown == 'Male'",
        # True in LimeSurvey while both are blank.
        "age >= weight",
        "age = 5",
        "age > ",
        "(" * 100 + "age > 5" + ")" * 100,
        "!" * 3000 + "age",
    ],
)
def test_condition_that_may_mean_another_thing_is_refused(manager, source):
    with pytest.raises(Untranslatable):
        manager.condition(source)
