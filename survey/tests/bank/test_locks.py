"""Questions of the state go into drafts locked, or as copies to adapt."""

from __future__ import annotations

import pytest
from django.db import IntegrityError, transaction

from accounts.models import User
from survey.instrument.bank import locks
from survey.instrument.bank.inserting import (
    insert_questions,
    restore_question,
    unlock_question,
)
from survey.instrument.bank.questions import add_questions, add_version
from survey.instrument.definitions.publishing import NotPublishable
from survey.instrument.drafts import commands, option_rows, renames, store
from survey.instrument.drafts.drafting import exported_workbook, publish_draft
from survey.instrument.drafts.reading import read_rows_of
from survey.instrument.drafts.store import load_book, restore, undo
from survey.instrument.xlsform import import_survey, read_xlsform
from survey.instrument.xlsform.languages import ENGLISH, Language
from survey.models import BankQuestion, BankQuestionUse
from survey.tests.bank.bank import (
    CHOICES,
    HEADER,
    OTHERS,
    OWN,
    SAFE,
    bank,
    change,
    key_of,
    refused,
    row_of,
    survey_of,
)
from survey.tests.workbooks import places

pytestmark = pytest.mark.django_db
SPANISH = Language("es", "Español")
LOCKED = "safe is a question of the state and locked, with its options."


@pytest.fixture
def by():
    return User.objects.create(email="author@example.org")


@pytest.fixture
def question(by):
    return bank(by, "safe")[0]


@pytest.fixture
def draft(by, question):
    draft = survey_of(OWN, choices=OTHERS)
    after = key_of(draft, "first")
    insert(draft, question, by, after=after)
    return draft


def insert(draft, question, by, *, after="", is_locked=True):
    return change(
        draft,
        lambda book: insert_questions(
            book, [question], after=after, is_locked=is_locked
        ),
        by,
    )


def labelled(key, text, language=ENGLISH, sheet="survey"):
    return lambda book: commands.set_text(
        book, sheet, key, field="label", language=language, text=text
    )


def option_keys(draft, name="safe"):
    book = load_book(draft)
    survey = book.sheet("survey")
    type_ = survey.value(survey.row(key_of(draft, name)), "type")
    return [row.key for row in option_rows.options_of(book, type_.split()[1])]


def changes_of(draft):
    """Return commands that change what is locked, by what they change."""
    key = key_of(draft, "safe")
    option = option_keys(draft)[0]
    return {
        "text": labelled(key, "I am safe."),
        "hint": lambda book: commands.set_text(
            book, "survey", key, field="hint", language=ENGLISH, text="Today"
        ),
        "name": lambda book: renames.rename(book, key, "secure"),
        "type": lambda book: commands.set_kind(book, key, "select_multiple"),
        "limit": lambda book: commands.set_value(
            book, "survey", key, field="constraint", text=". != '1'"
        ),
        "label of an option": labelled(option, "No", sheet="choices"),
        "value": lambda book: commands.set_value(
            book, "choices", option, field="name", text="7"
        ),
        "order": lambda book: option_rows.move_option(book, option, 1),
        "new option": lambda book: option_rows.add_options(
            book, "safe_options", labels=[["Maybe"]], languages=[ENGLISH]
        ),
        "mark": lambda book: commands.set_value(
            book, "survey", key, field="bank_question", text=""
        ),
    }


def test_a_question_is_inserted_locked_kept_and_unlocked(draft, question, by):
    row = row_of(draft, "safe")
    assert row["bank_question"] == "safe 1"
    assert row["label::English (en)"] == "I feel safe here."
    assert "Me siento seguro aquí." not in row.values()
    [use] = BankQuestionUse.objects.filter(survey=draft)
    assert use.question == question
    refusals = {
        what: refused(draft, command, by) for what, command in changes_of(draft).items()
    }
    assert {
        what for what, why in refusals.items() if not why.startswith(LOCKED)
    } == set()
    # Where it is, and when it is shown and required, may change.
    key = row["key"]
    for field, text in (("relevant", "${first} != ''"), ("required", "yes")):
        change(
            draft,
            lambda book, field=field, text=text: commands.set_value(
                book, "survey", key, field=field, text=text
            ),
            by,
        )
    change(draft, lambda book: commands.move_rows(book, key, after=""), by)
    # It is the same in a workbook that leaves and comes back.
    content = exported_workbook(draft)
    reading = read_xlsform(content, name="copy")
    assert (reading.problems, [w for w in reading.warnings if w.row == 1]) == ([], [])
    draft.delete()
    copy = import_survey(draft=reading.draft, source=content)
    assert row_of(copy, "safe")["bank_question"] == "safe 1"
    assert copy.bank_uses.get().question == question
    # Unlocked it has another name, so that no trend takes it for the state's.
    name = change(copy, lambda book: unlock_question(book, key_of(copy, "safe")), by)
    assert name == "safe_adapted"
    assert "bank_question" not in row_of(copy, name)
    change(copy, labelled(key_of(copy, name), "I feel safe in the gym."), by)
    assert not copy.bank_uses.exists()


def test_without_the_lock_locked_questions_change(draft, by, monkeypatch):
    monkeypatch.setattr(store, "refuse_changes", lambda book, before: None)
    for what, command in changes_of(draft).items():
        before = load_book(draft).sheets
        assert refused(draft, command, by) == "", what
        assert load_book(draft).sheets != before
        undo(draft, by=by)
    change(draft, labelled(key_of(draft, "safe"), "I am safe."), by)
    # The name and mark of the state's question, with another text.
    row = row_of(draft, "safe")
    assert (row["bank_question"], row["label::English (en)"]) == (
        "safe 1",
        "I am safe.",
    )


def test_translations_that_the_bank_does_not_have_can_be_added(draft, by):
    french = Language("fr", "Français")
    for token in ("French", "Español (es)"):
        change(draft, lambda book, t=token: commands.add_language(book, t), by)
    key = key_of(draft, "safe")
    languages = {row.code: row for row in commands.languages_of(load_book(draft))}
    french = languages["fr"]
    assert refused(draft, labelled(key, "Je suis en sécurité.", french), by) == ""
    assert refused(draft, labelled(key, "Je me sens bien.", french), by) == ""
    assert refused(draft, labelled(key, "Estoy bien.", SPANISH), by).startswith(LOCKED)
    assert refused(draft, labelled(key, SAFE[3], SPANISH), by) == ""


def test_a_later_language_is_taken_from_the_bank(draft, question, by):
    change(draft, lambda book: commands.add_language(book, "Español (es)"), by)
    key, before = key_of(draft, "safe"), row_of(draft, "safe")["type"]
    change(draft, lambda book: restore_question(book, key, question), by)
    row = row_of(draft, "safe")
    assert (row["label::Español (es)"], row["type"]) == (SAFE[3], before)
    choices = load_book(draft).sheet("choices")
    number = choices.column_or_none("label", SPANISH)
    labels = [choices.row(option).cells[number] for option in option_keys(draft)]
    assert labels == ["En desacuerdo", "De acuerdo"]


def test_a_workbook_that_differs_is_not_published(question, by):
    header = [*HEADER[:4], "bank_question"]
    rows = [header, [*SAFE[:2], "I am safe.", SAFE[3], "safe 1"]]
    choices = [*CHOICES[:2], ["agree", "2", "Yes", "De acuerdo"]]
    draft = survey_of(rows, choices=choices)
    problems = read_rows_of(draft).problems
    assert places(problems) == [
        ("survey", 2, "label::English (en)"),
        ("choices", 3, "label::English (en)"),
    ]
    assert problems[0].text == "I am safe."
    assert problems[0].reason == (
        "differs from the state’s question safe 1: restore or unlock it"
    )
    with pytest.raises(NotPublishable, match="2 problems"):
        publish_draft(survey=draft, by=by)
    # What differs already may be changed further, and nothing else.
    key = key_of(draft, "safe")
    assert refused(draft, labelled(key, "I feel safe."), by) == ""
    assert refused(draft, labelled(key, "Bien", SPANISH), by).startswith(LOCKED)
    change(draft, lambda book: restore_question(book, key, question), by)
    assert read_rows_of(draft).problems == []
    assert row_of(draft, "safe")["label::English (en)"] == "I feel safe here."
    publish_draft(survey=draft, by=by)


def test_without_the_report_a_workbook_that_differs_is_published(
    question, by, monkeypatch
):
    monkeypatch.setattr(locks, "differences", lambda book, contents: [])
    rows = [[*HEADER[:4], "bank_question"], [*SAFE[:2], "I am safe.", "", "safe 1"]]
    draft = survey_of(rows)
    publish_draft(survey=draft, by=by)
    assert draft.items.get().label["en"] == "I am safe."


def test_an_unknown_mark_locks_nothing(by):
    rows = [[*HEADER[:4], "bank_question"], [*SAFE, "secret 9"], ["text", "b", "B"]]
    draft = survey_of(rows)
    reading = read_rows_of(draft)
    assert reading.problems == []
    [warning] = [row for row in reading.warnings if row.column == "bank_question"]
    assert (warning.row, warning.text) == (2, "secret 9")
    assert refused(draft, labelled(key_of(draft, "safe"), "Safe?"), by) == ""


@pytest.mark.parametrize("mark", ["safe", "safe x", "safe 99999999999", "safe ١", " 1"])
def test_marks_that_name_no_version(question, by, mark):
    rows = [[*HEADER[:4], "bank_question"], [*SAFE, mark]]
    draft = survey_of(rows)
    assert refused(draft, labelled(key_of(draft, "safe"), "Safe?"), by) == ""


def test_a_mark_needs_what_the_bank_has(question, by):
    rows = [HEADER, [*SAFE[:2], "I am safe.", SAFE[3]]]
    draft = survey_of(rows)
    mark = lambda book: commands.set_value(  # noqa: E731
        book, "survey", key_of(draft, "safe"), field="bank_question", text="safe 1"
    )
    assert refused(draft, mark, by).startswith(LOCKED)


def test_undo_brings_no_changed_text_under_the_mark(draft, by):
    colleague = User.objects.create(email="colleague@example.org")
    name = change(draft, lambda book: unlock_question(book, key_of(draft, "safe")), by)
    change(draft, labelled(key_of(draft, name), "In the gym?"), colleague)
    with pytest.raises(locks.QuestionIsLocked):
        undo(draft, by=by)
    undo(draft, by=colleague)
    undo(draft, by=by)
    assert row_of(draft, "safe")["bank_question"] == "safe 1"
    restore(draft, 0, by=by)
    assert not draft.bank_uses.exists()


def test_a_duplicate_is_a_copy(draft, by):
    key = key_of(draft, "safe")
    change(draft, lambda book: commands.duplicate_rows(book, key), by)
    assert "bank_question" not in row_of(draft, "safe_2")
    # The options are those of the locked one as well.
    option = option_keys(draft, "safe_2")[0]
    assert refused(draft, labelled(option, "No", sheet="choices"), by)
    change(draft, lambda b: commands.copy_option_set(b, key_of(draft, "safe_2")), by)
    option = option_keys(draft, "safe_2")[0]
    assert refused(draft, labelled(option, "No", sheet="choices"), by) == ""


def test_an_equal_list_is_used_and_a_name_is_needed(draft, question, by):
    [afraid] = [
        BankQuestion.objects.create(
            code="afraid", version=1, content=question.content | {"name": "afraid"}
        )
    ]
    insert(draft, afraid, by, after=key_of(draft, "safe"))
    assert row_of(draft, "afraid")["type"] == row_of(draft, "safe")["type"]
    assert "has a question with the name safe" in refused(
        draft,
        lambda book: insert_questions(book, [question], after="", is_locked=True),
        by,
    )
    insert(draft, question, by, is_locked=False)
    assert "bank_question" not in row_of(draft, "safe_2")


def test_questions_join_their_measure(by):
    questions = bank(by, "safe", "afraid", "calm", "age")
    draft = survey_of(OWN, choices=OTHERS)

    def insert_all(rows):
        return lambda book: insert_questions(book, rows, after="", is_locked=True)

    def measures():
        sheet = load_book(draft).sheet("measures")
        return [(sheet.value(r, "name"), sheet.value(r, "items")) for r in sheet.rows]

    # Two are too few for a measure.
    change(draft, insert_all([*questions[:2], questions[3]]), by)
    assert measures() == []
    assert read_rows_of(draft).problems == []
    change(draft, insert_all(questions[2:3]), by)
    assert measures() == [("climate", ""), ("safety", "calm safe -afraid")]
    assert read_rows_of(draft).problems == []


def test_statements_of_a_grid_are_a_grid_again(by):
    rows = [
        HEADER + ["appearance"],
        ["begin_group", "grid", "How true is it?", "¿Es cierto?", None, "table-list"],
        SAFE,
        ["select_one agree", "afraid", "I am afraid here.", "Tengo miedo aquí."],
        ["end_group"],
        ["select_one agree", "calm", "It is calm here.", "Hay calma aquí."],
    ]
    state = survey_of(rows, "state")
    names = {name: name for name in ("safe", "afraid", "calm")}
    questions = add_questions(survey=state, names=names, by=by)
    draft = survey_of(OWN, choices=OTHERS)
    after = key_of(draft, "first")
    change(
        draft,
        lambda book: insert_questions(book, questions, after=after, is_locked=True),
        by,
    )
    reading = read_rows_of(draft)
    assert reading.problems == []
    _start, grid, single = reading.draft.pages[0].blocks
    assert [item.name for item in grid.items] == ["safe", "afraid"] and grid.is_grid
    assert grid.label == {"en": "How true is it?"} and not single.is_grid


def test_a_survey_in_a_language_that_the_bank_lacks(question, by):
    rows = [["type", "name", "label::Français (fr)"], ["text", "nom", "Votre nom ?"]]
    choices = [["list_name", "name", "label::Français (fr)"], ["a", "1", "Oui"]]
    draft = survey_of(rows, choices=choices, language="fr")
    command = lambda book: insert_questions(  # noqa: E731
        book, [question], after="", is_locked=True
    )
    assert "has no text in Français" in refused(draft, command, by)


def test_a_later_version_takes_the_place_of_the_earlier_one(draft, question, by):
    content = question.content | {
        "texts": question.content["texts"] | {"label": {"en": "I feel safe at school."}}
    }
    later = add_version(question=question, content=content, by=by)
    assert read_rows_of(draft).problems == []
    key = key_of(draft, "safe")
    change(draft, lambda book: restore_question(book, key, later), by)
    row = row_of(draft, "safe")
    assert (row["bank_question"], row["label::English (en)"]) == (
        "safe 2",
        "I feel safe at school.",
    )
    assert draft.bank_uses.get().question == later
    with pytest.raises(commands.CommandRefused, match="version 2"):
        add_version(question=question, content=content, by=by)


@pytest.mark.parametrize(
    "row",
    [
        {"code": "safe", "version": 1},
        {"code": "with blank", "version": 1},
        {"code": "zero", "version": 0},
    ],
)
def test_the_database_refuses_versions(question, row):
    with pytest.raises(IntegrityError), transaction.atomic():
        BankQuestion.objects.create(content=question.content, **row)
