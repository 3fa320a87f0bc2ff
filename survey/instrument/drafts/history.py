"""Say in an author's words what each change of a draft did."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from survey.instrument.drafts.store import REDO, RESTORE, UNDO
from survey.instrument.drafts.workbook import (
    HEADER_ROW,
    MARKS,
    DraftBook,
    Operation,
    Row,
    Sheet,
    language_of_header,
)
from survey.instrument.xlsform.types import parse_type
from survey.models import DraftChange

# Of one change; the others are counted.
MOST_SENTENCES = 3
LONGEST_NAME_SHOWN = 80
# Longer texts are compared as a whole: word by word would take seconds.
LONGEST_COMPARED = 5_000
# With the space that follows, which alone is no difference.
WORD = re.compile(r"\w+\s*|\s+|[^\w\s]\s*")

FIELDS = {
    ("survey", "type"): gettext_lazy("Type"),
    ("survey", "name"): gettext_lazy("Variable name"),
    ("survey", "label"): gettext_lazy("Text"),
    ("survey", "hint"): gettext_lazy("Help text"),
    ("survey", "guidance"): gettext_lazy("More help"),
    ("survey", "required"): gettext_lazy("Whether it is required"),
    ("survey", "required_message"): gettext_lazy("Message if it is required"),
    ("survey", "relevant"): gettext_lazy("When it is shown"),
    ("survey", "constraint"): gettext_lazy("Valid answers"),
    ("survey", "constraint_message"): gettext_lazy("Message if it is not valid"),
    ("survey", "calculation"): gettext_lazy("Calculation"),
    ("survey", "choice_filter"): gettext_lazy("Which options are shown"),
    ("survey", "appearance"): gettext_lazy("Appearance"),
    ("survey", "default"): gettext_lazy("Default answer"),
    ("survey", "read_only"): gettext_lazy("Whether it can be changed"),
    ("survey", "parameters"): gettext_lazy("Order and scale"),
    ("choices", "label"): gettext_lazy("Text of the option"),
    ("choices", "name"): gettext_lazy("Value of the option"),
    ("choices", "list"): gettext_lazy("List of the option"),
    ("settings", "title"): gettext_lazy("Title"),
    ("settings", "name"): gettext_lazy("Short name"),
    ("settings", "version"): gettext_lazy("Version"),
    ("settings", "default_language"): gettext_lazy("First language"),
    ("measures", "label"): gettext_lazy("Label of the measure"),
    ("measures", "description"): gettext_lazy("Description of the measure"),
    ("measures", "items"): gettext_lazy("Questions of the measure"),
    ("measures", "essential"): gettext_lazy("Theme of the measure"),
    ("measures", "direction"): gettext_lazy("Direction of the measure"),
    ("measures", "missing"): gettext_lazy("Values that are no answer"),
}


@dataclass(frozen=True, slots=True)
class Sentence:
    """What one operation did; `difference` marks what a text has lost and gained."""

    text: str
    difference: SafeString = field(default_factory=SafeString)
    language: str = ""


def sentences_of(
    changes: Iterable[DraftChange], book: DraftBook
) -> list[tuple[DraftChange, list[Sentence]]]:
    """Return each change with what it did, in the words of its author.

    `book` has the present rows, by which rows are named; those that are gone are
    named after the change that deleted them.
    """
    changes = list(changes)
    names: dict[tuple[str, str], str] = {}
    for change in changes:
        for operation in change.operations:
            for key, cells in operation.get("rows", ()):
                row = Row(key, {int(number): text for number, text in cells.items()})
                sheet = book.sheets.get(operation["sheet"], Sheet(operation["sheet"]))
                names[operation["sheet"], key] = _name_of(sheet, row)
    for sheet in book.sheets.values():
        names |= {(sheet.name, row.key): _name_of(sheet, row) for row in sheet.rows}
    return [(change, _sentences(change, book, names)) for change in changes]


def _sentences(
    change: DraftChange, book: DraftBook, names: Mapping[tuple[str, str], str]
) -> list[Sentence]:
    if change.action == RESTORE:
        return [Sentence(_("An earlier version was restored."))]
    # Questions before their options, and nothing of the texts of what was added.
    added = {
        (operation["sheet"], key)
        for operation in change.operations
        if operation["op"] == "insert"
        for key, _cells in operation["rows"]
    }
    operations = [
        operation
        for operation in change.operations
        if (operation["sheet"], operation.get("key")) not in added
    ]
    operations.sort(key=lambda operation: operation["sheet"] != "survey")
    written = [
        sentence
        for operation in operations
        for sentence in _sentences_of_operation(operation, book, names)
    ]
    # A question and its group may be told of by several operations.
    written = list(dict.fromkeys(written))
    rest = len(written) - MOST_SENTENCES
    if rest > 0:
        words = ngettext("And %(n)s more change.", "And %(n)s more changes.", rest)
        written[MOST_SENTENCES:] = [Sentence(words % {"n": rest})]
    if not written:
        written = [Sentence(_("Marked a translation as up to date."))]
    if change.action in (UNDO, REDO):
        words = _("Undone:") if change.action == UNDO else _("Done again:")
        written.insert(0, Sentence(words))
    return written


def _sentences_of_operation(
    operation: Operation, book: DraftBook, names: Mapping[tuple[str, str], str]
) -> Iterable[Sentence]:
    sheet = book.sheets.get(operation["sheet"], Sheet(operation["sheet"]))
    if operation["op"] == "cells" and operation["key"] == HEADER_ROW:
        yield from _language_sentences(operation)
        return
    if operation["op"] == "cells":
        name = names.get((sheet.name, operation["key"]), "")
        for number, now in operation["after"].items():
            if int(number) in MARKS:
                continue
            yield _cell_sentence(
                sheet, int(number), name, operation["before"].get(number, ""), now
            )
        return
    words = {
        "insert": _("Added: %(names)s"),
        "delete": _("Deleted: %(names)s"),
        "move": _("Moved: %(names)s"),
    }[operation["op"]]
    keys = operation.get("keys") or [key for key, _cells in operation["rows"]]
    shown = [name for key in keys if (name := names.get((sheet.name, key), ""))]
    listed = ", ".join(shown[:MOST_SENTENCES])
    if len(shown) > MOST_SENTENCES:
        listed = _("%(listed)s and %(n)s more") % {
            "listed": listed,
            "n": len(shown) - MOST_SENTENCES,
        }
    if listed:
        yield Sentence(words % {"names": listed})


def _language_sentences(operation: Operation) -> Iterable[Sentence]:
    if operation.get("optional"):
        return
    for number, now in operation["after"].items():
        header = now or operation["before"][number]
        if language := language_of_header(operation["sheet"], header):
            words = _("Added: %(names)s") if now else _("Deleted: %(names)s")
            yield Sentence(words % {"names": language.name})


def _cell_sentence(
    sheet: Sheet, number: int, name: str, was: str, now: str
) -> Sentence:
    column = sheet.known.known.get(number)
    header = sheet.headers.get(number, "")
    what = str(FIELDS.get((sheet.name, column.key), header)) if column else header
    text = _("%(field)s of %(name)s") % {"field": what, "name": name} if name else what
    language = column.language.code if column and column.language else ""
    return Sentence(text, marked(was, now), language)


def _name_of(sheet: Sheet, row: Row) -> str:
    """Return how people know a row: its text, or else its name; "" for an end."""
    if sheet.name == "settings":
        return ""
    if sheet.name == "survey" and parse_type(sheet.value(row, "type")).kind == "end":
        return ""
    texts = [
        row.cells[number]
        for number, column in sheet.known.known.items()
        if column.key == "label" and row.cells.get(number)
    ]
    name = (texts or [sheet.value(row, "name")])[0]
    if len(name) > LONGEST_NAME_SHOWN:
        name = f"{name[: LONGEST_NAME_SHOWN - 1]}…"
    return f"“{name}”" if name else ""


def marked(was: str, now: str) -> SafeString:
    """Return a text with <del> and <ins> around the words that went and came."""
    if not was or not now or max(len(was), len(now)) > LONGEST_COMPARED:
        return _marked_parts([("del", was), ("ins", now)])
    before, after = WORD.findall(was), WORD.findall(now)
    parts: list[tuple[str, str]] = []
    old, new = ([word.strip() for word in side] for side in (before, after))
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    for tag, start, end, new_start, new_end in matcher.get_opcodes():
        if tag == "equal":
            parts.append(("", "".join(after[new_start:new_end])))
        else:
            parts.append(("del", "".join(before[start:end])))
            parts.append(("ins", "".join(after[new_start:new_end])))
    return _marked_parts(parts)


def _marked_parts(parts: Iterable[tuple[str, str]]) -> SafeString:
    return format_html_join(
        "",
        "{}",
        (
            (format_html("<{0}>{1}</{0}>", SafeString(tag), text) if tag else text,)
            for tag, text in parts
            if text
        ),
    )
