"""Surveys of Qualtrics."""

from __future__ import annotations

from survey.tests.foreign.converting import Result
from survey.tests.foreign.samples import (
    choices,
    logic,
    qsf,
    qsf_question,
    school_qsf,
    selected,
)


def test_survey_of_qualtrics_becomes_a_draft_and_a_report():
    result = Result(school_qsf())
    assert result.draft.title == {"en": "Pets"}
    assert [language["code"] for language in result.draft.languages] == ["en", "es"]
    pet = result.row("pet")
    assert pet["required"] == "yes" and result.options("pet") == ["1", "0"]
    assert pet["label::español (es)"] == "¿Tienes una mascota?"
    many = result.row("many")
    assert (many["type"], many["relevant"]) == ("integer", "${pet} = '1'")
    assert many["constraint"] == ". >= 0 and . <= 20"
    (grid,) = [b for page in result.draft.pages for b in page.blocks if b.is_grid]
    assert [item.name for item in grid.items] == ["mood_1", "mood_2"]
    sad = result.row("sad")
    assert sad["relevant"] == "${mood_2} = '1'"
    assert sad["label::English (en)"] == "Why sad, ${many}?"
    assert result.outcome("rank") == "refused"
    (line,) = result.lines("why", "rule")
    assert (line.outcome, line.text) == ("refused", "If mobile")


def test_branch_is_the_condition_of_its_blocks():
    questions = [
        qsf_question(
            "QID1", "pet", "MC", "MAVR", "Pets?", Choices=choices("Cat", "Dog")
        ),
        qsf_question("QID2", "cat", "TE", "SL", "The cat?"),
    ]
    block = {
        "ID": "BL_2",
        "Type": "Standard",
        "Description": "Cats",
        "BlockElements": [{"Type": "Question", "QuestionID": "QID2"}],
    }
    branch = {
        "Type": "Branch",
        "FlowID": "FL_3",
        "BranchLogic": logic(selected("QID1", "1")),
        "Flow": [
            {"Type": "Block", "ID": "BL_2"},
            {"Type": "EndSurvey", "FlowID": "FL_4"},
        ],
    }
    steps = [{"Type": "Block", "ID": "BL_1"}, branch]
    content = qsf(questions, steps, blocks=[block])
    # The second question is in both blocks, as the sample puts all in the first.
    content = content.replace(b', {"Type": "Question", "QuestionID": "QID2"}', b"", 1)
    result = Result(content)
    (cat,) = [item for item in result.draft.items() if item.name == "cat"]
    assert cat.rules["relevant"] == ["selected", ["$", "pet"], "1"]
    assert result.outcome("FL_4", "setting") == "refused"


def test_conditions_with_and_and_or_are_refused():
    mixed = logic(
        selected("QID1", "1"),
        selected("QID1", "2", Conjuction="Or"),
        selected("QID1", "2", Conjuction="And"),
    )
    either = logic(selected("QID1", "1"), selected("QID1", "2", Conjuction="Or"))
    result = Result(
        qsf(
            [
                qsf_question(
                    "QID1", "pet", "MC", "SAVR", "Pet?", Choices=choices("a", "b")
                ),
                qsf_question("QID2", "mixed", "TE", "SL", "Mixed?", DisplayLogic=mixed),
                qsf_question(
                    "QID3", "either", "TE", "SL", "Either?", DisplayLogic=either
                ),
            ]
        )
    )
    assert "relevant" not in result.row("mixed")
    assert result.outcome("mixed", "rule") == "refused"
    assert result.row("either")["relevant"] == "${pet} = '1' or ${pet} = '2'"


def test_questions_in_the_trash_are_in_the_report():
    pet = qsf_question("QID1", "pet", "TE", "SL", "Pet?")
    binned = qsf_question("QID2", "old", "TE", "SL", "Old?")
    block = {
        "ID": "BL_9",
        "Type": "Trash",
        "Description": "Trash",
        "BlockElements": [{"Type": "Question", "QuestionID": "QID2"}],
    }
    content = qsf([pet, binned], blocks=[block]).replace(
        b', {"Type": "Question", "QuestionID": "QID2"}', b"", 1
    )
    result = Result(content)
    (line,) = result.lines("old", "setting")
    assert (line.outcome, line.reason) == ("refused", "in the trash")
