"""Search the console: survey rounds, schools and pages, and where to find people.

No names of people are shown: a link searches them in a survey round, whose page logs
who has looked for whom.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

from django.db.models import Case, Q, When
from django.http import HttpResponse
from django.shortcuts import redirect, render
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
    """Show what matches `q`. 3 statements, none without a query.

    Where one survey round alone is open, its people come first; and where nothing
    else matches, their list is the answer.
    """
    query = request.GET.get("q", "").strip()[:LONGEST_SEARCH].replace("\0", "")
    results: dict[str, Sequence[SearchResult]] = {}
    first_address = ""
    if query:
        permissions = request.permissions
        results = {
            _("Survey rounds"): _survey_rounds(permissions, query),
            _("Schools"): _schools(permissions, query),
            _("Pages"): _pages(permissions, query),
        }
        rounds = _rounds_with_people(permissions)
        open_rounds = [row for row in rounds if row.state == State.OPEN]
        if len(open_rounds) == 1:
            [row] = open_rounds
            first = _people_of(row, query)
            first_address = first.address
            if not any(results.values()):
                return redirect(first_address)
            rounds.remove(row)
            name = _("People in %(title)s") % {"title": row.title}
            results = {name: [first], **results}
        results[_("People")] = [_people_of(row, query) for row in rounds]
    context = {
        "query": query,
        "results": {name: rows for name, rows in results.items() if rows},
        "first_address": first_address,
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


def _rounds_with_people(permissions: Permissions) -> list[Administration]:
    """Return the rounds that have not closed, the open ones and the latest first.

    1 statement, or none without names to see.
    """
    if not permissions.has(C.SEE_IDENTITIES):
        return []
    now = timezone.now()
    rounds = with_titles(administrations_for(permissions, C.SEE_IDENTITIES)).filter(
        closes_at__gt=now, denominator=Denominator.ROSTER
    )
    is_planned = Case(When(opens_at__gt=now, then=1), default=0)
    return list(rounds.order_by(is_planned, "-opens_at", "pk")[:MOST_SHOWN])


def _people_of(administration: Administration, query: str) -> SearchResult:
    """Return a search among the people of a round."""
    address = reverse("people_list", args=[administration.pk])
    return SearchResult(
        _("Find “%(query)s” among the people of %(title)s")
        % {"query": query, "title": administration.title},
        "",
        f"{address}?{urlencode({'q': query})}",
    )


def _pages(permissions: Permissions, query: str) -> list[SearchResult]:
    words = query.casefold()
    return [
        SearchResult(str(page.name), str(page.purpose), page.address)
        for section in sections_for(permissions)
        for page in section.pages
        if words in f"{page.name} {page.purpose}".casefold()
    ]
