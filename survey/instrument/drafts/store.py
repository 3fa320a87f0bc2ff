"""Store the sheets of a draft, its changes and their history.

Each change is one transaction under a lock of the survey's row, so that changes of
two people follow each other. What another person has changed meanwhile is compared
cell by cell: a change that meets it raises ChangeConflict, and stores nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from datetime import timedelta
from typing import NamedTuple, TypeVar

from django.db import IntegrityError, transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts.models import User
from survey.instrument.bank.content import MARK, marks_in
from survey.instrument.bank.locks import locked_rows, refuse_changes
from survey.instrument.bank.uses import record_uses
from survey.instrument.definitions.measures import measures_of
from survey.instrument.definitions.publishing import (
    NotPublishable,
    compile_definition,
)
from survey.instrument.drafts.collector import paused_collector
from survey.instrument.drafts.commands import CommandRefused, delete_deserted_lists
from survey.instrument.drafts.differences import longest_rising, make_equal
from survey.instrument.drafts.exporting import book_of_definition, measures_sheet
from survey.instrument.drafts.workbook import (
    FIRST_ROW,
    ChangeConflict,
    DraftBook,
    Operation,
    Row,
    Sheet,
    cleaned,
    first_key,
    inverse,
)
from survey.instrument.xlsform.columns import (
    SheetColumns,
    SurveyRow,
    formatted,
    read_columns,
)
from survey.instrument.xlsform.problems import Findings
from survey.instrument.xlsform.reading import LONGEST_SETTING
from survey.instrument.xlsform.workbook import (
    MAX_TEXT,
    SHEETS,
    SurveySheet,
    read_workbook,
)
from survey.models import DraftChange, DraftRow, DraftSheet, Survey

# Between the positions of two rows, so that 16 rows are inserted at one place
# before others are moved.
GAP = 2**16
# Typing goes on in one cell: one step of *Undo*.
TYPING = timedelta(seconds=60)
LONGEST_TITLE = 255
RESTORE = "restore"
UNDO = "undo"
REDO = "redo"

Result = TypeVar("Result")


class AlreadyDone(Exception):
    """A request came twice: `change` is what it did when it came first."""

    def __init__(self, change: DraftChange) -> None:
        super().__init__(change.number)
        self.change = change


class DraftIsPublished(ChangeConflict):
    """A published survey never changes."""


class NameIsTaken(CommandRefused):
    """The owner has a survey of this name and version; the message says so."""

    def __init__(self, name: str, version: str) -> None:
        super().__init__(
            _("There is a survey %(name)s, version %(version)s, already.")
            % {"name": name, "version": version}
        )


# Read --------------------------------------------------------------------------------


def load_book(survey: Survey) -> DraftBook:
    """Return the sheets of a draft or published survey. 2 statements.

    A survey that nobody has edited here has no rows: its workbook is read, or its
    definition where texts were corrected without one. They come from the server that
    told the number of its last change: a replica may be behind.
    """
    server = survey._state.db
    sheets = list(survey.draft_sheets.using(server).order_by("pk"))
    if not sheets:
        return book_of_source(survey)
    by_sheet: dict[int, list[Row]] = {sheet.pk: [] for sheet in sheets}
    known = DraftRow.objects.using(server).filter(sheet__in=sheets)
    rows = known.order_by("position", "pk")
    for sheet_id, key, cells in rows.values_list("sheet_id", "key", "cells"):
        numbered = {int(number): text for number, text in cells.items()}
        by_sheet[sheet_id].append(Row(key, numbered))
    return DraftBook(
        {
            sheet.name: Sheet(sheet.name, sheet.columns, by_sheet[sheet.pk])
            for sheet in sheets
        }
    )


def book_of_source(survey: Survey) -> DraftBook:
    """Read the workbook that a survey was uploaded as, or write it if there is none."""
    source = Survey.objects.values_list("source", flat=True).get(pk=survey.pk)
    measures = measures_of(survey)
    if source is not None:
        book = book_of_workbook(bytes(source))
        if measures and measures.get("changed_here"):
            sheet = measures_sheet(measures, survey.languages)
            book.sheets[sheet.name] = sheet
        return book
    try:
        return book_of_definition(compile_definition(survey), measures)
    except NotPublishable:
        return DraftBook()


def book_of_workbook(content: bytes) -> DraftBook:
    """Read all sheets of a workbook, also those that are no part of an XLSForm."""
    sheets: dict[str, SurveySheet] = {}
    for title, sheet in read_workbook(content, Findings(), keep_notes=True).items():
        sheet.name = _free_title(title, sheets)
        sheets[sheet.name] = sheet
    return DraftBook({name: _sheet_of(sheet) for name, sheet in sheets.items()})


def _free_title(title: str, taken: Collection[str]) -> str:
    """Cut a title to the longest that is stored. Excel has 31 characters at most."""
    cut = title[:LONGEST_TITLE]
    return next(
        free
        for n in range(1, len(taken) + 2)
        if (free := cut if n == 1 else f"{cut[: LONGEST_TITLE - 5]} {n}") not in taken
    )


def _sheet_of(sheet: SurveySheet) -> Sheet:
    last = max(
        [0, *sheet.headers, *(n for cells in sheet.rows.values() for n in cells)]
    )
    columns = [sheet.headers.get(number, "") for number in range(1, last + 1)]
    known = SheetColumns()
    if sheet.name in SHEETS:
        known = read_columns(SurveySheet(sheet.name, sheet.headers), Findings())
    for (number, place), code in sheet.formats.items():
        if column := known.known.get(place):
            row, cells = SurveyRow(sheet.name, number, known), sheet.rows[number]
            cells[place] = formatted(row, column, cells[place], code, Findings())
    # What is no text or value, such as #REF!, in a column that nothing reads.
    for cell in sheet.unreadable:
        is_read = cell.column in known.known or cell.column in known.free
        if not is_read and (text := cleaned(cell.text[:MAX_TEXT])):
            sheet.rows.setdefault(cell.row, {})[cell.column] = text
    # Blank rows divide a sheet for its readers, and notes are named by their row.
    numbers = range(FIRST_ROW, max(sheet.rows, default=1) + 1)
    # The same keys each time the workbook is read: a page that shows the rows before
    # they are stored names them by these.
    rows = [
        Row(first_key(sheet.name, number), dict(sheet.rows.get(number, {})))
        for number in numbers
    ]
    return Sheet(sheet.name, columns, rows)


# Change ------------------------------------------------------------------------------


@paused_collector()
@transaction.atomic
def change_draft(
    survey: Survey,
    command: Callable[[DraftBook], Result],
    *,
    action: str,
    by: User | None,
    about: dict[str, str] | None = None,
) -> Result:
    """Apply a command to the sheets of a draft, and record it.

    A command that changes nothing leaves no trace. `about["token"]` names a request
    that its sender may repeat. Raises ChangeConflict, DraftIsPublished, LimitReached,
    NameIsTaken, QuestionIsLocked, and AlreadyDone.
    """
    survey = lock_draft(survey)
    refuse_twice(survey, (about or {}).get("token", ""))
    stored = _stored_sheets(survey)
    book = _book_of(stored) if stored else book_of_source(survey)
    known = {*book.sheets}
    locked = locked_rows(book)
    result = command(book)
    if book.operations:
        delete_deserted_lists(book)
        refuse_changes(book, locked)
        book.record_columns()
        if stored:
            _store(survey, book, stored)
        else:
            for name in book.sheets.keys() - known:
                if not book.sheets[name].columns:
                    del book.sheets[name]
            create_sheets(survey, book)
            _follow_rows(survey, book)
        _record(survey, book.operations, action=action, by=by, about=about or {})
    return result


def lock_draft(survey: Survey) -> Survey:
    """Lock a draft until the transaction ends. Raises DraftIsPublished."""
    rows = Survey.objects.defer("source").select_for_update()
    locked = rows.filter(pk=survey.pk).first()
    if locked is None:
        raise ChangeConflict(_("Somebody has deleted this draft."))
    if locked.published_at is not None:
        raise DraftIsPublished(_("This version is published and can’t change."))
    return locked


def refuse_twice(survey: Survey, token: str) -> None:
    """Raise AlreadyDone if the history has a change by the request of this name."""
    if token:
        known = DraftChange.objects.filter(survey=survey, about__token=token)
        if change := known.first():
            raise AlreadyDone(change)


def create_sheets(survey: Survey, book: DraftBook) -> None:
    """Store all sheets of a new draft."""
    for sheet in book.sheets.values():
        row = DraftSheet.objects.create(
            survey=survey, name=sheet.name, columns=sheet.columns
        )
        DraftRow.objects.bulk_create(
            DraftRow(sheet=row, key=entry.key, position=place * GAP, cells=entry.cells)
            for place, entry in enumerate(sheet.rows, 1)
        )
    if marks := marks_in(book):
        record_uses(survey, marks.values())


class StoredRow(NamedTuple):
    """What is stored of a row. Models of 10,000 rows would take 100 ms."""

    pk: int
    position: int
    cells: dict[str, str]


# A sheet and its rows by key, in their order.
StoredSheet = tuple[DraftSheet, dict[str, StoredRow]]


def _stored_sheets(survey: Survey) -> dict[str, StoredSheet]:
    stored: dict[int, StoredSheet] = {
        sheet.pk: (sheet, {}) for sheet in survey.draft_sheets.order_by("pk")
    }
    rows = DraftRow.objects.filter(sheet__in=[*stored]).order_by("position", "pk")
    values = rows.values_list("sheet_id", "key", "pk", "position", "cells")
    for sheet_id, key, *row in values:
        stored[sheet_id][1][key] = StoredRow(*row)
    return {sheet.name: (sheet, rows) for sheet, rows in stored.values()}


def _book_of(stored: dict[str, StoredSheet]) -> DraftBook:
    return DraftBook(
        {
            name: Sheet(
                name,
                [*sheet.columns],
                [
                    Row(key, {int(n): text for n, text in row.cells.items()})
                    for key, row in rows.items()
                ],
            )
            for name, (sheet, rows) in stored.items()
        }
    )


def _store(survey: Survey, book: DraftBook, stored: dict[str, StoredSheet]) -> None:
    """Write what the operations have changed."""
    touched = {operation["sheet"] for operation in book.operations}
    for name, sheet in book.sheets.items():
        row, rows = stored.get(name, (DraftSheet(survey=survey, name=name), {}))
        if sheet.columns != row.columns:
            row.columns = sheet.columns
            row.save()
        if name in touched:
            _store_rows(row, sheet, rows)
    _follow_rows(survey, book)


def _follow_rows(survey: Survey, book: DraftBook) -> None:
    """Store what the survey and the question bank know of the changed rows."""
    if any(operation["sheet"] == "settings" for operation in book.operations):
        _store_version(survey, book.sheet("settings"))
    survey_sheet = book.sheets.get("survey")
    if survey_sheet and survey_sheet.column_or_none(MARK) is not None:
        record_uses(survey, marks_in(book).values())


def _store_version(survey: Survey, settings: Sheet) -> None:
    """Let the survey have the version that its settings name, if it may be one."""
    first = next((row for row in settings.rows if row.cells), Row(""))
    version = settings.value(first, "version") or "1"
    if version == survey.version or len(version) > LONGEST_SETTING or "\n" in version:
        return
    survey.version = version
    try:
        with transaction.atomic():
            survey.save(update_fields=["version"])
    except IntegrityError:
        raise NameIsTaken(survey.name, version) from None


def _store_rows(row: DraftSheet, sheet: Sheet, stored: Mapping[str, StoredRow]) -> None:
    keys = {entry.key for entry in sheet.rows}
    doomed = [known.pk for key, known in stored.items() if key not in keys]
    if doomed:
        DraftRow.objects.filter(pk__in=doomed).delete()
    positions = _positions(
        [
            known.position if (known := stored.get(entry.key)) else None
            for entry in sheet.rows
        ]
    )
    created, changed = [], []
    for entry, position in zip(sheet.rows, positions, strict=True):
        cells = {str(number): text for number, text in entry.cells.items()}
        known = stored.get(entry.key)
        if known is None:
            created.append(
                DraftRow(sheet=row, key=entry.key, position=position, cells=cells)
            )
        elif (known.position, known.cells) != (position, cells):
            changed.append(DraftRow(pk=known.pk, position=position, cells=cells))
    DraftRow.objects.bulk_create(created)
    DraftRow.objects.bulk_update(changed, ["position", "cells"], batch_size=500)


def _positions(known: list[int | None]) -> list[int]:
    """Return rising positions for rows that have some, or none yet.

    As few rows as possible get another one: those outside of the longest rising
    sequence, put into the gaps between the others, or all if a gap is too small.
    """
    staying = longest_rising(known)
    positions: list[int] = []
    place, before = 0, 0
    while place < len(known):
        if place in staying:
            before = known[place] or 0
            positions.append(before)
            place += 1
            continue
        end = place
        while end < len(known) and end not in staying:
            end += 1
        count = end - place
        after = known[end] if end < len(known) else None
        step = GAP if after is None else (after - before) // (count + 1)
        if step < 1:
            return [GAP * number for number in range(1, len(known) + 1)]
        positions += [before + step * number for number in range(1, count + 1)]
        before, place = positions[-1], end
    return positions


def _record(
    survey: Survey,
    operations: list[Operation],
    *,
    action: str,
    by: User | None,
    about: dict[str, str],
    undoes: DraftChange | None = None,
) -> DraftChange:
    last = DraftChange.objects.filter(survey=survey, number=survey.last_change).first()
    is_typing = last is not None and undoes is None and last.action == action != RESTORE
    if last is not None and is_typing and _goes_on(last, operations, by):
        last.operations[-1]["after"] |= operations[0]["after"]
        last.about = about
        last.at = timezone.now()
        # A reading that is kept in memory is that of the number before.
        survey.last_change += 1
        survey.save(update_fields=["last_change"])
        last.number = survey.last_change
        last.save(update_fields=["operations", "about", "at", "number"])
        return last
    survey.last_change += 1
    survey.save(update_fields=["last_change"])
    if undoes is None:
        redoable_steps = DraftChange.objects.filter(
            survey=survey, by=by, is_redoable=True
        )
        redoable_steps.update(is_redoable=False)
    return DraftChange.objects.create(
        survey=survey,
        number=survey.last_change,
        action=action,
        about=about,
        operations=operations,
        by=by,
        undoes=undoes,
    )


def _goes_on(last: DraftChange, operations: list[Operation], by: User | None) -> bool:
    """Return whether somebody types on in the cells of the last change."""
    if last.by_id != (by.pk if by else None) or last.undoes_id or last.is_undone:
        return False
    # The first text in a language may have brought a column with it.
    if len(operations) != 1 or not all(
        operation.get("optional") for operation in last.operations[:-1]
    ):
        return False
    before, after = last.operations[-1], operations[0]
    return (
        before["op"] == after["op"] == "cells"
        and (before["sheet"], before["key"]) == (after["sheet"], after["key"])
        and after["before"].items() <= before["after"].items()
        and timezone.now() - last.at < TYPING
    )


# Undo and history --------------------------------------------------------------------


def undoable(survey: Survey, by: User) -> DraftChange | None:
    """Return the last change of a person that can be undone. 1 statement."""
    steps = DraftChange.objects.filter(survey=survey, by=by, undoes=None)
    steps = steps.filter(is_undone=False, is_passed_over=False)
    return steps.order_by("-number").first()


def redoable(survey: Survey, by: User) -> DraftChange | None:
    """Return the change that a person has undone last, if nothing followed."""
    steps = DraftChange.objects.filter(survey=survey, by=by, is_redoable=True)
    return steps.order_by("number").first()


def undo(
    survey: Survey, *, by: User, token: str = "", number: int | None = None
) -> DraftChange | None:
    """Undo a person's last change; None if there is none. Raises ChangeConflict.

    A step that cannot be undone any more is passed over: the next call undoes the one
    before it. With a number, only that change is undone: CommandRefused if another
    one is the last.
    """

    def step(survey: Survey, by: User) -> DraftChange | None:
        change = undoable(survey, by)
        if number is not None and (change is None or change.number != number):
            raise CommandRefused(
                _("This can’t be undone here: you have changed something since then.")
            )
        return change

    return _reverse(survey, step, UNDO, by, token)


def redo(survey: Survey, *, by: User, token: str = "") -> DraftChange | None:
    """Do again what a person has undone last. Raises ChangeConflict, as `undo`."""
    return _reverse(survey, redoable, REDO, by, token)


def _reverse(
    survey: Survey,
    step: Callable[[Survey, User], DraftChange | None],
    action: str,
    by: User,
    token: str,
) -> DraftChange | None:
    change = None
    try:
        with transaction.atomic():
            survey = lock_draft(survey)
            refuse_twice(survey, token)
            change = step(survey, by)
            if change is not None:
                _take_back(survey, change, action, by, token)
    except ChangeConflict as conflict:
        if change is None:
            raise
        change.is_passed_over, change.is_redoable = action == UNDO, False
        change.save(update_fields=["is_passed_over", "is_redoable"])
        words = (
            _("This step can’t be undone. Undo again for the step before it.")
            if action == UNDO
            else _("This step can’t be done again.")
        )
        raise ChangeConflict(f"{conflict} {words}") from conflict
    return change


def _take_back(
    survey: Survey, change: DraftChange, action: str, by: User, token: str
) -> None:
    operations = inverse(change.operations) if action == UNDO else change.operations

    def command(book: DraftBook) -> None:
        for operation in operations:
            book.do(operation)
        book.finish_languages()

    about = {**change.about, "token": token}
    _apply(survey, command, action=action, by=by, about=about, undoes=change)
    change.is_undone = change.is_redoable = action == UNDO
    change.save(update_fields=["is_undone", "is_redoable"])


def _apply(
    survey: Survey,
    command: Callable[[DraftBook], None],
    *,
    action: str,
    by: User,
    about: dict[str, str],
    undoes: DraftChange | None = None,
) -> None:
    stored = _stored_sheets(survey)
    book = _book_of(stored)
    locked = locked_rows(book)
    command(book)
    # A state in the history was allowed. One that only parts lead back to may not be.
    if action != RESTORE:
        refuse_changes(book, locked)
    if book.operations or undoes is not None:
        _store(survey, book, stored)
        _record(
            survey, book.operations, action=action, by=by, about=about, undoes=undoes
        )


def operations_since(survey: Survey, number: int) -> list[Operation]:
    """Return what leads from the present state back to that after a change."""
    later = DraftChange.objects.filter(survey=survey, number__gt=number)
    return [
        operation
        for change in later.order_by("-number")
        for operation in inverse(change.operations)
    ]


def book_at(survey: Survey, number: int) -> DraftBook:
    """Return the sheets as they were after a change; 0 is the start."""
    book = load_book(survey)
    for operation in operations_since(survey, number):
        book.do(operation)
    return book


@transaction.atomic
def restore(survey: Survey, number: int, *, by: User, seen: str | None = None) -> None:
    """Bring back the state after a change, as a change of its own.

    `seen` is the number of the last change that was shown: what somebody else has
    changed since is not taken back unseen. Raises ChangeConflict.
    """
    survey = lock_draft(survey)
    if seen is not None and seen != str(survey.last_change):
        raise ChangeConflict(
            _("The draft was changed while this page was open. Check it again.")
        )
    goal = book_at(survey, number)
    about = {"number": str(number)}
    _apply(
        survey,
        lambda book: make_equal(book, goal),
        action=RESTORE,
        by=by,
        about=about,
    )
