"""The error page of the respondents' pool."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse, HttpResponseServerError
from django.template.loader import render_to_string

from survey.taking.places import known_place_of_state


def server_error(request: HttpRequest) -> HttpResponse:
    """Answer 500 with what this process knows of the state, without the database.

    Django's own view gives no context: a template logs each name that it misses, with
    the exception and the data in it.
    """
    context = {"state_place": known_place_of_state()}
    return HttpResponseServerError(render_to_string("500.html", context))
