"""Upload a workbook, and show the problems found in it."""

from __future__ import annotations

from django.contrib import messages
from django.core.files.uploadedfile import UploadedFile
from django.core.paginator import Paginator
from django.db.models import Q, QuerySet
from django.http import Http404, HttpResponse, QueryDict
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.utils.datastructures import MultiValueDict
from django.utils.formats import date_format
from django.utils.text import format_lazy
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_POST, require_safe

from accounts import forms
from accounts.access import needs
from accounts.http import StaffRequest, csv_response
from accounts.models import District
from accounts.permissions import Capability, Permissions
from survey.console.surveys.views import STATE, owners_of
from survey.console.table_files import UploadField
from survey.instrument.definitions.ownership import replaced_draft_date
from survey.instrument.definitions.uploads import (
    can_leave_out,
    import_without_problems,
    job_of,
    receive_upload,
)
from survey.instrument.spreadsheets.workbook_guard import MIB, SURVEY
from survey.instrument.xlsform import SurveyIsPublished
from survey.models import Survey, SurveyUpload


class WorkbookForm(forms.Form):
    file = UploadField(
        label=gettext_lazy("Workbook"),
        help_text=format_lazy(
            gettext_lazy("An XLSForm (.xlsx or .xls) of at most {most} MB."),
            most=SURVEY.file // MIB,
        ),
        endings=(".xlsx", ".xls"),
        largest=SURVEY.file,
        too_large=format_lazy(
            gettext_lazy(
                "The file is larger than {most} MB. Check that it is the"
                " right file, and remove any pictures: they are not shown."
            ),
            most=SURVEY.file // MIB,
        ),
        error_messages={
            "required": gettext_lazy("Choose a file."),
            "missing": gettext_lazy("Choose a file."),
            "empty": gettext_lazy(
                "The file is empty. Save the workbook again, then choose it."
            ),
        },
    )


# A file is recognised by what is in it; the browser offers these first.
ENDINGS = (".xlsx", ".xls", ".lss", ".txt", ".tsv", ".qsf", ".csv", ".json")
LINES_ON_A_PAGE = 200
OUTCOMES = ("refused", "changed", "taken")


class UploadForm(WorkbookForm):
    """Ask for the owner as well, where the user has a choice."""

    def __init__(
        self,
        permissions: Permissions,
        data: QueryDict | None = None,
        files: MultiValueDict[str, UploadedFile] | None = None,
    ) -> None:
        super().__init__(data, files)
        file = self.fields["file"]
        file.label = _("File")
        file.help_text = _(
            "An XLSForm (.xlsx or .xls), or a questionnaire of LimeSurvey (.lss or"
            " tab-separated), Qualtrics (.qsf), REDCap (data dictionary, .csv) or"
            " SurveyJS (.json). At most %(most)s MB."
        ) % {"most": SURVEY.file // MIB}
        file.widget.attrs["accept"] = ",".join(ENDINGS)
        self.owners = owners_of(permissions)
        if len(self.owners) > 1:
            self.fields["owner"] = forms.ChoiceField(
                label=_("Owner"),
                help_text=_("Surveys of the state can be used in every district."),
                choices=self.owners,
            )

    def district(self) -> District | None:
        """Return the chosen owner; None is the state."""
        chosen = self.cleaned_data.get("owner", self.owners[0][0])
        return None if chosen == STATE else District.objects.get(pk=chosen)


@needs(Capability.MANAGE_SURVEYS)
def survey_upload(request: StaffRequest) -> HttpResponse:
    permissions = request.permissions
    if request.method == "POST":
        form = UploadForm(permissions, request.POST, request.FILES)
        if form.is_valid():
            file = form.cleaned_data["file"]
            upload = receive_upload(
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
@require_safe
def survey_uploaded(request: StaffRequest, pk: int) -> HttpResponse:
    """Show an upload while it is read and its problems, or go on to the draft."""
    upload = upload_or_404(request, pk)
    if upload.survey is not None:
        words = _("%(file)s was uploaded as a draft.") % {"file": upload.name}
        if replaced := replaced_draft_date(upload.survey):
            day = date_format(timezone.localtime(replaced), "DATE_FORMAT")
            words = _(
                "%(file)s was uploaded as a draft. It replaces the draft of %(date)s."
            ) % {"file": upload.name, "date": day}
        messages.success(request, words)
        if upload.report:
            return redirect("survey_upload_report", upload.pk)
        return redirect(
            "survey_correction" if upload.corrects_id else "survey_detail",
            upload.survey_id,
        )
    corrected = None
    if upload.corrects_id is not None:
        corrected = Survey.objects.defer("source").get(published=upload.corrects_id)
    return render(
        request,
        "survey/console/survey_uploaded.html",
        {
            "upload": upload,
            "job": job_of(upload) if upload.read_at is None else None,
            "corrected": corrected,
            "left_out": _left_out(upload) if can_leave_out(upload) else [],
        },
    )


def _left_out(upload: SurveyUpload) -> list[dict[str, str]]:
    return [line for line in upload.report if line["outcome"] != "taken"]


@needs(Capability.MANAGE_SURVEYS)
@require_POST
def survey_upload_without(request: StaffRequest, pk: int) -> HttpResponse:
    """Import a workbook without the parts that the page of its problems lists."""
    upload = upload_or_404(request, pk)
    try:
        import_without_problems(upload.pk, by=request.user, request=request)
    except SurveyIsPublished as refusal:
        messages.error(request, str(refusal))
    return redirect("survey_uploaded", upload.pk)


@needs(Capability.MANAGE_SURVEYS)
@require_safe
def survey_upload_problems(request: StaffRequest, pk: int) -> HttpResponse:
    """Download the problems and warnings, for fixing the workbook."""
    upload = upload_or_404(request, pk)
    if upload.read_at is None:
        raise Http404
    columns = ("sheet", "row", "column", "reason", "text")
    return csv_response(
        [
            ("kind", *columns),
            *(
                (kind, *(row[column] for column in columns))
                for kind, rows in (
                    ("problem", upload.problems),
                    ("warning", upload.warnings),
                )
                for row in rows
            ),
        ],
        filename="problems.csv",
    )


@needs(Capability.MANAGE_SURVEYS)
@require_safe
def survey_upload_report(request: StaffRequest, pk: int) -> HttpResponse:
    """Show what became of each part of a questionnaire that was converted."""
    upload = upload_or_404(request, pk)
    if not upload.report:
        raise Http404
    outcome = request.GET.get("outcome", "")
    outcome = outcome if outcome in OUTCOMES else ""
    # Problems first, those of settings last; then in the order of the original.
    lines = sorted(
        upload.report,
        key=lambda line: (OUTCOMES.index(line["outcome"]), line["part"] == "setting"),
    )
    shown = [line for line in lines if outcome in ("", line["outcome"])]
    questions = [line for line in lines if line["part"] == "question"]
    page = Paginator(shown, LINES_ON_A_PAGE).get_page(request.GET.get("page"))
    return render(
        request,
        "survey/console/survey_upload_report.html",
        {
            "upload": upload,
            "outcome": outcome,
            "page": page,
            "counts": [
                {
                    "outcome": name,
                    "lines": sum(line["outcome"] == name for line in lines),
                    "questions": sum(line["outcome"] == name for line in questions),
                }
                for name in OUTCOMES
            ],
            "lines": len(lines),
            "questions": len(questions),
        },
    )


@needs(Capability.MANAGE_SURVEYS)
@require_safe
def survey_upload_report_file(request: StaffRequest, pk: int) -> HttpResponse:
    """Download the report of a conversion, in the order of the original."""
    upload = upload_or_404(request, pk)
    if not upload.report:
        raise Http404
    columns = ("part", "place", "text", "outcome", "reason")
    rows = [tuple(line[column] for column in columns) for line in upload.report]
    return csv_response([columns, *rows], filename="report.csv")


def uploads_for(permissions: Permissions) -> QuerySet[SurveyUpload]:
    """Return the uploads for places where the user manages surveys.

    Problems quote texts of drafts.
    """
    places = permissions.places(Capability.MANAGE_SURVEYS)
    known = SurveyUpload.objects.defer("content")
    return known if places.state else known.filter(Q(district__in=places.districts))


def upload_or_404(request: StaffRequest, pk: int) -> SurveyUpload:
    return get_object_or_404(uploads_for(request.permissions), pk=pk)
