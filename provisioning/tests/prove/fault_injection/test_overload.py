"""`provisioning/faults --overload`: how its tabs behave, and what it requires."""

from __future__ import annotations

import threading
import time
from collections import deque
from itertools import count
from random import Random
from types import SimpleNamespace

import pytest

from provisioning.commands import Refusal
from provisioning.measure.load.engine import Exchange
from provisioning.measure.load.replies import Reply
from provisioning.measure.load.respondent import (
    RehearsalSurvey,
    Respondent,
    login_requests,
)
from provisioning.measure.load.target import target_of
from provisioning.prove.fault_injection import overload
from provisioning.prove.fault_injection.load_processes import Rehearsal
from provisioning.prove.fault_injection.overload import (
    CLASSES,
    CORES,
    OverloadResult,
    OverloadRun,
    OverloadStep,
    Tab,
)
from provisioning.tests.measure.load.helpers import Server, receipt
from provisioning.tests.measure.load.helpers import reply as reply_bytes

SURVEY = RehearsalSurvey(
    "d" * 64, "r1", "en", pages=((("q1", ("1", "2")),), (("q2", ("1", "2")),))
)
TARGET = target_of("http://127.0.0.1:8080")
SHARES = {"starts": 0.6, "resumes": 0.3, "saves": 0.1, "finishes": 0.0}


def step(name="1x", *, saved=1000, slow=0.5, refused_after=0.005, shares=(), **changes):
    """Return a step of a second in which so many saves were served."""
    made = OverloadStep(
        name, people=2000, seconds=1.0, own_cpu=0.2, knee=1000, **changes
    )
    for kind, share in {**SHARES, **dict(shares)}.items():
        made.served[kind] = [slow] * saved
        made.refused[kind] = [refused_after] * round(saved * share / (1 - share))
    return made


def test_shedding_starts_before_resumes_before_saves_is_as_required():
    result = OverloadResult([step(), step("10x", saved=910)], back=4.0)
    assert result.shortcomings() == []
    assert result.why_void() == ""
    assert result.shares_kept() == {"1x": 1.0, "10x": 0.91}


@pytest.mark.parametrize(
    ("changed", "shortcoming"),
    [
        ({"saved": 899}, "10x: 90% of the saves that it could serve"),
        ({"refused_after": 2.001}, "10x: refused after 2001 ms"),
        ({"impolite": 1}, "10x: 1 refusals without a time"),
        ({"unanswered": 2}, "10x: 2 requests without a reply"),
        ({"shares": {"finishes": 0.001}}, "10x: 1 could not finish"),
        ({"shares": {"saves": 0.4}}, "10x: saves were shed before resumes"),
    ],
)
def test_one_shortcoming_fails_the_run(changed, shortcoming):
    result = OverloadResult([step(), step("10x", **changed)], back=4.0)
    assert result.shortcomings() == [shortcoming]


def test_a_run_without_recovery_fails():
    result = OverloadResult([step()], back=None)
    assert result.shortcomings() == ["not as before within 60 s"]


def test_a_run_on_a_busy_machine_is_void():
    result = OverloadResult([step(), step("10x", others_cpu=64.0)], back=4.0)
    assert result.why_void() == f"other programs took up to 64.00 of {CORES} cores"


class FakeEngine:
    """Records requests and timers instead of sending and waiting."""

    def __init__(self) -> None:
        self.asked: list[tuple[bytes, object]] = []
        self.due: list[tuple[float, object]] = []

    def ask(self, data, done):
        self.asked.append((data, done))

    def later(self, seconds, act):
        self.due.append((seconds, act))


@pytest.fixture
def run():
    """A run without a stack, before anyone has logged in."""
    run = object.__new__(OverloadRun)
    run.engine = FakeEngine()
    run.seed = 1
    run.random = Random(1)
    run.survey = SURVEY
    run.target = TARGET
    run.step = OverloadStep("")
    run.saves = 0
    run.burst = 0
    run.staying = 1.0
    run.finishers = deque()
    run.newcomers = iter(["NEWCOMER"])
    return run


@pytest.fixture
def tab(run):
    respondent = Respondent("CODE", SURVEY, TARGET)
    respondent.revision = 100
    tab = Tab(run, respondent, wait=0.0)
    run.engine.due.pop()[1]()
    return tab


def reply(engine, status, head="", body=b""):
    data, done = engine.asked.pop(0)
    exchange = Exchange(data, done, 0.0)
    exchange.reply = Reply(
        status, f"HTTP/1.1 {status} x\r\n{head}".encode(), body, False
    )
    done(exchange)
    return data


def test_a_refused_tab_waits_at_least_as_long_as_the_server_asked(run, tab):
    engine = run.engine
    for failures in (1, 2, 3):
        engine.due.clear()
        reply(engine, 503, "Retry-After: 7")
        ((wait, try_again),) = engine.due
        assert 7 <= wait <= 7 + max(7, 2 ** (failures - 1))
        assert engine.asked == []
        try_again()
        assert engine.asked[0][0].startswith(b"POST /take/pages/1/ ")
    assert len(run.step.refused["saves"]) == 3
    assert run.step.impolite == 0

    reply(engine, 200, body=b'{"saved": 0, "revision": 103, "at": ""}')
    assert len(run.step.served["saves"]) == 1
    assert (tab.failures, tab.queue.waiting, engine.asked) == (0, {}, [])


def test_a_tab_keeps_one_slot_per_page_and_one_save_in_flight(run, tab):
    engine = run.engine
    turn_page = next(act for _, act in engine.due)
    turn_page()
    turn_page()
    assert len(tab.queue.waiting) == 2
    assert len(engine.asked) == 1
    reply(engine, 200, body=b'{"saved": 0, "revision": 100, "at": ""}')
    assert len(engine.asked) == 1


def test_a_refusal_without_retry_after_is_counted_as_impolite(run, tab):
    reply(run.engine, 503)
    assert run.step.impolite == 1


def test_a_closed_tab_sends_nothing_more(run, tab):
    run.tabs = [tab]
    run._resize(0)
    for _, act in run.engine.due:
        act()
    assert len(run.engine.asked) == 1
    assert (run.burst, run.staying) == (1, 0.0)


def test_each_request_of_a_login_is_repeated_until_it_is_served(run):
    engine, newcomer = run.engine, Respondent("CODE", SURVEY, TARGET)
    run._send_each(login_requests(newcomer))
    assert reply(engine, 503, "Retry-After: 3").startswith(b"GET / ")
    ((wait, send_again),) = engine.due
    assert wait == 3
    send_again()
    assert reply(engine, 200, "Set-Cookie: csrftoken=t").startswith(b"GET / ")
    code = reply(engine, 302, "Set-Cookie: sessionid=s")
    assert code.endswith(b"code=CODE&csrfmiddlewaretoken=t")
    assert b"\r\nCookie: csrftoken=t; sessionid=s\r\n" in reply(engine, 200)
    assert engine.asked == []
    assert len(run.step.served["starts"]) == 2
    assert len(run.step.refused["starts"]) == 1
    assert len(run.step.served["resumes"]) == 1


def test_who_logs_in_has_a_code_of_their_own_and_finishes_later(run):
    run._send_each(run._enter())
    page = b'<script id="take" type="application/json">{}</script>'
    for body in (b"", b"", page):
        reply(run.engine, 200, "Set-Cookie: csrftoken=t", body)
    assert [person.code for person in run.finishers] == ["NEWCOMER"]
    with pytest.raises(Refusal, match="nobody was left to log in"):
        run._send_each(run._enter())


def test_a_refused_request_is_sent_again_with_the_cookie_of_the_refusal(run):
    run._send_each(login_requests(Respondent("CODE", SURVEY, TARGET)))
    reply(run.engine, 503, "Retry-After: 3\r\nSet-Cookie: waits=1; Max-Age=90; Path=/")
    run.engine.due.pop()[1]()
    assert b"Cookie: waits=1\r\n" in run.engine.asked[-1][0]


def test_people_of_an_earlier_burst_may_give_up(run):
    newcomer = Respondent("CODE", SURVEY, TARGET)
    run._send_each(login_requests(newcomer))
    reply(run.engine, 503, "Retry-After: 3")
    run.burst, run.staying = 1, 0.0
    run.engine.due.pop()[1]()
    assert run.engine.asked == []


def test_one_respondent_finishes_for_every_twenty_saves(run):
    finisher = Respondent("CODE", SURVEY, TARGET)
    run.finishers = deque([finisher])
    for _ in range(40):
        run.count_saved_page()
    assert len(run.engine.asked) == 1
    page = b'<input name="reviewed" value="token">'
    assert reply(run.engine, 200, body=page).startswith(b"GET /take/complete/ ")
    assert b"reviewed=token" in reply(run.engine, 302)
    assert len(run.step.served["finishes"]) == 2


def test_shares_of_refused_requests_are_counted_by_class():
    counts = OverloadStep("1x", seconds=3.0)
    assert [counts.share_refused(name) for name in CLASSES] == [0.0] * 4
    counts.refused["starts"] += [0.1, 0.1, 0.1]
    counts.served["starts"].append(0.1)
    assert counts.share_refused("starts") == 0.75
    assert counts.figures()["refusals_per_second"] == 1.0


def test_the_cpu_of_the_load_is_reported_but_excuses_nothing():
    busy = step("10x", saved=850)
    busy.own_cpu += CORES * 0.1
    result = OverloadResult([step(), busy], back=4.0)
    assert result.kept_per_core()["10x"] > 0.93
    assert result.shares_kept()["10x"] == 0.85
    assert result.shortcomings() == ["10x: 85% of the saves that it could serve"]


def test_a_machine_that_became_slower_has_lost_no_goodput():
    slower = step("10x", saved=600)
    slower.knee = 600
    assert OverloadResult([step(), slower], back=4.0).shortcomings() == []
    # With the same machine, it has.
    slower.knee = 1000
    result = OverloadResult([step(), slower], back=4.0)
    assert result.shortcomings() == ["10x: 60% of the saves that it could serve"]


def test_saving_has_recovered_when_it_is_as_fast_as_before(run, monkeypatch):
    moments = count(0, 3)
    monkeypatch.setattr(
        "provisioning.prove.fault_injection.overload.clock", lambda: next(moments)
    )
    unhurt = step(shares=dict.fromkeys(SHARES, 0.0))
    later = [step(slow=1.001, shares=dict.fromkeys(SHARES, 0.0)), step(), unhurt]
    run._offer = lambda *arguments: later.pop(0)
    assert run._wait_for_recovery(step(), knee=100.0) == 9.0
    assert later == []


def test_saving_that_stays_slow_has_not_recovered(run, monkeypatch):
    moments = count(0, 3)
    monkeypatch.setattr(
        "provisioning.prove.fault_injection.overload.clock", lambda: next(moments)
    )
    run._offer = lambda *arguments: step(unanswered=1)
    assert run._wait_for_recovery(step(), knee=100.0) is None


# A whole run against a server that sheds load


def survey_server() -> Server:
    """Saves one page at a time, and refuses saves when eight are waiting."""
    server, lock, waiting = Server(), threading.Lock(), []

    def answer(request, send):
        head, _, body = request.decode().partition("\r\n\r\n")
        line, wants_json = head.split("\r\n")[0], "application/json" in head
        if line.startswith("POST /take/pages/"):
            if len(waiting) > 8:
                send(reply_bytes(b"", "503 Busy", b"Retry-After: 1\r\n"))
                return
            waiting.append(1)
            with lock:
                time.sleep(0.02)
            waiting.pop()
            send(reply_bytes(receipt(request)))
        elif line.startswith("GET /take/complete/"):
            send(reply_bytes(b'<input name="reviewed" value="token">'))
        elif line.startswith("POST /take/complete/"):
            send(reply_bytes(b"", "302 Found"))
        elif line.startswith("GET /take/"):
            bootstrap = b'{"tag": "t", "revision": 1, "seen": [], "digest": "%s"}'
            script = b'<script id="take" type="application/json">%s</script>'
            data = bootstrap % (b"d" * 64)
            send(reply_bytes(data if wants_json else script % data))
        elif line.startswith("POST /"):
            status = "200 OK" if wants_json else "302 Found"
            send(reply_bytes(b"{}", status, b"Set-Cookie: sessionid=s\r\n"))
        else:
            send(reply_bytes(b"{}", head=b"Set-Cookie: csrftoken=t\r\n"))

    server.answer = answer
    return server


@pytest.mark.slow
def test_a_whole_run_logs_in_finds_the_knee_and_offers_each_step(monkeypatch, capsys):
    for name, value in {
        "TIMES": (1, 4),
        "SECONDS": 1.0,
        "CALM_SECONDS": 0.5,
        "KNEE_SECONDS": 0.5,
        "QUIET_SECONDS": 0.2,
        "SAVERS": 10,
        "FINISHERS": 10,
        # The server refuses more.
        "TOGETHER": 8,
        "RECOVERY_WINDOW": 0.5,
        "RECOVERY_LIMIT": 1.0,
        "CONNECTIONS": 64,
    }.items():
        monkeypatch.setattr(overload, name, value)
    monkeypatch.setattr("gc.freeze", lambda: None)
    monkeypatch.setattr("gc.disable", lambda: None)
    server = survey_server()
    stack = SimpleNamespace(address=server.address, supervisor_pid=1)
    described = {
        "digest": "d" * 64,
        "renderer": "r1",
        "language": "en",
        "pages": [{"items": [{"name": "q1", "values": ["1", "2"]}]}] * 2,
    }
    people = [(n, f"CODE{n}") for n in range(4000)]

    result = OverloadRun(stack, Rehearsal(1, described, people), seed=1).run()
    server.close()

    logins = [each for each in server.requests if each.startswith(b"POST / ")]
    assert {b"code=CODE%d&" % n for n in range(20)} <= {
        each.partition(b"\r\n\r\n")[2].partition(b"csrf")[0] for each in logins
    }
    assert [step.name for step in result.steps] == ["1x", "4x"]
    assert result.steps[1].people > 2 * result.steps[0].people
    assert result.steps[1].share_refused("saves") > 0
    assert result.steps[1].knee > 0
    finished = [each for each in server.requests if b"POST /take/complete/" in each]
    assert all(b"reviewed=token" in each for each in finished)
    assert set(result.described()) == {
        "steps",
        "kept",
        "kept_per_core",
        "back_after_seconds",
        "void",
    }
    assert "Knee: " in capsys.readouterr().out
