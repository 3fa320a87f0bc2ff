"""Send the logos of the state and of districts; `logo_upload` stores them."""

from __future__ import annotations

from django.http import Http404, HttpResponse

from accounts.models import Logo

# Pages show a logo smaller than it is stored, so that it is sharp on all screens.
SHOWN_HEIGHT = 32


def shown_size(name: str) -> tuple[int, int]:
    """Return the width and height at which pages show a logo, from its name."""
    width, height = map(int, name.rpartition("-")[2].split("x"))
    return max(round(width * SHOWN_HEIGHT / height), 1), SHOWN_HEIGHT


def send_logo(name: str) -> HttpResponse:
    """Answer with a logo that every cache may keep. 1 statement. Raises Http404."""
    content = Logo.objects.filter(pk=name).values_list("content", flat=True).first()
    if content is None:
        raise Http404
    response = HttpResponse(bytes(content), content_type="image/png")
    response["Cache-Control"] = "public, max-age=31536000, immutable"
    response["X-Content-Type-Options"] = "nosniff"
    return response
