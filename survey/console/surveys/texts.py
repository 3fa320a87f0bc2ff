"""Change the texts of a draft in one language, beside the originals."""

from __future__ import annotations

from django.contrib import messages
from django.core.exceptions import ValidationError
from django.http import Http404, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.template.loader import render_to_string
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_POST

from accounts.access import needs
from accounts.console.listing import ComputedListing
from accounts.http import StaffRequest
from accounts.permissions import Capability
from survey.console.surveys.views import own_survey_or_404
from survey.instrument.drafts.commands import CommandRefused, languages_of
from survey.instrument.drafts.corrections import start_correction
from survey.instrument.drafts.reading import read_rows_of
from survey.instrument.drafts.store import undoable
from survey.instrument.drafts.texts import (
    DraftText,
    TextChanged,
    places_of,
    save_text,
    texts_in,
)
from survey.instrument.drafts.workbook import ChangeConflict, LimitReached
from survey.instrument.xlsform.languages import Language
from survey.models import Survey

SHOWN = {
    "all": gettext_lazy("All texts"),
    "missing": gettext_lazy("Missing"),
    "stale": gettext_lazy("Original changed since"),
}


def own_draft_or_404(request: StaffRequest, pk: int) -> Survey:
    """Return a draft that the user may change."""
    survey = own_survey_or_404(request, pk)
    if survey.published_at is not None:
        raise Http404
    return survey


def is_kept(survey: Survey, language: Language) -> bool:
    """Return whether a correction must have this language to be published."""
    corrected = survey.corrects.survey.languages if survey.corrects else []
    return language.code in {row["code"] for row in corrected}


@needs(Capability.MANAGE_SURVEYS)
@require_POST
def survey_correct_here(request: StaffRequest, pk: int) -> HttpResponse:
    """Copy a published survey, to correct its texts without the workbook."""
    survey = own_survey_or_404(request, pk)
    published = survey.published.first()
    if published is None:
        raise Http404
    draft = start_correction(corrects=published, by=request.user, request=request)
    response = redirect("survey_edit_texts", draft.pk)
    # What is wrong is in the original more often than in a translation.
    response["Location"] += f"?language={survey.languages[0]['code']}"
    return response


@needs(Capability.MANAGE_SURVEYS)
def survey_edit_texts(request: StaffRequest, pk: int) -> HttpResponse:
    """List all texts in one language, 50 to a page, and save one of them."""
    survey = own_draft_or_404(request, pk)
    if request.method == "POST":
        return _save(request, survey)
    reading = read_rows_of(survey, with_pyxform=False)
    languages = languages_of(reading.book)
    language = _language(request, languages)
    texts = texts_in(reading.book, language, places_of(reading))
    counts = _counts(texts)
    shown = request.GET.get("show", "all")
    if shown in ("missing", "stale"):
        texts = [text for text in texts if text.state == shown]
    else:
        shown = "all"
    listing = ComputedListing(
        request,
        texts,
        text=lambda text: f"{text.name} {text.original} {text.text}",
        # In the order of the workbook.
        sorts={"place": lambda text: 0},
    )
    return listing.render(
        "survey/console/editor/texts.html",
        {
            "survey": survey,
            "corrected": survey.corrects.survey if survey.corrects else None,
            "languages": languages,
            "language": language,
            "first": languages[0],
            "can_remove": language != languages[0] and not is_kept(survey, language),
            "undo": undoable(survey, request.user) is not None,
            "shown": shown,
            "has_pipes": any("${" in text.original for text in texts),
            "filters": [
                (state, words, counts[state]) for state, words in SHOWN.items()
            ],
        },
    )


def _counts(texts: list[DraftText]) -> dict[str, int]:
    return {state: sum(text.state == state for text in texts) for state in SHOWN}


def _language(request: StaffRequest, languages: list[Language]) -> Language:
    """Return the language that is asked for, else the first translation."""
    asked = request.GET.get("language") or request.POST.get("language", "")
    by_code = {language.code: language for language in languages}
    return by_code.get(asked) or (languages[1:] or languages)[0]


def _save(request: StaffRequest, survey: Survey) -> HttpResponse:
    """Save one text. Answer scripts in JSON, and a plain form with the page."""
    sheet, _dash, rest = request.POST.get("text_id", "").partition("-")
    key, _dash, field = rest.partition("-")
    code, text = request.POST.get("language", ""), request.POST.get("text", "")
    context: dict[str, object] = {"survey": survey}
    status = 200
    try:
        save_text(
            survey=survey,
            sheet=sheet,
            key=key,
            field=field,
            code=code,
            text=text,
            seen=request.POST.get("seen", ""),
            by=request.user,
        )
        context["saved"] = True
    except TextChanged as conflict:
        context |= {"theirs": conflict.text, "mine": text, "error": str(conflict)}
        status = 409
    except (
        ChangeConflict,
        CommandRefused,
        LimitReached,
        ValidationError,
    ) as error:
        words = error.messages[0] if isinstance(error, ValidationError) else str(error)
        context |= {"mine": text, "error": words}
        status = 422
    is_json = request.headers.get("Accept", "") == "application/json"
    if not is_json and status == 200:
        messages.success(request, _("Saved."))
        return redirect(request.get_full_path())
    return _show_text(request, survey, context, status, is_json=is_json)


def _show_text(
    request: StaffRequest,
    survey: Survey,
    context: dict[str, object],
    status: int,
    *,
    is_json: bool,
) -> HttpResponse:
    """Show the text that was sent beside the original, as it is stored now."""
    code = request.POST.get("language", "")
    survey.refresh_from_db(fields=["last_change"])
    reading = read_rows_of(survey, with_pyxform=False)
    languages = {language.code: language for language in languages_of(reading.book)}
    texts = []
    if language := languages.get(code):
        texts = texts_in(reading.book, language, places_of(reading))
    row = next((row for row in texts if row.id == request.POST.get("text_id")), None)
    if row is None:
        if is_json:
            # Another status would stop all that waits behind this text.
            return JsonResponse({"error": context.get("error", "")}, status=422)
        raise Http404
    context |= {
        "row": row,
        "language": language,
        "first": next(iter(languages.values())),
    }
    if is_json:
        html = render_to_string("survey/console/editor/_text.html", context, request)
        body = {
            "html": html,
            "text": row.text,
            "error": context.get("error", ""),
            "counts": _counts(texts),
        }
        return JsonResponse(body, status=status)
    return render(
        request, "survey/console/editor/text_alone.html", context, status=status
    )
