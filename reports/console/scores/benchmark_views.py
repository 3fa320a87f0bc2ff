"""Choose the benchmark of scores, or import a published one, and undo that."""

from __future__ import annotations

from collections.abc import Callable

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_POST, require_safe

from accounts import forms
from accounts.access import needs
from accounts.http import StaffRequest, csv_response
from accounts.permissions import Capability
from reports.answers.versions import versions_of
from reports.console.scores.quality import QualityPage, ReasonForm
from reports.console.scores.quality_views import page_to_decide_or_404
from reports.scores.benchmark_choice import (
    choose_benchmark,
    import_benchmark,
    withdraw_benchmark,
)
from reports.scores.drift import DecisionRefused
from reports.scores.imported_measure import ImportedMeasure
from reports.scores.visible import measures_in_survey
from survey.console.checked_files import FilePages, check_file
from survey.console.table_files import TableField
from survey.fieldwork.administrations.checks import DatabaseBusy
from survey.models import Job

PAGES = FilePages(
    upload="scores_benchmark_import",
    under="scores_quality",
    under_name=gettext_lazy("Quality of measures"),
    title=gettext_lazy("Import a published benchmark"),
    checked_title=gettext_lazy("Check the benchmark"),
    templates="reports",
)


class BenchmarkForm(ReasonForm):
    by_span = forms.BooleanField(
        label=gettext_lazy("Compare schools within their grade span"),
        required=False,
        help_text=gettext_lazy(
            "Elementary (to grade 5), middle (6 to 8) and high schools (from 9) each"
            " get the average of their own kind. A school belongs to a span if at"
            " least three quarters of its students are in it; other schools, districts"
            " and the state are compared with all schools, and so is a span with"
            " fewer than 10 schools of 10 people or more."
        ),
    )

    field_order = ("by_span", "because")


class BenchmarkFileForm(ReasonForm):
    file = TableField(
        label=gettext_lazy("File"),
        help_text=gettext_lazy("CSV or Excel (.xlsx)."),
        endings=(".csv", ".txt", ".tsv", ".xlsx"),
        too_large=gettext_lazy("The file is larger than 4 MB."),
    )

    field_order = ("file", "because")


@needs(Capability.MANAGE_SURVEYS)
def scores_benchmark(request: StaffRequest, pk: int) -> HttpResponse:
    """Choose the administration to which others are compared, with a reason."""
    page = page_to_decide_or_404(request, pk)
    form = BenchmarkForm(request.POST if request.method == "POST" else None)
    if form.is_valid():
        return _decide(
            request,
            pk,
            lambda: choose_benchmark(
                administration=page.administration,
                because=form.cleaned_data["because"],
                by_span=form.cleaned_data["by_span"],
                by=request.user,
                request=request,
            ),
            _("This survey round is the benchmark. Scores are calculated again."),
        )
    context = {"page": page, "form": form}
    return render(request, "reports/scores_benchmark.html", context)


@needs(Capability.MANAGE_SURVEYS)
def scores_benchmark_import(request: StaffRequest, pk: int) -> HttpResponse:
    """Check a file with a published benchmark, and show it; nothing is stored."""
    # It needs SciPy, which takes 0.5 s and 40 MB: not in each web server.
    from reports.scores.benchmark_file import BENCHMARK_HEADER, check_benchmark

    page = _page_with_measures_or_404(request, pk)
    administration = page.administration
    form = BenchmarkFileForm(request.POST or None, request.FILES or None)
    content = measures_in_survey(administration)
    [version] = versions_of([administration]).values()
    report = check_file(
        form,
        BENCHMARK_HEADER,
        lambda table: check_benchmark(table, content, version),
    )
    if report is None:
        return PAGES.render_form(request, administration, form, page=page)
    stored = {name: each.as_json() for name, each in report.measures.items()}
    return PAGES.render_checked(
        request,
        administration,
        report,
        changes=[
            (name, each, len(measure["items"]))
            for measure in content["measures"]
            if (each := report.measures.get(name := measure["name"]))
        ],
        problems=report.rejections,
        content={"measures": stored, "because": form.cleaned_data["because"]},
        page=page,
    )


@needs(Capability.MANAGE_SURVEYS)
@require_POST
def scores_benchmark_import_save(request: StaffRequest, pk: int) -> HttpResponse:
    """Compare with the benchmark of a file that was checked."""
    page = _page_with_measures_or_404(request, pk)
    checked = PAGES.confirmed_content(request, page.administration)
    if checked is None:
        return redirect(PAGES.upload, pk)
    measures = {
        name: ImportedMeasure.from_json(stored)
        for name, stored in checked["measures"].items()
    }
    return _decide(
        request,
        pk,
        lambda: import_benchmark(
            administration=page.administration,
            measures=measures,
            because=checked["because"],
            by=request.user,
            request=request,
        ),
        _("The benchmark is imported. Scores are calculated again."),
    )


@needs(Capability.MANAGE_SURVEYS)
def scores_benchmark_withdraw(request: StaffRequest, pk: int) -> HttpResponse:
    """Undo the import of a benchmark, with a reason."""
    page = page_to_decide_or_404(request, pk)
    if not page.imported:
        messages.error(request, _("There is no imported benchmark any more."))
        return redirect("scores_quality", pk)
    form = ReasonForm(request.POST if request.method == "POST" else None)
    if form.is_valid():
        return _decide(
            request,
            pk,
            lambda: withdraw_benchmark(
                administration=page.administration,
                because=form.cleaned_data["because"],
                by=request.user,
                request=request,
            ),
            _("The import is undone. Scores are calculated again."),
        )
    context = {"page": page, "form": form}
    return render(request, "reports/scores_benchmark_withdraw.html", context)


@needs(Capability.MANAGE_SURVEYS)
@require_safe
def scores_benchmark_template(request: StaffRequest, pk: int) -> HttpResponse:
    """Download the measures and items of the survey as a file to fill in."""
    from reports.scores.benchmark_file import template_rows

    page = _page_with_measures_or_404(request, pk)
    rows = template_rows(measures_in_survey(page.administration))
    return csv_response(rows, filename=f"benchmark-{page.administration.name}.csv")


def _page_with_measures_or_404(request: StaffRequest, pk: int) -> QualityPage:
    page = page_to_decide_or_404(request, pk)
    if not page.measures:
        raise Http404
    return page


def _decide(
    request: StaffRequest, pk: int, decide: Callable[[], Job], done: str
) -> HttpResponse:
    try:
        decide()
    except (DecisionRefused, DatabaseBusy) as refused:
        messages.error(request, str(refused))
    else:
        messages.success(request, done)
    return redirect("scores_quality", pk)
