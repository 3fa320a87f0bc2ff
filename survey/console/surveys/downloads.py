"""Download a survey as a workbook or JSON, or print its questions."""

from __future__ import annotations

import json

from django.http import Http404, HttpResponse
from django.shortcuts import render
from django.utils.http import content_disposition_header
from django.views.decorators.http import require_safe

from accounts import audit
from accounts.access import needs
from accounts.http import StaffRequest
from accounts.language import language_to_read
from accounts.permissions import Capability
from survey.console.surveys.questionnaire import pages_of
from survey.console.surveys.views import survey_or_404
from survey.instrument.drafts.drafting import definition_to_show, exported_workbook
from survey.instrument.drafts.exporting import XLSX
from survey.instrument.spreadsheets.old_excel import is_old_excel
from survey.models import Survey

KINDS = {
    "xls": "application/vnd.ms-excel",
    "xlsx": XLSX,
    "json": "application/json",
}


@needs(Capability.MANAGE_SURVEYS)
@require_safe
def survey_original(request: StaffRequest, pk: int) -> HttpResponse:
    """Download the workbook as the survey is now, or with `?uploaded` as it came."""
    survey = survey_or_404(request, pk)
    source = None
    is_changed = survey.last_change or survey.draft_sheets.exists()
    if not is_changed or "uploaded" in request.GET:
        source = Survey.objects.values_list("source", flat=True).get(pk=survey.pk)
    content = exported_workbook(survey) if source is None else bytes(source)
    is_xls = is_old_excel(content[:8])
    return _download(request, survey, content, "xls" if is_xls else "xlsx")


@needs(Capability.MANAGE_SURVEYS)
@require_safe
def survey_json(request: StaffRequest, pk: int) -> HttpResponse:
    """Download the definition, for other programs."""
    survey = survey_or_404(request, pk)
    definition = definition_to_show(survey)
    if definition is None:
        raise Http404
    text = json.dumps(definition, ensure_ascii=False, indent=1)
    return _download(request, survey, f"{text}\n".encode(), "json")


def _download(
    request: StaffRequest, survey: Survey, content: bytes, ending: str
) -> HttpResponse:
    audit.record(
        "download survey",
        by=request.user,
        request=request,
        subject=survey,
        district=survey.district,
    )
    response = HttpResponse(content, content_type=KINDS[ending])
    name = f"{survey.name} {survey.version}.{ending}".replace("/", "-")
    response["Content-Disposition"] = (
        content_disposition_header(True, name) or "attachment"
    )
    return response


@needs(Capability.MANAGE_SURVEYS)
@require_safe
def survey_questionnaire(request: StaffRequest, pk: int) -> HttpResponse:
    """Show a survey or draft as it is now, in one of its languages."""
    survey = survey_or_404(request, pk)
    definition = definition_to_show(survey)
    if definition is None or not definition["pages"]:
        raise Http404
    codes = [row["code"] for row in definition["languages"]]
    asked = request.GET.get("language", "")
    language = asked if asked in codes else language_to_read(codes)
    [chosen] = [row for row in definition["languages"] if row["code"] == language]
    return render(
        request,
        "survey/console/survey_questionnaire.html",
        {
            "survey": survey,
            "languages": definition["languages"],
            "language": chosen,
            "pages": pages_of(definition, language),
        },
    )
