"""Provide the respondents' browser and live server to tests of staff pages."""

from __future__ import annotations

from accounts.tests.conftest import staff  # noqa: F401
from survey.tests.browser.conftest import (  # noqa: F401
    device,
    server,
    shared_server,
    static_root,
)
from survey.tests.conftest import chromium  # noqa: F401
