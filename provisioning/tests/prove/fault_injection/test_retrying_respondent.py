"""How simulated respondents retry, and that each attempt is logged."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest

from provisioning.measure.load.engine import Exchange, play
from provisioning.measure.load.replies import Reply
from provisioning.measure.load.respondent import (
    ACKED,
    REJECTED,
    UNKNOWN,
    RehearsalSurvey,
)
from provisioning.measure.load.target import target_of
from provisioning.prove.fault_injection import retrying_respondent
from provisioning.prove.fault_injection.recovery import Timeline
from provisioning.prove.fault_injection.retrying_respondent import (
    TABS,
    Rehearsal,
    RespondentPool,
    RetryingRespondent,
)
from provisioning.prove.fault_injection.saves import AnswerSource, Attempt, fingerprint
from survey.taking import storage

DESCRIBED = {
    "digest": "d" * 64,
    "renderer": "r1",
    "language": "en",
    "pages": [
        {
            "n": n,
            "items": [
                {
                    "id": n,
                    "name": f"p{n}_q1",
                    "values": ["1", "2"],
                }
            ],
        }
        for n in (1, 2)
    ],
}
BOOTSTRAP = {"tag": "maya", "revision": 40, "seen": [0, 39], "digest": "d" * 64}
SEED = 7


class FakeEngine:
    """Records requests and timers; the test replies and lets time pass."""

    target = target_of("http://127.0.0.1:8080")

    def __init__(self) -> None:
        self.requests: list[Exchange] = []
        self.timers: list[tuple[float, object]] = []
        self.unanswered = self.dropped = 0

    def ask(self, data, done):
        exchange = Exchange(data, done, scheduled=100.0)
        self.requests.append(exchange)
        return exchange

    def later(self, seconds, act):
        self.timers.append((seconds, act))

    def drop_free_connections(self):
        self.dropped += 1

    def run_timers(self):
        timers, self.timers = self.timers, []
        for _, act in timers:
            act()


class Load:
    """One respondent, whose requests are answered by the test."""

    def __init__(self) -> None:
        self.engine = FakeEngine()
        self.attempts = []
        self.left = []
        pool = SimpleNamespace(
            engine=self.engine,
            log=self,
            survey=RehearsalSurvey.of(DESCRIBED),
            source=AnswerSource.of(SEED, DESCRIBED),
            thinking=1.0,
            offset=1000.0,
        )
        self.pool = pool
        self.respondent = RetryingRespondent(pool, 41, "CODE", self.left.append)
        self.respondent.plan = [1, 2]
        # The first number of this tab is the one that the server proposes.
        self.respondent.tab = 40

    def write(self, line):
        self.attempts.append(Attempt(*json.loads(line)))

    def reply(self, status=200, body=b"", head="", failure=""):
        """Answer the oldest request, and return it."""
        exchange = self.engine.requests.pop(0)
        exchange.answered = 100.5
        if failure:
            exchange.failure = failure
        else:
            content = body if isinstance(body, bytes) else json.dumps(body).encode()
            line = f"HTTP/1.1 {status} x\r\n{head}".encode()
            exchange.reply = Reply(status, line, content, False)
        exchange.done(exchange)
        return exchange.data.decode()

    def begin(self):
        play(self.engine, self.respondent.take_survey())

    def log_in(self):
        self.begin()
        page = self.reply(head="Set-Cookie: csrftoken=t")
        code = self.reply(head="Set-Cookie: sessionid=s")
        shell = self.reply(body=BOOTSTRAP)
        return page, code, shell

    def receipt(self):
        revision = self.sent()["revision"]
        return self.reply(body={"saved": 1, "revision": revision, "at": "now"})

    def sent(self):
        return json.loads(self.engine.requests[0].data.partition(b"\r\n\r\n")[2])


@pytest.fixture
def load(monkeypatch):
    """Without duplicates, late packets and other devices, which are drawn."""
    for name in ("DOUBLED", "LATE", "OTHER_DEVICE"):
        monkeypatch.setattr(retrying_respondent, name, 0.0)
    return Load()


@pytest.fixture
def saving(load):
    """Logged in, with page 1 in flight."""
    load.log_in()
    load.engine.run_timers()
    return load


def test_login_uses_json_and_opens_the_survey(load):
    page, code, shell = load.log_in()
    assert page.startswith("GET / ")
    assert code.startswith("POST / ")
    assert shell.startswith("GET /take/ ")
    for request in (page, code, shell):
        assert "\r\nAccept: application/json\r\n" in request
    assert load.respondent.is_inside
    assert load.respondent.next_revision == 40


@pytest.mark.parametrize("replies_before", [0, 1, 2])
def test_login_starts_again_after_a_failure(load, replies_before):
    load.begin()
    for _ in range(replies_before):
        load.reply(head="Set-Cookie: csrftoken=t; Path=/\r\nSet-Cookie: sessionid=s")
    load.reply(401 if replies_before == 2 else 503)
    assert not load.respondent.is_inside
    load.engine.run_timers()
    assert load.engine.requests[0].data.startswith(b"GET / ")


def test_a_respondent_who_has_finished_leaves(load):
    load.begin()
    load.reply(head="Set-Cookie: csrftoken=t")
    load.reply(head="Set-Cookie: sessionid=s")
    load.reply(409, {"error": "finished"})
    assert load.left == [load.respondent]


def test_a_save_names_what_the_respondent_has_seen(saving):
    sent = saving.sent()
    answers = saving.pool.source.answers(41, 1, 40)
    assert sent == {"revision": 40, "seen": 0, "answers": answers}


def test_an_acknowledged_save_is_logged_with_its_receipt(saving):
    answers = saving.sent()["answers"]
    saving.receipt()
    (attempt,) = saving.attempts
    assert (attempt.number, attempt.respondent, attempt.page) == ("41-1-40-1", 41, 1)
    assert (attempt.revision, attempt.receipt, attempt.at) == (40, 40, "now")
    assert attempt.answers == fingerprint(answers)
    assert (attempt.sent, attempt.answered) == (1100.0, 1100.5)
    assert (attempt.outcome, attempt.kind, attempt.reply) == (ACKED, "first", "200")
    assert saving.respondent.queue.waiting == {}
    assert saving.respondent.acknowledged == {1: 40}


def test_a_retry_is_the_same_to_the_byte_and_logged_again(saving):
    first = saving.reply(503, {"error": "database"}, "Retry-After: 1")
    assert saving.engine.requests == []
    saving.respondent.plan.clear()
    saving.engine.run_timers()
    second = saving.receipt()
    assert second == first
    assert [attempt.kind for attempt in saving.attempts] == ["first", "retry"]
    assert [attempt.outcome for attempt in saving.attempts] == [UNKNOWN, ACKED]
    assert [attempt.reply for attempt in saving.attempts] == ["503 database", "200"]
    assert [attempt.number for attempt in saving.attempts] == ["41-1-40-1", "41-1-40-2"]


def test_a_cut_save_is_sent_again_at_once_over_another_connection(saving):
    saving.reply(failure="cut")
    assert saving.engine.dropped == 1
    assert len(saving.engine.requests) == 1
    saving.reply(failure="cut")
    # The second time, the respondent backs off as after any failure.
    assert saving.engine.requests == []
    assert [attempt.outcome for attempt in saving.attempts] == [UNKNOWN] * 2


def test_a_receipt_of_another_revision_is_not_believed(saving):
    saving.reply(body={"saved": 1, "revision": 39, "at": "now"})
    (attempt,) = saving.attempts
    assert (attempt.outcome, attempt.receipt, attempt.at) == (UNKNOWN, 0, "")
    assert 1 in saving.respondent.queue.waiting


def test_a_superseded_page_is_answered_again_above_what_is_stored(saving):
    saving.reply(409, {"error": "superseded"})
    assert saving.attempts[0].outcome == REJECTED
    assert saving.respondent.plan[0] == 1
    saving.reply(body={**BOOTSTRAP, "revision": 90, "seen": [89, 39]})
    saving.engine.run_timers()
    # Above what the server has, and a number of this tab.
    assert saving.sent()["revision"] == 40 + TABS
    assert saving.sent()["seen"] == 89


def test_an_ended_session_is_followed_by_a_login(saving):
    saving.reply(401, {"error": "session"})
    saving.engine.run_timers()
    assert saving.engine.requests[0].data.startswith(b"GET / ")
    assert 1 in saving.respondent.queue.waiting


def test_revisions_of_one_tab_are_equal_modulo_the_number_of_tabs(load):
    load.log_in()
    load.respondent.tab = 123
    saves = [load.respondent._new_save(1) for _ in range(3)]
    assert [save.revision for save in saves] == [123, 123 + TABS, 123 + 2 * TABS]
    assert {save.tab for save in saves} == {"123"}
    assert TABS == storage.TABS


@pytest.mark.parametrize("error", ["finished", "withdrawn", "closed"])
def test_a_respondent_leaves_when_saving_has_ended(saving, error):
    saving.reply(409, {"error": error})
    assert saving.left == [saving.respondent]


def test_a_save_may_be_sent_twice(load, monkeypatch):
    monkeypatch.setattr(retrying_respondent, "DOUBLED", 1.0)
    load.log_in()
    load.engine.run_timers()
    load.engine.run_timers()
    assert load.engine.requests[0].data == load.engine.requests[1].data
    load.receipt()
    load.receipt()
    assert [attempt.kind for attempt in load.attempts] == ["first", "double"]


def test_a_packet_may_arrive_after_its_successor(load, monkeypatch):
    monkeypatch.setattr(retrying_respondent, "LATE", 1.0)
    load.log_in()
    load.engine.run_timers()
    assert load.sent()["revision"] == 40 + TABS
    load.receipt()
    load.respondent.plan.clear()
    load.engine.run_timers()
    late = next(
        index
        for index, exchange in enumerate(load.engine.requests)
        if b'"revision":40' in exchange.data
    )
    load.engine.requests.insert(0, load.engine.requests.pop(late))
    load.reply(409, {"error": "superseded"})
    assert (load.attempts[-1].kind, load.attempts[-1].revision) == ("late", 40)
    assert load.respondent.acknowledged == {1: 40 + TABS}


def test_another_device_logs_in_while_a_packet_of_the_old_one_is_late(
    load, monkeypatch
):
    monkeypatch.setattr(retrying_respondent, "OTHER_DEVICE", 1.0)
    load.log_in()
    old = load.respondent.browser
    load.engine.run_timers()
    assert load.respondent.browser is not old
    assert load.engine.requests[0].data.startswith(b"GET / ")
    assert b"Cookie" not in load.engine.requests[0].data
    # Nothing is answered on the new device before it shows the survey.
    load.respondent.plan = [2]
    monkeypatch.setattr(retrying_respondent, "OTHER_DEVICE", 0.0)
    load.engine.run_timers()
    late = [each for each in load.engine.requests if b"/take/pages/1/" in each.data]
    assert len(late) == 1
    assert b"\r\nCookie: csrftoken=t; sessionid=s\r\n" in late[0].data
    assert load.respondent.plan == [2]
    assert load.respondent.queue.is_empty


def test_each_device_is_a_tab_that_has_only_seen_what_it_was_shown(load, monkeypatch):
    load.log_in()
    load.engine.run_timers()
    load.receipt()
    assert (load.attempts[0].tab, load.attempts[0].seen) == ("40", 0)
    assert load.respondent.acknowledged == {1: 40}
    monkeypatch.setattr(retrying_respondent, "OTHER_DEVICE", 1.0)
    load.engine.run_timers()
    assert load.respondent.tab != 40
    assert (load.respondent.seen, load.respondent.acknowledged) == ([], {})


def test_a_page_is_answered_while_the_session_has_ended(saving):
    saving.respondent.plan = [2]
    saving.reply(401, {"error": "session"})
    saving.engine.run_timers()
    assert list(saving.respondent.queue.waiting) == [1, 2]


@pytest.mark.parametrize(
    ("status", "outcome"), [(302, ACKED), (503, UNKNOWN), (401, UNKNOWN)]
)
def test_an_attempt_to_finish_is_logged(load, monkeypatch, status, outcome):
    monkeypatch.setattr(retrying_respondent, "FINISHES", 1.0)
    load.log_in()
    load.respondent.hurry()
    load.engine.run_timers()
    page = b'<input name="reviewed" value="token">'
    assert load.reply(body=page).startswith("GET /take/complete/ ")
    assert load.reply(status).startswith("POST /take/complete/ ")
    (attempt,) = load.attempts
    assert (attempt.page, attempt.revision, attempt.outcome) == (0, 0, outcome)
    assert (attempt.number, attempt.reply) == ("41-0-0-0", str(status))
    assert bool(load.left) == (outcome == ACKED)


def test_a_cut_attempt_to_finish_is_repeated_at_once_over_another_connection(
    load, monkeypatch
):
    monkeypatch.setattr(retrying_respondent, "FINISHES", 1.0)
    load.log_in()
    load.respondent.hurry()
    load.engine.run_timers()
    load.reply(body=b'<input name="reviewed" value="token">')
    sent = load.reply(failure="cut")
    assert sent.startswith("POST /take/complete/ ")
    assert load.engine.dropped == 1
    assert load.reply(302) == sent
    assert [(each.kind, each.outcome) for each in load.attempts] == [
        ("first", UNKNOWN),
        ("retry", ACKED),
    ]
    assert load.left == [load.respondent]
    # The same save, for the count of failures in a deployment.
    history = Timeline()
    history.add(load.attempts)
    assert history.failures(0, 10_000) == {"resent": 1}


def test_a_hurried_respondent_saves_what_waits_before_leaving(saving, monkeypatch):
    monkeypatch.setattr(retrying_respondent, "FINISHES", 0.0)
    saving.respondent.hurry()
    saving.engine.run_timers()
    assert saving.left == []
    saving.receipt()
    saving.engine.run_timers()
    assert saving.left == [saving.respondent]


def test_waits_between_retries_grow_up_to_a_limit(saving):
    waits = []
    saving.respondent.random.random = lambda: 0.5
    saving.engine.timers.clear()
    for _ in range(4):
        saving.reply(503)
        [(wait, _)] = saving.engine.timers
        waits.append(wait)
        saving.engine.run_timers()
    assert waits == [0.5, 1.0, 1.0, 1.0]


def test_a_pool_replaces_those_who_leave_and_marks_its_log_as_complete(tmp_path):
    log = tmp_path / "attempts.log"
    rehearsal = Rehearsal(1, DESCRIBED, [(1, "A"), (2, "B")])
    target = target_of("http://127.0.0.1:9")
    load = {"target": target, "seats": 1, "rate": 1.0, "seed": SEED}
    pool = RespondentPool(rehearsal, log, **load)
    pool.engine.close()
    pool.engine = FakeEngine()
    pool._admit_next()
    (first,) = pool.present
    assert first.number == 1
    first.leave(first)
    (second,) = pool.present
    assert second.number == 2
    # The first did not finish, and comes again.
    assert list(pool.people) == [(1, "A")]
    second.is_finishing = True
    pool.is_closing = True
    second.leave(second)
    assert pool.present == set()
    for name in ("run", "stop", "abandon", "close"):
        setattr(pool.engine, name, lambda: None)
    assert pool.run()
    assert log.read_text() == "# complete\n"
