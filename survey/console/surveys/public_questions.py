"""The public page with all questions of an administration, for families.

Parents may read what is asked before it is asked. The same for everyone, so nginx may
keep it for some seconds: it neither reads nor sets cookies, and depends on the address
and the language alone. Whether an address does not exist or may not be shown, is
answered in the same way.
"""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.template.loader import render_to_string
from django.utils import translation
from django.utils.cache import patch_vary_headers
from django.views.decorators.http import require_safe

from accounts.access import anyone
from accounts.language import language_to_read
from survey.console.surveys.questionnaire import pages_of
from survey.models import Administration
from survey.people.schools.open_surveys import questions_are_public
from survey.taking import messages
from survey.taking.places import place_of_district, place_of_state
from survey.taking.published import published_survey

# Seconds for which nginx keeps a page, and may send it while it fetches a new one:
# together, after so many at most it is seen that the questions are public no more.
FRESH, REFRESHING = 20, 10


@anyone
@require_safe
def public_questions(request: HttpRequest, name: str) -> HttpResponse:
    """Show the questions that people get. 1 statement, and 1 for a district's brand."""
    administrations = Administration.objects.filter(questions_are_public(), name=name)
    row = administrations.values_list("published__digest", "district").first()
    if row is None:
        return _page(request, "public_questions_unknown", {}, "", status=404)
    digest, district = row
    published = published_survey(digest)
    definition = published.definition
    language = _language(request, published.languages)
    [shown] = [entry for entry in definition["languages"] if entry["code"] == language]
    frame = messages.language_for(language)
    with translation.override(frame):
        pages = pages_of(definition, language)
    context = {
        "pages": pages,
        "title": published.title_in(language),
        "shown": shown,
        "languages": definition["languages"],
        "current": language,
        "place": place_of_district(district) if district else place_of_state(),
    }
    return _page(request, "public_questions", context, language)


def _language(request: HttpRequest, offered: list[str]) -> str:
    """Return the language that the address or else the browser asks for."""
    base = messages.base_of(request.GET.get("language", ""))
    alike = [code for code in offered if messages.base_of(code) == base]
    exact = request.GET.get("language", "")
    if exact in alike:
        return exact
    if alike:
        return alike[0]
    accepted = messages.language_accepted(request.headers.get("Accept-Language", ""))
    with translation.override(accepted):
        return language_to_read(offered)


def _page(
    request: HttpRequest,
    template: str,
    context: dict[str, object],
    language: str,
    *,
    status: int = 200,
) -> HttpResponse:
    wanted = request.GET.get("language", "")
    accepted = messages.language_accepted(request.headers.get("Accept-Language", ""))
    frame = messages.language_for(language or wanted or accepted)
    context = {
        "words": messages.messages_in(frame, role=""),
        "language": frame,
        "console_language": frame,
        "direction": messages.direction(frame),
        **context,
    }
    with translation.override(frame):
        # Without the request: no context processor reads a cookie.
        html = render_to_string(f"survey/{template}.html", context)
    response = HttpResponse(html, status=status)
    response.headers["X-Robots-Tag"] = "noindex"
    response.headers["Cache-Control"] = "no-cache"
    if status == 200:
        # nginx does not pass it on.
        response.headers["Cache-Control"] = (
            f"s-maxage={FRESH}, max-age=0, stale-while-revalidate={REFRESHING}"
        )
    if not wanted:
        patch_vary_headers(response, ["Accept-Language"])
    return response
