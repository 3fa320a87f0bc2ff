"""Change single options of a list, each a row of the choices sheet."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from django.conf import settings
from django.utils.translation import gettext as _
from django.utils.translation import override

from survey.instrument.drafts.commands import CommandRefused, languages_of, text_column
from survey.instrument.drafts.names import free_name, name_from_text
from survey.instrument.drafts.option_problems import is_blank
from survey.instrument.drafts.workbook import DraftBook, Row, Sheet
from survey.instrument.xlsform.choices import MAX_OPTIONS
from survey.instrument.xlsform.languages import Language


def options_of(book: DraftBook, option_set: str) -> list[Row]:
    choices = book.sheet("choices")
    return [row for row in choices.rows if choices.value(row, "list") == option_set]


def add_options(
    book: DraftBook,
    option_set: str,
    *,
    after: str = "",
    labels: Sequence[Sequence[str]] = (("",),),
    languages: Sequence[Language],
) -> list[str]:
    """Add options below the row `after`, or at the end of the list; return their keys.

    `labels` has the texts of each option in the order of the languages. Raises
    CommandRefused if the list would be too long.
    """
    choices = book.sheet("choices")
    rows = options_of(book, option_set)
    if len(rows) + len(labels) > MAX_OPTIONS:
        raise CommandRefused(
            _("A list has at most %(most)s options.") % {"most": f"{MAX_OPTIONS:,}"}
        )
    listed, valued = choices.column("list"), choices.column("name")
    columns = [text_column(book, choices, "label", row) for row in languages]
    values = [row.cells.get(valued, "") for row in rows]
    made = []
    for texts in labels:
        value = next_value(values, texts[0])
        values.append(value)
        made.append(
            {
                listed: option_set,
                valued: value,
                **dict(zip(columns, texts, strict=False)),
            }
        )
    if not after:
        last = rows[-1] if rows else choices.rows[-1] if choices.rows else None
        after = last.key if last else ""
    return book.insert(choices, after, made)


def next_value(values: Sequence[str], label: str) -> str:
    """Return the value of a new option: a number, if the others are numbers."""
    numbers = [int(value) for value in values if value.isascii() and value.isdecimal()]
    if len(numbers) == len(values):
        return str(max(numbers, default=0) + 1)
    return free_name(name_from_text(label) or "option", values)


def move_option(book: DraftBook, key: str, step: int) -> bool:
    """Move an option up (-1) or down (1) in its list; return whether it could."""
    choices = book.sheet("choices")
    rows = options_of(book, choices.value(choices.row(key), "list"))
    keys = [row.key for row in rows]
    place = keys.index(key)
    if not 0 <= place + step < len(keys):
        return False
    if step > 0:
        book.move(choices, [key], keys[place + 1])
    else:
        book.move(choices, [keys[place - 1]], key)
    return True


def place_option(book: DraftBook, key: str, after: str) -> None:
    """Move an option below another one of its list; "" is the top of the list."""
    choices = book.sheet("choices")
    rows = options_of(book, choices.value(choices.row(key), "list"))
    if not after:
        place = choices.index(rows[0].key)
        after = choices.rows[place - 1].key if place else ""
    if after != key:
        book.move(choices, [key], after)


def paste_options(
    book: DraftBook,
    key: str,
    lines: Sequence[Sequence[str]],
    *,
    languages: Sequence[Language],
    replaces: bool = False,
) -> list[str]:
    """Write the first pasted line into an option, and the others into new ones.

    `lines` have a text for each language. Options that nobody has written yet make
    room for them. If it `replaces`, or `lines` are translations, they are written
    over the options below instead. Raises CommandRefused for more translations than
    options.
    """
    choices = book.sheet("choices")
    option_set = choices.value(choices.row(key), "list")
    keys = [row.key for row in options_of(book, option_set)]
    below = keys[keys.index(key) :]
    if is_translation(book, languages):
        refuse_more_lines(len(lines), len(below))
    elif not replaces:
        below = below[:1]
    for row, texts in zip(below, lines, strict=False):
        write_labels(book, choices, row, texts, languages)
    rest = lines[len(below) :]
    written = below[: len(lines)] or [key]
    if not rest:
        return written
    unwritten = [
        row.key for row in options_of(book, option_set) if is_unwritten(book, row)
    ]
    book.delete(choices, [row for row in unwritten if row not in written])
    return add_options(
        book, option_set, after=written[-1], labels=rest, languages=languages
    )


def is_translation(book: DraftBook, languages: Sequence[Language]) -> bool:
    return languages[0].code != languages_of(book)[0].code


def refuse_more_lines(lines: int, rows: int) -> None:
    """Refuse translations of what is not there: no new row would have an original."""
    if lines > rows:
        raise CommandRefused(
            _(
                "You pasted %(lines)s translations, but from here there are only"
                " %(rows)s texts to translate. Nothing was changed."
            )
            % {"lines": lines, "rows": rows}
        )


def write_labels(
    book: DraftBook,
    sheet: Sheet,
    key: str,
    texts: Sequence[str],
    languages: Sequence[Language],
) -> None:
    """Write the texts of a row, in the order of the languages."""
    columns = [text_column(book, sheet, "label", language) for language in languages]
    book.set_cells(sheet, key, dict(zip(columns, texts, strict=False)))


def is_unwritten(book: DraftBook, option: Row) -> bool:
    """Return whether an added option has no text but the one that it began with."""
    choices = book.sheet("choices")
    if is_blank(choices, option):
        return True
    columns = [choices.column_or_none("label", row) for row in languages_of(book)]
    columns.append(choices.column_or_none("label"))
    texts = {option.cells.get(number or 0, "") for number in columns} - {""}
    value = choices.value(option, "name")
    return len(texts) == 1 and texts <= first_labels(value)


@lru_cache(maxsize=1000)
def first_labels(value: str) -> frozenset[str]:
    """Return the text that a new option begins with, in each language."""
    labels = set()
    for code, _name in settings.LANGUAGES:
        with override(code):
            labels.add(_("Option %(n)s") % {"n": value})
    return frozenset(labels)
