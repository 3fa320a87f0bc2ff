"""Languages are recognised by code, English name and own name."""

from __future__ import annotations

import pytest

from survey.instrument.xlsform import languages
from survey.instrument.xlsform.languages import language_of
from survey.tests.workbooks import draft_items, places, read


@pytest.mark.parametrize(
    ("token", "code"),
    [
        ("Español (es)", "es"),
        ("es", "es"),
        ("pt_br", "pt-BR"),
        ("Spanish", "es"),
        ("español", "es"),
        ("Chinese", "zh"),
        ("中文", "zh"),
        ("Simplified Chinese", "zh-Hans"),
        ("Chinese (Simplified)", "zh-Hans"),
        ("Brazilian Portuguese", "pt-BR"),
        ("Hmong", "hmn"),
        ("Haitian Creole", "ht"),
        ("kreyòl ayisyen", "ht"),
        ("Tiếng Việt", "vi"),
        ("العربية", "ar"),
        # A name of three letters, and a code that has no name.
        ("Lao", "lo"),
        ("zzz", "zzz"),
    ],
)
def test_language_is_recognised(token, code):
    assert language_of(token).code == code


@pytest.mark.parametrize("token", ["Elvish", "", "()", "nobody speaks this"])
def test_unknown_language_is_none(token):
    assert language_of(token) is None


def test_own_names_are_read_only_if_nothing_else_fits(monkeypatch):
    monkeypatch.setattr(languages, "own_names", None)
    assert language_of("Spanish").code == "es"
    assert language_of("Chinese").code == "zh"


def test_columns_may_name_languages_without_codes():
    rows = [
        ["type", "name", "label::English", "label::Chinese", "label::Español"],
        ["text", "a", "A?", "甲?", "¿A?"],
    ]
    reading = read(rows)
    assert draft_items(reading)["a"].label == {"en": "A?", "zh": "甲?", "es": "¿A?"}


def test_column_in_an_unknown_language_is_ignored_with_a_warning():
    rows = [
        ["type", "name", "label::English", "label::Elvish"],
        ["text", "a", "A?", "Mae?"],
    ]
    reading = read(rows)
    assert draft_items(reading)["a"].label == {"en": "A?"}
    (warning,) = [row for row in reading.warnings if row.column == "label::Elvish"]
    assert (warning.sheet, warning.row, warning.text) == ("survey", 1, "Elvish")
    assert "column is ignored" in warning.reason


def test_only_texts_in_an_unknown_language_become_the_default_language():
    rows = [["type", "name", "label::Elvish"], ["text", "a", "Mae?"]]
    reading = read(rows)
    assert draft_items(reading)["a"].label == {"en": "Mae?"}
    assert ("survey", 1, "label::Elvish") in places(reading.warnings)


def test_unknown_default_language_gives_a_warning():
    settings = [["form_id", "version", "default_language"], ["f", "1", "Elvish"]]
    rows = [["type", "name", "label::Spanish"], ["text", "a", "¿A?"]]
    reading = read(rows, settings=settings)
    assert reading.draft.languages[0]["code"] == "es"
    assert ("settings", 2, "default_language") in places(reading.warnings)
