"""Paste lists into options and statements, and say what was left out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from survey.console.surveys.editor.fields import Address, Fields, value_of
from survey.instrument.drafts.checks.texts import shortened
from survey.instrument.drafts.commands import (
    CommandRefused,
    kind_with_list,
    names_in,
    text_column,
)
from survey.instrument.drafts.moves import siblings_of
from survey.instrument.drafts.names import free_name, made_name, name_from_text
from survey.instrument.drafts.option_rows import (
    is_translation,
    options_of,
    paste_options,
    refuse_more_lines,
    write_labels,
)
from survey.instrument.drafts.pasting import Pasted, read_pasted, repeated_texts
from survey.instrument.drafts.renames import rename_from_text
from survey.instrument.drafts.workbook import DraftBook
from survey.instrument.xlsform.languages import Language
from survey.instrument.xlsform.types import parse_type

# The survey is locked while they are stored.
MOST_STATEMENTS = 200
# Of texts that are in a list twice.
MOST_NAMED = 3


def paste_into_options(
    book: DraftBook,
    key: str,
    text: str,
    *,
    languages: Sequence[Language],
    replaces: bool = False,
) -> tuple[str, str]:
    """Write pasted lines into an option and new ones below it.

    If it `replaces`, and for translations, they are written over the options below.
    Return the field to go on in, and a message. Raises CommandRefused.
    """
    pasted = read_pasted(text, len(languages))
    made = paste_options(book, key, pasted.rows, languages=languages, replaces=replaces)
    if is_translation(book, languages):
        return _last_translation("choices", made[-1], pasted, languages)
    choices = book.sheet("choices")
    rows = options_of(book, choices.value(choices.row(key), "list"))
    number = text_column(book, choices, "label", languages[0])
    repeated = repeated_texts([[row.cells.get(number, "")] for row in rows])
    count = len(pasted.rows)
    words = ngettext(
        "%(count)s option is pasted.", "%(count)s options are pasted.", count
    )
    message = " ".join([words % {"count": count}, *_remarks(pasted, repeated)])
    return f"choices:{made[-1]}:label", message


def paste_into_grid(
    book: DraftBook, key: str, text: str, *, languages: Sequence[Language]
) -> tuple[str, str]:
    """Write pasted lines into a statement and new ones below it.

    Return the field to go on in, and a message. Raises CommandRefused.
    """
    pasted = read_pasted(text, len(languages))
    lines = pasted.rows
    if len(lines) > MOST_STATEMENTS:
        raise CommandRefused(
            _("Paste at most %(most)s statements at a time.")
            % {"most": MOST_STATEMENTS}
        )
    if not lines:
        return "", ""
    fields, sheet = Fields(book), book.sheet("survey")
    if is_translation(book, languages):
        keys = [row.key for row in siblings_of(sheet, key)[0]]
        below = keys[keys.index(key) :]
        refuse_more_lines(len(lines), len(below))
        for row_key, texts in zip(below, lines, strict=False):
            write_labels(book, sheet, row_key, texts, languages)
        return _last_translation("survey", below[len(lines) - 1], pasted, languages)
    for language, label in zip(languages, lines[0], strict=False):
        fields.write(Address("survey", key, "label", language.code), label)
    rename_from_text(book, key, lines[0][0])
    row = sheet.row(key)
    type_ = parse_type(value_of(book, row, "type"))
    name = value_of(book, row, "name")
    kind = kind_with_list(book, type_.kind, type_.option_set, name)
    typed = sheet.column("type")
    labelled = [text_column(book, sheet, "label", language) for language in languages]
    taken = names_in(book)
    rows = []
    for texts in lines[1:]:
        name = free_name(name_from_text(texts[0]) or "question", taken)
        taken.add(name)
        labels = dict(zip(labelled, texts, strict=False))
        rows.append({typed: kind, **made_name(sheet, name), **labels})
    if rows:
        key = book.insert(sheet, key, rows)[-1]
    words = ngettext(
        "%(count)s statement is pasted.", "%(count)s statements are pasted.", len(lines)
    )
    remarks = _remarks(pasted, repeated_texts(lines))
    message = " ".join([words % {"count": len(lines)}, *remarks])
    return f"survey:{key}:label", message


def _last_translation(
    sheet: str, key: str, pasted: Pasted, languages: Sequence[Language]
) -> tuple[str, str]:
    count = len(pasted.rows)
    words = ngettext(
        "%(count)s translation is pasted.", "%(count)s translations are pasted.", count
    )
    message = " ".join([words % {"count": count}, *_remarks(pasted, [])])
    return f"{sheet}:{key}:label:{languages[0].code}", message


def _remarks(pasted: Pasted, repeated: list[str]) -> Iterator[str]:
    """Say what is in a pasted list twice, and what was left out of it."""
    if repeated:
        texts = ", ".join(f"“{shortened(text)}”" for text in repeated[:MOST_NAMED])
        yield _("There twice: %(texts)s.") % {"texts": texts}
    if pasted.has_marks:
        yield _("Bullets and numbers of the list are left out.")
    if pasted.has_more_columns:
        yield _(
            "Further columns are left out. To paste a translation too, choose its"
            " language under “Beside it” first."
        )
