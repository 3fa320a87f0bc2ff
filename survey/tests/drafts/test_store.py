"""Changes of drafts: each is stored, undone, and compared cell by cell."""

from __future__ import annotations

import random
from typing import Any

import pytest
from django.db import transaction
from pyxform.errors import PyXFormError

from accounts.models import User
from survey.instrument.definitions.publishing import NotPublishable
from survey.instrument.drafts import commands, reading
from survey.instrument.drafts.differences import make_equal
from survey.instrument.drafts.drafting import publish_draft, refresh_rows
from survey.instrument.drafts.reading import read_rows_of
from survey.instrument.drafts.store import (
    GAP,
    AlreadyDone,
    _positions,
    book_at,
    change_draft,
    load_book,
    redo,
    restore,
    undo,
)
from survey.instrument.drafts.workbook import (
    ChangeConflict,
    DraftBook,
    Row,
    Sheet,
    inverse,
)
from survey.instrument.xlsform import import_survey, pyxform_check, read_xlsform
from survey.instrument.xlsform.languages import ENGLISH, Language
from survey.models import DraftChange, DraftRow, DraftSheet, Survey
from survey.tests.workbooks import form

SURVEY = [
    ["type", "name", "label", "hint", "relevant", "notes of ours"],
    ["begin_group", "belonging", "Belonging", None, None, None],
    ["select_one agree", "safe", "I feel safe here.", None, None, "keep me"],
    ["text", "why", "Why not?", "One line", "${safe} = '1'", None],
    ["end_group"],
    ["begin_group", "pets_page", "Pets"],
    ["select_multiple pets", "pets", "Which pets do you have?"],
    ["end_group"],
]


@pytest.fixture
def author(db: None) -> User:
    return User.objects.create(email="author@example.org")


@pytest.fixture
def colleague(db: None) -> User:
    return User.objects.create(email="colleague@example.org")


@pytest.fixture
def draft(db: None) -> Survey:
    content = form(SURVEY)
    workbook = read_xlsform(content)
    assert workbook.draft, workbook.problems
    return import_survey(draft=workbook.draft, source=content)


def state(book: DraftBook) -> dict[str, Any]:
    return {
        name: [(row.key, row.cells) for row in sheet.rows]
        for name, sheet in book.sheets.items()
        if sheet.rows
    }


def key_of(survey: Survey, name: str) -> str:
    sheet = load_book(survey).sheet("survey")
    return next(row.key for row in sheet.rows if sheet.value(row, "name") == name)


def set_label(survey: Survey, key: str, text: str, by: User) -> None:
    change_draft(
        survey,
        lambda book: commands.set_text(
            book, "survey", key, field="label", language=ENGLISH, text=text
        ),
        action="set_text",
        by=by,
    )
    survey.refresh_from_db()


def start(survey: Survey, by: User) -> None:
    """Store the rows of the workbook, by a first change."""
    change_draft(
        survey,
        lambda book: commands.set_setting(book, field="style", text="pages"),
        action="set_setting",
        by=by,
    )
    survey.refresh_from_db()


def test_a_draft_is_edited_and_published(draft: Survey, author: User) -> None:
    start(draft, author)
    safe = key_of(draft, "safe")
    set_label(draft, safe, "I feel safe at school.", author)
    key = change_draft(
        draft,
        lambda book: commands.add_question(book, after=safe, kind="text"),
        action="add_question",
        by=author,
    )
    draft.refresh_from_db()
    assert [p.reason for p in read_rows_of(draft).problems_by_key[key]] == [
        "the question has no label"
    ]
    set_label(draft, key, "Tell us more.", author)
    published = publish_draft(survey=draft, by=author)
    items = list(draft.items.values_list("name", "label__en"))
    assert items[:2] == [
        ("safe", "I feel safe at school."),
        ("question", "Tell us more."),
    ]
    assert published.survey_id == draft.pk
    with pytest.raises(ChangeConflict):
        set_label(draft, key, "Too late.", author)


def test_undo_and_redo_lead_back_and_forth(draft: Survey, author: User) -> None:
    start(draft, author)
    before = state(load_book(draft))
    safe, pets = key_of(draft, "safe"), key_of(draft, "pets_page")
    for action, command in {
        "delete": lambda book: commands.delete_rows(book, safe),
        "duplicate": lambda book: commands.duplicate_rows(book, pets),
        "move": lambda book: commands.move_rows(book, pets, after=""),
        "options": lambda book: commands.set_options(
            book, "agree", [("2", {"en": "Yes"}), ("3", {"en": "No"})]
        ),
    }.items():
        change_draft(draft, command, action=action, by=author)
        after = state(load_book(draft))
        assert after != before
        undo(draft, by=author)
        assert state(load_book(draft)) == before
        redo(draft, by=author)
        assert state(load_book(draft)) == after
        undo(draft, by=author)


def test_typing_on_is_one_step(draft: Survey, author: User) -> None:
    start(draft, author)
    safe = key_of(draft, "safe")
    for text in ("I feel", "I feel very", "I feel very safe."):
        set_label(draft, safe, text, author)
    assert DraftChange.objects.filter(survey=draft, action="set_text").count() == 1
    undo(draft, by=author)
    sheet = load_book(draft).sheet("survey")
    assert sheet.row(safe).cells[3] == "I feel safe here."


def test_a_change_of_somebody_else_is_not_undone(
    draft: Survey, author: User, colleague: User
) -> None:
    start(draft, author)
    safe = key_of(draft, "safe")
    set_label(draft, safe, "I feel safe.", author)
    set_label(draft, safe, "I am safe.", colleague)
    with pytest.raises(ChangeConflict, match="changed"):
        undo(draft, by=author)
    assert load_book(draft).sheet("survey").row(safe).cells[3] == "I am safe."


def test_an_earlier_state_is_restored_and_that_is_undone(
    draft: Survey, author: User
) -> None:
    start(draft, author)
    versions = {draft.last_change: state(load_book(draft))}
    rng = random.Random(7)
    for step in range(60):
        random_step(draft, author, rng, step)
        draft.refresh_from_db()
        versions[draft.last_change] = state(load_book(draft))
    for number, content in versions.items():
        assert state(book_at(draft, number)) == content
    for number in rng.sample([*versions], 5):
        restore(draft, number, by=author)
        assert state(load_book(draft)) == versions[number]
        undo(draft, by=author)
        assert state(load_book(draft)) == versions[max(versions)]


def random_step(survey: Survey, by: User, rng: random.Random, step: int) -> None:
    sheet = load_book(survey).sheet("survey")
    rows = [row.key for row in sheet.rows if commands.kind_of(sheet, row) != "end"]
    key, target = rng.choice(rows), rng.choice(rows)

    def command(book: DraftBook) -> None:
        match rng.randrange(6):
            case 0 if len(rows) > 6:
                commands.delete_rows(book, key)
            case 1:
                commands.add_question(book, after=key, kind="select_one")
            case 2:
                commands.duplicate_rows(book, key)
            case 3:
                commands.add_page(book, after=key)
            case 4:
                try:
                    commands.move_rows(book, key, after=target)
                except commands.CommandRefused:
                    return
            case _:
                commands.set_text(
                    book,
                    "survey",
                    key,
                    field="label",
                    language=ENGLISH,
                    text=f"Text {step}",
                )

    change_draft(survey, command, action="random", by=by)


def test_few_rows_get_a_new_position(draft: Survey, author: User) -> None:
    start(draft, author)
    before = dict(DraftRow.objects.values_list("key", "position"))
    change_draft(
        draft,
        lambda book: commands.move_rows(book, key_of(draft, "pets_page"), after=""),
        action="move",
        by=author,
    )
    after = dict(DraftRow.objects.values_list("key", "position"))
    assert sum(before[key] != position for key, position in after.items()) == 3


def test_positions_are_numbered_anew_where_a_gap_is_full() -> None:
    assert _positions([1, None, 2]) == [GAP, 2 * GAP, 3 * GAP]
    assert _positions([GAP, None, 2 * GAP]) == [GAP, GAP + GAP // 2, 2 * GAP]
    assert _positions([5, 9, 3, None]) == [5, 9, 9 + GAP, 9 + 2 * GAP]


def test_pages_read_the_rows_of_an_edited_draft(draft: Survey, author: User) -> None:
    start(draft, author)
    set_label(draft, key_of(draft, "why"), "Why?", author)
    refresh_rows(draft)
    assert draft.items.get(name="why").label == {"en": "Why?"}
    assert draft.items.count() == 3


def test_a_problem_that_only_pyxform_finds_keeps_a_draft_from_being_published(
    draft: Survey, author: User, monkeypatch: Any
) -> None:
    """The editor reads a draft without pyxform, which takes a third of the time."""
    start(draft, author)

    def refuse(*args: object, **kwargs: object) -> None:
        raise PyXFormError("[row : 2] It looks odd.")

    monkeypatch.setattr(pyxform_check, "workbook_to_json", refuse)
    quick = read_rows_of(draft, with_pyxform=False)
    assert quick.draft and not quick.problems
    [problem] = read_rows_of(draft).problems
    assert problem.reason == "It looks odd."
    with pytest.raises(NotPublishable, match="It looks odd."):
        publish_draft(survey=draft, by=author)
    draft.refresh_from_db()
    assert draft.published_at is None
    # Without the check, nothing stops it.
    monkeypatch.setattr(pyxform_check, "workbook_to_json", lambda *_, **__: None)
    publish_draft(survey=draft, by=author)


class Interrupted(Exception):
    pass


def test_rows_that_are_rolled_back_are_not_published(
    draft: Survey, author: User, colleague: User
) -> None:
    start(draft, author)
    safe = key_of(draft, "safe")
    with pytest.raises(Interrupted), transaction.atomic():
        set_label(draft, safe, "Never stored.", author)
        # As the form of measures does, which shows the draft after its change.
        refresh_rows(draft)
        read_rows_of(draft)
        raise Interrupted
    draft.refresh_from_db()
    set_label(draft, safe, "Stored.", colleague)
    assert "Never stored." not in str(read_rows_of(draft).definition)
    published = publish_draft(survey=draft, by=colleague)
    assert "Stored." in published.definition
    assert "Never stored." not in published.definition


def test_a_reading_of_stored_rows_is_kept_in_memory(
    draft: Survey,
    author: User,
    django_capture_on_commit_callbacks: Any,
    django_assert_num_queries: Any,
) -> None:
    start(draft, author)
    with django_capture_on_commit_callbacks(execute=True):
        first = read_rows_of(draft)
    with django_assert_num_queries(0):
        assert read_rows_of(draft) is first
    reading._in_memory.clear()
    with django_assert_num_queries(2):
        assert read_rows_of(draft) is not first


FRENCH = Language("fr", "français")


def codes(survey: Survey) -> list[str]:
    return [row.code for row in commands.languages_of(load_book(survey))]


def add_french(survey: Survey, by: User) -> None:
    change_draft(
        survey,
        lambda book: commands.add_language(book, "fr"),
        action="language",
        by=by,
    )


def translate(survey: Survey, key: str, field: str, text: str, by: User) -> None:
    change_draft(
        survey,
        lambda book: commands.set_text(
            book, "survey", key, field=field, language=FRENCH, text=text
        ),
        action="set_text",
        by=by,
    )


def test_a_state_is_restored_by_what_differs_from_it(
    draft: Survey, author: User, colleague: User
) -> None:
    start(draft, author)
    first = draft.last_change
    safe, why = key_of(draft, "safe"), key_of(draft, "why")
    for number in range(5):
        set_label(draft, safe, f"{number}?", author)
        set_label(draft, why, f"{number}!", colleague)
    last = draft.last_change
    for number in (first, last, first, last, first):
        restore(draft, number, by=author)
        change = DraftChange.objects.filter(survey=draft)[0]
        assert len(change.operations) == 2
    restore(draft, first, by=author)
    assert DraftChange.objects.filter(survey=draft)[0] == change


def test_rows_that_moved_together_are_moved_back_together() -> None:
    def book(keys: str) -> DraftBook:
        rows = [Row(key, {1: key}) for key in keys]
        return DraftBook({"survey": Sheet("survey", ["type"], rows)})

    for before, after, operations in (
        ("abcdef", "efabcd", ["move"]),
        ("abcdef", "abxyzcdef", ["insert"]),
        ("abcdef", "af", ["delete"]),
        ("abcdef", "fedcba", ["move"] * 5),
        ("", "ab", ["insert"]),
    ):
        changed, goal = book(before), book(after)
        make_equal(changed, goal)
        assert state(changed) == state(goal)
        assert [row["op"] for row in changed.operations] == operations
        for operation in inverse(changed.operations):
            changed.do(operation)
        assert state(changed) == state(book(before))


def test_what_was_not_seen_is_not_restored_away(
    draft: Survey, author: User, colleague: User
) -> None:
    start(draft, author)
    seen = str(draft.last_change)
    set_label(draft, key_of(draft, "why"), "Why?", colleague)
    for shown in (seen, ""):
        with pytest.raises(ChangeConflict, match="while this page was open"):
            restore(draft, 0, by=author, seen=shown)
    restore(draft, 0, by=author, seen=str(draft.last_change))


def test_an_added_language_is_undone_with_all_its_columns(
    draft: Survey, author: User
) -> None:
    start(draft, author)
    number = draft.last_change
    add_french(draft, author)
    safe = key_of(draft, "safe")
    translate(draft, safe, "hint", "Une phrase", author)
    translate(draft, safe, "hint", "Une phrase courte", author)
    assert codes(draft) == ["en", "fr"]
    draft.refresh_from_db()
    assert DraftChange.objects.filter(survey=draft).count() == 3
    undo(draft, by=author)
    undo(draft, by=author)
    assert codes(draft) == ["en"]
    redo(draft, by=author)
    redo(draft, by=author)
    assert codes(draft) == ["en", "fr"]
    sheet = load_book(draft).sheet("survey")
    hint = sheet.column_or_none("hint", FRENCH)
    assert sheet.row(safe).cells[hint] == "Une phrase courte"
    restore(draft, number, by=author)
    draft.refresh_from_db()
    assert "fr" not in str(refresh_rows(draft).draft.languages)
    undo(draft, by=author)
    assert codes(draft) == ["en", "fr"]


def test_a_language_with_texts_of_somebody_else_is_not_undone(
    draft: Survey, author: User, colleague: User
) -> None:
    start(draft, author)
    add_french(draft, author)
    safe, why = key_of(draft, "safe"), key_of(draft, "why")
    translate(draft, safe, "hint", "Une phrase", author)
    translate(draft, why, "hint", "Une ligne", colleague)
    # The column came with the author's text, and stays for that of the colleague.
    undo(draft, by=author)
    with pytest.raises(ChangeConflict):
        undo(draft, by=author)
    assert codes(draft) == ["en", "fr"]
    undo(draft, by=colleague)
    assert codes(draft) == ["en", "fr"]


def test_a_text_is_not_written_into_a_language_that_is_gone(
    draft: Survey, author: User, colleague: User
) -> None:
    start(draft, author)
    add_french(draft, author)
    safe = key_of(draft, "safe")
    translate(draft, safe, "label", "Je me sens bien.", colleague)
    set_label(draft, key_of(draft, "why"), "Why?", author)
    translate(draft, safe, "label", "", colleague)
    change_draft(
        draft,
        lambda book: commands.remove_language(book, "fr"),
        action="remove_language",
        by=author,
    )
    with pytest.raises(ChangeConflict, match="no longer has this language"):
        undo(draft, by=colleague)


def test_a_request_that_comes_twice_is_done_once(draft: Survey, author: User) -> None:
    start(draft, author)

    def add(token: str) -> None:
        change_draft(
            draft,
            lambda book: commands.add_question(book, after="", kind="text"),
            action="add",
            by=author,
            about={"token": token},
        )

    rows = len(load_book(draft).sheet("survey").rows)
    add("first")
    with pytest.raises(AlreadyDone) as repeated:
        add("first")
    assert repeated.value.change.action == "add"
    assert len(load_book(draft).sheet("survey").rows) == rows + 1
    add("second")
    undo(draft, by=author, token="third")
    with pytest.raises(AlreadyDone):
        undo(draft, by=author, token="third")
    assert len(load_book(draft).sheet("survey").rows) == rows + 1
    # Without a name, each of them counts.
    add("")
    add("")
    assert len(load_book(draft).sheet("survey").rows) == rows + 3


def test_a_step_that_cannot_be_undone_is_passed_over(
    draft: Survey, author: User, colleague: User
) -> None:
    start(draft, author)
    safe, why = key_of(draft, "safe"), key_of(draft, "why")
    set_label(draft, safe, "I am safe.", author)
    set_label(draft, why, "Why?", author)
    set_label(draft, why, "Why is that?", colleague)
    with pytest.raises(ChangeConflict, match="Undo again for the step before it"):
        undo(draft, by=author)
    undo(draft, by=author)
    sheet = load_book(draft).sheet("survey")
    assert sheet.row(safe).cells[3] == "I feel safe here."
    assert sheet.row(why).cells[3] == "Why is that?"
    set_label(draft, safe, "Am I safe?", colleague)
    with pytest.raises(ChangeConflict, match="can’t be done again"):
        redo(draft, by=author)
    assert redo(draft, by=author) is None


def test_a_command_without_effect_leaves_no_trace(draft: Survey, author: User) -> None:
    change_draft(draft, lambda book: None, action="nothing", by=author)
    change_draft(
        draft,
        lambda book: book.sheet("survey").column("hint", FRENCH),
        action="nothing",
        by=author,
    )
    assert not DraftSheet.objects.filter(survey=draft).exists()
    assert not DraftChange.objects.filter(survey=draft).exists()
    start(draft, author)
    assert DraftSheet.objects.filter(survey=draft).exists()
