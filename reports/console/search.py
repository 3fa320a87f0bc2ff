"""Search the console: rounds, places, pages and help, and where to find people.

No names of people are shown: a link searches them in a survey round, whose page logs
who has looked for whom.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from django.db.models import Case, Q, QuerySet, When
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from accounts.access import staff
from accounts.console.help_site import help_sections
from accounts.console.listing import LONGEST_SEARCH
from accounts.console.navigation import sections_for
from accounts.http import StaffRequest
from accounts.models import School
from accounts.permissions import Capability as C
from accounts.permissions import Permissions
from accounts.school_directory import find_schools, search_text
from reports.console.workspace import STEPS, step_pages
from survey.fieldwork.administrations import administrations_for
from survey.fieldwork.administrations.queries import with_titles
from survey.models import Administration, Denominator

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise

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
    """Show what matches `q`. 4 statements, none without a query.

    1 more for pages of survey rounds; where nothing matches, those of
    `find_schools` and 1. Where one survey round alone is open, its people come first;
    and where nothing else matches, their list is the answer.
    """
    query = request.GET.get("q", "").strip()[:LONGEST_SEARCH].replace("\0", "")
    results: dict[str, Sequence[SearchResult]] = {}
    first_address = ""
    has_matches = False
    if query:
        permissions = request.permissions
        results = {
            _("Survey rounds"): _survey_rounds(permissions, query),
            _("Districts"): _districts(permissions, query),
            _("Schools"): _schools(permissions, query),
            _("Pages"): [
                *_pages(permissions, query, is_engineer=request.user.is_superuser),
                *_pages_of_rounds(permissions, query),
            ],
            _("Help"): _help_sections(query),
        }
        if not any(results.values()):
            corrected, schools = _misspelt_schools(permissions, query)
            name = _("Schools that match “%(corrected)s”") % {"corrected": corrected}
            results = {name: schools}
        has_matches = any(results.values())
        rounds = _rounds_with_people(permissions)
        open_rounds = [row for row in rounds if row.state == State.OPEN]
        if len(open_rounds) == 1:
            [row] = open_rounds
            first = _people_of(row, query)
            first_address = first.address
            if not has_matches:
                return redirect(first_address)
            rounds.remove(row)
            name = _("People in %(title)s") % {"title": row.title}
            results = {name: [first], **results}
        results[_("People")] = [_people_of(row, query) for row in rounds]
    context = {
        "query": query,
        "has_matches": has_matches,
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


def _districts(permissions: Permissions, query: str) -> list[SearchResult]:
    districts = permissions.districts(C.SEE_RATES).filter(
        Q(name__icontains=query) | Q(code__iexact=query)
    )
    return [
        SearchResult(
            district.name, district.code, reverse("rates_district", args=[district.pk])
        )
        for district in districts.order_by("name", "pk")[:MOST_SHOWN]
    ]


def _schools(permissions: Permissions, query: str) -> list[SearchResult]:
    return _found_schools(
        permissions.schools(C.SEE_RATES).filter(
            Q(name__folded__contains=query) | Q(code__iexact=query)
        )
    )


def _misspelt_schools(
    permissions: Permissions, query: str
) -> tuple[str, list[SearchResult]]:
    """Return the query as the public directory corrects it, and the user's schools."""
    corrected = find_schools(query, limit=1).corrected
    if not corrected:
        return "", []
    schools = permissions.schools(C.SEE_RATES)
    for word in corrected.split():
        schools = schools.filter(listing__search__contains=f" {word}")
    return corrected, _found_schools(schools)


def _found_schools(schools: QuerySet[School]) -> list[SearchResult]:
    return [
        SearchResult(
            school.name,
            ", ".join(filter(None, (school.district.name, school.distinct_code))),
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


def _pages(
    permissions: Permissions, query: str, *, is_engineer: bool
) -> list[SearchResult]:
    return [
        SearchResult(str(page.name), str(page.purpose), page.address)
        for section in sections_for(permissions, is_engineer=is_engineer)
        for page in section.pages
        if _is_about(query, page.name, page.purpose, page.synonyms)
    ]


def _pages_of_rounds(permissions: Permissions, query: str) -> list[SearchResult]:
    """Return pages of rounds that have not closed. 1 statement, or none."""
    wanted = [
        page
        for step in STEPS
        for page in step.pages
        if _is_about(query, page.name, page.synonyms)
    ]
    if not wanted:
        return []
    rounds = with_titles(administrations_for(permissions, C.SEE_RATES))
    rounds = rounds.filter(closes_at__gt=timezone.now()).order_by("opens_at", "pk")
    matches = [
        SearchResult(str(page.name), administration.title, page.address(administration))
        for administration in rounds[:MOST_SHOWN]
        for step in STEPS
        for page in step_pages(permissions, administration, step)
        if page in wanted
    ]
    return matches[:MOST_SHOWN]


def _help_sections(query: str) -> list[SearchResult]:
    matches = [
        SearchResult(
            section.heading,
            "" if section.page == section.heading else section.page,
            section.address,
        )
        for section in help_sections()
        if _is_about(query, section.heading, section.synonyms)
    ]
    return matches[:MOST_SHOWN]


def _is_about(query: str, *texts: StrOrPromise) -> bool:
    """Tell whether each word of the query begins a word of these texts."""
    words = search_text(query).split()
    text = search_text(" ".join(map(str, texts)))
    return bool(words) and all(f" {word}" in text for word in words)
