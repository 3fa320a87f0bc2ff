"""Add questions to the bank, make new versions, retire and restore them."""

from __future__ import annotations

from collections.abc import Mapping

from django.db import transaction
from django.http import HttpRequest
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts import audit
from accounts.models import User
from accounts.permissions import Permissions
from survey.instrument.bank.content import Content, content_of
from survey.instrument.definitions.ownership import surveys_for
from survey.instrument.drafts.commands import CommandRefused
from survey.instrument.drafts.store import load_book
from survey.instrument.xlsform.names import why_not_a_name
from survey.models import BankQuestion, Survey
from survey.models.bank_question import LONGEST_CODE


def current_questions() -> list[BankQuestion]:
    """Return the last version of each question, by code. 1 statement."""
    rows = BankQuestion.objects.order_by("code", "version")
    return list({row.code: row for row in rows}.values())


def may_change_bank(permissions: Permissions) -> bool:
    """Return whether the user may own surveys of the state."""
    return permissions.may_own(None)


@transaction.atomic
def add_questions(
    *,
    survey: Survey,
    names: Mapping[str, str],
    by: User,
    request: HttpRequest | None = None,
) -> list[BankQuestion]:
    """Add questions of a survey, by the names that they get in the bank.

    The name is the code as well, which stays when a later version is called otherwise.
    Raises CommandRefused, and adds nothing then.
    """
    book = load_book(survey)
    sheet = book.sheet("survey")
    rows = {sheet.value(row, "name"): row for row in sheet.rows}
    taken = _names_by_code()
    added = []
    for name, new_name in names.items():
        if name not in rows:
            raise CommandRefused(
                _("The survey has no question %(name)s.") % {"name": name}
            )
        content = content_of(book, rows[name]) | {"name": new_name}
        if new_name.casefold() in {
            known.casefold() for code, known in taken.items() for known in (code, known)
        }:
            raise CommandRefused(
                _(
                    "The bank has a question %(name)s already. Make a new version of"
                    " it, or choose another name."
                )
                % {"name": new_name}
            )
        taken[new_name] = new_name
        added.append(_create(new_name, 1, content, by, request))
    return added


@transaction.atomic
def add_version(
    *,
    question: BankQuestion,
    content: Content,
    by: User,
    request: HttpRequest | None = None,
) -> BankQuestion:
    """Make a new version of a question. Raises CommandRefused.

    Its type and the values of its options stay: other ones make another question.
    """
    versions = BankQuestion.objects.select_for_update().filter(code=question.code)
    last = versions.order_by("-version")[0]
    if last.pk != question.pk:
        raise CommandRefused(
            _("Somebody has made version %(version)s meanwhile. Start from that one.")
            % {"version": last.version}
        )
    if content == last.content:
        raise CommandRefused(_("Nothing is different from the version before."))
    taken = {
        name.casefold()
        for code, name in _names_by_code().items()
        if code != question.code
    }
    if content["name"].casefold() in taken:
        raise CommandRefused(
            _("Another question is called %(name)s.") % {"name": content["name"]}
        )
    return _create(last.code, last.version + 1, content, by, request)


def retire_question(
    *, question: BankQuestion, by: User, request: HttpRequest | None = None
) -> None:
    """Offer a question no longer, in any version; a second time is a no-op."""
    rows = BankQuestion.objects.filter(code=question.code, retired_at=None)
    if rows.update(retired_at=timezone.now(), retired_by=by):
        audit.record("retire bank question", by=by, request=request, subject=question)


def bring_back_question(
    *, question: BankQuestion, by: User, request: HttpRequest | None = None
) -> None:
    """Offer a question again; a second time is a no-op."""
    rows = BankQuestion.objects.filter(code=question.code, retired_at__isnull=False)
    if rows.update(retired_at=None, retired_by=None):
        audit.record(
            "bring back bank question", by=by, request=request, subject=question
        )


def surveys_with(permissions: Permissions, question: BankQuestion) -> list[Survey]:
    """Return the surveys with any version of a question that the user may see.

    Each has its `bank_version`. 2 statements.
    """
    uses = dict(
        BankQuestion.objects.filter(code=question.code)
        .exclude(uses=None)
        .values_list("uses__survey", "version")
    )
    surveys = (
        surveys_for(permissions)
        .filter(pk__in=uses)
        .select_related("district", "retirement")
        .order_by("-created_at")
    )
    listed = list(surveys)
    for survey in listed:
        survey.bank_version = uses[survey.pk]  # type: ignore[attr-defined]
    return listed


def _names_by_code() -> dict[str, str]:
    return {row.code: row.name for row in BankQuestion.objects.order_by("version")}


def _create(
    code: str, version: int, content: Content, by: User, request: HttpRequest | None
) -> BankQuestion:
    name = content["name"]
    if reason := why_not_a_name(name):
        raise CommandRefused(_("The name can’t be used: %(why)s.") % {"why": reason})
    if len(code) > LONGEST_CODE:
        raise CommandRefused(
            _("Use at most %(most)s characters.") % {"most": LONGEST_CODE}
        )
    question = BankQuestion.objects.create(
        code=code, version=version, content=content, by=by
    )
    audit.record("add bank question", by=by, request=request, subject=question)
    return question
