"""Open Chromium, and serve the JavaScript modules to it on loopback."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from django.conf import settings
from playwright.sync_api import Browser, expect, sync_playwright

from settings.tests.patience import patience

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
STATIC = Path(settings.BASE_DIR, "static")
MODELS = Path(__file__).parent / "javascript"
# Milliseconds to wait for an element or an address, and for an expectation.
TIMEOUT = patience(15) * 1000
EXPECTATION = patience(5) * 1000
POLICY = "default-src 'none'; script-src 'self'; connect-src 'self'"


class Handler(SimpleHTTPRequestHandler):
    """Serves `/js/` from static files, and `/models/` from the tests' JavaScript."""

    def translate_path(self, path: str) -> str:
        name = Path(path.partition("?")[0]).name
        folder = MODELS if path.startswith("/models/") else STATIC / "js"
        return str(folder / name)

    def do_GET(self) -> None:
        if self.path.startswith(("/js/", "/models/")):
            return super().do_GET()
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Security-Policy", POLICY)
        self.end_headers()
        self.wfile.write(b"<!doctype html><html lang=en><title>Modules</title>")

    def log_message(self, *args: object) -> None:
        pass


@contextmanager
def serve_modules() -> Iterator[str]:
    handler = partial(Handler, directory=str(STATIC))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        thread.join()


_open: list[Browser] = []


@contextmanager
def open_chromium() -> Iterator[Browser]:
    """Open one browser for a whole run: Playwright starts once in a thread.

    Each app has its own fixture; the later ones share the browser.
    """
    if _open:
        yield _open[0]
        return
    # Without both, Playwright's own, or its word on how to install that.
    path = shutil.which("chromium-headless-shell") or shutil.which("chromium")
    # Playwright's event loop stays in this thread, so Django would take every
    # later test for asynchronous code.
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"
    expect.set_options(timeout=EXPECTATION)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        _open.append(browser)
        try:
            yield browser
        finally:
            _open.clear()
            browser.close()
