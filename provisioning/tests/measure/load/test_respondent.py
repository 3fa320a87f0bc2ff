"""How replies are classified, and what requests contain."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from provisioning.measure.load.engine import Exchange
from provisioning.measure.load.replies import Reply
from provisioning.measure.load.respondent import (
    ACKED,
    JSON,
    REJECTED,
    UNKNOWN,
    RehearsalSurvey,
    Respondent,
    read_receipt,
    visit_requests,
)
from provisioning.measure.load.target import target_of
from provisioning.tests.measure.load.helpers import DESCRIBED

REVISION = 1763705000000007
SAVED = {"saved": 5, "revision": REVISION, "at": "2026-11-21T12:00:00+00:00"}


def exchange_with(status=200, body=b"", head=b""):
    exchange = Exchange(b"", lambda done: None, 0.0)
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    line = f"HTTP/1.1 {status} x\r\n".encode()
    exchange.reply = Reply(status, line + head, content, False)
    return exchange


def failed(failure):
    exchange = Exchange(b"", lambda done: None, 0.0)
    exchange.failure = failure
    return exchange


def test_a_receipt_of_this_revision_means_saved():
    receipt = read_receipt(exchange_with(body=SAVED), REVISION)
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
def test_any_other_reply_with_status_200_means_retry(body):
    receipt = read_receipt(exchange_with(body=body), REVISION)
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
def test_errors_of_the_application_are_classified(status, error, outcome, kind):
    receipt = read_receipt(exchange_with(status, {"error": error}), REVISION)
    assert (receipt.outcome, receipt.kind) == (outcome, kind)
    assert receipt.reply == f"{status} {error}"


@pytest.mark.parametrize("status", [401, 403, 407, 409, 502, 511])
def test_errors_of_a_filtering_proxy_mean_retry(status):
    receipt = read_receipt(exchange_with(status, b"<html>Blocked</html>"), REVISION)
    assert (receipt.outcome, receipt.kind) == (UNKNOWN, "retry")


def test_retry_after_is_read():
    asked = exchange_with(503, {"error": "database"}, b"Retry-After: 3")
    assert read_receipt(asked, REVISION).after == 3


@pytest.mark.parametrize("failure", ["cut", "refused", "timeout", "garbled"])
def test_without_a_reply_the_outcome_is_unknown(failure):
    receipt = read_receipt(failed(failure), REVISION)
    assert (receipt.outcome, receipt.kind, receipt.reply) == (UNKNOWN, "retry", failure)


def respondent(**options):
    survey = RehearsalSurvey.of(DESCRIBED)
    return Respondent("CODE", survey, target_of("http://127.0.0.1:8080"), **options)


BOOTSTRAP = {"tag": "maya", "revision": 40, "seen": [0, 39], "digest": "d" * 64}


def test_cookies_and_tag_are_sent_with_saves():
    maya = respondent()
    cookie = b"Set-Cookie: sessionid=abc; HttpOnly; Path=/"
    html = b'<script id="take" type="application/json">%s</script>'
    body = html % json.dumps(BOOTSTRAP).encode()
    exchange = exchange_with(body=body, head=cookie)
    assert maya.display().check(exchange) == ""
    assert (maya.tag, maya.revision, maya.seen) == ("maya", 40, [0, 39])

    request = maya.save(1, {"p1_q1": "2"})
    assert (request.revision, maya.revision) == (40, 41)
    head, _, body = request.data.decode().partition("\r\n\r\n")
    assert head.startswith("POST /take/pages/1/ HTTP/1.1\r\nHost: 127.0.0.1:8080\r\n")
    assert "\r\nCookie: sessionid=abc\r\n" in head
    assert "\r\nOrigin: http://127.0.0.1:8080\r\n" in head
    assert "\r\nX-Groundswell-Respondent: maya\r\n" in head
    assert head.endswith(f"\r\nContent-Length: {len(body)}")
    assert json.loads(body) == {"revision": 40, "answers": {"p1_q1": "2"}}


def test_deleted_cookies_are_not_sent_again():
    maya = respondent()
    maya.cookies = {"sessionid": "abc", "csrftoken": "t"}
    gone = b'Set-Cookie: sessionid=""; Max-Age=0; Path=/'
    maya.display().check(exchange_with(status=401, head=gone))
    assert maya.cookies == {"csrftoken": "t"}


def test_the_html_login_is_a_redirect_with_a_session():
    maya = respondent()
    csrf = b"Set-Cookie: csrftoken=t; Path=/"
    assert maya.login_page().check(exchange_with(head=csrf)) == ""
    assert maya.login().data.endswith(b"\r\n\r\ncode=CODE&csrfmiddlewaretoken=t")
    assert maya.login().check(exchange_with(422)) == "status 422"
    assert maya.login().check(exchange_with(302)) == "no cookie"
    session = b"Set-Cookie: sessionid=s; Path=/"
    assert maya.login().check(exchange_with(302, head=session)) == ""


def test_the_json_login_is_an_object_with_a_session():
    maya = respondent(accept=JSON)
    assert b"\r\nAccept: application/json\r\n" in maya.login_page().data
    session = b"Set-Cookie: sessionid=s; Path=/"
    assert maya.login().check(exchange_with(302, head=session)) == "status 302"
    assert maya.login().check(exchange_with(200, head=session)) == ""
    assert maya.display().check(exchange_with(body=BOOTSTRAP)) == ""
    assert maya.tag == "maya"


def test_another_survey_is_a_failure():
    maya = respondent()
    exchange = exchange_with(body={**BOOTSTRAP, "digest": "e" * 64})
    assert maya.display().check(exchange) == "another survey"
    assert maya.display().check(exchange_with(body=b"<p>")) == "no bootstrap data"


def test_content_must_not_change():
    maya = respondent()
    request = maya.content(1)
    assert request.check(exchange_with(body=b"page 1")) == ""
    assert request.check(exchange_with(body=b"page 1")) == ""
    assert request.check(exchange_with(body=b"page 2")) == "other content"
    assert maya.content(2).check(exchange_with(body=b"")) == "other content"


def test_an_error_is_not_taken_for_a_pages_content():
    maya = respondent()
    busy = exchange_with(503, b"Please try again later")
    assert maya.content(1).check(busy) == "status 503"
    assert maya.content(1).check(exchange_with(body=b"page 1")) == ""


def test_finishing_sends_the_reviewed_token():
    maya = respondent()
    page = b'<input name="reviewed" value="a&amp;b">'
    assert maya.review().check(exchange_with(body=b"<p>")) == "no review"
    assert maya.review().check(exchange_with(body=page)) == ""
    assert b"reviewed=a%26b&" in maya.finish().data
    assert maya.finish().check(exchange_with(302)) == ""
    assert maya.thanks().check(exchange_with(body=page)) == "not finished"
    assert maya.thanks().check(exchange_with(body=b"Thank you")) == ""


def test_half_of_the_requests_of_a_visit_are_saves():
    kinds = Counter(request.kind for request in visit_requests(respondent()))
    assert kinds == {
        "survey_login": 2,
        "survey_display": 1,
        "survey_content": 4,
        "survey_change_page": 10,
        "survey_complete": 3,
    }
