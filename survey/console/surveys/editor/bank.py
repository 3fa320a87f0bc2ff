"""Insert questions of the bank into a draft, unlock and restore them: acts."""

from __future__ import annotations

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from survey.instrument.bank.content import marks_in, texts_of
from survey.instrument.bank.inserting import (
    insert_questions,
    restore_question,
    unlock_question,
)
from survey.instrument.bank.locks import locked_rows
from survey.instrument.bank.questions import current_questions
from survey.instrument.drafts.commands import CommandRefused, languages_of
from survey.instrument.drafts.workbook import DraftBook
from survey.models import BankQuestion


def insert_from_bank(
    book: DraftBook, pks: list[str], *, after: str, is_locked: bool
) -> tuple[str, str]:
    """Insert questions by their keys; return the first one's row and a message."""
    by_pk = {str(row.pk): row for row in current_questions() if not row.retired_at}
    questions = [by_pk[pk] for pk in dict.fromkeys(pks) if pk in by_pk]
    if not questions:
        raise CommandRefused(_("Choose at least one question."))
    keys = insert_questions(book, questions, after=after, is_locked=is_locked)
    return keys[0], ngettext(
        "%(count)s question is inserted.",
        "%(count)s questions are inserted.",
        len(keys),
    ) % {"count": len(keys)}


def unlock(book: DraftBook, key: str) -> str:
    return _("Unlocked. Its variable is now called %(name)s.") % {
        "name": unlock_question(book, key)
    }


def restore(book: DraftBook, key: str, *, is_last: bool = False) -> str:
    """Make a row what the bank has, in its version or in the last one."""
    question = locked_rows(book).questions.get(key)
    if question is None:
        raise CommandRefused(_("This question is not locked."))
    if is_last:
        question = last_version(question)
    restore_question(book, key, question)
    return _("It is as in the question bank, version %(version)s.") % {
        "version": question.version
    }


def last_version(question: BankQuestion) -> BankQuestion:
    return BankQuestion.objects.filter(code=question.code).order_by("-version")[0]


def lock_of(book: DraftBook, key: str) -> dict[str, object] | None:
    """Return what the editor says of a locked row. 2 statements; 0 if it is none."""
    if key not in marks_in(book):
        return None
    locked = locked_rows(book)
    question = locked.questions.get(key)
    if question is None:
        return None
    last = last_version(question)
    survey, languages = book.sheet("survey"), languages_of(book)
    texts = texts_of(survey, survey.row(key), "label", languages)
    codes = question.content["texts"]["label"].keys() - texts.keys()
    return {
        "question": question,
        # Or has texts in a language that the survey has got since.
        "is_incomplete": any(row.question == key for row in locked.differences)
        or any(language.code in codes for language in languages),
        "later": last if last.pk != question.pk and not last.retired_at else None,
    }
