"""Sessions whose server may be away."""

from __future__ import annotations

from django.contrib.sessions import middleware
from django.http import HttpRequest, HttpResponse

from survey.taking import resume_cookie
from survey.taking.unavailable import come_again


class SessionMiddleware(middleware.SessionMiddleware):
    """Django's, but where a session cannot be kept, its person has to wait.

    Page saves and finishing write no session here, so what waits is a login:
    it leaves no cookie, neither of this person nor of the last one.
    """

    def process_exception(
        self, request: HttpRequest, exception: Exception
    ) -> HttpResponse | None:
        if isinstance(exception, ConnectionError):
            return _wait(request)
        return None

    def process_response(
        self, request: HttpRequest, response: HttpResponse
    ) -> HttpResponse:
        try:
            return super().process_response(request, response)
        except ConnectionError:
            return _wait(request)


def _wait(request: HttpRequest) -> HttpResponse:
    waiting = come_again(request, "sessions")
    # Nobody else: the console's people keep a session that comes back.
    if resume_cookie.asks_for_seat(request):
        resume_cookie.vacate(waiting)
    return waiting
