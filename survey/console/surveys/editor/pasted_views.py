"""Paste a questionnaire into a draft: show what it becomes, then insert it."""

from __future__ import annotations

import secrets

from django.contrib import messages
from django.http import Http404, HttpResponseBase, JsonResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import urlencode

from accounts.access import needs
from accounts.http import StaffRequest
from accounts.permissions import Capability
from survey.console.surveys.editor.acts import carry_out
from survey.console.surveys.editor.fields import Address, Fields
from survey.console.surveys.editor.pasted_form import EXAMPLE, ROLE_NAMES, Paste
from survey.console.surveys.views import own_survey_or_404
from survey.instrument.drafts.checks.texts import shortened
from survey.instrument.drafts.commands import CommandRefused, languages_of, title_of
from survey.instrument.drafts.store import AlreadyDone, load_book
from survey.instrument.drafts.workbook import ChangeConflict, DraftBook, LimitReached


@needs(Capability.MANAGE_SURVEYS)
def survey_edit_paste(request: StaffRequest, pk: int) -> HttpResponseBase:
    """Show a preview of pasted questions, or insert them below the selected row.

    As JSON, it asks whether to make questions of lines.
    """
    survey = own_survey_or_404(request, pk)
    if survey.published_at is not None or survey.corrects_id is not None:
        raise Http404
    refusal = ""
    if "act" in request.POST:
        try:
            outcome = carry_out(survey, request.POST, by=request.user)
        except AlreadyDone as repeated:
            return _to_editor(pk, repeated.change.about.get("at", ""))
        except (ChangeConflict, CommandRefused, LimitReached) as error:
            refusal = str(error)
        else:
            messages.success(request, outcome.message)
            return _to_editor(pk, outcome.at)
    book = load_book(survey)
    paste = Paste(request.POST, languages_of(book))
    if request.headers.get("Accept") == "application/json":
        return JsonResponse({"offer": paste.offer})
    after = request.POST.get("at") or request.GET.get("after", "")
    is_read = request.method == "POST"
    context = {
        "survey": survey,
        "title": title_of(book) or survey.name,
        "paste": paste,
        "cards": paste.cards() if is_read else [],
        "is_read": is_read,
        "refusal": refusal,
        "roles": [(role.value, words) for role, words in ROLE_NAMES.items()],
        "after": after,
        "example": EXAMPLE,
        "place": _place_of(book, after),
        # Another one for each preview: the same text may be inserted twice on purpose.
        "token": secrets.token_hex(8),
    }
    status = 422 if refusal else 200
    return render(request, "survey/console/editor/paste.html", context, status=status)


def _to_editor(pk: int, at: str) -> HttpResponseBase:
    return redirect(f"{reverse('survey_edit', args=[pk])}?{urlencode({'at': at})}")


def _place_of(book: DraftBook, key: str) -> str:
    """Return the text of the row below which questions go; "" without one."""
    sheet, fields = book.sheet("survey"), Fields(book)
    if key not in {row.key for row in sheet.rows}:
        return ""
    code = fields.languages[0].code
    return shortened(fields.read(Address("survey", key, "label", code)))
