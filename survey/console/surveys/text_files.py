"""Translate a draft by a file, and add or remove one of its languages."""

from __future__ import annotations

from dataclasses import asdict

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext
from django.views.decorators.http import require_POST, require_safe

from accounts import forms
from accounts.access import needs
from accounts.http import CSV, StaffRequest, attachment
from accounts.permissions import Capability
from survey.console.checked_files import MOST_SHOWN, confirmed_content, signed_content
from survey.console.surveys.texts import is_kept, own_draft_or_404
from survey.console.table_files import UploadField
from survey.instrument.drafts.commands import (
    CommandRefused,
    add_language,
    languages_of,
    remove_language,
)
from survey.instrument.drafts.exporting import XLSX
from survey.instrument.drafts.reading import read_rows_of
from survey.instrument.drafts.store import change_draft, undo
from survey.instrument.drafts.text_files import (
    FileText,
    TextCheck,
    UnreadableTexts,
    apply_texts,
    as_csv,
    as_xlsx,
    check_texts,
    read_table,
    table_of,
)
from survey.instrument.drafts.texts import places_of, texts_in
from survey.instrument.drafts.workbook import ChangeConflict, LimitReached
from survey.instrument.drafts.xliff import as_xliff, is_xliff, read_xliff
from survey.models import Survey

MIB = 2**20
LARGEST = 8 * MIB
# A form's field may have at most 2.5 MB.
LONGEST_SIGNED = 2 * MIB
ENDINGS = (".xlsx", ".csv", ".xlf", ".xliff", ".xls", ".tsv", ".txt", ".xml")
XLIFF = "application/x-xliff+xml"
ALL = "all"
# Name, content type and ending of each kind of file.
KINDS = {
    "xlsx": (gettext_lazy("Excel"), XLSX, ".xlsx"),
    "csv": ("CSV", CSV, ".csv"),
    "xliff-1.2": ("XLIFF 1.2", XLIFF, ".xlf"),
    "xliff-2.0": ("XLIFF 2.0", XLIFF, ".xlf"),
}


class TextFileForm(forms.Form):
    file = UploadField(
        label=gettext_lazy("File"),
        help_text=gettext_lazy(
            "The file that you downloaded, with translations: Excel, CSV or XLIFF, at"
            " most 8 MB."
        ),
        endings=ENDINGS,
        largest=LARGEST,
        too_large=gettext_lazy(
            "The file is larger than 8 MB. Upload one language at a time."
        ),
    )


@needs(Capability.MANAGE_SURVEYS)
@require_safe
def survey_edit_texts_file(request: StaffRequest, pk: int) -> HttpResponse:
    """Download all texts for a translator, in one language or in all."""
    survey = own_draft_or_404(request, pk)
    reading = read_rows_of(survey)
    _first, *translations = languages_of(reading.book)
    kind, asked = request.GET.get("kind", "csv"), request.GET.get("language", ALL)
    languages = [row for row in translations if asked in (ALL, row.code)]
    if kind not in KINDS or not languages:
        raise Http404
    _name, content_type, ending = KINDS[kind]
    if kind == "xliff-2.0" and len(languages) > 1:
        messages.error(
            request,
            _("An XLIFF 2.0 file has one language. Choose a language, then download."),
        )
        return redirect("survey_edit_texts_upload", pk)
    if kind == "csv":
        content = as_csv(table_of(reading, languages))
    elif kind == "xlsx":
        content = as_xlsx(table_of(reading, languages))
    else:
        content = as_xliff(survey, reading, languages, kind.removeprefix("xliff-"))
    code = languages[0].code if len(languages) == 1 else ALL
    stem = "".join(
        sign if sign.isascii() and (sign.isalnum() or sign in "-_.") else "-"
        for sign in f"{survey.name}-{survey.version}-{code}"
    )
    return attachment(content, filename=f"{stem}{ending}", content_type=content_type)


@needs(Capability.MANAGE_SURVEYS)
def survey_edit_texts_upload(request: StaffRequest, pk: int) -> HttpResponse:
    """Download texts, or check an uploaded file; nothing is stored."""
    survey = own_draft_or_404(request, pk)
    reading = read_rows_of(survey)
    first, *translations = languages_of(reading.book)
    form = TextFileForm(request.POST or None, request.FILES or None)
    if request.method == "POST" and form.is_valid():
        content = form.cleaned_data["file"].read()
        try:
            read = read_xliff if is_xliff(content) else read_table
            check = check_texts(reading.book, read(content, first), places_of(reading))
            return _render_checked(request, survey, check)
        except UnreadableTexts as error:
            form.add_error("file", str(error))
    return render(
        request,
        "survey/console/editor/texts_upload.html",
        {
            "survey": survey,
            "form": form,
            "languages": translations,
            "kinds": [(kind, name) for kind, (name, _type, _end) in KINDS.items()],
        },
    )


def _render_checked(
    request: StaffRequest, survey: Survey, check: TextCheck
) -> HttpResponse:
    content = {
        "texts": [
            [*asdict(change.read).values(), change.was] for change in check.changes
        ]
    }
    signed = signed_content(request, ["survey_edit_texts", survey.pk], content)
    if len(signed) > LONGEST_SIGNED:
        raise UnreadableTexts(
            _("The file changes too many texts at once. Upload one language at a time.")
        )
    return render(
        request,
        "survey/console/editor/texts_checked.html",
        {
            "survey": survey,
            "check": check,
            "changes": check.changes[:MOST_SHOWN],
            "problems": check.problems[:MOST_SHOWN],
            "most_shown": MOST_SHOWN,
            "checked": signed,
        },
    )


@needs(Capability.MANAGE_SURVEYS)
@require_POST
def survey_edit_texts_upload_save(request: StaffRequest, pk: int) -> HttpResponse:
    """Store the translations of a file that was checked, all or none."""
    survey = own_draft_or_404(request, pk)
    content = confirmed_content(request, ["survey_edit_texts", pk])
    if content is None:
        return redirect("survey_edit_texts_upload", pk)
    texts = [(FileText(*row[:-1]), row[-1]) for row in content["texts"]]
    try:
        count = apply_texts(survey=survey, texts=texts, by=request.user)
    except (CommandRefused, ChangeConflict, LimitReached) as error:
        messages.error(request, str(error))
        return redirect("survey_edit_texts_upload", pk)
    words = ngettext(
        "%(n)s translation was saved. You can undo this.",
        "%(n)s translations were saved. You can undo this.",
        count,
    )
    messages.success(request, words % {"n": f"{count:,}"})
    return redirect("survey_edit_texts", pk)


@needs(Capability.MANAGE_SURVEYS)
@require_POST
def survey_edit_texts_undo(request: StaffRequest, pk: int) -> HttpResponse:
    """Undo the user's last change of the draft."""
    survey = own_draft_or_404(request, pk)
    try:
        change = undo(survey, by=request.user)
    except (CommandRefused, ChangeConflict) as error:
        messages.error(request, str(error))
    else:
        if change is not None:
            messages.success(request, _("Your last change was undone."))
    # The list stays as it was shown.
    query = request.GET.urlencode()
    return redirect(f"{reverse('survey_edit_texts', args=[pk])}?{query}")


@needs(Capability.MANAGE_SURVEYS)
@require_POST
def survey_edit_texts_add(request: StaffRequest, pk: int) -> HttpResponse:
    """Add a language to a draft."""
    survey = own_draft_or_404(request, pk)
    token = request.POST.get("token", "")[:80]
    try:
        language = change_draft(
            survey,
            lambda book: add_language(book, token),
            action="language",
            by=request.user,
        )
    except (CommandRefused, ChangeConflict, LimitReached) as error:
        messages.error(request, str(error))
        return redirect("survey_edit_texts", pk)
    messages.success(request, _("%(name)s was added.") % {"name": language.name})
    response = redirect("survey_edit_texts", pk)
    response["Location"] += f"?language={language.code}"
    return response


@needs(Capability.MANAGE_SURVEYS)
def survey_edit_texts_remove(
    request: StaffRequest, pk: int, language: str
) -> HttpResponse:
    """Ask before a language is removed with all its texts, then remove it."""
    survey = own_draft_or_404(request, pk)
    reading = read_rows_of(survey)
    _first, *translations = languages_of(reading.book)
    doomed = next((row for row in translations if row.code == language), None)
    if doomed is None or is_kept(survey, doomed):
        raise Http404
    if request.method == "POST":
        try:
            change_draft(
                survey,
                lambda book: remove_language(book, language),
                action="remove_language",
                by=request.user,
            )
        except (CommandRefused, ChangeConflict) as error:
            messages.error(request, str(error))
        else:
            words = _("%(name)s was removed. You can undo this.")
            messages.success(request, words % {"name": doomed.name})
        return redirect("survey_edit_texts", pk)
    texts = [text for text in texts_in(reading.book, doomed) if text.text]
    return render(
        request,
        "survey/console/editor/texts_remove.html",
        {"survey": survey, "language": doomed, "count": len(texts)},
    )
