"""Session middleware for two session stores, of which one may be down."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

from django.conf import settings
from django.contrib.sessions import middleware
from django.http import HttpRequest, HttpResponse

from survey.taking import resume_cookie
from survey.taking.unavailable import unavailable_response


class SessionMiddleware(middleware.SessionMiddleware):
    """Read staff sessions from one store and respondents' from another.

    Answers 503 where a view can't store a session. Page saves and finishing do not
    need to, so this is a login. Its reply leaves no cookie, neither of this person
    nor of the last one.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        super().__init__(get_response)
        engine = import_module(settings.RESPONDENT_SESSION_ENGINE)
        self.RespondentSessionStore = engine.SessionStore

    def process_request(self, request: HttpRequest) -> None:
        is_staff = request.path_info.startswith(tuple(settings.STAFF_ADDRESSES))
        store = self.SessionStore if is_staff else self.RespondentSessionStore
        request.session = store(request.COOKIES.get(settings.SESSION_COOKIE_NAME))

    def process_exception(
        self, request: HttpRequest, exception: Exception
    ) -> HttpResponse | None:
        if not isinstance(exception, ConnectionError):
            return None
        response = unavailable_response(request, "sessions")
        # Only here: staff keep a session that comes back.
        if resume_cookie.is_login_attempt(request):
            resume_cookie.delete_login_cookies(response)
        return response
