"""The fast path answers message platforms like Django, header by header."""

from __future__ import annotations

import pytest
from django.core.handlers.wsgi import WSGIHandler
from django.test import RequestFactory

from survey.fieldwork.message_platforms import fast_path
from survey.taking.fast_path import FastPath
from survey.tests.taking.test_respondent_pool import reply_of

pytestmark = pytest.mark.django_db


def ask(application, address: str, *, method: str = "GET", **headers: str):
    request = RequestFactory().generic(method, address, headers=headers)
    return reply_of(application, dict(request.environ))


@pytest.fixture
def as_respondent_pool(settings):
    settings.MIDDLEWARE = [
        "settings.monitoring.middleware.MonitoringMiddleware",
        "survey.taking.security_headers.SecurityHeaders",
        "survey.taking.middleware.SessionMiddleware",
        "django.middleware.common.CommonMiddleware",
        "django.middleware.csrf.CsrfViewMiddleware",
    ]
    settings.ROOT_URLCONF = "survey.urls"


@pytest.mark.parametrize(
    "change",
    [
        "",
        "?key=x",
        "wrong key",
        "no key",
        "other scheme",
        "unknown person",
        "unknown platform",
        "POST",
        "HEAD",
        "bad host",
        "long person",
    ],
)
def test_both_paths_answer_alike(braze, maya, as_respondent_pool, change, monkeypatch):
    address, method = braze.address_of(maya), "GET"
    headers = {"Authorization": f"Bearer {braze.api_key}"}
    if change.startswith("?"):
        address += change
    elif change == "wrong key":
        headers["Authorization"] += "x"
    elif change == "no key":
        headers = {}
    elif change == "other scheme":
        headers["Authorization"] = braze.api_key
    elif change == "unknown person":
        address = f"/messages/{braze.platform.pk}/{'A' * 22}.json"
    elif change == "unknown platform":
        address = f"/messages/{braze.platform.pk + 1}/{'A' * 22}.json"
    elif change in ("POST", "HEAD"):
        method = change
    elif change == "bad host":
        headers["Host"] = "elsewhere.example.org"
    elif change == "long person":
        address = f"/messages/{braze.platform.pk}/{'A' * 100}.json"
    by_django = ask(WSGIHandler(), address, method=method, **headers)
    answered = []
    ours = fast_path.answer_directly

    def noted(*arguments):
        reply = ours(*arguments)
        answered.append(reply is not None)
        return reply

    monkeypatch.setattr("survey.taking.fast_path.answer_directly", noted)
    assert ask(FastPath(), address, method=method, **headers) == by_django
    is_ordinary = method == "GET" and change not in ("bad host", "long person")
    assert any(answered) is is_ordinary


def test_a_defect_in_the_fast_path_leaves_the_request_to_django(
    braze, maya, as_respondent_pool, monkeypatch
):
    def broken(*arguments):
        raise ZeroDivisionError

    monkeypatch.setattr("survey.taking.fast_path.answer_directly", broken)
    headers = {"Authorization": f"Bearer {braze.api_key}"}
    status, _, _ = ask(FastPath(), braze.address_of(maya), **headers)
    assert status == "200 OK"
