"""Rename questions and pages, with all rules, texts and measures that read them."""

from __future__ import annotations

from collections.abc import Mapping

from django.utils.translation import gettext as _

from survey.instrument.drafts.commands import CommandRefused, names_in, text_sheets
from survey.instrument.drafts.names import free_name, name_from_text, with_names
from survey.instrument.drafts.workbook import MADE_NAME, DraftBook
from survey.instrument.xlsform.measures import REVERSED
from survey.instrument.xlsform.names import why_not_a_name


def rename(book: DraftBook, key: str, name: str) -> None:
    """Give a question or page another name, also in all rules and texts.

    Raises CommandRefused for a name that cannot be used.
    """
    survey = book.sheet("survey")
    old = survey.value(survey.row(key), "name")
    if name == old:
        return
    if reason := why_not_a_name(name):
        raise CommandRefused(_("The name can’t be used: %(why)s.") % {"why": reason})
    if name in {survey.value(row, "name") for row in survey.rows}:
        raise CommandRefused(_("Another question is called %(name)s.") % {"name": name})
    for sheet in text_sheets(book):
        for row in list(sheet.rows):
            changed = {
                number: renamed
                for number, text in row.cells.items()
                if (renamed := with_names(text, {old: name})) != text
            }
            if changed:
                book.set_cells(sheet, row.key, changed)
    book.set_cells(survey, key, {survey.column("name"): name})
    _replace_in_measures(book, {old: name})


def rename_from_text(book: DraftBook, key: str, text: str) -> None:
    """Name a question after its text, unless an author has typed its name."""
    survey = book.sheet("survey")
    row = survey.row(key)
    old, made = survey.value(row, "name"), name_from_text(text)
    if made and row.cells.get(MADE_NAME) == old:
        name = free_name(made, names_in(book) - {old})
        rename(book, key, name)
        book.set_cells(survey, key, {MADE_NAME: name})


def _replace_in_measures(book: DraftBook, renamed: Mapping[str, str]) -> None:
    if "measures" not in book.sheets:
        return
    measures = book.sheets["measures"]
    for row in measures.rows:
        words = measures.value(row, "items").replace(",", " ").split()
        changed = [
            word.replace(bare, renamed[bare])
            if (bare := word.removeprefix(REVERSED)) in renamed
            else word
            for word in words
        ]
        if changed != words:
            number = measures.column("items")
            book.set_cells(measures, row.key, {number: " ".join(changed)})
