"""Choose the language of the console: the user's, else the browser's.

Respondents' pages have languages of their own, which the survey decides.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.utils import translation
from django.utils.cache import patch_vary_headers

from accounts.models import User


def language_of(user: User | None) -> str:
    """Return the language of e-mails and jobs for a user."""
    offered = dict(settings.LANGUAGES)
    return user.language if user and user.language in offered else "en"


def language_to_read(offered: Sequence[str]) -> str:
    """Return the reader's language if it is offered, or else the first one.

    "es-MX" is also Spanish. Returns an empty text if none is offered.
    """
    reads = (translation.get_language() or "").split("-")[0]
    codes = (code for code in offered if code.lower().split("-")[0] == reads)
    return next(codes, offered[0] if offered else "")


class LanguageMiddleware:
    """Activate the language of each request under STAFF_ADDRESSES."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if not request.path_info.startswith(tuple(settings.STAFF_ADDRESSES)):
            return self.get_response(request)
        chosen = getattr(request.user, "language", "")
        if chosen not in dict(settings.LANGUAGES):
            chosen = ""
        with translation.override(
            chosen or translation.get_language_from_request(request)
        ):
            response = self.get_response(request)
            response.headers.setdefault("Content-Language", translation.get_language())
        if not chosen:
            patch_vary_headers(response, ("Accept-Language",))
        return response
