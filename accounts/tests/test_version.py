"""Staff see which version runs here, and where its source is if it was changed."""

from __future__ import annotations

import re

import pytest

from accounts.tests.logging_in import log_in

pytestmark = pytest.mark.django_db
SOURCE = "https://code.example/ohio"


def foot(client, address: str = "/console/") -> str:
    page = client.get(address, follow=True).content.decode()
    feet = re.findall('<footer class="console-foot">(.+?)</footer>', page)
    assert len(feet) <= 1
    return "".join(feet)


def test_the_version_is_at_the_foot_of_the_console(staff, client, settings):
    settings.VERSION = "1.2.3"
    log_in(client, staff.dana)
    assert foot(client) == "<p>Groundswell 1.2.3</p>"
    settings.SOURCE_URL = SOURCE
    assert f'<a href="{SOURCE}" rel="noreferrer">Source code</a>' in foot(client)


def test_who_is_not_logged_in_does_not_learn_it(client, settings):
    settings.VERSION, settings.SOURCE_URL = "1.2.3", SOURCE
    page = client.get("/console/account/login/").content.decode()
    assert "1.2.3" not in page
    assert foot(client, "/console/account/login/") == ""
