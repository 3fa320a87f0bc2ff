"""Chromium and a real server, for whole journeys of respondents."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from django.conf import settings
from playwright.sync_api import Browser, BrowserContext

from provisioning.installation.static_files import collect_files
from survey.tests.browser.live_server import Server, open_server
from survey.tests.chromium import TIMEOUT

PHONE = {"width": 360, "height": 740}
TABLET = {"width": 768, "height": 1024}
LAPTOP = {"width": 1280, "height": 800}


@pytest.fixture(scope="session")
def static_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Collect and join static files, and compress the bundles, as for production.

    Once for a whole run, although each app and each worker has its own fixture.
    """
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    folder, complete = shared / "static", shared / "static-is-complete"
    with (shared / "static.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not complete.exists():
            collect_files(
                {
                    **os.environ,
                    "DJANGO_SETTINGS_MODULE": "settings.browser_test_server",
                    "GROUNDSWELL_STATIC_ROOT": str(folder),
                    "GROUNDSWELL_TEST_SERVERS": settings.SERVERS,
                }
            )
            complete.touch()
    return folder


@pytest.fixture(scope="session")
def shared_server(
    django_db_setup: None, static_root: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Server]:
    log = tmp_path_factory.getbasetemp() / "server.log"
    with open_server(static_root, log) as server:
        yield server


@pytest.fixture
def server(transactional_db: None, shared_server: Server) -> Iterator[Server]:
    """Return the shared server, reset before and after the test.

    Browsers are closed before, and the database is emptied after the reset.
    """
    shared_server.reset()
    yield shared_server
    shared_server.reset()


@pytest.fixture
def device(
    chromium: Browser, server: Server
) -> Iterator[Callable[..., BrowserContext]]:
    """Return a function that opens a browser with its own cookies and storage."""
    opened: list[BrowserContext] = []

    def open_device(**options: object) -> BrowserContext:
        defaults = {"base_url": server.url, "viewport": PHONE, "locale": "en-US"}
        # Playwright can't fail or change requests that a service worker sees.
        defaults["service_workers"] = "block"
        context = chromium.new_context(**{**defaults, **options})
        context.set_default_timeout(TIMEOUT)
        opened.append(context)
        return context

    yield open_device
    for context in opened:
        context.close()
