"""Wrong access codes are counted, reported, and nobody is locked out."""

from __future__ import annotations

import logging

import pytest
from django.conf import settings
from django.core.cache import caches

from settings.monitoring import metrics
from settings.monitoring.tests.conftest import monitored  # noqa: F401
from survey.taking import wrong_codes
from survey.tests.conftest import Browser, code_of

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("monitored")]
WRONG = "ABCD-EFGH-KLMN"


@pytest.fixture(autouse=True)
def limits(monkeypatch):
    caches[settings.SESSION_CACHE_ALIAS].clear()
    monkeypatch.setattr(wrong_codes, "MOST_PER_BLOCK", 5)
    monkeypatch.setattr(wrong_codes, "MOST_IN_ALL", 8)
    yield
    caches[settings.SESSION_CACHE_ALIAS].clear()


def counted(limit: str) -> float:
    name = "groundswell_wrong_codes_total"
    return metrics.registry.get_sample_value(name, {"limit": limit}) or 0


def warnings(caplog) -> list[logging.LogRecord]:
    return [each for each in caplog.records if each.name == wrong_codes.__name__]


def type_wrong_codes(count: int, address: str) -> None:
    for _ in range(count):
        reply = Browser().post("/", {"code": WRONG}, REMOTE_ADDR=address)
        assert reply.status_code == 422


def test_neighbouring_addresses_are_reported_once_they_guess(maya, caplog):
    before = counted("none"), counted("block")
    type_wrong_codes(4, "198.51.100.7")
    assert not warnings(caplog)
    type_wrong_codes(1, "198.51.100.200")
    [line] = warnings(caplog)
    assert (line.levelno, line.block, line.count) == (
        logging.WARNING,
        "198.51.100.0/24",
        5,
    )
    assert (counted("none"), counted("block")) == (before[0] + 4, before[1] + 1)
    # A pupil of the same school gets in at once.
    browser = Browser()
    assert (
        browser.post("/", {"code": code_of(maya)}, REMOTE_ADDR="198.51.100.7")
    ).status_code == 302


def test_guesses_from_many_addresses_are_reported_too(maya, caplog):
    before = counted("all")
    for number in range(8):
        type_wrong_codes(1, f"2001:db8:{number}::1")
    assert counted("all") == before + 1
    [line] = warnings(caplog)
    assert line.getMessage() == "many wrong access codes"


def test_typing_errors_of_incomplete_codes_are_not_counted(maya, caplog):
    before = counted("none")
    for _ in range(6):
        Browser().post("/", {"code": "ABC"}, REMOTE_ADDR="198.51.100.7")
    assert counted("none") == before
    assert not warnings(caplog)


def test_a_wrong_code_is_refused_while_redis_is_down(maya, monkeypatch):
    def down(*args: object, **kwargs: object) -> None:
        raise ConnectionError

    monkeypatch.setattr(wrong_codes, "_count", down)
    type_wrong_codes(1, "198.51.100.7")
