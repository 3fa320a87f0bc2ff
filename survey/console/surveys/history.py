"""Show how a draft became what it is, restore it, and compare versions."""

from __future__ import annotations

from dataclasses import dataclass

from django.contrib import messages
from django.db.models import QuerySet
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from accounts.access import needs
from accounts.console.listing import Listing
from accounts.http import StaffRequest
from accounts.permissions import Capability
from survey.console.surveys.views import own_survey_or_404, survey_or_404
from survey.instrument.definitions.comparison import Comparison, compare
from survey.instrument.definitions.measures import measures_of
from survey.instrument.definitions.ownership import surveys_for
from survey.instrument.definitions.schema import Measures, SurveyDefinition
from survey.instrument.drafts.drafting import definition_to_show
from survey.instrument.drafts.history import marked, sentences_of
from survey.instrument.drafts.reading import definition_of, read_book, read_rows_of
from survey.instrument.drafts.store import NameIsTaken, book_at, load_book, restore
from survey.instrument.drafts.workbook import ChangeConflict, DraftBook
from survey.models import DraftChange, Survey

LONGEST_NUMBER = 9


@dataclass(frozen=True, slots=True)
class MarkedText:
    place: str
    language: str
    difference: SafeString


@needs(Capability.MANAGE_SURVEYS)
@require_safe
def survey_edit_history(request: StaffRequest, pk: int) -> HttpResponse:
    """List the changes of a draft, the last one first."""
    survey = own_survey_or_404(request, pk)
    listing = Listing(
        request,
        changes_of(survey),
        search=("by__first_name", "by__last_name", "by__email"),
        sorts={"newest": ("-number",)},
    )
    rows = sentences_of(listing.page.object_list, load_book(survey))
    return listing.render(
        "survey/console/survey_edit_history.html",
        {"survey": survey, "changes": rows, "last": survey.last_change},
    )


def changes_of(survey: Survey) -> QuerySet[DraftChange]:
    return DraftChange.objects.filter(survey=survey).select_related("by")


@needs(Capability.MANAGE_SURVEYS)
def survey_edit_restore(request: StaffRequest, pk: int, number: int) -> HttpResponse:
    """Show what an earlier version differs in, and bring it back."""
    survey = own_survey_or_404(request, pk)
    change = _change_or_404(survey, number)
    refusal = ""
    if request.method == "POST":
        try:
            seen = request.POST.get("seen", "")
            restore(survey, number, by=request.user, seen=seen)
        except (ChangeConflict, NameIsTaken) as error:
            refusal = str(error)
            survey = own_survey_or_404(request, pk)
        else:
            messages.success(
                request, _("The earlier version is restored. You can undo this.")
            )
            return redirect("survey_edit_history", survey.pk)
    comparison = _compare_books(
        survey, load_book(survey), _book_at_or_404(survey, number)
    )
    return render(
        request,
        "survey/console/survey_edit_restore.html",
        {
            "survey": survey,
            "change": change,
            "comparison": comparison,
            "texts": _marked_texts(comparison),
            "refusal": refusal,
            "is_published": survey.published_at is not None,
        },
        status=409 if refusal else 200,
    )


@needs(Capability.MANAGE_SURVEYS)
@require_safe
def survey_edit_compare(request: StaffRequest, pk: int) -> HttpResponse:
    """Compare the draft after two of its changes."""
    survey = own_survey_or_404(request, pk)
    latest = changes_of(survey).first()
    all_of_it = {"from": "0", "to": str(latest.number if latest else 0)}
    numbers = sorted(
        _number(request.GET.get(name, number)) for name, number in all_of_it.items()
    )
    was, now = (_change_or_404(survey, number) for number in numbers)
    comparison = _compare_books(
        survey, *(_book_at_or_404(survey, number) for number in numbers)
    )
    return render(
        request,
        "survey/console/survey_compare.html",
        {
            "survey": survey,
            "was_change": was,
            "now_change": now,
            "comparison": comparison,
            "texts": _marked_texts(comparison),
        },
    )


@needs(Capability.MANAGE_SURVEYS)
@require_safe
def survey_compare(request: StaffRequest, pk: int) -> HttpResponse:
    """Compare a survey with another version, or another survey."""
    survey = survey_or_404(request, pk)
    known = surveys_for(request.permissions).select_related("district")
    versions = known.filter(name=survey.name).exclude(pk=pk).order_by("-created_at")
    asked = _number(request.GET.get("with", "")) if "with" in request.GET else 0
    earlier = get_object_or_404(known, pk=asked) if asked else versions.first()
    comparison = None
    if earlier is not None:
        comparison = _compare(
            (definition_to_show(earlier), definition_to_show(survey)),
            (_measures_to_show(earlier), _measures_to_show(survey)),
        )
    return render(
        request,
        "survey/console/survey_compare.html",
        {
            "survey": survey,
            "earlier": earlier,
            "versions": list(versions),
            "comparison": comparison,
            "texts": _marked_texts(comparison) if comparison else [],
        },
    )


def _measures_to_show(survey: Survey) -> Measures | None:
    if survey.published_at is None and survey.last_change:
        draft = read_rows_of(survey).draft
        return draft.measures if draft else None
    return measures_of(survey)


def _compare_books(survey: Survey, was: DraftBook, now: DraftBook) -> Comparison:
    drafts = [read_book(book, name=survey.name).draft for book in (was, now)]
    # Also rules of a survey with problems, of which the other has none.
    definitions = [definition_of(draft) if draft else None for draft in drafts]
    measures = [draft.measures if draft else None for draft in drafts]
    return _compare((definitions[0], definitions[1]), (measures[0], measures[1]))


def _compare(
    definitions: tuple[SurveyDefinition | None, SurveyDefinition | None],
    measures: tuple[Measures | None, Measures | None],
) -> Comparison:
    was, now = definitions
    if was is None or now is None:
        return Comparison()
    return compare(was, now, measures)


def _marked_texts(comparison: Comparison) -> list[MarkedText]:
    return [
        MarkedText(text.place, text.language, marked(text.was, text.now))
        for text in comparison.texts
    ]


def _number(text: str) -> int:
    if not text.isascii() or not text.isdecimal() or len(text) > LONGEST_NUMBER:
        raise Http404
    return int(text)


def _change_or_404(survey: Survey, number: int) -> DraftChange | None:
    """Return a change; None for the start of the draft, which is number 0."""
    if not number:
        return None
    return get_object_or_404(changes_of(survey), number=number)


def _book_at_or_404(survey: Survey, number: int) -> DraftBook:
    try:
        return book_at(survey, number)
    except ChangeConflict:
        raise Http404 from None
