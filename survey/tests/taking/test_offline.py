"""The service worker's script: the same for everyone, and new with each release."""

from __future__ import annotations

import json

import pytest
from django.test import Client

from survey.taking import offline

pytestmark = pytest.mark.django_db

ADDRESS = "/take/worker.js"


def values_in(script: str) -> dict[str, object]:
    first, _, _ = script.partition("\n")
    return json.loads(first.removeprefix("const OFFLINE = ").removesuffix(";"))


def test_the_worker_is_the_same_for_everyone(
    client, browser, maya, django_assert_num_queries
):
    browser.log_in(maya).bootstrap()
    with django_assert_num_queries(0):
        mine, anyones = browser.get(ADDRESS), Client().get(ADDRESS)
    assert mine.content == anyones.content
    assert mine.headers["Content-Type"].startswith("application/javascript")
    assert mine.headers["Cache-Control"] == "no-cache"
    assert "Cookie" not in mine.headers.get("Vary", "")
    assert not mine.cookies
    values = values_in(mine.content.decode())
    # There was something to leak: the page of the server has a person's data.
    assert '<script id="take"' in browser.get("/take/").content.decode()
    assert '<script id="take"' not in values["page"]
    assert browser.tag not in mine.content.decode()
    # Nor anything else that two requests would render differently.
    assert "data-now" not in values["page"]
    assert "default-src 'none'" in values["headers"]["Content-Security-Policy"]
    assert any(file.endswith(".css") for file in values["files"])
    assert any(file.endswith("take.js") for file in values["files"])


def test_a_change_of_the_page_or_its_files_makes_a_new_release(monkeypatch):
    first = values_in(offline.worker_script(True, True))
    assert values_in(offline.worker_script(True, True)) == first
    page = offline.offline_page().replace("take.js", "take.abc.js")
    monkeypatch.setattr(offline, "offline_page", lambda: page)
    assert values_in(offline.worker_script(True, True))["release"] != first["release"]


def test_where_it_is_switched_off_the_worker_removes_itself(
    client, settings, browser, maya
):
    assert browser.log_in(maya).bootstrap()["urls"]["worker"] == ADDRESS
    settings.WORKS_OFFLINE = False
    assert client.get(ADDRESS).content.startswith(b"const OFFLINE = null;")
    assert browser.bootstrap()["urls"]["worker"] == ""
