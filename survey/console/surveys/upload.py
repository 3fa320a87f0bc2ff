"""A workbook comes in by the browser; what is wrong with it goes back."""

from __future__ import annotations

import csv
import io

from django import forms
from django.core.files.uploadedfile import UploadedFile
from django.db.models import Q, QuerySet
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_safe

from accounts.access import needs
from accounts.csv_injection import escape_formula
from accounts.http import StaffRequest
from accounts.models import District
from accounts.permissions import Capability, Permissions
from survey.console.surveys.views import STATE, owners_of
from survey.definitions.uploads import job_of, receive
from survey.models import Survey, SurveyUpload
from survey.spreadsheets.workbook_guard import MIB, SURVEY

TOO_LARGE = (
    f"The file is larger than {SURVEY.file // MIB} MB, and no survey is. Is it the"
    " right file? Pictures in it can be taken out: they are not shown."
)


class WorkbookForm(forms.Form):
    file = forms.FileField(
        label="Workbook",
        help_text=f"An XLSForm (.xlsx or .xls) of at most {SURVEY.file // MIB} MB.",
        widget=forms.FileInput(
            attrs={
                "accept": ".xlsx,.xls",
                "data-largest": SURVEY.file,
                "data-words": TOO_LARGE,
            }
        ),
        error_messages={
            "required": "Choose a file first.",
            "missing": "Choose a file first.",
            "empty": "The file is empty: save the workbook again and choose it anew.",
        },
    )

    def clean_file(self) -> UploadedFile:
        file: UploadedFile = self.cleaned_data["file"]
        if file.size is None or file.size > SURVEY.file:
            raise forms.ValidationError(TOO_LARGE)
        return file


class UploadForm(WorkbookForm):
    """`owner` is there where there is a choice."""

    owner = forms.ChoiceField(
        label="Whose survey is it?",
        help_text="The state's can be offered in every district.",
    )

    def __init__(self, permissions: Permissions, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self.owners = owners_of(permissions)
        if len(self.owners) > 1:
            self.fields["owner"].choices = self.owners  # type: ignore[attr-defined]
        else:
            del self.fields["owner"]

    def district(self) -> District | None:
        """The owner that was chosen; None is the state."""
        chosen = self.cleaned_data.get("owner", self.owners[0][0])
        return None if chosen == STATE else District.objects.get(pk=chosen)


@needs(Capability.MANAGE_SURVEYS)
@require_http_methods(["GET", "HEAD", "POST"])
def survey_upload(request: StaffRequest) -> HttpResponse:
    permissions = request.permissions
    if request.method == "POST":
        form = UploadForm(permissions, request.POST, request.FILES)
        if form.is_valid():
            file = form.cleaned_data["file"]
            upload = receive(
                name=file.name,
                content=file.read(),
                district=form.district(),
                by=request.user,
                request=request,
            )
            return redirect("survey_uploaded", upload.pk)
    else:
        form = UploadForm(permissions)
    return render(request, "survey/console/survey_upload.html", {"form": form})


@needs(Capability.MANAGE_SURVEYS)
@never_cache
@require_safe
def survey_uploaded(request: StaffRequest, pk: int) -> HttpResponse:
    """What became of an upload: being read, refused, or a draft to look at."""
    upload = _own(request, pk)
    if upload.survey_id is not None:
        return redirect(
            "survey_correction" if upload.corrects_id else "survey_detail",
            upload.survey_id,
        )
    return render(
        request,
        "survey/console/survey_uploaded.html",
        {
            "upload": upload,
            "job": job_of(upload) if upload.read_at is None else None,
            "corrected": _corrected(upload),
        },
    )


@needs(Capability.MANAGE_SURVEYS)
@never_cache
@require_safe
def survey_upload_problems(request: StaffRequest, pk: int) -> HttpResponse:
    """The problems and warnings as CSV, for whoever mends the workbook."""
    upload = _own(request, pk)
    if upload.read_at is None:
        raise Http404
    file = io.StringIO()
    writer = csv.writer(file)
    writer.writerow(["kind", "sheet", "row", "column", "reason", "text"])
    for kind, found in (("problem", upload.problems), ("warning", upload.warnings)):
        for one in found:
            texts = (
                one["sheet"],
                one["row"],
                one["column"],
                one["reason"],
                one["text"],
            )
            cells = [
                escape_formula(str(text if text is not None else "")) for text in texts
            ]
            writer.writerow([kind, *cells])
    # With a mark by which Excel knows UTF-8.
    response = HttpResponse(
        file.getvalue().encode("utf-8-sig"), content_type="text/csv; charset=utf-8"
    )
    response["Content-Disposition"] = 'attachment; filename="problems.csv"'
    return response


def uploads_for(permissions: Permissions) -> QuerySet[SurveyUpload]:
    """Of the places where somebody may have surveys; texts of drafts stand in them."""
    places = permissions.places(Capability.MANAGE_SURVEYS)
    known = SurveyUpload.objects.defer("content")
    return known if places.state else known.filter(Q(district__in=places.districts))


def _own(request: StaffRequest, pk: int) -> SurveyUpload:
    return get_object_or_404(uploads_for(request.permissions), pk=pk)


def _corrected(upload: SurveyUpload) -> Survey | None:
    if upload.corrects_id is None:
        return None
    return Survey.objects.defer("source").get(published=upload.corrects_id)
