"""The names of the console's cookies, with TLS and without."""

from __future__ import annotations

import pytest
from django.http import HttpRequest, HttpResponse
from django.test import RequestFactory

from accounts.staff_cookies import StaffCookiesMiddleware


@pytest.mark.parametrize(
    ("session", "staff"),
    [
        ("sessionid", "staff_sessionid"),
        ("__Host-sessionid", "__Host-staff_sessionid"),
    ],
)
def test_the_console_reads_and_sets_cookies_of_its_own(settings, session, staff):
    settings.SESSION_COOKIE_NAME = session
    seen: list[str | None] = []

    def view(request: HttpRequest) -> HttpResponse:
        seen.append(request.COOKIES.get(session))
        response = HttpResponse()
        response.set_cookie(session, "new", secure=True)
        return response

    request = RequestFactory().get("/console/")
    request.COOKIES = {session: "a respondent's", staff: "a colleague's"}
    response = StaffCookiesMiddleware(view)(request)
    assert seen == ["a colleague's"]
    assert [(name, each.value) for name, each in response.cookies.items()] == [
        (staff, "new")
    ]
