from __future__ import annotations

import pytest

from survey.tests.conftest import (  # noqa: F401
    Browser,
    administration,
    empty_caches,
    lincoln,
    maya,
    publish,
)


@pytest.fixture
def monitored(settings):
    """Add the stack's monitoring middleware."""
    settings.MIDDLEWARE = [
        "settings.monitoring.middleware.MonitoringMiddleware",
        *settings.MIDDLEWARE,
    ]


@pytest.fixture
def browser(monitored):
    return Browser(raise_request_exception=False)
