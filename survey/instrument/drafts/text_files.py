"""Translate a draft outside of the console: write its texts to a file, read it back.

A file is a table or XLIFF (`xliff.py`). It changes translations only: an original is
there to be compared, and a blank translation changes nothing.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import xlsxwriter
from django.utils.translation import gettext as _

from accounts.csv_injection import escape_formula, unescape_formula
from accounts.models import User
from survey.instrument.drafts.checks.texts import shortened
from survey.instrument.drafts.commands import (
    default_language,
    languages_of,
    text_column,
)
from survey.instrument.drafts.reading import DraftReading
from survey.instrument.drafts.store import change_draft
from survey.instrument.drafts.texts import (
    DraftText,
    Places,
    kinds_by_name,
    places_of,
    problem_of,
    texts_in,
    tidied,
)
from survey.instrument.drafts.workbook import STALE, ChangeConflict, DraftBook
from survey.instrument.foreign.recognise import decoded
from survey.instrument.spreadsheets.file_kinds import reason_not_a_table
from survey.instrument.xlsform.languages import Language, language_of
from survey.instrument.xlsform.names import normalised
from survey.instrument.xlsform.problems import FileRefused, Findings
from survey.instrument.xlsform.workbook import MAX_TEXT, SurveySheet, read_workbook
from survey.models import Survey

KEY, PLACE, ORIGINAL = "key", "place", "original"
# Languages whose letters Excel writes in a CSV file that is not in UTF-8. Those of
# other code pages look like these, and would become other letters.
IN_WINDOWS_1252 = frozenset(
    ("en", "es", "pt", "fr", "de", "it", "nl", "ht", "so", "sw", "tl", "fil", "id")
)
# Of a CSV file. A survey of 1,000 questions in ten languages has 5,000.
MOST_LINES = 50_000


class UnreadableTexts(Exception):
    """The file as a whole cannot be used; the message says why and what to do."""


@dataclass(frozen=True, slots=True)
class FileText:
    """A translation in a file. `line` is a row of a table, or 0."""

    id: str
    code: str
    original: str
    text: str
    line: int = 0
    # Whether it says that the translation follows the original.
    is_confirmed: bool = False
    # Why it cannot be read.
    problem: str = ""


@dataclass
class TextFile:
    texts: list[FileText] = field(default_factory=list)
    # Columns or parts of the file that are in a language to refuse, and why.
    refused: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class TextChange:
    place: str
    language: Language
    was: str
    read: FileText


@dataclass(frozen=True, slots=True)
class Refusal:
    """The attributes are those of the table of problems."""

    row: int | None
    column: str
    text: str
    reason: str


@dataclass
class TextCheck:
    changes: list[TextChange] = field(default_factory=list)
    problems: list[Refusal] = field(default_factory=list)
    unchanged: int = 0


# Write -------------------------------------------------------------------------------


def table_of(
    reading: DraftReading, languages: Sequence[Language]
) -> Iterator[list[str]]:
    """Return the rows of a table, the first of which has the headers."""
    book = reading.book
    first = default_language(book)
    places = places_of(reading)
    yield [
        *(KEY, PLACE, f"{ORIGINAL} ({first.code})"),
        *(f"{language.name} ({language.code})" for language in languages),
    ]
    columns = [
        {text.id: text for text in texts_in(book, language, places)}
        for language in languages
    ]
    for text in texts_in(book, first, places):
        if text.original:
            translations = [known[text.id].text for known in columns]
            yield [text.id, text.place, text.original, *translations]


def as_csv(rows: Iterable[list[str]]) -> bytes:
    file = io.StringIO(newline="")
    csv.writer(file).writerows([*map(escape_formula, row)] for row in rows)
    # With a byte order mark, so that Excel shows accents correctly.
    return file.getvalue().encode("utf-8-sig")


def as_xlsx(rows: Iterable[list[str]]) -> bytes:
    file = io.BytesIO()
    with xlsxwriter.Workbook(file, {"in_memory": True}) as workbook:
        sheet = workbook.add_worksheet("Texts")
        head = workbook.add_format({"bold": True})
        # As text, so that nothing typed there becomes a date or a formula.
        wrapped = workbook.add_format(
            {"text_wrap": True, "valign": "top", "num_format": "@"}
        )
        for number, row in enumerate(rows):
            for column, text in enumerate(row):
                sheet.write_string(number, column, text, wrapped if number else head)
        sheet.set_column(0, 0, 12, wrapped)
        sheet.set_column(1, 1, 30, wrapped)
        sheet.set_column(2, 100, 50, wrapped)
        sheet.freeze_panes(1, 3)
    return file.getvalue()


# Read --------------------------------------------------------------------------------


def read_table(content: bytes, first: Language) -> TextFile:
    """Read a CSV or Excel file. Raises UnreadableTexts."""
    if reason := reason_not_a_table(
        io.BytesIO(content), _("Upload a CSV, Excel or XLIFF file.")
    ):
        raise UnreadableTexts(reason)
    is_workbook = content.startswith((b"PK", b"\xd0\xcf\x11\xe0"))
    text, encoding = ("", "") if is_workbook else decoded(content)
    rows = _workbook_rows(content) if is_workbook else _csv_rows(text)
    header = next(rows, (0, []))[1]
    names = [name.strip() for name in header]
    folded = [name.casefold() for name in names]
    key = next((n for n, name in enumerate(folded) if name == KEY), None)
    original = next(
        (n for n, name in enumerate(folded) if name.split("(")[0].strip() == ORIGINAL),
        None,
    )
    if key is None or original is None:
        raise UnreadableTexts(
            _(
                "The first row needs the columns “key” and “original”. Download the"
                " texts, and fill in that file."
            )
        )
    file = TextFile()
    headers = {
        number: name
        for number, name in enumerate(names)
        if number not in (key, original) and folded[number] not in ("", PLACE)
    }
    languages = _languages_of(headers, encoding, file)
    for line, cells in rows:
        cells = [*cells, *[""] * (len(names) - len(cells))]
        for number, language in languages.items():
            file.texts.append(
                FileText(
                    cells[key].strip(),
                    language.code,
                    cells[original],
                    cells[number],
                    line,
                )
            )
    return file


def _languages_of(
    headers: dict[int, str], encoding: str, file: TextFile
) -> dict[int, Language]:
    """Return the languages of columns; those that can't be read are refused in `file`.

    Raises UnreadableTexts.
    """
    languages: dict[int, Language] = {}
    for number, name in headers.items():
        language = language_of(name)
        if language is None:
            file.refused.append(
                _("The column “%(name)s” names no language.")
                % {"name": shortened(name)}
            )
        elif language.code in {known.code for known in languages.values()}:
            raise UnreadableTexts(
                _("Two columns are in %(name)s. Delete one of them.")
                % {"name": language.name}
            )
        elif encoding == "cp1252" and language.code not in IN_WINDOWS_1252:
            file.refused.append(
                _(
                    "%(language)s can’t be read from this file, which is not in UTF-8."
                    " Save it as “CSV UTF-8” or as an Excel workbook."
                )
                % {"language": language.name}
            )
        else:
            languages[number] = language
    return languages


def _csv_rows(text: str) -> Iterator[tuple[int, list[str]]]:
    first = text.partition("\n")[0]
    delimiter = max(",;\t", key=first.count)
    try:
        reader = csv.reader(
            io.StringIO(text, newline=""), delimiter=delimiter, strict=True
        )
        for number, cells in enumerate(reader, 1):
            if number > MOST_LINES:
                raise UnreadableTexts(
                    _("The file has more than %(most)s rows.")
                    % {"most": f"{MOST_LINES:,}"}
                )
            if any(cells):
                yield number, [unescape_formula(cell) for cell in cells]
    except csv.Error:
        raise UnreadableTexts(
            _(
                "The CSV file is damaged. Open it in a spreadsheet program, and save"
                " it again."
            )
        ) from None


def _workbook_rows(content: bytes) -> Iterator[tuple[int, list[str]]]:
    try:
        sheets = read_workbook(content, Findings(), keep_notes=True)
    except FileRefused as refusal:
        raise UnreadableTexts(str(refusal)) from refusal
    sheet = next(
        (
            sheet
            for sheet in sheets.values()
            if KEY in {header.strip().casefold() for header in sheet.headers.values()}
        ),
        SurveySheet(""),
    )
    width = max(sheet.headers, default=0)
    yield 1, [sheet.headers.get(n, "") for n in range(1, width + 1)]
    for cell in sheet.unreadable:
        raise UnreadableTexts(
            _("Row %(row)s: %(reason)s.") % {"row": cell.row, "reason": cell.reason}
        )
    for number, cells in sorted(sheet.rows.items()):
        yield number, [cells.get(n, "") for n in range(1, width + 1)]


# Check and apply ---------------------------------------------------------------------


def collapsed(text: str) -> str:
    """Return a text without what editors and translators' tools change in blanks."""
    return normalised(" ".join(text.split()))


def check_texts(book: DraftBook, file: TextFile, places: Places) -> TextCheck:
    """Compare a file with a draft: what it changes, and what is refused and why."""
    check = TextCheck()
    check.problems += [Refusal(None, "", "", reason) for reason in file.refused]
    first, *translated = languages_of(book)
    kinds = kinds_by_name(book)
    known = {
        language.code: {text.id: text for text in texts_in(book, language, places)}
        for language in translated
    }
    names = {language.code: language for language in translated}
    unknown: set[str] = set()
    seen: set[tuple[str, str]] = set()
    for read in file.texts:
        if read.code not in known:
            if read.code not in unknown:
                unknown.add(read.code)
                check.problems.append(
                    Refusal(None, read.code, "", _wrong_language(read.code, first))
                )
            continue
        if not read.text.strip() and not read.problem:
            continue
        text = known[read.code].get(read.id)
        reason = _reason_to_refuse(read, text, kinds)
        if not reason and (read.id, read.code) in seen:
            reason = _("This text is in the file twice.")
        seen.add((read.id, read.code))
        language = names[read.code]
        if reason or text is None:
            check.problems.append(
                Refusal(read.line or None, language.name, shortened(read.text), reason)
            )
        elif collapsed(read.text) != collapsed(text.text) or (
            read.is_confirmed and text.is_stale
        ):
            check.changes.append(TextChange(text.place, language, text.text, read))
        else:
            check.unchanged += 1
    return check


def _wrong_language(code: str, first: Language) -> str:
    if code == first.code:
        return _(
            "%(name)s is the first language. Change originals on the page of texts."
        ) % {"name": first.name}
    return _("The survey has no texts in this language (%(code)s). Add it first.") % {
        "code": code
    }


def _reason_to_refuse(
    read: FileText, text: DraftText | None, kinds: dict[str, str]
) -> str:
    if read.problem:
        return read.problem
    if text is None:
        return _("There is no text with the key %(key)s in this survey.") % {
            "key": shortened(read.id) or "“”"
        }
    if collapsed(read.original) != collapsed(text.original):
        return _("The original has changed since the download. It is now: %(text)s") % {
            "text": shortened(text.original)
        }
    given = normalised(tidied(read.text))
    if len(given) > MAX_TEXT:
        return _("Use at most %(longest_text)s characters.") % {
            "longest_text": f"{MAX_TEXT:,}"
        }
    if collapsed(given) == collapsed(text.text):
        return ""
    return problem_of(given, kinds, text, is_first=False)


def apply_texts(
    *, survey: Survey, texts: Sequence[tuple[FileText, str]], by: User
) -> int:
    """Store translations that were checked, all or none, as one change.

    Each comes with the text that it replaces. Returns how many were changed. Raises
    ChangeConflict if the draft has changed since the check, and LimitReached.
    """
    was = {(read.id, read.code): text for read, text in texts}

    def command(book: DraftBook) -> int:
        file = TextFile([read for read, _was in texts])
        check = check_texts(book, file, {})
        if check.problems or any(
            change.was != was[change.read.id, change.read.code]
            for change in check.changes
        ):
            raise ChangeConflict(
                _("Somebody has changed these texts meanwhile. Upload the file again.")
            )
        _write(book, check.changes)
        return len(check.changes)

    return change_draft(survey, command, action="translate", by=by)


def _write(book: DraftBook, changes: Iterable[TextChange]) -> None:
    columns: dict[tuple[str, str, str], int] = {}
    by_row: dict[tuple[str, str], dict[int, str]] = {}
    for change in changes:
        name, _dash, rest = change.read.id.partition("-")
        key, _dash, field_name = rest.partition("-")
        place = name, field_name, change.language.code
        if place not in columns:
            sheet = book.sheet(name)
            columns[place] = text_column(book, sheet, field_name, change.language)
        text = normalised(tidied(change.read.text))
        by_row.setdefault((name, key), {})[columns[place]] = text
    for (name, key), texts in by_row.items():
        sheet = book.sheet(name)
        stale = sheet.row(key).stale - texts.keys()
        marks = " ".join(map(str, sorted(stale)))
        book.set_cells(sheet, key, {**texts, STALE: marks})
