"""Keep which surveys have which questions of the bank."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from django.db.models import QuerySet

from survey.models import BankQuestion, BankQuestionUse, Survey


def questions_marked(marks: Iterable[str]) -> dict[str, BankQuestion]:
    """Return questions of the bank by their marks, `CODE VERSION`. 1 statement.

    0 statements if there are no marks; those of no question are left out.
    """
    versions = {mark: version for mark in marks if (version := _version_of(mark))}
    if not versions:
        return {}
    rows = BankQuestion.objects.filter(
        code__in={code for code, _number in versions.values()},
        version__in={number for _code, number in versions.values()},
    )
    return {row.mark: row for row in rows if row.mark in versions}


def _version_of(mark: str) -> tuple[str, int] | None:
    code, _blank, version = mark.partition(" ")
    # Longer numbers are of no version.
    if not (version.isascii() and version.isdecimal() and len(version) < 6):
        return None
    return code, int(version)


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
