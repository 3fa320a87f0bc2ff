"""Change measures and essentials of a draft: rows of its measures sheet."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping

from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils.translation import gettext as _

from accounts.models import User
from survey.instrument.definitions.measures import measures_of
from survey.instrument.definitions.schema import (
    EssentialDefinition,
    MeasureDefinition,
    Measures,
    Texts,
)
from survey.instrument.drafts.commands import languages_of, text_column
from survey.instrument.drafts.drafting import refresh_rows
from survey.instrument.drafts.reading import read_book, read_rows_of
from survey.instrument.drafts.store import change_draft
from survey.instrument.drafts.workbook import ChangeConflict, DraftBook, Row
from survey.instrument.xlsform.measures import ESSENTIAL, MEASURE, POSITIVE, REVERSED
from survey.models import Survey

SHEET = "measures"


def may_change_measures(survey: Survey) -> bool:
    """Return whether it is a draft; a correction keeps the measures it corrects."""
    return survey.published_at is None and survey.corrects_id is None


def current_measures(survey: Survey) -> Measures:
    """Return the measures of a survey, or none; of a draft, as its rows are now."""
    measures = measures_of(survey)
    if survey.last_change != survey.compiled_change:
        draft = read_rows_of(survey).draft
        measures = draft.measures if draft else None
    return measures or {"essentials": [], "measures": []}


def digest_of(measures: Measures) -> str:
    # Without the mark of measures that were changed before drafts had rows.
    content = [measures["essentials"], measures["measures"]]
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]


@transaction.atomic
def save_essential(
    *,
    survey: Survey,
    name: str,
    essential: EssentialDefinition | None,
    seen: str,
    by: User,
) -> None:
    """Change the essential of this name, remove it (None), or add one (no name).

    Its measures follow a new name, or belong to no essential. `seen` is the digest
    of the measures that were edited. Raises ChangeConflict, and ValidationError with
    messages by column.
    """

    def command(book: DraftBook) -> None:
        new = essential["name"] if essential else ""
        _write(book, ESSENTIAL, name, {"name": new} if essential else None, essential)
        measures = book.sheet(SHEET)
        for row in list(measures.rows):
            if name and new != name and measures.value(row, "essential") == name:
                book.set_cells(measures, row.key, {measures.column("essential"): new})

    _change(survey, command, name, essential["name"] if essential else "", seen, by)


@transaction.atomic
def save_measure(
    *,
    survey: Survey,
    name: str,
    measure: MeasureDefinition | None,
    seen: str,
    by: User,
) -> None:
    """Change the measure of this name, remove it (None), or add one (no name).

    Raises ChangeConflict, and ValidationError with messages by column.
    """
    cells = None
    if measure:
        words = [REVERSED * row["reversed"] + row["name"] for row in measure["items"]]
        cells = {
            "name": measure["name"],
            "essential": measure["essential"],
            "direction": measure["direction"],
            "items": " ".join(words),
            "missing": " ".join(measure["missing"]),
        }
    _change(
        survey,
        lambda book: _write(book, MEASURE, name, cells, measure),
        name,
        measure["name"] if measure else "",
        seen,
        by,
    )


def set_measure_of(
    book: DraftBook, name: str, measure: str, *, is_reversed: bool = False
) -> None:
    """Let a question count for a measure, by both names; "" is for none."""
    if SHEET not in book.sheets:
        return
    measures = book.sheets[SHEET]
    number = measures.column("items")
    for row in list(measures.rows):
        words = _words(measures.value(row, "items"))
        bare = [word.removeprefix(REVERSED) for word in words]
        word = f"{REVERSED}{name}" if is_reversed else name
        if measure and measures.value(row, "name") == measure:
            if name in bare:
                words[bare.index(name)] = word
            else:
                words.append(word)
        elif name in bare:
            del words[bare.index(name)]
        else:
            continue
        book.set_cells(measures, row.key, {number: " ".join(words)})


def _words(cell: str) -> list[str]:
    return cell.replace(",", " ").split()


def _change(
    survey: Survey,
    command: Callable[[DraftBook], None],
    name: str,
    new_name: str,
    seen: str,
    by: User,
) -> None:
    def checked(book: DraftBook) -> None:
        draft = read_book(book, name=survey.name).draft
        content = draft.measures if draft and draft.measures else None
        if digest_of(content or {"essentials": [], "measures": []}) != seen:
            raise ChangeConflict(
                _(
                    "Somebody else has changed the measures meanwhile. Check them,"
                    " then make your change again."
                )
            )
        names = [book.sheet(SHEET).value(row, "name") for row in book.sheet(SHEET).rows]
        if new_name and new_name != name and new_name in names:
            reason = _("another measure or theme has this name already")
            raise ValidationError({"name": [reason]})
        command(book)
        _raise_problems(book, survey, new_name)

    about = {"name": new_name or name}
    change_draft(survey, checked, action="set_measure", by=by, about=about)
    survey.refresh_from_db(fields=["last_change"])
    refresh_rows(survey, must_work=False)


def _write(
    book: DraftBook,
    kind: str,
    name: str,
    cells: Mapping[str, str] | None,
    entry: EssentialDefinition | MeasureDefinition | None,
) -> None:
    measures = book.sheet(SHEET)
    row = _row_of(book, kind, name) if name else None
    if cells is None or entry is None:
        if row is not None:
            book.delete(measures, [row.key])
        return
    if row is None:
        last = measures.rows[-1].key if measures.rows else ""
        type_ = measures.column("type")
        [key] = book.insert(measures, last, [{type_: kind}])
        row = measures.row(key)
    texts = {
        measures.column(column): text
        for column, text in cells.items()
        # What means the same stays as it was written.
        if _words(text) != _words(measures.value(row, column))
        and (text != POSITIVE or measures.value(row, column))
    }
    texts |= _texts(book, "label", entry["label"], row)
    texts |= _texts(book, "description", entry["description"], row)
    book.set_cells(measures, row.key, texts)


def _row_of(book: DraftBook, kind: str, name: str) -> Row | None:
    measures = book.sheet(SHEET)
    for row in measures.rows:
        is_essential = measures.value(row, "type").lower() == ESSENTIAL
        if measures.value(row, "name") == name and is_essential == (kind == ESSENTIAL):
            return row
    raise ChangeConflict(_("Somebody has deleted this meanwhile."))


def _texts(book: DraftBook, field: str, texts: Texts, row: Row) -> dict[int, str]:
    measures = book.sheet(SHEET)
    written = {}
    for language in languages_of(book):
        text = texts.get(language.code, "")
        if text or measures.column_or_none(field, language):
            written[text_column(book, measures, field, language)] = text
    return {n: text for n, text in written.items() if row.cells.get(n, "") != text}


def _raise_problems(book: DraftBook, survey: Survey, name: str) -> None:
    """Raise what the reader says of the row with a name, by column."""
    measures = book.sheet(SHEET)
    reading = read_book(book, name=survey.name)
    keys = {column.header: column.key for column in measures.known.known.values()}
    errors: dict[str, list[str]] = {}
    for row in measures.rows:
        if name and measures.value(row, "name") == name:
            for problem in reading.problems_by_key.get(row.key, ()):
                column = keys.get(problem.column, problem.column)
                errors.setdefault(column, []).append(problem.reason)
    if errors:
        raise ValidationError(errors)
