"""Change a draft: questions, pages, options and measures.

Each command takes a `DraftBook` and changes its rows; `store.change_draft` runs it in
a transaction. Rows are named by their keys.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from django.utils.translation import gettext as _
from django.utils.translation import override

from survey.instrument.definitions.schema import SELECTS
from survey.instrument.drafts.names import (
    free_name,
    made_name,
    name_from_text,
    with_names,
)
from survey.instrument.drafts.workbook import (
    MADE_NAME,
    STALE,
    ChangeConflict,
    DraftBook,
    Row,
    Sheet,
    cleaned,
    language_of_header,
)
from survey.instrument.xlsform.languages import Language, language_of
from survey.instrument.xlsform.problems import Findings
from survey.instrument.xlsform.reading import list_languages
from survey.instrument.xlsform.types import parse_type
from survey.instrument.xlsform.workbook import SurveySheet

# What a question of a new kind is written as. A select is followed by its list.
GRID = "grid"
FIELD_LIST, TABLE_LIST = "field-list", "table-list"
BEGIN, END = "begin_group", "end_group"
OR_OTHER = " or_other"
LONGEST_LANGUAGE = 80
NEW_OPTIONS = 2


class CommandRefused(ValueError):
    """The command makes no sense there; the message says why."""


# Structure ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Span:
    """A question, or a group with all its rows; `end` is that of its last row."""

    start: int
    end: int


def span_of(sheet: Sheet, key: str) -> Span:
    """Return the rows that belong to a row: itself, or its whole group."""
    start = sheet.index(key)
    depth = 0
    for place in range(start, len(sheet.rows)):
        kind = kind_of(sheet, sheet.rows[place])
        depth += (kind == "begin") - (kind == "end")
        if depth <= 0:
            return Span(start, place)
    return Span(start, len(sheet.rows) - 1)


def kind_of(sheet: Sheet, row: Row) -> str:
    """Return an item's kind, or `begin`, `end`, `metadata` or `refused`."""
    return parse_type(sheet.value(row, "type")).kind


def groups_around(sheet: Sheet, key: str) -> list[Row]:
    """Return the rows that begin the groups around a row, the outermost first."""
    around: list[Row] = []
    for row in sheet.rows:
        if row.key == key:
            return around
        kind = kind_of(sheet, row)
        if kind == "begin":
            around.append(row)
        elif kind == "end":
            del around[-1:]
    raise ChangeConflict(_("Somebody has deleted this meanwhile."))


def names_in(book: DraftBook) -> set[str]:
    """Return all names of questions and groups, and of lists of options."""
    survey, choices = book.sheet("survey"), book.sheet("choices")
    names = {survey.value(row, "name") for row in survey.rows}
    return names | {choices.value(row, "list") for row in choices.rows} - {""}


def keys_of(sheet: Sheet, span: Span) -> list[str]:
    return [row.key for row in sheet.rows[span.start : span.end + 1]]


# Questions and pages -----------------------------------------------------------------


def add_question(
    book: DraftBook, *, after: str, kind: str, option_set: str = "", name: str = ""
) -> str:
    """Add a question below a row and return its key.

    Below a row that begins a page it is the first question of the page; "" is the
    top of the survey. A select without a list of options gets a new one.
    """
    survey = book.sheet("survey")
    name = free_name(name or "question", names_in(book))
    kind = kind_with_list(book, kind, option_set, name)
    cells = {survey.column("type"): kind, **made_name(survey, name)}
    if after and kind_of(survey, survey.row(after)) != "begin":
        after = survey.rows[span_of(survey, after).end].key
    [key] = book.insert(survey, after, [cells])
    return key


def kind_with_list(book: DraftBook, kind: str, option_set: str, name: str) -> str:
    """Return the cell of the type column, with a list of options for a select."""
    if kind not in SELECTS:
        return kind
    if not option_set:
        option_set = free_name(f"{name}_options", names_in(book))
        with override(default_language(book).code):
            labels = [_("Option %(n)s") % {"n": n} for n in range(1, NEW_OPTIONS + 1)]
        set_options(book, option_set, [(str(n), {}) for n in range(1, NEW_OPTIONS + 1)])
        choices = book.sheet("choices")
        number = text_column(book, choices, "label", default_language(book))
        rows = [row for row in choices.rows if choices.value(row, "list") == option_set]
        for row, label in zip(rows, labels, strict=True):
            book.set_cells(choices, row.key, {number: label})
    return f"{kind} {option_set}"


def add_page(book: DraftBook, *, after: str, name: str = "page") -> str:
    """Add a page with one question below a page, and return the question's key.

    `after` is a row of that page, or "" for the top of the survey.
    """
    survey = book.sheet("survey")
    name = free_name(name, names_in(book))
    type_, looks = survey.column("type"), survey.column("appearance")
    after = end_of_page(survey, after)
    begin, _end = book.insert(
        survey,
        after,
        [{type_: BEGIN, looks: FIELD_LIST, **made_name(survey, name)}, {type_: END}],
    )
    return add_question(book, after=begin, kind="text")


def end_of_page(survey: Sheet, key: str) -> str:
    """Return the last row of the page that a row is in or begins; "" for ""."""
    if not key:
        return ""
    around = groups_around(survey, key)
    outermost = around[0].key if around else key
    page = next((row.key for row in around if is_page(survey, row)), outermost)
    if kind_of(survey, survey.row(key)) == "begin" and not around:
        page = key
    return survey.rows[span_of(survey, page).end].key


def is_page(sheet: Sheet, row: Row) -> bool:
    return FIELD_LIST in sheet.value(row, "appearance").lower().split()


def add_grid(book: DraftBook, *, after: str, option_set: str = "") -> str:
    """Add a grid with one row below a question, and return the key of that row."""
    survey = book.sheet("survey")
    name = free_name("grid", names_in(book))
    cells = {
        survey.column("type"): BEGIN,
        **made_name(survey, name),
        survey.column("appearance"): TABLE_LIST,
    }
    if after and kind_of(survey, survey.row(after)) != "begin":
        after = survey.rows[span_of(survey, after).end].key
    begin, _end = book.insert(survey, after, [cells, {survey.column("type"): END}])
    return add_question(
        book, after=begin, kind="select_one", option_set=option_set, name=f"{name}_1"
    )


def delete_rows(book: DraftBook, key: str) -> None:
    """Delete a question or a group with all in it, and groups that are then empty."""
    survey = book.sheet("survey")
    around = groups_around(survey, key)
    book.delete(survey, keys_of(survey, span_of(survey, key)))
    for group in reversed(around):
        span = span_of(survey, group.key)
        if span.end - span.start > 1:
            return
        book.delete(survey, keys_of(survey, span))


def move_rows(book: DraftBook, key: str, *, after: str) -> None:
    """Move a question or a group below a row, or into a group that it begins.

    Groups that are empty then are deleted. Raises CommandRefused.
    """
    survey = book.sheet("survey")
    span = span_of(survey, key)
    keys = keys_of(survey, span)
    if after in keys:
        raise CommandRefused(_("Choose a place outside of what you move."))
    around = groups_around(survey, key)
    if after and kind_of(survey, survey.row(after)) != "begin":
        after = survey.rows[span_of(survey, after).end].key
        if after in keys:
            return
    book.move(survey, keys, after)
    for group in reversed(around):
        rest = span_of(survey, group.key)
        if rest.end - rest.start > 1:
            return
        book.delete(survey, keys_of(survey, rest))


def duplicate_rows(book: DraftBook, key: str) -> str:
    """Copy a question or a group below itself, and return the copy's first key.

    Names are new, and rules inside the copy read the copy's own questions. A copy of
    the state's question is not locked: answers to it have another name.
    """
    survey = book.sheet("survey")
    span = span_of(survey, key)
    rows = survey.rows[span.start : span.end + 1]
    taken = names_in(book)
    renamed: dict[str, str] = {}
    made: set[str] = set()
    named, marked = survey.column("name"), survey.column_or_none("bank_question")
    for row in rows:
        if name := survey.value(row, "name"):
            base = name
            is_made = row.cells.get(MADE_NAME) == name
            if len(rows) == 1 and (is_made or _is_named_after_text(book, row)):
                # The copy is named after its own text once that is written.
                base, is_made = "question", True
            renamed[name] = free_name(base, taken)
            if is_made:
                made.add(name)
            taken.add(renamed[name])
    copies = []
    for row in rows:
        cells = {n: with_names(text, renamed) for n, text in row.cells.items()}
        if name := survey.value(row, "name"):
            cells[named] = renamed[name]
            cells[MADE_NAME] = renamed[name] if name in made else ""
        if marked is not None:
            cells.pop(marked, None)
        copies.append(cells)
    return book.insert(survey, rows[-1].key, copies)[0]


def _is_named_after_text(book: DraftBook, row: Row) -> bool:
    survey = book.sheet("survey")
    label = text_column(book, survey, "label", default_language(book))
    made = name_from_text(row.cells.get(label, ""))
    name = survey.value(row, "name")
    return bool(made) and made in (name, re.sub(r"_\d+$", "", name))


# Cells -------------------------------------------------------------------------------


def set_text(
    book: DraftBook, sheet: str, key: str, *, field: str, language: Language, text: str
) -> None:
    """Write a text of a row in one language.

    A new original marks its translations as stale; a translation is no longer.
    """
    target = book.sheet(sheet)
    row = target.row(key)
    number = text_column(book, target, field, language)
    stale = row.stale - {number}
    languages = languages_of(book)
    if language.code == languages[0].code and row.cells.get(number, "") != text:
        columns = [target.column_or_none(field, known) for known in languages[1:]]
        stale |= {n for n in columns if n and row.cells.get(n)}
    marks = " ".join(map(str, sorted(stale)))
    book.set_cells(target, key, {number: text, STALE: marks})


def set_value(book: DraftBook, sheet: str, key: str, *, field: str, text: str) -> None:
    """Write a cell that has no language, such as a rule. "" makes it blank."""
    target = book.sheet(sheet)
    if not text and target.column_or_none(field) is None:
        return
    book.set_cells(target, key, {target.column(field): text})


def set_setting(
    book: DraftBook, *, field: str, text: str, language: Language | None = None
) -> None:
    settings = book.sheet("settings")
    if language is not None:
        number = text_column(book, settings, field, language)
    elif text or settings.column_or_none(field) is not None:
        number = settings.column(field)
    else:
        return
    if settings.rows and language is not None:
        key = settings.rows[0].key
        set_text(book, "settings", key, field=field, language=language, text=text)
    elif settings.rows:
        book.set_cells(settings, settings.rows[0].key, {number: text})
    elif text:
        book.insert(settings, "", [{number: text}])


def text_column(book: DraftBook, sheet: Sheet, field: str, language: Language) -> int:
    """Return the column of a text in a language, as the reader looks for it.

    A column without a language is in the draft's first language.
    """
    number = sheet.column_or_none(field, language)
    if number is not None:
        return number
    if language.code == default_language(book).code:
        number = sheet.column_or_none(field)
        if number is not None or not names_languages(book):
            return sheet.column(field)
    return sheet.column(field, language)


def names_languages(book: DraftBook) -> bool:
    return any(sheet.known.languages() for sheet in text_sheets(book))


def text_sheets(book: DraftBook) -> list[Sheet]:
    names = ("survey", "choices", "settings", "measures")
    return [book.sheets[name] for name in names if name in book.sheets]


def languages_of(book: DraftBook) -> list[Language]:
    """List the languages of a draft, the first one first, as the reader does."""
    sheets = {
        name: book.sheets.get(name, Sheet(name))
        for name in ("survey", "choices", "settings", "measures")
    }
    columns = {name: sheet.known for name, sheet in sheets.items()}
    # Of the rows, it reads the settings only.
    rows = {name: SurveySheet(name) for name in sheets}
    rows["settings"] = sheets["settings"].as_survey_sheet()
    return list_languages(rows, columns, Findings())


def default_language(book: DraftBook) -> Language:
    return languages_of(book)[0]


def add_language(book: DraftBook, token: str) -> Language:
    """Add a language to a draft, given as `Español (es)`, `es` or `Spanish`.

    Raises CommandRefused for one that is unknown, there already, or that a header
    cannot name.
    """
    language = language_of(cleaned(token))
    if language is None:
        raise CommandRefused(
            _("This language is not known. Write its name and code: Hmong (hmn).")
        )
    if len(f"{language.name} ({language.code})") > LONGEST_LANGUAGE:
        raise CommandRefused(
            _("The name of a language has at most %(most)s characters.")
            % {"most": LONGEST_LANGUAGE}
        )
    header = f"label::{language.name} ({language.code})"
    if language_of_header("survey", header) != language:
        raise CommandRefused(_("The name of a language can’t have colons."))
    known = languages_of(book)
    if language.code in {row.code for row in known}:
        raise CommandRefused(_("The survey has this language already."))
    # Columns without a language would otherwise become English.
    settings = book.sheet("settings")
    if not settings.rows or not settings.value(settings.rows[0], "default_language"):
        first = f"{known[0].name} ({known[0].code})"
        set_setting(book, field="default_language", text=first)
    for sheet in text_sheets(book):
        if sheet.name in ("survey", "choices"):
            book.add_column(sheet, "label", language)
    if title := title_of(book):
        book.add_column(book.sheet("settings"), "title", language)
        set_setting(book, field="title", text=title, language=language)
    return language


def remove_language(book: DraftBook, code: str) -> Language:
    """Remove a language with all its texts. Raises CommandRefused for the first one."""
    first, *translated = languages_of(book)
    if code == first.code:
        raise CommandRefused(_("The first language of a survey can’t be removed."))
    language = next((row for row in translated if row.code == code), None)
    if language is None:
        raise CommandRefused(_("The survey no longer has this language."))
    for sheet in text_sheets(book):
        columns = {
            number
            for number, column in sheet.known.known.items()
            if column.language and column.language.code == code
        }
        for row in sheet.rows:
            texts = {number: "" for number in columns if number in row.cells}
            if stale := row.stale & columns:
                texts[STALE] = " ".join(map(str, sorted(row.stale - stale)))
            if texts:
                book.set_cells(sheet, row.key, texts)
        for number in sorted(columns):
            book.set_header(sheet, number, "")
    return language


def title_of(book: DraftBook) -> str:
    settings = book.sheet("settings")
    if not settings.rows:
        return ""
    number = text_column(book, settings, "title", default_language(book))
    return settings.rows[0].cells.get(number, "")


def set_kind(book: DraftBook, key: str, kind: str, *, option_set: str = "") -> None:
    """Change the type of a question; a select keeps its list of options."""
    survey = book.sheet("survey")
    row = survey.row(key)
    type_ = parse_type(survey.value(row, "type"))
    if type_.kind == kind and option_set in ("", type_.option_set):
        return
    name = survey.value(row, "name")
    cell = kind_with_list(book, kind, option_set or type_.option_set, name)
    if type_.or_other and kind in SELECTS:
        cell += OR_OTHER
    book.set_cells(survey, key, {survey.column("type"): cell})


# Options -----------------------------------------------------------------------------

# (value, labels by language code)
OptionTexts = tuple[str, Mapping[str, str]]


def set_options(
    book: DraftBook, option_set: str, options: Sequence[OptionTexts]
) -> None:
    """Make these the options of a list, in this order.

    An option keeps its row, and with it cells that are not named here, by its value.
    """
    choices = book.sheet("choices")
    listed, valued = choices.column("list"), choices.column("name")
    languages = {language.code: language for language in languages_of(book)}
    rows = [row for row in choices.rows if row.cells.get(listed, "") == option_set]
    by_value = {row.cells.get(valued, ""): row for row in rows}
    wanted = {value for value, _labels in options}
    book.delete(
        choices, [row.key for row in rows if row.cells.get(valued) not in wanted]
    )
    remaining = [row for row in choices.rows if row.cells.get(listed, "") == option_set]
    if remaining:
        place = choices.index(remaining[0].key)
        after = choices.rows[place - 1].key if place else ""
    else:
        after = choices.rows[-1].key if choices.rows else ""
    for value, labels in options:
        row = by_value.get(value)
        if row is None:
            [key] = book.insert(choices, after, [{listed: option_set, valued: value}])
        else:
            key = row.key
            book.move(choices, [key], after)
        texts = {
            text_column(book, choices, "label", languages[code]): text
            for code, text in labels.items()
        }
        book.set_cells(choices, key, texts)
        after = key


def copy_option_set(book: DraftBook, key: str) -> str:
    """Give a question a list of options of its own, and return the list's name."""
    survey, choices = book.sheet("survey"), book.sheet("choices")
    row = survey.row(key)
    type_ = parse_type(survey.value(row, "type"))
    name = free_name(f"{survey.value(row, 'name')}_options", names_in(book))
    listed = choices.column("list")
    rows = [r for r in choices.rows if r.cells.get(listed, "") == type_.option_set]
    if rows:
        copies = [{**option.cells, listed: name} for option in rows]
        book.insert(choices, rows[-1].key, copies)
    suffix = OR_OTHER if type_.or_other else ""
    cell = f"{type_.kind} {name}{suffix}"
    book.set_cells(survey, key, {survey.column("type"): cell})
    return name


def delete_deserted_lists(book: DraftBook) -> None:
    """Delete the lists whose last questions the operations so far took away.

    Lists that no question used before stay, such as those of a workbook.
    """
    survey, choices = book.sheet("survey"), book.sheet("choices")
    typed = str(survey.column_or_none("type"))
    cells: list[str] = []
    for operation in book.operations:
        if operation["sheet"] == "survey" and operation["op"] == "cells":
            cells.append(operation["before"].get(typed, ""))
        elif operation["sheet"] == "survey" and operation["op"] == "delete":
            cells += [written.get(typed, "") for _key, written in operation["rows"]]
    deserted = {parse_type(cell).option_set for cell in cells} - {""}
    if deserted:
        deserted -= {
            parse_type(survey.value(row, "type")).option_set for row in survey.rows
        }
        doomed = [
            row.key for row in choices.rows if choices.value(row, "list") in deserted
        ]
        book.delete(choices, doomed)


def questions_using(book: DraftBook, option_set: str) -> list[Row]:
    survey = book.sheet("survey")
    return [
        row
        for row in survey.rows
        if parse_type(survey.value(row, "type")).option_set == option_set
    ]


# Readers of a question ---------------------------------------------------------------


def dependents_of(book: DraftBook, names: Collection[str]) -> list[str]:
    """Return the names of questions whose rules or texts read these."""
    survey = book.sheet("survey")
    pattern = re.compile(r"\$\{\s*(" + "|".join(map(re.escape, names)) + r")\s*\}")
    return [
        survey.value(row, "name")
        for row in survey.rows
        if survey.value(row, "name") not in names
        and any(pattern.search(text) for text in row.cells.values())
    ]
