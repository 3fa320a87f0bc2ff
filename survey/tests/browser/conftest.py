"""Chromium and a real server, for journeys as a respondent makes them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from django.conf import settings
from playwright.sync_api import Browser, BrowserContext, sync_playwright

from survey.tests.browser.serving import ROOT, Server

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
PHONE = {"width": 360, "height": 740}
TABLET = {"width": 768, "height": 1024}
LAPTOP = {"width": 1280, "height": 800}


@pytest.fixture(scope="session", autouse=True)
def database_beside_playwright() -> None:
    # Playwright's loop runs in this thread, and Django would take the test
    # for asynchronous code.
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"


@pytest.fixture(scope="session")
def static_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What production serves: collected, joined and precompressed."""
    folder = tmp_path_factory.mktemp("static")
    environment = {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "settings.served",
        "GROUNDSWELL_STATIC_ROOT": str(folder),
        "GROUNDSWELL_TEST_SERVERS": settings.SERVERS,
    }
    for command in (
        ["manage.py", "collectstatic", "--noinput", "--verbosity=0"],
        ["manage.py", "compress", "--verbosity=0"],
        ["-m", "whitenoise.compress", "--quiet", str(folder / "CACHE")],
    ):
        subprocess.run(
            [sys.executable, *command],
            cwd=ROOT,
            env=environment,
            check=True,
            capture_output=True,
        )
    return folder


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    path = shutil.which("chromium")
    assert path, "Chromium is missing; provisioning/test installs it."
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def server(
    transactional_db: None, static_root: Path, tmp_path: Path
) -> Iterator[Server]:
    server = Server(static_root, tmp_path / "server.log").start()
    yield server
    server.stop()


@pytest.fixture
def device(
    chromium: Browser, server: Server
) -> Iterator[Callable[..., BrowserContext]]:
    """Opens a browser of its own, with its own cookies and storage."""
    opened: list[BrowserContext] = []

    def open_device(**options: object) -> BrowserContext:
        context = chromium.new_context(
            **{"base_url": server.url, "viewport": PHONE, "locale": "en-US", **options}
        )
        context.set_default_timeout(15_000)
        opened.append(context)
        return context

    yield open_device
    for context in opened:
        context.close()
