"""Error pages of the respondents' pool, in the name of the state."""

from __future__ import annotations

from django.http import (
    HttpRequest,
    HttpResponse,
    HttpResponseBadRequest,
    HttpResponseServerError,
)
from django.template.loader import render_to_string

from survey.taking.places import known_place_of_state


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    return HttpResponseBadRequest(_page("400.html"))


def server_error(request: HttpRequest) -> HttpResponse:
    return HttpResponseServerError(_page("500.html"))


def _page(template: str) -> str:
    """Render a page with what this process knows of the state, without the database.

    Django's own views give no context: a template logs each name that it misses, with
    the exception and the data in it.
    """
    return render_to_string(template, {"state_place": known_place_of_state()})
