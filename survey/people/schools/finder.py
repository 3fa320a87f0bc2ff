"""The public pages of schools: search, and one school with its open surveys.

The same for everyone, so nginx may keep a page for some seconds: they neither
read nor set cookies, and depend on the address and the language alone.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import tzinfo
from urllib.parse import urlencode

from django.db.models import F
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.loader import render_to_string
from django.utils import translation
from django.utils.cache import patch_vary_headers
from django.utils.formats import date_format
from django.views.decorators.http import require_safe

from accounts.models import District, SchoolListing, SchoolWord
from accounts.school_directory import find_schools, nearest_schools
from accounts.time_zones import zone_named
from survey.database.routers import uses_forced_read_router
from survey.models import PublishedSurvey
from survey.people.schools.lists import district_at, has_addresses, schools_of
from survey.people.schools.open_surveys import OpenSurvey, open_surveys
from survey.taking import messages
from survey.taking.places import place_of_district
from survey.taking.unavailable import retry_once

# Seconds for which nginx keeps a page, and may send it while it fetches a new one:
# together, after so many at most an edit of a school is seen.
FRESH, REFRESHING = 20, 10
# Lists of a district are some seconds old when they come:
# `survey.people.schools.lists`.
FRESH_LIST, REFRESHING_LIST = 6, 4
LONGEST_TEXT = 100
LARGEST_KEY = 2**63 - 1
# About a kilometre. nginx cuts coordinates in the same way before its cache
# (`nginx.conf`), so that neighbours share a page.
COORDINATE = re.compile(r"(-?[0-9]{1,3}(?:\.[0-9]{1,2})?)(?:(?<=\.[0-9][0-9])[0-9]+)?")
DISTRICT = re.compile(r"[0-9]{1,18}")
MILES_PER_KILOMETRE = 0.621371


@dataclass(frozen=True)
class Search:
    """What a visitor asked for, in the form that is one key of nginx's cache."""

    # Empty: by the browser's languages.
    language: str = ""
    text: str = ""
    district: str = ""
    latitude: str = ""
    longitude: str = ""

    @property
    def query(self) -> str:
        """Return the query string: known parameters in one order, others dropped."""
        named = {
            "language": self.language,
            "q": self.text,
            "district": self.district,
            "lat": self.latitude,
            "lon": self.longitude,
        }
        return urlencode({name: value for name, value in named.items() if value})

    @property
    def place(self) -> tuple[float, float] | None:
        """Return the coordinates, or None if they are no place on the earth."""
        try:
            latitude, longitude = float(self.latitude), float(self.longitude)
        except ValueError:
            return None
        inside = abs(latitude) <= 90 and abs(longitude) <= 180
        return (latitude, longitude) if inside else None


def read_search(request: HttpRequest) -> Search:
    language = request.GET.get("language", "")
    latitude, longitude = (_cut(request.GET.get(name, "")) for name in ("lat", "lon"))
    text = " ".join(request.GET.get("q", "").replace("\x00", " ").lower().split())
    text = "" if latitude or longitude else text[:LONGEST_TEXT].strip()
    district = request.GET.get("district", "")
    is_number = DISTRICT.fullmatch(district) and not (text or latitude or longitude)
    return Search(
        language if language in messages.MESSAGES else "",
        text,
        str(int(district)) if is_number else "",
        latitude,
        longitude,
    )


def _cut(degrees: str) -> str:
    if not degrees:
        return ""
    match = COORDINATE.fullmatch(degrees)
    return match[1] if match else "x"


@require_safe
@retry_once
@uses_forced_read_router(SchoolListing, SchoolWord, District)
def school_finder(request: HttpRequest) -> HttpResponse:
    """Find schools by text, nearby, or of a district.

    3 statements, see `find_schools`; nearby 1; and 1 more of each every ten minutes.
    """
    search = read_search(request)
    if request.META.get("QUERY_STRING", "") != search.query:
        query = f"?{search.query}" if search.query else ""
        return HttpResponseRedirect(f"{request.path}{query}")
    context: dict[str, object] = {"search": search, "has_addresses": has_addresses()}
    status = 200
    if search.latitude or search.longitude:
        if search.place:
            near = nearest_schools(*search.place)
            context["near"] = [
                (each.listing, round(each.kilometres * MILES_PER_KILOMETRE))
                for each in near
            ]
            context["district"] = district_at(*search.place)
        else:
            context["error"] = "schools_bad_place"
            status = 400
    elif search.text:
        context["found"] = find_schools(search.text)
    elif search.district:
        listed = context["listed"] = schools_of(int(search.district))
        status = 200 if listed else 404
        if listed:
            context["place"] = listed.place
    return public_page(request, "schools", search.language, context, status)


@require_safe
@retry_once
@uses_forced_read_router(SchoolListing, SchoolWord, PublishedSurvey)
def school_page(request: HttpRequest, pk: int) -> HttpResponse:
    """Show a school's name and place, and its open surveys. 4 statements."""
    search = Search(read_search(request).language)
    if request.META.get("QUERY_STRING", "") != search.query:
        query = f"?{search.query}" if search.query else ""
        return HttpResponseRedirect(f"{request.path}{query}")
    listings = SchoolListing.objects.filter(closed=False).annotate(
        time_zone=F("district__time_zone")
    )
    listing = listings.filter(pk=min(pk, LARGEST_KEY)).first()
    context: dict[str, object] = {"search": search, "listing": listing}
    if listing:
        context["place"] = place_of_district(listing.district_id)
        language = _language(request, search.language)
        zone = zone_named(listing.time_zone)
        context["surveys"] = [
            _shown(survey, language, zone) for survey in open_surveys(listing, language)
        ]
    return public_page(
        request, "school", search.language, context, 200 if listing else 404
    )


def _shown(survey: OpenSurvey, language: str, zone: tzinfo) -> dict[str, object]:
    with translation.override(language):
        closes = date_format(survey.closes_at.astimezone(zone), "DATE_FORMAT")
    return {
        "title": survey.published.title_in(language),
        "role": survey.role,
        "closes": closes,
        "for_anyone": survey.for_anyone,
        "code": survey.code,
        "questions": survey.questions,
    }


def _language(request: HttpRequest, chosen: str) -> str:
    if chosen:
        return chosen
    return messages.language_accepted(request.headers.get("Accept-Language", ""))


def public_page(
    request: HttpRequest,
    template: str,
    chosen: str,
    context: dict[str, object],
    status: int,
) -> HttpResponse:
    language = _language(request, chosen)
    context |= {
        "words": messages.messages_in(language),
        "language": language,
        "direction": messages.direction(language),
        "languages": messages.languages(),
        "chosen": f"?language={chosen}" if chosen else "",
    }
    # Without the request: no context processor reads a cookie.
    html = render_to_string(f"survey/{template}.html", context)
    response = HttpResponse(html, status=status)
    response.headers["Cache-Control"] = "no-cache"
    if status == 200:
        listed = context.get("listed") is not None
        fresh = FRESH_LIST if listed else FRESH
        refreshing = REFRESHING_LIST if listed else REFRESHING
        # nginx does not pass it on.
        response.headers["Cache-Control"] = (
            f"s-maxage={fresh}, max-age=0, stale-while-revalidate={refreshing}"
        )
    if not chosen:
        patch_vary_headers(response, ["Accept-Language"])
    return response
