"""Review what people wrote, and release single sentences."""

from __future__ import annotations

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import urlencode
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from accounts.access import needs
from accounts.http import StaffRequest
from accounts.language import language_to_read
from accounts.permissions import Capability
from reports.answers.texts import localizer_for
from reports.results.access import administration_or_404
from reports.results.comments import (
    CommentPage,
    may_review,
    read_comments,
    release_sentences,
    text_items,
    withdraw_sentence,
)
from survey.models import Administration
from survey.taking.published import published_survey

# Digits of the largest key that the database can store.
LONGEST_KEY = 19


@needs(Capability.SEE_RESPONSES)
def results_comments(request: StaffRequest, pk: int) -> HttpResponse:
    """Show what people wrote, release sentences and withdraw them.

    Only for users who see all responses of the administration.
    """
    administration = administration_or_404(request.permissions, pk)
    if not may_review(request.permissions, administration):
        raise Http404
    published = published_survey(administration.published_id)
    definition = published.definition
    localizer = localizer_for(definition, language_to_read(published.languages))
    questions = {
        name: localizer.plain(definition["items"][name].get("label")) or name
        for name in text_items(definition)
    }
    given = request.POST if request.method == "POST" else request.GET
    name = given.get("question") or next(iter(questions), "")
    start = given.get("start", "")
    if questions and name not in questions:
        raise Http404
    page = None
    if questions:
        try:
            item_id = definition["items"][name]["id"]
            page = read_comments(administration, name, item_id, start)
        except ValueError:
            raise Http404 from None
    if request.method == "POST" and page is not None:
        if "withdraw" in given:
            _withdraw(request, administration, name)
        else:
            _release(request, administration, name, page)
        query = urlencode({"question": name, **({"start": start} if start else {})})
        return redirect(f"{reverse('results_comments', args=[pk])}?{query}")
    return render(
        request,
        "reports/results_comments.html",
        {
            "administration": administration,
            "questions": questions,
            "question": name,
            "start": start,
            "page": page,
            "released": administration.released_sentences.filter(item=name)
            .select_related("released_by")
            .order_by("-released_at", "-pk"),
        },
    )


def _withdraw(request: StaffRequest, administration: Administration, item: str) -> None:
    key = request.POST["withdraw"]
    # Digits of other scripts, or thousands of them, are no key.
    is_key = key.isascii() and key.isdigit() and len(key) <= LONGEST_KEY
    sentence = administration.released_sentences.filter(
        item=item, pk=key if is_key else 0
    ).first()
    if sentence is not None:
        withdraw_sentence(sentence, by=request.user, request=request)
        messages.success(request, _("The sentence is not shown any more."))


def _release(
    request: StaffRequest,
    administration: Administration,
    item: str,
    page: CommentPage,
) -> None:
    asked = set(request.POST.getlist("sentence"))
    # Only what somebody wrote: nobody can put words into their mouths.
    chosen = [
        sentence.text
        for comment in page.comments
        for sentence in comment
        if sentence.text in asked and not sentence.is_too_long
    ]
    n = release_sentences(
        administration, item, chosen, by=request.user, request=request
    )
    if n:
        words = ngettext(
            "%(n)s sentence is released. Everyone who sees these results can read it"
            " now.",
            "%(n)s sentences are released. Everyone who sees these results can read"
            " them now.",
            n,
        )
        messages.success(request, words % {"n": n})
    else:
        messages.error(request, _("Choose the sentences to release first."))
