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


def test_parts_without_a_place_in_a_workbook_are_in_the_report():
    rule = {"DisplayLogic": logic({"LogicType": "DeviceType", "Description": "Mobile"})}
    scale = {"1": {"Display": "Bad", **rule}, "2": {"Display": "Good"}}
    questions = [
        qsf_question(
            "QID1",
            "likely",
            "MC",
            "NPS",
            "How likely?",
            Choices=choices("0", "10"),
            ColumnLabels=[{"Display": "Not at all"}, {"Display": "Extremely"}],
            ChoiceGroups={"cg_1": {"GroupLabel": "High", "ChoiceGroupOrder": ["2"]}},
            SearchSource={"AllowFreeResponse": "false"},
            NextChoiceId=3,
        ),
        qsf_question(
            "QID2",
            "mood",
            "Matrix",
            "Likert",
            "How do you feel?",
            SubSelector="SingleAnswer",
            Choices=choices("At home"),
            Answers=scale,
            DefaultChoices={"1": {"2": {"Selected": True}}},
        ),
    ]
    result = Result(qsf(questions))
    (likely,) = result.lines("likely")
    assert likely.reason == (
        "options are not in groups: High;"
        " not taken over: ColumnLabels (Not at all, Extremely)"
    )
    (mood,) = result.lines("mood")
    assert mood.reason == "not taken over: DefaultChoices"
    (line,) = result.lines("mood", "rule")
    assert (line.text, line.reason) == ("1: Mobile", "a rule of one option")


def test_rules_of_fields_and_cells_are_taken_over():
    number = {
        "Settings": {
            "Type": "ContentType",
            "ContentType": "ValidNumber",
            "ValidNumber": {"Min": "0", "NumDecimals": "0"},
        }
    }
    field = {"Display": "Cats", "DisplayLogic": logic(selected("QID1", "1"))}
    questions = [
        qsf_question("QID1", "pet", "MC", "SAVR", "Pet?", Choices=choices("a", "b")),
        qsf_question("QID2", "many", "TE", "FORM", "How many?", Choices={"1": field}),
        qsf_question(
            "QID3",
            "costs",
            "Matrix",
            "TE",
            "Costs?",
            Choices={"1": field},
            Answers=choices("Food"),
            Validation=number,
        ),
    ]
    result = Result(qsf(questions))
    assert result.row("many_1")["relevant"] == "${pet} = '1'"
    cell = result.row("costs_1_1")
    assert (cell["type"], cell["constraint"]) == ("integer", ". >= 0")
    assert cell["relevant"] == "${pet} = '1'"


def test_columns_side_by_side_keep_their_rules_and_translations():
    question = qsf_question(
        "QID1",
        "pets",
        "SBS",
        "SBSMatrix",
        "Your pets",
        Choices=choices("Cat"),
        AdditionalQuestions={
            "1": {
                "QuestionType": "Matrix",
                "Selector": "Likert",
                "SubSelector": "SingleAnswer",
                "QuestionText": "Do you like it?",
                "Answers": choices("Yes", "No"),
                "Validation": {"Settings": {"ForceResponse": "ON", "Type": "None"}},
            }
        },
        Language={
            "ES": {
                "QuestionText": "Sus mascotas",
                "Choices": {"1": {"Display": "Gato"}},
                "AdditionalQuestions": {
                    "1": {"QuestionText": "¿Le gusta?", "Answers": choices("Sí", "No")}
                },
            }
        },
    )
    result = Result(qsf([question]))
    row = result.row("pets_1_1")
    assert (row["label::español (es)"], row["required"]) == ("Gato", "yes")
    (grid,) = [b for page in result.draft.pages for b in page.blocks if b.is_grid]
    assert "¿Le gusta?" in str(grid)
    rows = result.converted.sheets["choices"]
    assert [row["label::español (es)"] for row in rows] == ["Sí", "No"]
