"""Browser tabs in which a member of staff is logged in."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.conf import settings
from django.test import Client
from playwright.sync_api import Page

from accounts.models import User
from accounts.staff_cookies import PREFIX
from accounts.tests.conftest import Staff
from accounts.tests.logging_in import log_in
from reports.tests.console.scores.conftest import create_fall
from reports.tests.exports.conftest import FIRST, SECOND, published
from reports.tests.publishing.conftest import publish  # noqa: F401
from survey.models import Administration, PublishedSurvey
from survey.tests.browser.conftest import (  # noqa: F401
    LAPTOP,
    device,
    server,
    shared_server,
    static_root,
)
from survey.tests.conftest import chromium  # noqa: F401

NAME = PREFIX + settings.SESSION_COOKIE_NAME


# Other tests share these in a module, and roll them back. A server needs committed rows.


@pytest.fixture
def first_survey(transactional_db: None) -> PublishedSurvey:
    return published(FIRST, "1")


@pytest.fixture
def second_survey(transactional_db: None) -> PublishedSurvey:
    return published(SECOND, "2")


@pytest.fixture
def shared_fall(transactional_db: None, staff: Staff) -> Administration:
    return create_fall(staff)


@pytest.fixture
def at_screen(device: Callable, server) -> Callable[..., Page]:  # noqa: F811
    """Open a tab in which a user is logged in."""

    def opened(user: User, **options: object) -> Page:
        context = device(**{"viewport": LAPTOP, **options})
        value = log_in(Client(), user).cookies[NAME].value
        context.add_cookies([{"name": NAME, "value": value, "url": server.url}])
        return context.new_page()

    return opened
