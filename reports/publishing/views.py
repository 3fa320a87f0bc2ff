"""Public pages and files of published results.

The same for everyone, so nginx may keep them for some seconds: they neither read nor
set cookies, and depend on the address and the language alone. What is embargoed does
not exist; what was withdrawn is gone.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial, wraps
from itertools import chain
from typing import Any, Concatenate, NoReturn, ParamSpec

from django.conf import settings
from django.db.models import Q, QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.template.loader import render_to_string
from django.utils import translation
from django.utils.cache import get_conditional_response, patch_vary_headers
from django.utils.safestring import SafeString
from django.views.decorators.http import require_safe

from accounts.access import anyone
from accounts.folded_text import fold
from accounts.http import csv_response
from accounts.language import language_to_read
from reports.models import Publication, PublishedPlace
from reports.models.publications import public_condition
from reports.publishing.csv_files import answer_rows, dictionary_rows, score_rows
from reports.publishing.last_time import place_last_time
from reports.publishing.links import Links, PublicLinks, own_name
from reports.publishing.page import PublicPage, without_directions
from reports.publishing.place_map import (
    map_of,
    middle_of,
    places_of_schools,
    schools_by_district,
)
from reports.releases.levels import LEVELS, STATE, Place
from reports.school_report.report import report_language_for
from reports.suppression.explanation import hidden_figures
from reports.suppression.results import MINIMUM_GROUP
from survey.taking import messages
from survey.taking.places import place_of_state

P = ParamSpec("P")

# Seconds for which nginx keeps a page, and may send it while it fetches a new one:
# together, after so many at most a withdrawal is seen.
FRESH, REFRESHING = 20, 10
MOST_FOUND = 50
LONGEST_TEXT = 100
LARGEST_KEY = 2**63 - 1
# Languages of built-in texts.
FRAME_LANGUAGES = [
    *dict(settings.LANGUAGES),
    *sorted(path.name for path in settings.LOCALE_PATHS[1].iterdir() if path.is_dir()),
]

PublicView = Callable[Concatenate[HttpRequest, P], HttpResponse]


class Gone(Exception):
    """What was asked for has been withdrawn."""


def public(view: PublicView[P]) -> PublicView[P]:
    """Admit everyone, and answer what is not there with a page of its own."""

    @wraps(view)
    def wrapper(
        request: HttpRequest, /, *args: P.args, **kwargs: P.kwargs
    ) -> HttpResponse:
        try:
            return view(request, *args, **kwargs)
        except Gone:
            return _page(request, "gone", {}, status=410)
        except Http404:
            return _page(request, "unknown", {}, status=404)

    return anyone(require_safe(wrapper))


@public
def published_list(request: HttpRequest) -> HttpResponse:
    """List what is published. 1 statement."""
    publications = Publication.objects.public().order_by(
        "-administration__closes_at", "-pk"
    )
    rows = list(publications.values_list("administration_id", "frame__titles"))
    offered = _languages_of(titles for _, titles in rows)
    language = _language(request, offered or FRAME_LANGUAGES)
    listed = [(pk, _title_in(titles, language)) for pk, titles in rows]
    context = {"publications": listed}
    return _page(request, "list", context, language=language, languages=offered)


@public
def published_of_school(request: HttpRequest, pk: int) -> HttpResponse:
    """List what is published of one school. 1 statement."""
    rows = list(
        PublishedPlace.objects.filter(
            public_condition("publication__"), place_id=_key(pk), level=LEVELS.SCHOOL
        )
        .order_by("-publication__administration__closes_at", "-pk")
        .values_list(
            "publication__administration_id", "publication__frame__titles", "name"
        )
    )
    offered = _languages_of(titles for _, titles, _ in rows)
    language = _language(request, offered or FRAME_LANGUAGES)
    context = {
        "publications": [(key, _title_in(titles, language)) for key, titles, _ in rows],
        "name": without_directions(rows[0][2]) if rows else "",
        "school": pk,
    }
    return _page(request, "of_school", context, language=language, languages=offered)


@public
def published_hidden(request: HttpRequest, pk: int | None = None) -> HttpResponse:
    """Explain what is hidden in one publication, or in all. 1 statement."""
    publication = None if pk is None else _publication(pk)
    if publication:
        frames = [publication.frame]
    else:
        frames = list(Publication.objects.public().values_list("frame", flat=True))
    offered = _languages_of(frame["titles"] for frame in frames)
    language = _language(request, offered or FRAME_LANGUAGES)
    context = {
        "pk": pk,
        "title": _title_in(frames[0]["titles"], language) if publication else "",
        # In the language of the page, which calls it.
        "sentences": partial(
            hidden_figures,
            min((frame["minimum_group"] for frame in frames), default=MINIMUM_GROUP),
            "public",
            has_reports=all(frame["schools"] for frame in frames),
        ),
    }
    return _page(
        request, "hidden", context, publication, language=language, languages=offered
    )


def _languages_of(titles: Iterable[Mapping[str, str]]) -> list[str]:
    return list(dict.fromkeys(code for each in titles for code in each))


def _title_in(titles: Mapping[str, str], language: str) -> str:
    return titles.get(language) or next(iter(titles.values()), "")


@public
def published_state(request: HttpRequest, pk: int) -> HttpResponse:
    """Show all schools together, and find a school. 5 statements, or 6 to find."""
    publication, places = _places(pk, *STATE)
    districts = publication.places.filter(level=LEVELS.DISTRICT)
    text = searched_text(request)
    matches: list[tuple[str, int]] | None = None
    if text:
        schools = publication.places.filter(level=LEVELS.SCHOOL)
        for word in (fold(text) or "").split():
            schools = schools.filter(search__contains=word)
        matches = list(_by_name(schools)[: MOST_FOUND + 1])
    context = {"districts": _by_name(districts), "text": text, "found": matches}
    return _place_page(request, publication, places, context)


def searched_text(request: HttpRequest) -> str:
    text = " ".join(request.GET.get("q", "").replace("\x00", " ").split())
    return text[:LONGEST_TEXT]


def _by_name(places: QuerySet[PublishedPlace]) -> QuerySet[PublishedPlace, Any]:
    return places.order_by("name", "pk").values_list("name", "place_id")


@public
def published_district(request: HttpRequest, pk: int, district: int) -> HttpResponse:
    """Show a district, and its schools that have a report. 4 statements."""
    publication, places = _places(pk, LEVELS.DISTRICT.value, district)
    schools = publication.places.filter(district_id=district, level=LEVELS.SCHOOL)
    return _place_page(request, publication, places, {"schools": _by_name(schools)})


@public
def published_school(request: HttpRequest, pk: int, school: int) -> HttpResponse:
    """Show a school beside its district and all schools. 3 statements."""
    publication, places = _places(pk, LEVELS.SCHOOL.value, school)
    return _place_page(request, publication, places, {})


@public
def published_scores(request: HttpRequest, pk: int) -> HttpResponse:
    """Return rates and scores of all places as a file. 2 statements."""
    publication = _publication(pk)
    order = [LEVELS.STATE.value, LEVELS.DISTRICT.value, LEVELS.SCHOOL.value]
    rows = list(
        publication.places.order_by("name", "pk").values_list(
            "level", "place_id", "district_id", "code", "name", "summary"
        )
    )
    codes = {key: code for level, key, _, code, *_rest in rows if level == order[1]}
    places = (
        (level, codes.get(key if level == order[1] else district, ""), *rest)
        for level, key, district, *rest in sorted(
            rows, key=lambda row: order.index(row[0])
        )
    )
    response = csv_response(
        score_rows(publication.frame, places), filename=f"scores-{pk}.csv"
    )
    return _cached(request, response, publication)


@public
def published_dictionary(request: HttpRequest, pk: int) -> HttpResponse:
    """Return what the columns of the other files mean. 1 statement."""
    publication = _publication(pk)
    response = csv_response(
        dictionary_rows(publication.frame), filename=f"dictionary-{pk}.csv"
    )
    return _cached(request, response, publication)


@public
def published_answers(
    request: HttpRequest, pk: int, district: int = 0, school: int = 0
) -> HttpResponse:
    """Return the answers of one place as a file. 1 statement."""
    level, key = STATE
    if school:
        level, key = LEVELS.SCHOOL.value, school
    elif district:
        level, key = LEVELS.DISTRICT.value, district
    publication, places = _places(pk, level, key)
    code = places[0].code or "all"
    ascii_code = "".join(each for each in code if each.isascii() and each.isalnum())
    response = csv_response(
        answer_rows(places[0]), filename=f"answers-{pk}-{ascii_code}.csv"
    )
    return _cached(request, response, publication)


def _key(key: int) -> int:
    return min(key, LARGEST_KEY)


def _publication(pk: int) -> Publication:
    publication = Publication.objects.public().filter(administration=_key(pk)).first()
    if publication is None:
        _raise_missing(pk)
    return publication


def _raise_missing(pk: int) -> NoReturn:
    """Raise Gone if it was public before, and Http404 otherwise. 1 statement."""
    # The results as a whole: a school without a report was never public. That they are
    # published again does not show before the embargo ends.
    withdrawn = Publication.objects.filter(
        administration=_key(pk), withdrawn_at__isnull=False
    ).defer("frame")
    if any(publication.was_public for publication in withdrawn):
        raise Gone
    raise Http404


def _places(pk: int, level: str, key: int) -> tuple[Publication, list[PublishedPlace]]:
    """Return a place and those around it. 1 statement, or 2 without such a place."""
    rows: QuerySet[PublishedPlace] = PublishedPlace.objects.filter(
        public_condition("publication__"), publication__administration=_key(pk)
    )
    chosen_place: Place = (level, _key(key))
    chosen = Q(level=level, place_id=chosen_place[1])
    if level == LEVELS.SCHOOL.value:
        district = rows.filter(chosen).values("district_id")
        chosen |= Q(level=LEVELS.DISTRICT, place_id__in=district)
    chosen |= Q(level=STATE[0], place_id=STATE[1])
    places = list(rows.filter(chosen).select_related("publication"))
    order = [LEVELS.SCHOOL.value, LEVELS.DISTRICT.value, LEVELS.STATE.value]
    places.sort(key=lambda place: order.index(place.level))
    if not places or (places[0].level, places[0].place_id) != chosen_place:
        _raise_missing(pk)
    return places[0].publication, places


def _place_page(
    request: HttpRequest,
    publication: Publication,
    places: list[PublishedPlace],
    context: Mapping[str, object],
) -> HttpResponse:
    pk, languages = publication.administration_id, publication.frame["languages"]
    language = _language(request, languages)
    before = place_last_time(pk, places[0].level, places[0].place_id)
    page = PublicPage(publication.frame, language, places, before)
    links = PublicLinks(pk, _query(request, language))
    return _page(
        request,
        "place",
        {"page": page, "pk": pk, **with_addresses(page, links, context)},
        publication,
        language=language,
        languages=languages,
    )


def with_addresses(
    page: PublicPage, links: Links, context: Mapping[str, Any]
) -> dict[str, object]:
    """Return the context of a place's page, with addresses in place of keys.

    `context` are names and keys of `districts`, `schools` and the schools `found`. At
    most 1 statement, for the map.
    """
    matches = context.get("found")
    districts = context.get("districts", ())
    schools = context.get("schools", ())

    def linked(
        places: Iterable[tuple[str, int]], address: Callable[[int], str]
    ) -> list[tuple[str, str]]:
        return [(without_directions(name), address(key)) for name, key in places]

    return {
        "text": context.get("text", ""),
        "state_address": links.state(),
        "district_address": page.district and links.district(page.district.place_id),
        "districts": linked(districts, links.district),
        "schools": linked(schools, links.school),
        "map": _map_of(list(districts), list(schools), links),
        "is_search": matches is not None,
        "found": linked((matches or [])[:MOST_FOUND], links.school),
        "has_more": len(matches or []) > MOST_FOUND,
    }


def _map_of(
    districts: Sequence[tuple[str, int]],
    schools: Sequence[tuple[str, int]],
    links: Links,
) -> SafeString:
    if len(districts) > 1:
        regions = schools_by_district()
        middles = {key: middle_of(region) for key, region in regions.items()}
        ground = chain.from_iterable(regions.values())
        return map_of(districts, middles, links.district, ground)
    if len(schools) > 1:
        located = places_of_schools([key for _name, key in schools])
        return map_of(schools, located, links.school)
    return SafeString()


def _language(request: HttpRequest, offered: list[str]) -> str:
    """Return the language that the address or else the browser asks for."""
    chosen = request.GET.get("language", "")
    if chosen in offered:
        return chosen
    base = messages.base_of(chosen)
    alike = [code for code in offered if messages.base_of(code) == base]
    if alike:
        return alike[0]
    accepted = messages.language_accepted(request.headers.get("Accept-Language", ""))
    with translation.override(accepted):
        return language_to_read(offered)


def _query(request: HttpRequest, language: str) -> str:
    """Return the query of links to other pages: the language, if one was chosen."""
    return f"?language={language}" if request.GET.get("language") else ""


def _page(
    request: HttpRequest,
    template: str,
    context: Mapping[str, object],
    publication: Publication | None = None,
    *,
    language: str = "",
    languages: list[str] | None = None,
    status: int = 200,
) -> HttpResponse:
    language = language or _language(request, FRAME_LANGUAGES)
    frame_language = report_language_for(language)
    with translation.override(frame_language):
        # Without the request: no context processor reads a cookie.
        html = render_to_string(
            f"reports/public/{template}.html",
            {
                **context,
                "language": language,
                # Its name, logo and contact person.
                "place": place_of_state(),
                "frame_language": frame_language,
                "direction": messages.direction(frame_language),
                "languages": messages.in_menu_order(
                    {
                        "code": code,
                        "name": own_name(code),
                        "direction": messages.direction(code),
                    }
                    for code in languages or []
                ),
                "chosen": _query(request, language),
            },
        )
    response = HttpResponse(html, status=status)
    response.headers["Content-Language"] = language
    if request.GET.get("language", "") not in (languages or []):
        patch_vary_headers(response, ["Accept-Language"])
    return _cached(request, response, publication)


def _cached(
    request: HttpRequest, response: HttpResponse, publication: Publication | None
) -> HttpResponse:
    """Say for how long nginx keeps a response, and what tells whether it changed."""
    if response.status_code != 200:
        response.headers["Cache-Control"] = "no-cache"
        return response
    # nginx does not pass it on.
    response.headers["Cache-Control"] = (
        f"s-maxage={FRESH}, max-age=0, stale-while-revalidate={REFRESHING}"
    )
    # The software may show the same content in another way.
    shown = hashlib.sha256(response.content).hexdigest()[:16]
    digest = publication.digest if publication else "list"
    response.headers["ETag"] = f'"{digest}-{shown}"'
    conditional = get_conditional_response(
        request, etag=response.headers["ETag"], response=response
    )
    return conditional or response
