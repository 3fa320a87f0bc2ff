"""Compare many schools: response rates with scores, and changes between waves."""

from __future__ import annotations

from collections.abc import Iterable

from django.http import HttpResponse
from django.views.decorators.http import require_safe

from accounts.access import needs
from accounts.audit import record
from accounts.http import Cell, StaffRequest, csv_response
from accounts.permissions import Capability
from reports.console.scores import changes, rates
from reports.console.scores.access import ScoresScope
from reports.console.scores.changes import ChangesPage
from reports.console.scores.rates import RatesPage


@needs(Capability.SEE_RESULTS)
@require_safe
def scores_rates(request: StaffRequest, pk: int) -> HttpResponse:
    """Show the response rates and scores of all schools that the user may see."""
    page = RatesPage.of(request, pk)
    context = {"page": page, "filter_form": page.form}
    return page.listing.render("reports/scores_rates.html", context)


@needs(Capability.SEE_RESULTS)
@require_safe
def scores_rates_csv(request: StaffRequest, pk: int) -> HttpResponse:
    page = RatesPage.of(request, pk)
    return _file(request, page.scope, "rates-and-scores", rates.csv_rows(page))


@needs(Capability.SEE_RESULTS)
@require_safe
def scores_changes(request: StaffRequest, pk: int) -> HttpResponse:
    """Show how the scores of a measure changed since an earlier wave."""
    page = ChangesPage.of(request, pk)
    context = {"page": page, "filter_form": page.form}
    return page.listing.render("reports/scores_changes.html", context)


@needs(Capability.SEE_RESULTS)
@require_safe
def scores_changes_csv(request: StaffRequest, pk: int) -> HttpResponse:
    page = ChangesPage.of(request, pk)
    return _file(request, page.scope, "changes", changes.csv_rows(page))


def _file(
    request: StaffRequest,
    scope: ScoresScope,
    name: str,
    rows: Iterable[Iterable[Cell]],
) -> HttpResponse:
    record(
        "download scores",
        by=request.user,
        request=request,
        subject=scope.administration,
        district=scope.district,
    )
    return csv_response(rows, filename=f"{name}-{scope.administration.name}.csv")
