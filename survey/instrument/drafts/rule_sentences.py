"""Say conditions in words."""

from __future__ import annotations

from datetime import date

from django.utils.formats import date_format
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from survey.instrument.definitions.schema import MOMENTS
from survey.instrument.drafts.conditions import (
    COUNTS,
    REFERENCE,
    TODAY,
    Condition,
    Group,
    Operator,
    Subject,
    Subjects,
    is_day,
)

# For the answer in a sentence, and as a choice in a form.
COMPARISONS: dict[Operator, tuple[str | Promise, str | Promise]] = {
    Operator.IS: (gettext_lazy("{} is {}"), gettext_lazy("is")),
    Operator.IS_NOT: (gettext_lazy("{} is not {}"), gettext_lazy("is not")),
    Operator.INCLUDES: (gettext_lazy("{} includes {}"), gettext_lazy("includes")),
    Operator.NOT_INCLUDES: (
        gettext_lazy("{} does not include {}"),
        gettext_lazy("does not include"),
    ),
    Operator.CONTAINS: (gettext_lazy("{} contains {}"), gettext_lazy("contains")),
    Operator.NOT_CONTAINS: (
        gettext_lazy("{} does not contain {}"),
        gettext_lazy("does not contain"),
    ),
    Operator.MORE: (gettext_lazy("{} is more than {}"), gettext_lazy("is more than")),
    Operator.AT_LEAST: (
        gettext_lazy("{} is at least {}"),
        gettext_lazy("is at least"),
    ),
    Operator.LESS: (gettext_lazy("{} is less than {}"), gettext_lazy("is less than")),
    Operator.AT_MOST: (gettext_lazy("{} is at most {}"), gettext_lazy("is at most")),
    Operator.AMONG: (
        gettext_lazy("{} is one of the answers to {}"),
        gettext_lazy("is one of the answers to"),
    ),
    Operator.NOT_AMONG: (
        gettext_lazy("{} is none of the answers to {}"),
        gettext_lazy("is none of the answers to"),
    ),
    Operator.ANSWERED: (gettext_lazy("{} is not empty"), gettext_lazy("is answered")),
    Operator.NOT_ANSWERED: (
        gettext_lazy("{} is empty"),
        gettext_lazy("is not answered"),
    ),
}
MOMENT_COMPARISONS: dict[Operator, tuple[str | Promise, str | Promise]] = {
    Operator.MORE: (gettext_lazy("{} is after {}"), gettext_lazy("is after")),
    Operator.AT_LEAST: (
        gettext_lazy("{} is {} or later"),
        gettext_lazy("is this or later"),
    ),
    Operator.LESS: (gettext_lazy("{} is before {}"), gettext_lazy("is before")),
    Operator.AT_MOST: (
        gettext_lazy("{} is {} or earlier"),
        gettext_lazy("is this or earlier"),
    ),
}
CHARACTERS = {
    Operator.COUNT_AT_LEAST: gettext_lazy("length is at least"),
    Operator.COUNT_AT_MOST: gettext_lazy("length is at most"),
    Operator.COUNT_IS: gettext_lazy("length is"),
}
CHOSEN = {
    Operator.COUNT_AT_LEAST: gettext_lazy("number chosen is at least"),
    Operator.COUNT_AT_MOST: gettext_lazy("number chosen is at most"),
    Operator.COUNT_IS: gettext_lazy("number chosen is"),
}


def operator_label(subject: Subject, operator: Operator) -> str:
    """Name an operator, to be chosen after a subject and before a value."""
    if operator in COUNTS:
        is_choice = subject.kind == "select_multiple"
        return str((CHOSEN if is_choice else CHARACTERS)[operator])
    return str(comparison_words(subject)[operator][1])


def comparison_words(
    subject: Subject,
) -> dict[Operator, tuple[str | Promise, str | Promise]]:
    return COMPARISONS | MOMENT_COMPARISONS if subject.kind in MOMENTS else COMPARISONS


def sentence_of(group: Group, subjects: Subjects) -> str:
    """Say a group as the part of a sentence that follows *if*."""
    return _joined(group, subjects, is_inner=False)


def _joined(group: Group, subjects: Subjects, *, is_inner: bool) -> str:
    parts = [
        _joined(part, subjects, is_inner=True)
        if isinstance(part, Group)
        else _condition(part, subjects)
        for part in group.parts
    ]
    joined = (_(" and ") if group.join == "all" else _(" or ")).join(parts)
    if group.join == "none":
        joined = _("it is not true that %(condition)s") % {"condition": joined}
    return f"({joined})" if is_inner else joined


def _condition(condition: Condition, subjects: Subjects) -> str:
    subject, operator = subjects[condition.item], condition.operator
    answer = phrase_of(subject)
    if operator in COUNTS:
        return _count(answer, subject, operator, int(condition.value))
    words = str(comparison_words(subject)[operator][0])
    return words.format(answer, value_words(condition, subjects))


def phrase_of(subject: Subject) -> str:
    return subject.phrase or f"“{subject.label or subject.name}”"


def value_words(condition: Condition, subjects: Subjects) -> str:
    subject, value = subjects[condition.item], condition.value
    reference = REFERENCE.fullmatch(value)
    if reference:
        return phrase_of(subjects[reference[1]])
    for option, label in subject.options:
        if option == value:
            return f"“{label}”"
    if subject.kind in MOMENTS:
        if value == TODAY:
            return _("today")
        return date_format(date.fromisoformat(value)) if is_day(value) else value
    return f"“{value}”" if subject.kind in ("text", "column") else value


def _count(answer: str, subject: Subject, operator: Operator, number: int) -> str:
    if subject.kind == "select_multiple":
        words = {
            Operator.COUNT_AT_LEAST: ngettext(
                "%(answer)s has at least %(number)s option chosen",
                "%(answer)s has at least %(number)s options chosen",
                number,
            ),
            Operator.COUNT_AT_MOST: ngettext(
                "%(answer)s has at most %(number)s option chosen",
                "%(answer)s has at most %(number)s options chosen",
                number,
            ),
            Operator.COUNT_IS: ngettext(
                "%(answer)s has exactly %(number)s option chosen",
                "%(answer)s has exactly %(number)s options chosen",
                number,
            ),
        }
    else:
        words = {
            Operator.COUNT_AT_LEAST: ngettext(
                "%(answer)s has at least %(number)s character",
                "%(answer)s has at least %(number)s characters",
                number,
            ),
            Operator.COUNT_AT_MOST: ngettext(
                "%(answer)s has at most %(number)s character",
                "%(answer)s has at most %(number)s characters",
                number,
            ),
            Operator.COUNT_IS: ngettext(
                "%(answer)s has exactly %(number)s character",
                "%(answer)s has exactly %(number)s characters",
                number,
            ),
        }
    return words[operator] % {"answer": answer, "number": number}
