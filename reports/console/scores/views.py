"""Scores in the console: the table of schools, and the report of one school."""

from __future__ import annotations

from urllib.parse import urlencode

from django.http import Http404, HttpResponse
from django.shortcuts import render
from django.utils import translation
from django.utils.text import slugify
from django.views.decorators.http import require_safe

from accounts.access import needs
from accounts.audit import record
from accounts.http import StaffRequest, attachment, csv_response
from accounts.language import language_to_read
from accounts.permissions import Capability
from accounts.place_settings import Brands
from reports.charts.rendered import rendered_once
from reports.console.scores.access import school_or_404
from reports.console.scores.table import ALL, ScoresTable, csv_rows
from reports.results.access import administration_or_404
from reports.school_report.pdf import NoPdf, html_of, pdf_files
from reports.school_report.report import (
    SchoolReport,
    report_language_for,
    school_report,
)
from reports.scores.words import band_ranges
from survey.taking.published import published_survey

# Of the table of schools, to which the page of a school leads back.
FILTERS = ("q", "district", "show", "sort", "page")
# The body of a report's page.
BODY = "reports/_school_report.html"


@needs(Capability.SEE_RESULTS)
@require_safe
def scores_table(request: StaffRequest, pk: int) -> HttpResponse:
    """Show the scores of all schools that the user may see, 50 on a page."""
    table = ScoresTable.of(request, pk)
    around, schools = table.rows()
    context = {
        "table": table,
        "administration": table.administration,
        "around": around,
        "schools": schools,
        # Those that need a note.
        "signs": {
            cell.text
            for cells in (
                *(row.cells for row in around),
                *(row.cells for row in schools if row.line.is_reached),
            )
            for cell in cells
            if cell.score is None
        },
        "bands": band_ranges(),
        "filter_form": table.form,
        "back": f"?{back}" if (back := _filters(request)) else "",
    }
    return table.listing.render("reports/scores_table.html", context)


@needs(Capability.SEE_RESULTS)
@require_safe
def scores_csv(request: StaffRequest, pk: int) -> HttpResponse:
    table = ScoresTable.of(request, pk, show=ALL)
    record(
        "download scores",
        by=request.user,
        request=request,
        subject=table.administration,
        district=table.scope.district,
    )
    filename = f"scores-{table.administration.name}.csv"
    return csv_response(csv_rows(table), filename=filename)


@needs(Capability.SEE_RESULTS)
@require_safe
def school_report_page(request: StaffRequest, pk: int, school: int) -> HttpResponse:
    """Show a school's report in one of the survey's languages."""
    report, languages = _report(request, pk, school)
    with translation.override(report.frame_language):
        body = rendered_once(BODY, {"report": report}, report.drawn)
    context = {
        "report": report,
        "languages": languages,
        "body": body,
        "back": _filters(request),
    }
    return render(request, "reports/school_report.html", context)


def _filters(request: StaffRequest) -> str:
    """Return the query of the table from which the user came, or which is shown."""
    chosen = {name: request.GET[name] for name in FILTERS if request.GET.get(name)}
    return urlencode(chosen)


@needs(Capability.SEE_RESULTS)
@require_safe
def school_report_pdf(request: StaffRequest, pk: int, school: int) -> HttpResponse:
    report, _languages = _report(request, pk, school)
    if not report.has_figures:
        raise Http404
    try:
        html = html_of(report, Brands().of(report.school.district_id))
        files = pdf_files({"report": html})
    except NoPdf:
        return render(request, "reports/school_report_no_pdf.html", status=503)
    record(
        "download school report",
        by=request.user,
        request=request,
        subject=report.administration,
        school=report.school,
    )
    name = f"report-{report.administration.name}-{report.school.code}"
    return attachment(
        files["report"],
        filename=f"{slugify(name)}-{report.language}.pdf",
        content_type="application/pdf",
    )


def _report(
    request: StaffRequest, pk: int, school_pk: int
) -> tuple[SchoolReport, list[str]]:
    """Return the report, and the languages in which there is one."""
    administration = administration_or_404(request.permissions, pk)
    school = school_or_404(request.permissions, administration, school_pk)
    languages = published_survey(administration.published_id).languages
    language = request.GET.get("language") or language_to_read(languages)
    if language not in languages:
        raise Http404
    with translation.override(report_language_for(language)):
        report = school_report(request.permissions, administration, school, language)
    return report, languages
