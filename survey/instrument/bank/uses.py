"""Keep which surveys have which questions of the bank."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from functools import reduce
from operator import or_

from django.db.models import Q, QuerySet

from survey.models import BankQuestion, BankQuestionUse, Survey


def questions_marked(marks: Iterable[str]) -> dict[str, BankQuestion]:
    """Return questions of the bank by their marks, `CODE VERSION`. 1 statement.

    0 statements if there are no marks; those of no question are left out.
    """
    versions = [version for mark in set(marks) if (version := _version_of(mark))]
    if not versions:
        return {}
    wanted = reduce(or_, versions)
    return {row.mark: row for row in BankQuestion.objects.filter(wanted)}


def _version_of(mark: str) -> Q | None:
    code, _blank, version = mark.partition(" ")
    # Longer numbers are of no version.
    if not (version.isascii() and version.isdecimal() and len(version) < 6):
        return None
    return Q(code=code, version=int(version))


def record_uses(survey: Survey, marks: Collection[str]) -> None:
    """Make these the questions of the bank that a survey has. 2 to 4 statements."""
    wanted = {question.pk for question in questions_marked(marks).values()}
    uses: QuerySet[BankQuestionUse] = survey.bank_uses.all()
    known = set(uses.values_list("question_id", flat=True))
    if known - wanted:
        uses.filter(question__in=known - wanted).delete()
    BankQuestionUse.objects.bulk_create(
        BankQuestionUse(survey=survey, question_id=pk) for pk in sorted(wanted - known)
    )
