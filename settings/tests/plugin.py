"""Pytest plugin: markers by fixture, patience, Hypothesis, who runs what and when."""

from __future__ import annotations

import fcntl
import gc
import os
from collections.abc import Callable, Generator
from pathlib import Path

import hypothesis
import pytest
from _pytest import runner

from provisioning.measure.calibration import slowness
from settings.tests.costs import Costs

# The longest files first, and those that mostly wait: started last, one of them
# would keep one process busy while the others have nothing left to do. Short tests
# that compute come last, and fill both cores to the end.
LONGEST = (
    "settings/tests/test_access_matrix.py",
    "provisioning/tests/test_demo.py",
    "survey/tests/browser/",
    "accounts/tests/browser/",
    "reports/tests/browser/",
    "settings/monitoring/tests/test_metrics.py",
    "survey/tests/simulation/test_demo.py",
    "provisioning/tests/installation/",
    "survey/tests/javascript/",
    "survey/tests/console/test_people_search_indexes.py",
    "settings/tests/infrastructure/test_time_limit.py",
    "survey/tests/taking/test_unreplicated_commits.py",
    "survey/tests/rosters/feeds/test_sftp.py",
    # They wait for servers, backups and measurements of their own.
    "provisioning/",
)

# Modules and tests stay until the end. Looking for garbage among them takes a fifth
# of the time until they are collected, and later an eighth of a test process's time.
gc.disable()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--costs",
        action="store_true",
        help="show the files of tests that took the most processor time",
    )


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("costs"):
        config.pluginmanager.register(Costs(config))
    # Worker processes and the programs that tests start inherit it.
    # `provisioning/test` has set it, because it knows how many run side by side.
    os.environ.setdefault("GROUNDSWELL_TEST_PATIENCE", f"{2 * slowness():.1f}")

    # A slow machine is no defect of the code under test.
    hypothesis.settings.register_profile(
        "tests",
        deadline=None,
        suppress_health_check=[hypothesis.HealthCheck.too_slow],
    )
    hypothesis.settings.load_profile("tests")


def pytest_report_header() -> str:
    factor = os.environ["GROUNDSWELL_TEST_PATIENCE"]
    return f"time-outs are multiplied by {factor}"


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection() -> Generator[None, object, object]:
    """Let one process rewrite the assertions, and the others load the result."""
    with Path(__file__).open() as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            fcntl.flock(lock, fcntl.LOCK_SH)
        collected = yield
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)
    gc.enable()
    return collected


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        fixtures = set(getattr(item, "fixturenames", ()))
        path = item.nodeid.partition("::")[0]
        if "/browser/" in path or "_in_chromium" in path or "chromium" in fixtures:
            item.add_marker(pytest.mark.browser)
    items.sort(
        key=lambda item: next(
            (at for at, path in enumerate(LONGEST) if item.nodeid.startswith(path)),
            len(LONGEST),
        )
    )


# Python 3.11 keeps frames in chunks of 16 KB, which it maps and unmaps again and
# again while calls go back and forth over the end of one. Half of the chunk that
# begins with a frame as large as this one's is free for what it calls.
def _call_with_room(function: Callable[..., bool], *arguments: object) -> bool:
    return function(*arguments)


_call_with_room.__code__ = _call_with_room.__code__.replace(co_stacksize=66_000)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool:
    return _call_with_room(runner.pytest_runtest_protocol, item, nextitem)
