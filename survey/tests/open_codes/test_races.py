"""Starts at the same moment, over real connections."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connection

from settings.tests.patience import patience
from survey.fieldwork.open_codes import start_forms
from survey.models import OpenCodeSeat, Respondent
from survey.tests.conftest import Browser
from survey.tests.open_codes.cast import begin, form_of, open_code

pytestmark = [pytest.mark.django_db(transaction=True)]
# More threads than workers of one web server, fewer than connections.
THREADS = 30


def post_all(requests: list[tuple[Browser, dict[str, str]]]) -> list[int]:
    """Send the forms, each time THREADS at the same moment; return the statuses."""
    ready = threading.Barrier(THREADS)

    def post(request: tuple[Browser, dict[str, str]]) -> int:
        browser, form = request
        ready.wait(patience(30))
        try:
            return browser.post("/open/begin/", form).status_code
        finally:
            connection.close()

    with ThreadPoolExecutor(THREADS) as threads:
        return list(threads.map(post, requests))


@pytest.mark.skipif(connection.vendor != "postgresql", reason="has one writer")
def test_300_starts_on_100_seats_admit_exactly_100(parents, lincoln):
    code = open_code(parents, lincoln, limit=100)
    browsers = [Browser() for _ in range(300)]
    statuses = post_all([(browser, form_of(browser, code)) for browser in browsers])
    assert (statuses.count(302), statuses.count(422)) == (100, 200)
    assert Respondent.objects.count() == 100
    seated = OpenCodeSeat.objects.exclude(respondent=None)
    assert seated.values("respondent").distinct().count() == 100
    inside = [browser for browser in browsers if "taking" in browser.session]
    assert len(inside) == 100


@pytest.mark.skipif(connection.vendor != "postgresql", reason="has one writer")
@pytest.mark.parametrize("limit", [None, 10])
def test_a_form_that_is_sent_many_times_at_once_makes_one_respondent(
    parents, lincoln, limit
):
    code = open_code(parents, lincoln, limit=limit)
    first = Browser()
    form = form_of(first, code)
    requests = []
    for _ in range(THREADS):
        # The same browser, in a thread of its own.
        browser = Browser()
        browser.cookies.update(first.cookies)
        requests.append((browser, form))
    assert post_all(requests) == [302] * THREADS
    assert Respondent.objects.count() == 1
    assert OpenCodeSeat.objects.exclude(respondent=None).count() == (1 if limit else 0)


@pytest.mark.skipif(connection.vendor != "postgresql", reason="has one writer")
@pytest.mark.parametrize("is_protected", [True, False])
@pytest.mark.parametrize("knows_the_device", [True, False])
def test_a_code_that_is_sent_six_times_at_once_makes_one_respondent(
    code, monkeypatch, knows_the_device, is_protected
):
    """Each reply has a form of its own, and all of them are sent."""
    if not is_protected:
        # The twin: what each form alone has decides.
        monkeypatch.setattr(start_forms, "read_key", lambda form, *of: form)
    first = Browser()
    if knows_the_device:
        begin(first, code)
        Respondent.objects.all().delete()
    first.get("/open/")
    ready = threading.Barrier(6)

    def send_code_and_form(number: int) -> int:
        browser = Browser()
        browser.cookies.update(first.cookies)
        ready.wait(patience(30))
        try:
            form = form_of(browser, code)
            ready.wait(patience(30))
            return browser.post("/open/begin/", form).status_code
        finally:
            connection.close()

    with ThreadPoolExecutor(6) as threads:
        assert list(threads.map(send_code_and_form, range(6))) == [302] * 6
    assert Respondent.objects.count() == (1 if is_protected else 6)
