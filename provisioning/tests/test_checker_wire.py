"""A page is shown as saved for its own receipt, and for nothing else."""

from __future__ import annotations

import json

import pytest

from provisioning.fault_injection.attempts import ACKED, REJECTED, UNKNOWN
from provisioning.fault_injection.wire import Browser, read_receipt
from provisioning.load.engine import Exchange
from provisioning.load.replies import Reply
from provisioning.load.target import target_of

pytestmark = pytest.mark.once

REVISION = 1763705000000007
SAVED = {"saved": 5, "revision": REVISION, "at": "2026-11-21T12:00:00+00:00"}


def answered(status=200, body=b"", head=b""):
    exchange = Exchange(b"", lambda done: None, 0.0)
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    line = f"HTTP/1.1 {status} x\r\n".encode()
    exchange.reply = Reply(status, line + head, content, False)
    return exchange


def failed(failure):
    exchange = Exchange(b"", lambda done: None, 0.0)
    exchange.failure = failure
    return exchange


def test_its_own_receipt_is_saved():
    receipt = read_receipt(answered(body=SAVED), REVISION)
    assert (receipt.outcome, receipt.kind) == (ACKED, "saved")
    assert (receipt.revision, receipt.at) == (REVISION, SAVED["at"])


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html>Log in to the school's network</html>",
        b"[1]",
        {**SAVED, "revision": REVISION - 1},
        {**SAVED, "revision": str(REVISION)},
        {**SAVED, "saved": True},
        {"revision": REVISION},
    ],
)
def test_any_other_200_is_not(body):
    receipt = read_receipt(answered(body=body), REVISION)
    assert (receipt.outcome, receipt.kind, receipt.revision) == (UNKNOWN, "retry", 0)


@pytest.mark.parametrize(
    ("status", "error", "outcome", "kind"),
    [
        (401, "session", REJECTED, "session"),
        (409, "superseded", REJECTED, "halt"),
        (409, "finished", REJECTED, "halt"),
        (422, "answers", REJECTED, "refused"),
        (403, "person", REJECTED, "refused"),
        (429, "too_many", UNKNOWN, "retry"),
        (503, "database", UNKNOWN, "retry"),
    ],
)
def test_what_the_application_says(status, error, outcome, kind):
    receipt = read_receipt(answered(status, {"error": error}), REVISION)
    assert (receipt.outcome, receipt.kind) == (outcome, kind)
    assert receipt.reply == f"{status} {error}"


@pytest.mark.parametrize("status", [401, 403, 407, 409, 502, 511])
def test_a_filter_on_the_way_says_nothing(status):
    receipt = read_receipt(answered(status, b"<html>Blocked</html>"), REVISION)
    assert (receipt.outcome, receipt.kind) == (UNKNOWN, "retry")


def test_how_long_to_wait():
    asked = answered(503, {"error": "database"}, b"Retry-After: 3")
    assert read_receipt(asked, REVISION).after == 3


@pytest.mark.parametrize("failure", ["cut", "refused", "timeout", "garbled"])
def test_without_a_reply_nothing_is_known(failure):
    receipt = read_receipt(failed(failure), REVISION)
    assert (receipt.outcome, receipt.kind, receipt.reply) == (UNKNOWN, "retry", failure)


def test_a_browser_keeps_its_cookies_and_names_its_person():
    browser = Browser(target_of("http://127.0.0.1:8080"))
    reply = answered(head=b"Set-Cookie: sessionid=abc; HttpOnly; Path=/").reply
    assert reply is not None
    browser.keep_cookies(reply)
    browser.tag = "maya"
    sent = browser.post("/take/pages/1/", b"{}", "application/json").decode()
    assert sent.startswith("POST /take/pages/1/ HTTP/1.1\r\nHost: 127.0.0.1:8080\r\n")
    assert "\r\nCookie: sessionid=abc\r\n" in sent
    assert "\r\nOrigin: http://127.0.0.1:8080\r\n" in sent
    assert "\r\nX-Groundswell-Respondent: maya\r\n" in sent
    assert sent.endswith("\r\nContent-Length: 2\r\n\r\n{}")
