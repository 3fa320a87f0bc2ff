"""List and change the texts of a draft in one language."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain, pairwise

from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts.models import User
from survey.instrument.definitions.schema import VISIBLE
from survey.instrument.drafts.checks.texts import shortened
from survey.instrument.drafts.commands import (
    default_language,
    kind_of,
    languages_of,
    set_text,
    text_column,
)
from survey.instrument.drafts.moves import is_grid
from survey.instrument.drafts.reading import DraftReading
from survey.instrument.drafts.store import change_draft
from survey.instrument.drafts.workbook import ChangeConflict, DraftBook, Row, Sheet
from survey.instrument.xlsform.languages import Language
from survey.instrument.xlsform.names import has_open_reference, normalised, quoted_names
from survey.instrument.xlsform.types import parse_type
from survey.models import DraftChange, Survey

FIELDS: Mapping[str, tuple[str, ...]] = {
    "settings": ("title",),
    "survey": ("label", "hint", "guidance", "required_message", "constraint_message"),
    "choices": ("label",),
    "measures": ("label", "description"),
}
FIELD_WORDS = {
    "title": gettext_lazy("title"),
    "description": gettext_lazy("description"),
    "hint": gettext_lazy("hint"),
    "guidance": gettext_lazy("guidance"),
    "required_message": gettext_lazy("message if it is required"),
    "constraint_message": gettext_lazy("message if it is not valid"),
}
# Characters that cannot be seen, and mean something: for right-to-left texts, emoji
# and blanks that do not break.
MEANINGFUL = "\n\t\u200c\u200d\u200e\u200f\u00a0\ufe0f"
# Of the changes since a text was shown, to name who has changed it.
MOST_READ = 200


class TextChanged(ChangeConflict):
    """Somebody has changed the text meanwhile; `text` is what it is now."""

    def __init__(self, text: str, *, is_same_user: bool = False) -> None:
        super().__init__(
            _("You changed this text in another window.")
            if is_same_user
            else _("Somebody has changed this text meanwhile.")
        )
        self.text = text


@dataclass(frozen=True, slots=True)
class DraftText:
    """A text in one language beside the original, and where it stands."""

    sheet: str
    key: str
    field: str
    # The name of the question, option, measure or page.
    name: str
    # Where it is, in words.
    at: str
    original: str
    text: str
    is_stale: bool

    @property
    def place(self) -> str:
        words = FIELD_WORDS.get(self.field)
        if words is None:
            return self.at
        return f"{self.at}, {words}" if self.at else str(words).capitalize()

    @property
    def place_beside_original(self) -> str:
        """Return the place without the text itself, which is shown below it."""
        return self.place.removesuffix(f": {shortened(self.original)}")

    @property
    def state(self) -> str:
        """Return "missing", "stale" or "done"."""
        if not self.text:
            return "missing"
        return "stale" if self.is_stale else "done"

    @property
    def id(self) -> str:
        return f"{self.sheet}-{self.key}-{self.field}"


# By sheet and key of a row.
Places = Mapping[tuple[str, str], str]


def places_of(reading: DraftReading) -> dict[tuple[str, str], str]:
    """Say where the texts of a draft are: page 3, an option of a question."""
    book = reading.book
    first = default_language(book)
    survey = book.sheet("survey")
    label = _column(survey, "label", first, first)
    page_by_key = _pages_by_key(reading)
    places: dict[tuple[str, str], str] = {}
    by_options: dict[str, str] = {}
    page = ""
    # From below: what begins a page is above the first question on it.
    below = Row("")
    for row in reversed(survey.rows):
        if number := page_by_key.get(row.key):
            page = _("Page %(number)s") % {"number": number}
        text = shortened(row.cells.get(label, ""))
        question = ": ".join(filter(None, [page, text or _name_of(survey, row)]))
        places["survey", row.key] = question
        typed = below if is_grid(survey, row) else row
        if options := parse_type(survey.value(typed, "type")).option_set:
            by_options[options] = question
        below = row
    choices = book.sheet("choices")
    for row in choices.rows:
        listed = choices.value(row, "list")
        places["choices", row.key] = (
            _("%(question)s, option") % {"question": by_options[listed]}
            if listed in by_options
            else _name_of(choices, row)
        )
    for row in book.sheet("measures").rows:
        places["measures", row.key] = _("Measure %(name)s") % {
            "name": _name_of(book.sheet("measures"), row)
        }
    return places


def _pages_by_key(reading: DraftReading) -> dict[str, int]:
    if reading.draft is None:
        return {}
    return {
        reading.rows[item.row.number].key: number
        for number, page in enumerate(reading.draft.pages, 1)
        for item in page.items()
    }


def texts_in(
    book: DraftBook, language: Language, places: Places | None = None
) -> list[DraftText]:
    """Return the title, the questions, each with its options, and the measures.

    Lists of options that no question uses are left out.
    """
    by_row: dict[str, dict[str, list[DraftText]]] = {}
    for name, fields in FIELDS.items():
        rows = by_row[name] = {}
        if name in book.sheets:
            sheet = book.sheets[name]
            for text in _texts_of_sheet(book, sheet, fields, language, places or {}):
                rows.setdefault(text.key, []).append(text)
    keys_by_list: dict[str, list[str]] = {}
    choices = book.sheet("choices")
    for row in choices.rows:
        keys_by_list.setdefault(choices.value(row, "list"), []).append(row.key)
    survey = book.sheet("survey")
    texts = [*chain.from_iterable(by_row["settings"].values())]
    for row, statement in pairwise([*survey.rows, Row("")]):
        texts += by_row["survey"].get(row.key, [])
        # The answers of a grid stand above its statements, as respondents see them.
        typed = statement if is_grid(survey, row) else row
        options = parse_type(survey.value(typed, "type")).option_set
        # A list of several questions stands at the first of them.
        for key in keys_by_list.pop(options, []) if options else []:
            texts += by_row["choices"].get(key, [])
    return [*texts, *chain.from_iterable(by_row["measures"].values())]


def _texts_of_sheet(
    book: DraftBook,
    sheet: Sheet,
    fields: tuple[str, ...],
    language: Language,
    places: Places,
) -> Iterator[DraftText]:
    first = default_language(book)
    columns = {
        field: (
            _column(sheet, field, first, first),
            _column(sheet, field, language, first),
        )
        for field in fields
    }
    for row in sheet.rows:
        for field, (original, number) in columns.items():
            text = DraftText(
                sheet.name,
                row.key,
                field,
                (name := _name_of(sheet, row)),
                places.get((sheet.name, row.key), name),
                row.cells.get(original, ""),
                row.cells.get(number, ""),
                number in row.stale,
            )
            is_asked = field == "label" and _is_shown(sheet, row)
            if text.original or text.text or is_asked:
                yield text


def _column(sheet: Sheet, field: str, language: Language, first: Language) -> int:
    """Return the number of the column, or -1 if there is none yet."""
    number = sheet.column_or_none(field, language)
    if number is None and language.code == first.code:
        number = sheet.column_or_none(field)
    return -1 if number is None else number


def _name_of(sheet: Sheet, row: Row) -> str:
    if sheet.name == "settings":
        return ""
    if sheet.name == "choices":
        return f"{sheet.value(row, 'list')} {sheet.value(row, 'name')}"
    return sheet.value(row, "name")


def _is_shown(sheet: Sheet, row: Row) -> bool:
    return sheet.name == "survey" and kind_of(sheet, row) in VISIBLE


def save_text(
    *,
    survey: Survey,
    sheet: str,
    key: str,
    field: str,
    code: str,
    text: str,
    seen: str,
    by: User,
) -> DraftText:
    """Change one text; `seen` is what the author saw before. Return it as it is now.

    Raises TextChanged if it is neither of both, ChangeConflict, and ValidationError
    for a text that cannot be used.
    """
    if field not in FIELDS.get(sheet, ()):
        raise ChangeConflict(_("Somebody has deleted this meanwhile."))
    text, seen = normalised(tidied(text)), tidied(seen)

    def command(book: DraftBook) -> DraftText:
        languages = {language.code: language for language in languages_of(book)}
        if code not in languages:
            raise ChangeConflict(_("The survey no longer has this language."))
        target = book.sheet(sheet)
        row = target.row(key)
        current = row.cells.get(text_column(book, target, field, languages[code]), "")
        if current not in (seen, text):
            author = _author_of(survey, sheet, key)
            raise TextChanged(current, is_same_user=author == by.pk)
        before = _one(book, target, row, field, languages[code])
        if text != current:
            is_first = code == next(iter(languages))
            kinds = kinds_by_name(book)
            if problem := problem_of(text, kinds, before, is_first=is_first):
                raise ValidationError(problem)
        set_text(book, sheet, key, field=field, language=languages[code], text=text)
        return _one(book, target, row, field, languages[code])

    about = {"field": field, "language": code, "text": text[:80]}
    return change_draft(survey, command, action="set_text", by=by, about=about)


def _author_of(survey: Survey, sheet: str, key: str) -> int | None:
    """Return who has changed a row last. 1 statement."""
    changes = DraftChange.objects.filter(survey=survey).order_by("-number")
    for author, operations in changes.values_list("by", "operations")[:MOST_READ]:
        for operation in operations:
            if (operation["sheet"], operation.get("key")) == (sheet, key):
                return int(author) if author else None
    return None


def _one(
    book: DraftBook, sheet: Sheet, row: Row, field: str, language: Language
) -> DraftText:
    alone = Sheet(sheet.name, sheet.columns, [row])
    texts = _texts_of_sheet(book, alone, (field,), language, {})
    name = _name_of(sheet, row)
    blank = DraftText(sheet.name, row.key, field, name, name, "", "", False)
    return next(texts, blank)


def tidied(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n").strip()


def kinds_by_name(book: DraftBook) -> dict[str, str]:
    survey = book.sheet("survey")
    return {survey.value(row, "name"): kind_of(survey, row) for row in survey.rows}


def problem_of(
    text: str, kinds: Mapping[str, str], place: DraftText, *, is_first: bool
) -> str:
    """Return why a text cannot be used, or an empty text."""
    if not text:
        needed = is_first and place.field in ("label", "title") and place.text
        return _("Enter a text: this is the survey’s first language.") if needed else ""
    if not all(sign.isprintable() or sign in MEANINGFUL for sign in text):
        return _("Remove the characters that cannot be seen.")
    if has_open_reference(text):
        return _("A ${ is never closed. Write a name like ${name}.")
    for name in quoted_names(text):
        if kinds.get(name, "begin") in ("begin", "end"):
            return _("There is no question ${%(name)s} in this survey.") % {
                "name": name
            }
        if kinds[name] == "note":
            return _("${%(name)s} is a note, which has no answer.") % {"name": name}
    return "" if is_first else token_problem(place.original, text)


def token_problem(original: str, translation: str) -> str:
    """Return which `${name}` a translation lacks or has too often, or ""."""
    wanted, given = Counter(quoted_names(original)), Counter(quoted_names(translation))
    if missing := wanted - given:
        return _("Add ${%(name)s}, which the original has.") % {"name": min(missing)}
    if extra := given - wanted:
        return _("Remove ${%(name)s}, which the original does not have there.") % {
            "name": min(extra)
        }
    return ""
