from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from provisioning.tests.load.helpers import Server, save_pages


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server()
    yield server
    server.close()


@pytest.fixture(scope="session")
def reply_timeout() -> float:
    """Seconds after which this machine has surely answered a small request."""
    server = Server()
    began = time.monotonic()
    save_pages(server, pages=20)
    server.close()
    return max(0.3, 2 * (time.monotonic() - began))
