"""Search the console: survey rounds, schools and pages, and where to find people.

No names of people are shown: a link searches them in a survey round, whose page logs
who has looked for whom.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

from django.db.models import Q
from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from accounts.access import staff
from accounts.console.listing import LONGEST_SEARCH
from accounts.console.navigation import sections_for
from accounts.http import StaffRequest
from accounts.permissions import Capability as C
from accounts.permissions import Permissions
from survey.fieldwork.administrations import administrations_for
from survey.fieldwork.administrations.queries import with_titles
from survey.models import Administration, Denominator

State = Administration.State
# Of each kind.
MOST_SHOWN = 8


@dataclass(frozen=True, slots=True)
class SearchResult:
    name: str
    about: str
    address: str


@staff
@require_safe
def console_search(request: StaffRequest) -> HttpResponse:
    """Show what matches `q`. 3 statements, none without a query."""
    query = request.GET.get("q", "").strip()[:LONGEST_SEARCH].replace("\0", "")
    results: dict[str, Sequence[SearchResult]] = {}
    if query:
        words = query.casefold()
        results = {
            _("Survey rounds"): _survey_rounds(request.permissions, query),
            _("Schools"): _schools(request.permissions, query),
            _("Pages"): [
                SearchResult(str(page.name), str(page.purpose), page.address)
                for section in sections_for(request.permissions)
                for page in section.pages
                if words in f"{page.name} {page.purpose}".casefold()
            ],
            _("People"): _people(request.permissions, query),
        }
    context = {
        "query": query,
        "results": {name: rows for name, rows in results.items() if rows},
    }
    return render(request, "reports/search.html", context)


def _survey_rounds(permissions: Permissions, query: str) -> list[SearchResult]:
    rounds = with_titles(administrations_for(permissions, C.SEE_RATES)).filter(
        Q(name__icontains=query)
        | Q(published__survey__title__icontains=query)
        | Q(published__survey__name__icontains=query)
        | Q(wave__name__icontains=query)
    )
    return [
        SearchResult(
            administration.title,
            str(State(administration.state).label),
            reverse("administration_detail", args=[administration.pk]),
        )
        for administration in rounds.order_by("-opens_at", "pk")[:MOST_SHOWN]
    ]


def _schools(permissions: Permissions, query: str) -> list[SearchResult]:
    schools = permissions.schools(C.SEE_RATES).filter(
        Q(name__folded__contains=query) | Q(code__iexact=query)
    )
    return [
        SearchResult(
            school.name,
            f"{school.district.name}, {school.code}",
            reverse("rates_school", args=[school.pk]),
        )
        for school in schools.select_related("district").order_by("name", "pk")[
            :MOST_SHOWN
        ]
    ]


def _people(permissions: Permissions, query: str) -> list[SearchResult]:
    """Return searches of people in the rounds that have not closed, the latest first.

    1 statement, or none without names to see.
    """
    if not permissions.has(C.SEE_IDENTITIES):
        return []
    rounds = with_titles(administrations_for(permissions, C.SEE_IDENTITIES)).filter(
        closes_at__gt=timezone.now(), denominator=Denominator.ROSTER
    )
    return [
        SearchResult(
            _("Find “%(query)s” among the people of %(title)s")
            % {"query": query, "title": administration.title},
            "",
            f"{reverse('people_list', args=[administration.pk])}?"
            + urlencode({"q": query}),
        )
        for administration in rounds.order_by("-opens_at", "pk")[:MOST_SHOWN]
    ]
