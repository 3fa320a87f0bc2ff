"""Say in an author's words where a draft has a problem, and what to do about it.

The reader of workbooks names sheets, rows and variables; an author of the editor sees
questions with numbers and texts.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, gettext_noop

from survey.instrument.definitions.schema import ANSWERABLE
from survey.instrument.drafts.checks.texts import shortened
from survey.instrument.drafts.commands import default_language, kind_of
from survey.instrument.drafts.reading import DraftReading
from survey.instrument.drafts.workbook import Row, Sheet
from survey.instrument.xlsform.problems import Problem
from survey.instrument.xlsform.types import parse_type

RULES = ("relevant", "constraint", "required", "choice_filter", "calculation")

# What the reader says, and what the author is told. `question` is the one that is
# named in it.
WORDS = (
    (
        gettext_noop("the question has no label"),
        gettext_lazy("It has no text. Write one, or delete the question."),
    ),
    (
        gettext_noop("${%(name)s} is a note, which has no answer"),
        gettext_lazy("It depends on %(question)s, which is a text without an answer."),
    ),
    (
        gettext_noop("${%(name)s} has no options"),
        gettext_lazy("It shows the option chosen in %(question)s, which has none."),
    ),
    (
        gettext_noop("depends on itself: %(path)s"),
        gettext_lazy(
            "Its rule waits for its own answer, perhaps by way of other questions."
            " Change the rule."
        ),
    ),
    (
        gettext_noop("a ${ is never closed"),
        gettext_lazy("A piece of text that repeats an answer is broken off."),
    ),
    (
        gettext_noop("names no list of options"),
        gettext_lazy("It has no options. Choose its type again."),
    ),
    (
        gettext_noop("the option has no value"),
        gettext_lazy("An option has no value. Write one, or delete the option."),
    ),
    (
        gettext_noop("the option has no text"),
        gettext_lazy("It has no text. Write one, or delete the option."),
    ),
    (
        gettext_noop("the name is used in row %(first)s already"),
        gettext_lazy("Another question has the same variable name. Change one."),
    ),
    (
        gettext_noop("the list %(name)s already has this value in row %(first)s"),
        gettext_lazy("Two of its options have the same value. Change one of them."),
    ),
    (
        gettext_noop("the survey has no questions"),
        gettext_lazy("It has no questions. Add one."),
    ),
    (
        gettext_noop("nothing in it can be answered"),
        gettext_lazy("It has no question that can be answered. Add one."),
    ),
)
DELETED = gettext_noop("there is no item ${%(name)s}%(hint)s")


@dataclass(frozen=True, slots=True)
class DraftPlace:
    """A place in a draft: `name` is such as "Question 7 (page 2)".

    `key` is that of the row in the survey sheet where it is edited, or "".
    """

    name: str
    text: str = ""
    key: str = ""

    def __str__(self) -> str:
        return f"{self.name}: {self.text}" if self.text else self.name


class DraftWords:
    """The numbers and texts by which an author knows the questions of a draft."""

    def __init__(self, reading: DraftReading) -> None:
        self.reading = reading
        self.survey = reading.book.sheet("survey")
        self.pages: dict[str, int] = {}
        self.numbers: dict[str, int] = {}
        for page_number, page in enumerate(
            reading.draft.pages if reading.draft else ()
        ):
            # As the outline of the editor counts them.
            for item in sorted(page.items(), key=lambda item: item.row.number):
                key = reading.rows[item.row.number].key
                self.pages[key] = page_number + 1
                if item.kind in ANSWERABLE and key not in self.numbers:
                    self.numbers[key] = len(self.numbers) + 1
            if page.row is not None:
                self.pages[reading.rows[page.row.number].key] = page_number + 1
        self.rows = {
            name: row
            for row in reversed(self.survey.rows)
            if (name := self.survey.value(row, "name"))
        }

    def sentence(self, problem: Problem) -> str:
        """Say what is wrong, and what to do, without names of variables and rows."""
        if match := _match(DELETED, problem.reason):
            if self._column(problem) in RULES:
                return _(
                    "This depends on a question that was deleted. Change the rule, or"
                    " remove it."
                )
            return _(
                "Its text repeats the answer to a question that was deleted. Take it"
                " out of the text."
            )
        for reason, words in WORDS:
            if match := _match(reason, problem.reason):
                name = match.groupdict().get("name", "")
                return str(words) % {"question": self.question(name)}
        named = re.sub(
            r"\$\{\s*([^{}]*?)\s*\}",
            lambda match: self.question(match[1]),
            problem.reason,
        )
        return f"{named[:1].upper()}{named[1:]}."

    def question(self, name: str) -> str:
        """Return "question 7", or the text in quotation marks if it has no number."""
        row = self.rows.get(name)
        if row is None:
            return _("a question that was deleted")
        if number := self.numbers.get(row.key):
            return _("question %(number)s") % {"number": number}
        text = self.text_of(self.survey, row)
        return f"“{text}”" if text else _("a text")

    def place_of(self, sheet_name: str, key: str) -> DraftPlace:
        """Return the place of a row, or of the whole survey for another sheet."""
        sheet = self.reading.book.sheets.get(sheet_name)
        if (
            sheet is None
            or not key
            or sheet_name not in ("survey", "choices", "measures")
        ):
            return DraftPlace(_("The whole survey"))
        row = sheet.row(key)
        text = self.text_of(sheet, row)
        if sheet_name == "measures":
            return DraftPlace(_("Measure"), text)
        if sheet_name == "choices":
            listed = sheet.value(row, "list")
            for user in self.survey.rows:
                if parse_type(self.survey.value(user, "type")).option_set == listed:
                    place = self.place_of("survey", user.key)
                    name = _("%(question)s, option %(number)s") % {
                        "question": place.name,
                        "number": self._number_of_option(sheet, row),
                    }
                    return DraftPlace(name, text, user.key)
            return DraftPlace(_("Options that no question uses"), text)
        return DraftPlace(self._name_of(row), text, key)

    def _number_of_option(self, choices: Sheet, option: Row) -> int:
        listed = choices.value(option, "list")
        rows = [row for row in choices.rows if choices.value(row, "list") == listed]
        return [row.key for row in rows].index(option.key) + 1

    def _name_of(self, row: Row) -> str:
        page = self.pages.get(row.key)
        if number := self.numbers.get(row.key):
            return _("Question %(number)s (page %(page)s)") % {
                "number": number,
                "page": page,
            }
        if kind_of(self.survey, row) == "begin":
            return _("Page %(number)s") % {"number": page} if page else _("A heading")
        return (
            _("A text on page %(number)s") % {"number": page}
            if page
            else (_("A question"))
        )

    def text_of(self, sheet: Sheet, row: Row) -> str:
        language = default_language(self.reading.book)
        number = sheet.column_or_none("label", language) or sheet.column_or_none(
            "label"
        )
        return shortened(row.cells.get(number, "")) if number else ""

    def _column(self, problem: Problem) -> str:
        sheet = self.reading.book.sheets.get(problem.sheet)
        known = sheet.known.known.values() if sheet else ()
        keys: Mapping[str, str] = {column.header: column.key for column in known}
        return keys.get(problem.column, problem.column)


def _match(reason: str, text: str) -> re.Match[str] | None:
    """Compare what the reader says with one of its messages, in this language."""
    pattern = re.sub(r"%\\\((\w+)\\\)s|%\((\w+)\)s", _group, re.escape(_(reason)))
    return re.fullmatch(pattern, text)


def _group(match: re.Match[str]) -> str:
    return f"(?P<{match[1] or match[2]}>.*)"
