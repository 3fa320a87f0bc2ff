"""What a rule of a draft may be about."""

from __future__ import annotations

from survey.console.surveys.editor.rule_form import RuleForm
from survey.instrument.drafts.conditions import expression_of, words_of
from survey.instrument.drafts.rule_sentences import sentence_of
from survey.instrument.drafts.subjects import subjects_of
from survey.tests.workbooks import read

HEAD = ["type", "name", "label", "relevant", "constraint", "choice_filter"]
CHOICES = [
    ["list_name", "name", "label", "region"],
    ["agree", 1, "Disagree", ""],
    ["agree", 2, "Agree", ""],
    ["schools", "lincoln", "Lincoln", "north"],
    ["schools", "roosevelt", "Roosevelt", "south"],
]


def draft_of(*rows):
    survey = [HEAD, *([*row, *[""] * (len(HEAD) - len(row))] for row in rows)]
    reading = read(survey, CHOICES)
    assert reading.draft, [str(problem) for problem in reading.problems]
    return reading.draft


def test_rules_of_a_workbook_are_put_into_words():
    draft = draft_of(
        ["select_one agree", "safe", "Do you feel\nsafe?"],
        ["text", "region", "Where in ${safe}?", "${safe} = 2"],
        ["select_one schools", "school", "School", "", "", "region = ${region}"],
        ["text", "why", "Why?", "", "string-length(.) >= 3 and . != ${region}"],
    )
    rules = [
        ("region", "relevant", "“Do you feel safe?” is “Agree”"),
        ("school", "choice_filter", "“region” is “Where in …?”"),
        (
            "why",
            "constraint",
            "“Why?” has at least 3 characters and “Why?” is not “Where in …?”",
        ),
    ]
    items = {item.name: item for item in draft.items()}
    for name, rule, sentence in rules:
        subjects = subjects_of(draft, rule, name)
        text = items[name].row.get(rule)
        group = words_of(text, subjects)
        assert sentence_of(group, subjects) == sentence
        assert words_of(expression_of(group, subjects), subjects) == group
        assert not RuleForm(rule, subjects, expression=text).is_code


def test_questions_that_come_later_are_not_offered():
    draft = draft_of(["text", "a", "A"], ["text", "b", "B"], ["text", "c", "C"])
    subjects = subjects_of(draft, "relevant", "b")
    assert {name: known.is_offered for name, known in subjects.items()} == {
        "a": True,
        "c": False,
    }


def test_the_columns_of_the_options_have_their_values():
    question = ["select_one schools", "school", "School", "", "", "region = 'north'"]
    draft = draft_of(question)
    subjects = subjects_of(draft, "choice_filter", "school")
    assert subjects[":region"].options == (("north", "north"), ("south", "south"))
    assert ("lincoln", "Lincoln") in subjects[":name"].options
    # A column that no filter reads yet is not in the draft.
    draft = draft_of(question[:3])
    subjects = subjects_of(draft, "choice_filter", "school")
    assert ":region" not in subjects
    columns = {"region": ["north", "south"]}
    subjects = subjects_of(draft, "choice_filter", "school", columns=columns)
    assert subjects[":region"].options == (("north", "north"), ("south", "south"))


def test_a_question_whose_name_other_groups_use_is_read_by_its_path_alone():
    """`${first_age}` is its name here, which the workbook does not have."""
    draft = draft_of(
        ["begin group", "first", "First"],
        ["integer", "age", "Age"],
        ["text", "q", "Q", "../age > 5"],
        ["end group", ""],
        ["begin group", "second", "Second"],
        ["integer", "age", "Age"],
        ["end group", ""],
    )
    assert {item.name for item in draft.items()} == {"first_age", "q", "second_age"}
    subjects = subjects_of(draft, "relevant", "q")
    assert subjects == {}
    form = RuleForm("relevant", subjects, expression="../age > 5")
    assert form.is_code


def test_long_labels_are_cut():
    draft = draft_of(["text", "a", "word " * 100], ["text", "b", "B"])
    assert len(subjects_of(draft, "relevant", "b")["a"].label) == 80
