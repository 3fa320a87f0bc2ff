"""Compare schools and groups: rates with scores, changes, and gaps."""

from __future__ import annotations

from collections.abc import Iterable

from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from accounts.access import needs
from accounts.audit import record
from accounts.http import Cell, StaffRequest, csv_response
from accounts.permissions import Capability
from reports.console.scores import changes, groups, rates
from reports.console.scores.access import ScoresScope
from reports.console.scores.changes import ChangesPage
from reports.console.scores.groups import GroupsPage
from reports.console.scores.rates import RatesPage
from reports.results.access import administration_or_404
from survey.models import Administration


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
    rows = rates.csv_rows(page)
    return _file(request, page.administration, "rates-and-scores", rows, page.scope)


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
    rows = changes.csv_rows(page)
    return _file(request, page.administration, "changes", rows, page.scope)


@needs(Capability.SEE_RESULTS)
@require_safe
def scores_groups(request: StaffRequest, pk: int) -> HttpResponse:
    """Show the scores of a place by group, and the gaps between the groups."""
    page = GroupsPage.of(request, pk)
    return render(request, "reports/scores_groups.html", {"page": page})


@needs(Capability.SEE_RESULTS)
@require_safe
def scores_groups_csv(request: StaffRequest, pk: int) -> HttpResponse:
    administration = administration_or_404(request.permissions, pk)
    rows = groups.csv_rows(request, administration)
    return _file(request, administration, "scores-by-group", rows)


def _file(
    request: StaffRequest,
    administration: Administration,
    name: str,
    rows: Iterable[Iterable[Cell]],
    scope: ScoresScope | None = None,
) -> HttpResponse:
    record(
        "download scores",
        by=request.user,
        request=request,
        subject=administration,
        district=scope.district if scope else None,
    )
    return csv_response(rows, filename=f"{name}-{administration.name}.csv")
