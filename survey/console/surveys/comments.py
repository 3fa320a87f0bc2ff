"""Comments of colleagues at the questions of a draft."""

from __future__ import annotations

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_POST, require_safe

from accounts import forms
from accounts.access import needs
from accounts.http import StaffRequest
from accounts.permissions import Capability
from survey.console.surveys.views import survey_or_404
from survey.instrument.definitions.ownership import may_change
from survey.instrument.drafts.comments import (
    add_comment,
    comments_of,
    is_in,
    open_comments,
    set_resolved,
    threads_of,
)
from survey.instrument.drafts.reading import read_rows_of
from survey.instrument.drafts.texts import places_of
from survey.models import Survey
from survey.models.comment import LONGEST_COMMENT

# What an address says for the survey as a whole, whose key is "".
WHOLE = "survey"
MOST_SHOWN = 200


class CommentForm(forms.Form):
    text = forms.CharField(
        label=gettext_lazy("Comment"),
        max_length=LONGEST_COMMENT,
        widget=forms.Textarea(attrs={"rows": 3}),
        error_messages={"required": gettext_lazy("Enter a comment.")},
    )


def draft_to_see_or_404(request: StaffRequest, pk: int) -> Survey:
    """Return a draft that the user may see, also if they may not change it."""
    survey = survey_or_404(request, pk)
    if survey.published_at is not None:
        raise Http404
    return survey


@needs(Capability.MANAGE_SURVEYS)
@require_safe
def survey_edit_comments(request: StaffRequest, pk: int) -> HttpResponse:
    """List the open comments of a draft, or those that are resolved."""
    survey = draft_to_see_or_404(request, pk)
    is_resolved = request.GET.get("show") == "resolved"
    comments = comments_of(survey).filter(resolved_at__isnull=not is_resolved)
    threads = threads_of(comments[:MOST_SHOWN], survey)
    places = places_of(read_rows_of(survey, with_pyxform=False))
    # In the order of the survey; those of deleted questions at the end.
    order = [key for sheet, key in reversed(places) if sheet == "survey"]
    ranks = {"": -1, **{key: rank for rank, key in enumerate(order)}}
    threads.sort(key=lambda thread: ranks.get(thread.comment.key, len(ranks)))
    book = read_rows_of(survey, with_pyxform=False).book
    named = [
        (row.key, places["survey", row.key])
        for row in book.sheet("survey").rows
        if book.sheet("survey").value(row, "name")
    ]
    return render(
        request,
        "survey/console/editor/comments.html",
        {
            "survey": survey,
            "threads": threads,
            "is_resolved": is_resolved,
            "may_change": may_change(request.permissions, survey),
            "questions": named,
            "most_shown": MOST_SHOWN,
            "longest": LONGEST_COMMENT,
        },
    )


@needs(Capability.MANAGE_SURVEYS)
@require_safe
def survey_edit_comments_count(request: StaffRequest, pk: int) -> HttpResponse:
    """Return the link to all comments, with the number of open ones."""
    survey = draft_to_see_or_404(request, pk)
    return render(
        request,
        "survey/console/editor/_comments_link.html",
        {"survey": survey, "open_count": open_comments(survey).count()},
    )


@needs(Capability.MANAGE_SURVEYS)
@require_POST
def survey_edit_comments_add(request: StaffRequest, pk: int) -> HttpResponse:
    """Add a comment to the question that a form names."""
    return _add(request, pk, request.POST.get("key", ""))


@needs(Capability.MANAGE_SURVEYS)
def survey_edit_comments_at(request: StaffRequest, pk: int, key: str) -> HttpResponse:
    """Show the comments at one question, and add one or a reply."""
    key = "" if key == WHOLE else key
    if request.method == "POST":
        return _add(request, pk, key)
    survey = draft_to_see_or_404(request, pk)
    if not is_in(survey, key):
        raise Http404
    return _render(request, survey, key, CommentForm())


def _add(request: StaffRequest, pk: int, key: str) -> HttpResponse:
    survey = draft_to_see_or_404(request, pk)
    replies_to = None
    number = request.POST.get("replies_to", "")
    if number.isascii() and number.isdecimal() and len(number) < 19:
        replies_to = comments_of(survey).filter(pk=number, key=key).first()
    if number and replies_to is None:
        raise Http404
    # A question may be deleted while somebody writes about it.
    if replies_to is None and not is_in(survey, key):
        raise Http404
    form = CommentForm(request.POST)
    if form.is_valid():
        add_comment(
            survey=survey,
            key=key,
            text=form.cleaned_data["text"],
            by=request.user,
            replies_to=replies_to,
        )
    if request.htmx:
        shown = CommentForm() if form.is_valid() else form
        return _render(request, survey, key, shown, number)
    if form.is_valid():
        messages.success(request, _("The comment was added."))
    else:
        messages.error(request, str(form.errors["text"][0]))
    return redirect("survey_edit_comments", pk)


@needs(Capability.MANAGE_SURVEYS)
@require_POST
def survey_edit_comments_resolve(
    request: StaffRequest, pk: int, comment: int
) -> HttpResponse:
    """Resolve a comment, or open it again."""
    survey = draft_to_see_or_404(request, pk)
    row = get_object_or_404(comments_of(survey), pk=comment)
    set_resolved(row, is_resolved="open" not in request.POST, by=request.user)
    if request.htmx:
        return _render(request, survey, row.key, CommentForm())
    return redirect("survey_edit_comments", pk)


def _render(
    request: StaffRequest,
    survey: Survey,
    key: str,
    form: CommentForm,
    replying_to: str = "",
) -> HttpResponse:
    threads = threads_of(comments_of(survey).filter(key=key), survey)
    response = render(
        request,
        "survey/console/editor/_comments.html",
        {
            "survey": survey,
            "at": key or WHOLE,
            "threads": [row for row in threads if row.comment.resolved_at is None],
            "resolved": [row for row in threads if row.comment.resolved_at],
            "form": form,
            "replying_to": replying_to,
            "longest": LONGEST_COMMENT,
        },
    )
    if request.method == "POST":
        # The number in the head of the editor is asked for again.
        response["HX-Trigger"] = "comments"
    return response
