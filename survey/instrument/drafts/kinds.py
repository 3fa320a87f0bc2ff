"""Give a question back what it had when it was of an earlier type.

Choosing a type from a menu by keys passes the types between, each of which is stored.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from survey.instrument.definitions.schema import SELECTS
from survey.instrument.drafts.option_rows import options_of
from survey.instrument.drafts.workbook import DraftBook, Operation
from survey.instrument.xlsform.types import parse_type
from survey.models import DraftChange

# The cells that a type has a say in.
COLUMNS = ("type", "appearance", "parameters")


def restore_kind(
    book: DraftBook, changes: Iterable[DraftChange], key: str, kind: str
) -> bool:
    """Write the cells and options that a row had when it was last of this type.

    `changes` are those of the draft, the last one first. Returns whether there was
    such a time, and its options are as they were.
    """
    survey = book.sheet("survey")
    typed = str(survey.column("type"))
    now = parse_type(survey.value(survey.row(key), "type"))
    has_its_own = now.option_set if kind in SELECTS else now.kind == kind
    if has_its_own or kind not in (*SELECTS, "range"):
        return False
    for change in changes:
        before: dict[str, str] = {}
        for operation in _cells_of(change, key):
            before = {**operation["before"], **before}
        cell = parse_type(before.get(typed, ""))
        if cell.kind != kind:
            continue
        if cell.option_set and not options_of(book, cell.option_set):
            _insert_again(book, change, cell.option_set)
        if cell.option_set and not options_of(book, cell.option_set):
            return False
        numbers = [survey.column_or_none(name) for name in COLUMNS]
        cells = {n: before[str(n)] for n in numbers if n and str(n) in before}
        book.set_cells(survey, key, cells)
        return True
    return False


def _cells_of(change: DraftChange, key: str) -> Iterator[Operation]:
    for operation in change.operations:
        if operation["sheet"] == "survey" and operation.get("key") == key:
            yield operation


def _insert_again(book: DraftBook, change: DraftChange, option_set: str) -> None:
    """Insert the options that the change deleted with the last question of a list."""
    choices = book.sheet("choices")
    listed = str(choices.column("list"))
    rows = [
        {int(number): text for number, text in cells.items()}
        for operation in reversed(change.operations)
        if operation["sheet"] == "choices" and operation["op"] == "delete"
        for _key, cells in operation["rows"]
        if cells.get(listed) == option_set
    ]
    last = choices.rows[-1].key if choices.rows else ""
    book.insert(choices, last, rows)
