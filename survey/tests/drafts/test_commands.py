"""Commands change the rows of a draft and keep what they are not about."""

from __future__ import annotations

import pytest

from survey.instrument.drafts import commands, renames, store
from survey.instrument.drafts.commands import CommandRefused
from survey.instrument.drafts.reading import read_book
from survey.instrument.drafts.store import book_of_workbook, change_draft, load_book
from survey.instrument.drafts.workbook import DraftBook, LimitReached
from survey.instrument.xlsform import import_survey, read_xlsform
from survey.models import DraftSheet
from survey.tests.workbooks import AGREE, SETTINGS, form, workbook

ROWS = [
    ["type", "name", "label"],
    ["select_one agree or_other", "safe", "I feel safe here."],
    ["text", "why", "Why?"],
]


def book(**more: object) -> DraftBook:
    return book_of_workbook(form(ROWS, **more))


def type_of(changed: DraftBook, key: str) -> str:
    survey = changed.sheet("survey")
    return survey.value(survey.row(key), "type")


def codes(changed: DraftBook) -> list[str]:
    return [language.code for language in commands.languages_of(changed)]


def test_another_kind_of_select_keeps_the_option_other():
    changed = book()
    key = changed.sheet("survey").rows[0].key
    commands.set_kind(changed, key, "select_multiple")
    assert type_of(changed, key) == "select_multiple agree or_other"
    commands.set_kind(changed, key, "select_multiple", option_set="pets")
    assert type_of(changed, key) == "select_multiple pets or_other"
    commands.set_kind(changed, key, "text")
    assert type_of(changed, key) == "text"


def test_a_copy_is_named_after_its_own_text_if_the_question_was():
    rows = [*ROWS, ["text", "clear_school_rules", "Clear school rules?"]]
    changed = book_of_workbook(form(rows))
    survey = changed.sheet("survey")
    safe, _why, rules = [row.key for row in survey.rows]
    copies = [commands.duplicate_rows(changed, key) for key in (safe, rules)]
    for key in copies:
        renames.rename_from_text(changed, key, "Fair adults?")
    names = [survey.value(survey.row(key), "name") for key in copies]
    assert names == ["safe_2", "fair_adults"]


@pytest.mark.parametrize(
    "token",
    ["nb", "Hmong (hmn)", "Norsk (bokmål) (nb)", "zh-Hant-TW", f"{'x' * 75} (fr)"],
)
def test_a_language_is_added_under_the_name_that_it_is_read_by(token):
    changed = book()
    language = commands.add_language(changed, token)
    assert codes(changed) == ["en", language.code]
    survey = changed.sheet("survey")
    commands.set_text(
        changed,
        "survey",
        survey.rows[0].key,
        field="hint",
        language=language,
        text="A",
    )
    assert codes(changed) == ["en", language.code]
    assert survey.value(survey.rows[0], "hint") == ""


@pytest.mark.parametrize("token", ["a::b (fr)", f"{'x' * 76} (fr)", "::x (fr)"])
def test_a_language_is_refused_if_no_header_can_name_it(token):
    changed = book()
    with pytest.raises(CommandRefused, match="The name of a language"):
        commands.add_language(changed, token)
    assert changed.operations == []
    with pytest.raises(LimitReached):
        commands.add_language(changed, f"{'x' * 40_000} (fr)")


def test_a_language_is_added_to_a_survey_without_a_title(db):
    settings = [["form_id", "version", "default_language"], ["x", "1", "English (en)"]]
    content = form(ROWS, settings=settings)
    survey = import_survey(draft=read_xlsform(content).draft, source=content)
    change_draft(
        survey,
        lambda changed: commands.add_language(changed, "es"),
        action="language",
        by=None,
    )
    assert codes(load_book(survey)) == ["en", "es"]


@pytest.mark.filterwarnings("ignore:Title is more than 31")
def test_a_workbook_whose_sheets_have_long_titles_is_edited(db, monkeypatch):
    sheets = {"survey": ROWS, "choices": AGREE, "settings": SETTINGS}
    notes = {"n" * 260: [["first"], ["x"]], "n" * 270: [["second"], ["y"]]}
    content = workbook({**sheets, **notes})
    survey = import_survey(draft=read_xlsform(content).draft, source=content)
    key = change_draft(
        survey,
        lambda changed: commands.add_question(changed, after="", kind="text"),
        action="add",
        by=None,
    )
    stored = load_book(survey)
    assert type_of(stored, key) == "text"
    assert stored.sheets["n" * 255].columns == ["first"]
    assert stored.sheets[f"{'n' * 250} 2"].columns == ["second"]
    assert read_book(stored, name="x").draft is not None
    # The damage: a column of the table has 255 characters.
    monkeypatch.setattr(store, "LONGEST_TITLE", 300)
    longest = DraftSheet._meta.get_field("name").max_length
    assert max(map(len, book_of_workbook(content).sheets)) > longest
