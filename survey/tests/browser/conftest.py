"""Chromium and a real server, for journeys as a respondent makes them."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from django.conf import settings
from playwright.sync_api import Browser, BrowserContext

from survey.tests.browser.serving import ROOT, Server

PHONE = {"width": 360, "height": 740}
TABLET = {"width": 768, "height": 1024}
LAPTOP = {"width": 1280, "height": 800}


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
