"""The public page that says who asks, what happens to answers, and whom to ask."""

from __future__ import annotations

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from survey.people.schools.finder import public_page, read_search


@require_safe
def about_page(request: HttpRequest) -> HttpResponse:
    """Show the page, the same for everyone. 0 statements when warm."""
    context: dict[str, object] = {"source": settings.SOURCE_URL}
    return public_page(request, "about", read_search(request).language, context, 200)
