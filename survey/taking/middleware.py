"""Session middleware for a session server that may be down."""

from __future__ import annotations

from django.contrib.sessions import middleware
from django.http import HttpRequest, HttpResponse

from survey.taking import resume_cookie
from survey.taking.unavailable import unavailable_response


class SessionMiddleware(middleware.SessionMiddleware):
    """Answer 503 where Django's middleware can't store a session.

    Page saves and finishing write no session here, so this is a login. Its
    reply leaves no cookie, neither of this person nor of the last one.
    """

    def process_exception(
        self, request: HttpRequest, exception: Exception
    ) -> HttpResponse | None:
        if isinstance(exception, ConnectionError):
            return _sessions_unavailable(request)
        return None

    def process_response(
        self, request: HttpRequest, response: HttpResponse
    ) -> HttpResponse:
        try:
            return super().process_response(request, response)
        except ConnectionError:
            return _sessions_unavailable(request)


def _sessions_unavailable(request: HttpRequest) -> HttpResponse:
    response = unavailable_response(request, "sessions")
    # Only here: staff keep a session that comes back.
    if resume_cookie.is_login_attempt(request):
        resume_cookie.delete_login_cookies(response)
    return response
