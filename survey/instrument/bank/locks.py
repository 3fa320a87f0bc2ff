"""Refuse changes of locked questions, and report those that differ from the bank.

A row is locked while its cell in the column `bank_question` has the mark of a
question. A draft without such a column costs no statement.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from django.utils.translation import gettext as _

from survey.instrument.bank.content import (
    MARK,
    Difference,
    differences,
    marks_in,
)
from survey.instrument.bank.uses import questions_marked
from survey.instrument.drafts.commands import CommandRefused
from survey.instrument.drafts.workbook import FIRST_ROW, DraftBook
from survey.instrument.xlsform.problems import Findings
from survey.models import BankQuestion


class QuestionIsLocked(CommandRefused):
    """The command would change what is locked; the message says what to do."""


@dataclass(frozen=True)
class LockedRows:
    """The locked rows of a draft: questions and variables' names by the rows' keys."""

    questions: dict[str, BankQuestion] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    differences: frozenset[Difference] = frozenset()


def locked_rows(book: DraftBook) -> LockedRows:
    """1 statement if there are marks, else none."""
    marks = marks_in(book)
    known = questions_marked(marks.values())
    questions = {key: known[mark] for key, mark in marks.items() if mark in known}
    if not questions:
        return LockedRows()
    survey = book.sheet("survey")
    return LockedRows(
        questions,
        {key: survey.value(survey.row(key), "name") for key in questions},
        frozenset(_differences(book, questions)),
    )


def refuse_changes(book: DraftBook, before: LockedRows) -> None:
    """Raise QuestionIsLocked if a command has changed what was locked before it.

    Also if it marks a question that is not as in the bank, or only removes a mark:
    answers to two different questions would have one name.
    """
    after = locked_rows(book)
    survey = book.sheet("survey")
    names = {row.key: survey.value(row, "name") for row in survey.rows}
    for key, name in before.names.items():
        if key not in after.questions and names.get(key) == name:
            raise _refusal(name)
    for difference in after.differences - before.differences:
        raise _refusal(
            before.names.get(difference.question) or names[difference.question]
        )


def _refusal(name: str) -> QuestionIsLocked:
    return QuestionIsLocked(
        _(
            "%(name)s is a question of the state and locked, with its options."
            " Unlock it to adapt a copy."
        )
        % {"name": name}
    )


def report_differences(book: DraftBook, findings: Findings) -> None:
    """Report each locked cell that differs from the bank, by row and column."""
    marks = marks_in(book)
    if not marks:
        return
    locked = locked_rows(book)
    for difference in _in_order(book, locked):
        sheet = book.sheet(difference.sheet)
        row = sheet.row(difference.key)
        number = next(
            (
                n
                for n, column in sheet.known.known.items()
                if column.key == difference.field
                and (column.language.code if column.language else "")
                in (difference.language, "")
                and row.cells.get(n)
            ),
            None,
        )
        findings.refuse(
            sheet.name,
            sheet.index(difference.key) + FIRST_ROW,
            sheet.columns[number - 1] if number else difference.field,
            _("differs from the state’s question %(mark)s: restore or unlock it")
            % {"mark": locked.questions[difference.question].mark},
            row.cells.get(number, "") if number else "",
        )
    for key, mark in marks.items():
        if key not in locked.questions:
            findings.warn(
                "survey",
                book.sheet("survey").index(key) + FIRST_ROW,
                MARK,
                _("the state has no such question: not locked"),
                mark,
            )


def _differences(
    book: DraftBook, questions: dict[str, BankQuestion]
) -> list[Difference]:
    contents = {key: question.content for key, question in questions.items()}
    return differences(book, contents)


def _in_order(book: DraftBook, locked: LockedRows) -> Iterator[Difference]:
    if locked.differences:
        yield from _differences(book, locked.questions)
