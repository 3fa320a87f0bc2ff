from __future__ import annotations

import pytest
from django.http import HttpResponse
from django.test import RequestFactory
from django.views.decorators import cache as of_django

from survey.taking.security_headers import never_cache


@pytest.fixture(autouse=True)
def stopped_clock(monkeypatch):
    """Let both decorators see the same second."""
    for module in ("django.utils.cache", "survey.taking.security_headers"):
        monkeypatch.setattr(f"{module}.http_date", lambda *_: "a moment ago")


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Vary": "Cookie"},
        {"Cache-Control": "public, max-age=60"},
        {"Expires": "tomorrow"},
    ],
)
def test_pages_of_a_person_have_the_headers_of_djangos_decorator(headers):
    def view(request):
        return HttpResponse("mine", headers=headers)

    request = RequestFactory().get("/")
    ours, theirs = never_cache(view)(request), of_django.never_cache(view)(request)
    assert dict(ours.headers) == dict(theirs.headers)
    assert "no-store" in ours["Cache-Control"] and "Expires" in ours
    assert "no-store" not in view(request).headers.get("Cache-Control", "")
