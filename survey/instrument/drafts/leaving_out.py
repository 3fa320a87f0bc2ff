"""Leave out of a workbook what a survey cannot have, with a line for each part."""

from __future__ import annotations

from collections.abc import Iterator

from django.utils.translation import gettext as _

from survey.instrument.drafts.commands import kind_of, span_of
from survey.instrument.drafts.source_workbook import workbook_like
from survey.instrument.drafts.store import book_of_workbook
from survey.instrument.drafts.workbook import FIRST_ROW, DraftBook, Row, Sheet
from survey.instrument.foreign.converted import Part, ReportLine
from survey.instrument.foreign.texts import shown_text
from survey.instrument.xlsform.problems import FileRefused, Findings, Problem, quoted
from survey.instrument.xlsform.reading import Reading, read_draft, read_xlsform
from survey.instrument.xlsform.types import parse_type

# What is left out can make rules unreadable, and these others. Each round reads all.
MOST_ROUNDS = 8
# Of these a single cell is left out, of other columns the whole row.
RULES = frozenset(
    ("relevant", "constraint", "required", "default", "choice_filter", "parameters")
    + ("appearance", "calculation", "trigger", "read_only", "constraint_message")
    + ("required_message",)
)
PARTS: dict[str, Part] = {"survey": "question", "choices": "options"}


def read_without_problems(
    content: bytes, name: str
) -> tuple[Reading, list[ReportLine]]:
    """Read a workbook without its parts that have problems; a line tells of each.

    `source` of the reading is the workbook without them. The draft is None if there
    are problems that no part can be left out for, such as a missing sheet.
    """
    lines: list[ReportLine] = []
    refused = Reading(None, [], [], content)
    try:
        book = book_of_workbook(content)
        for _number in range(MOST_ROUNDS):
            findings = Findings()
            sheets = {
                title: row.as_survey_sheet() for title, row in book.sheets.items()
            }
            read_draft(sheets, name, findings)
            if not findings.problems:
                break
            if not leave_out(book, findings.problems, lines):
                return refused, []
        reading = read_xlsform(workbook_like(book, content), name=name)
    except FileRefused:
        return refused, []
    if reading.draft is None or not reading.draft.pages:
        return refused, []
    known = {line.place for line in lines if line.part == "question"}
    lines += [
        ReportLine(item.name, shown_text(item.label), "taken")
        for item in reading.draft.items()
        if item.name not in known
    ]
    return reading, lines


def leave_out(
    book: DraftBook, problems: list[Problem], lines: list[ReportLine]
) -> bool:
    """Return whether each of these problems went with a part that was left out."""
    places: list[tuple[Sheet, str, Problem]] = []
    for problem in problems:
        sheet = book.sheets.get(problem.sheet)
        place = (problem.row or 0) - FIRST_ROW
        if sheet is None or problem.sheet not in ("survey", "choices", "measures"):
            return False
        if not 0 <= place < len(sheet.rows):
            return False
        places.append((sheet, sheet.rows[place].key, problem))
    for sheet, key, problem in places:
        row = next((row for row in sheet.rows if row.key == key), None)
        # A row goes once, and with it its other problems.
        if row is None or leave_out_cells(book, sheet, row, problem, lines):
            continue
        if sheet.name != "survey":
            lines.append(line_of(sheet, row, problem.reason))
            book.delete(sheet, [key])
        elif not leave_out_rows(book, sheet, row, problem.reason, lines):
            return False
    return True


def leave_out_cells(
    book: DraftBook,
    sheet: Sheet,
    row: Row,
    problem: Problem,
    lines: list[ReportLine],
) -> bool:
    """Make a rule blank, or the pictures of a row, if the problem is there."""
    known = sheet.known.known
    columns = [number for number in known if known[number].header == problem.column]
    key = known[columns[0]].key if columns else ""
    if key == "calculation" and kind_of(sheet, row) == "calculate":
        return False
    name = sheet.value(row, "name")
    if key == "media":
        columns = [number for number in known if known[number].key == "media"]
        line = line_of(sheet, row, problem.reason, is_changed=True)
    elif key in RULES:
        text = ", ".join(row.cells.get(number, "") for number in columns)
        words = quoted(f"{problem.column}: {text}", 300)
        line = ReportLine(name, words, "refused", problem.reason, "rule")
    else:
        return False
    written = [number for number in columns if row.cells.get(number)]
    if not written:
        return False
    lines.append(line)
    book.set_cells(sheet, row.key, dict.fromkeys(written, ""))
    return True


def leave_out_rows(
    book: DraftBook, sheet: Sheet, row: Row, reason: str, lines: list[ReportLine]
) -> bool:
    """Delete a question, or a repeat with all that is in it; other groups stay."""
    type_, span = parse_type(sheet.value(row, "type")), span_of(sheet, row.key)
    rows = sheet.rows[span.start : span.end + 1]
    if type_.kind == "end" or type_.kind == "begin" and type_.control != "repeat":
        return False
    lines.extend(
        line_of(sheet, each, reason)
        for each in rows
        if kind_of(sheet, each) not in ("end", "metadata")
    )
    book.delete(sheet, [each.key for each in rows])
    while empty := next(_empty_groups(sheet), None):
        reason = _("nothing is left in it")
        lines.append(line_of(sheet, sheet.row(empty[0]), reason))
        book.delete(sheet, empty)
    return True


def _empty_groups(sheet: Sheet) -> Iterator[list[str]]:
    rows = [row for row in sheet.rows if sheet.value(row, "type")]
    for row, following in zip(rows, rows[1:], strict=False):
        if kind_of(sheet, row) == "begin" and kind_of(sheet, following) == "end":
            yield [row.key, following.key]


def line_of(
    sheet: Sheet, row: Row, reason: str, *, is_changed: bool = False
) -> ReportLine:
    known = sheet.known.known
    labels = (row.cells.get(n, "") for n in known if known[n].key == "label")
    text = next(filter(None, labels), "")
    part = PARTS.get(sheet.name, "setting")
    if sheet.name == "survey" and kind_of(sheet, row) == "begin":
        part = "group"
    return ReportLine(
        sheet.value(row, "name"),
        shown_text({"": text}),
        "changed" if is_changed else "refused",
        reason,
        part,
    )
