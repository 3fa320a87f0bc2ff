"""Say what a change led to: what is selected then, and which rules it touches."""

from __future__ import annotations

from dataclasses import dataclass, field

from django.utils.translation import gettext as _

from survey.console.surveys.editor.fields import Address, Fields
from survey.console.surveys.editor.rules import EditorRuleForm
from survey.instrument.drafts.commands import (
    dependents_of,
    groups_around,
    keys_of,
    kind_of,
    span_of,
)
from survey.instrument.drafts.store import load_book
from survey.instrument.drafts.workbook import DraftBook
from survey.models import DraftChange, Survey

# Rows that have no settings.
UNSELECTABLE = frozenset(("end", "metadata"))


@dataclass(slots=True)
class Outcome:
    """What to show after a change: the selected row, the field, and a message."""

    at: str
    focus: str = ""
    message: str = ""
    # Of questions that read what was deleted or moved: (key, text).
    readers: list[tuple[str, str]] = field(default_factory=list)
    readers_reason: str = ""
    offers_undo: bool = False
    # Forms of rules as they were filled in, and whether all of them are stored.
    rules: dict[str, EditorRuleForm] = field(default_factory=dict)
    has_unsaved_rule: bool = False
    rule_state: str = ""


def readers_of(book: DraftBook, names: list[str]) -> list[tuple[str, str]]:
    sheet = book.sheet("survey")
    fields = Fields(book)
    code = fields.languages[0].code
    by_name = {sheet.value(row, "name"): row for row in sheet.rows}
    return [
        (
            by_name[name].key,
            fields.read(Address("survey", by_name[name].key, "label", code)) or name,
        )
        for name in names
        if name in by_name
    ]


def group_of(book: DraftBook, key: str) -> str:
    groups = groups_around(book.sheet("survey"), key)
    return groups[-1].key if groups else ""


def say_moved(book: DraftBook, key: str, before: str, outcome: Outcome) -> None:
    """Say where a row is now: in a group with a rule, or before what reads it."""
    outcome.message = _("Moved.")
    sheet = book.sheet("survey")
    after = group_of(book, key)
    if after and after != before and sheet.value(sheet.row(after), "relevant"):
        fields = Fields(book)
        code = fields.languages[0].code
        label = fields.read(Address("survey", after, "label", code))
        outcome.message = _(
            "Moved into “%(group)s”, whose rule now decides as well who sees it."
        ) % {"group": label or sheet.value(sheet.row(after), "name")}
        outcome.offers_undo = True
    warn_of_order(book, key, outcome)


def warn_of_order(book: DraftBook, key: str, outcome: Outcome) -> None:
    """Name the questions that read what was moved, and now come before it."""
    sheet = book.sheet("survey")
    span = span_of(sheet, key)
    keys = keys_of(sheet, span)
    names = {sheet.value(sheet.row(row), "name") for row in keys} - {""}
    if not names:
        return
    places = {row.key: place for place, row in enumerate(sheet.rows)}
    readers = readers_of(book, dependents_of(book, names))
    outcome.readers = [row for row in readers if places[row[0]] < span.start]
    if outcome.readers:
        outcome.offers_undo = True
        outcome.readers_reason = _(
            "These questions now come before it, and read its answer in their rules or "
            "texts. Nobody has given it by then:"
        )


def row_after_undo(survey: Survey, change: DraftChange, at: str) -> str:
    """Return the selected row, or the nearest one above it if it is gone."""
    sheet = load_book(survey).sheet("survey")
    selectable = {
        row.key: kind_of(sheet, row) not in UNSELECTABLE for row in sheet.rows
    }
    above: dict[str, str] = {}
    for operation in change.operations:
        if operation["sheet"] == "survey" and operation["op"] in ("insert", "delete"):
            above |= {key: operation["after"] for key, _cells in operation["rows"]}
    while at in above and at not in selectable:
        at = above.pop(at)
    places = [*selectable]
    place = places.index(at) if at in selectable else -1
    while place >= 0 and not selectable[places[place]]:
        place -= 1
    return places[place] if place >= 0 else ""
