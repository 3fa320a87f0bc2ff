"""`provisioning/faults --overload`: how its people behave, and what it demands."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from provisioning.fault_injection.overload import (
    CLASSES,
    CORES,
    Counted,
    Login,
    Overload,
    Overloaded,
    Step,
    Tab,
)
from provisioning.fault_injection.wire import Browser
from provisioning.load.engine import Exchange
from provisioning.load.replies import Reply
from provisioning.load.target import target_of

pytestmark = pytest.mark.once

STEP = Step(
    name="1x",
    people=2000,
    saved=1000.0,
    refused={"starts": 0.6, "resumes": 0.3, "saves": 0.1, "finishes": 0.0},
    refusals_per_second=100.0,
    p95=500.0,
    finish_p95=500.0,
    refused_p95=5.0,
    impolite=0,
    unanswered=0,
    finishes_refused=0,
    own_cpu=0.2,
    others_cpu=0.05,
)
MIDST = replace(STEP, name="10x", saved=910.0)


def test_a_stack_that_sheds_from_the_door_inwards_holds():
    found = Overloaded([STEP, MIDST], back=4.0)
    assert found.shortcomings() == []
    assert found.why_void() == ""
    assert found.kept() == {"1x": 1.0, "10x": 0.91}


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"saved": 899.0}, "10x: 90% of the best goodput"),
        ({"refused_p95": 2001.0}, "10x: refused after 2001 ms"),
        ({"impolite": 1}, "10x: 1 refusals without a time"),
        ({"unanswered": 2}, "10x: 2 requests without a reply"),
        ({"finishes_refused": 1}, "10x: 1 could not finish"),
        (
            {"refused": {**STEP.refused, "saves": 0.4}},
            "10x: saves were shed before resumes",
        ),
    ],
)
def test_one_shortcoming_is_enough(changed, said):
    found = Overloaded([STEP, replace(MIDST, **changed)], back=4.0)
    assert found.shortcomings() == [said]


def test_a_baseline_that_stays_away_is_one():
    assert Overloaded([STEP], back=None).shortcomings() == ["not as before within 60 s"]


def test_a_busy_machine_proves_nothing():
    busy = replace(MIDST, others_cpu=64.0)
    found = Overloaded([STEP, busy], back=4.0)
    assert found.why_void() == f"other programs took up to 64.00 of {CORES} cores"


class Clock:
    """Stands for the engine: what is asked, and what is due when."""

    def __init__(self) -> None:
        self.asked: list[tuple[bytes, object]] = []
        self.due: list[tuple[float, object]] = []

    def ask(self, data, done):
        self.asked.append((data, done))

    def later(self, seconds, act):
        self.due.append((seconds, act))


@pytest.fixture
def overload():
    """Without a stack: nobody has logged in."""
    overload = object.__new__(Overload)
    overload.engine = Clock()
    overload.seed = 1
    overload.random = Random(1)
    overload.pages = {1: [], 2: []}
    overload.counted = Counted()
    overload.saves = 0
    overload.finishers = iter(())
    return overload


@pytest.fixture
def tab(overload):
    browser = Browser(target_of("http://127.0.0.1:8080"))
    tab = Tab(overload, Login(7, "CODE", browser, next=100), wait=0.0)
    overload.engine.due.pop()[1]()
    return tab


def reply(clock, status, head="", body=b""):
    data, done = clock.asked.pop(0)
    exchange = Exchange(data, done, 0.0)
    exchange.reply = Reply(
        status, f"HTTP/1.1 {status} x\r\n{head}".encode(), body, False
    )
    done(exchange)
    return data


def test_whoever_is_refused_comes_again_no_sooner_than_asked(overload, tab):
    clock = overload.engine
    for failures in (1, 2, 3):
        clock.due.clear()
        reply(clock, 503, "Retry-After: 7")
        ((wait, again),) = clock.due
        assert 7 <= wait <= 7 + max(7, 2 ** (failures - 1))
        assert clock.asked == []
        again()
        assert clock.asked[0][0].startswith(b"POST /take/pages/1/ ")
    assert len(overload.counted.refused["saves"]) == 3
    assert overload.counted.impolite == 0

    reply(clock, 200, body=b'{"saved": 0, "revision": 103, "at": ""}')
    assert len(overload.counted.taken["saves"]) == 1
    assert (tab.failures, tab.slots, clock.asked) == (0, {}, [])


def test_a_person_goes_on_answering_while_nothing_is_saved(overload, tab):
    clock = overload.engine
    turn = next(act for _, act in clock.due)
    turn()
    turn()
    # One slot for each page, and one save under way.
    assert len(tab.slots) == 2
    assert len(clock.asked) == 1
    reply(clock, 200, body=b'{"saved": 0, "revision": 100, "at": ""}')
    assert len(clock.asked) == 1


def test_a_refusal_that_does_not_say_when_is_counted(overload, tab):
    reply(overload.engine, 503)
    assert overload.counted.impolite == 1


def test_whoever_leaves_asks_nothing_more(overload, tab):
    overload.tabs = [tab]
    overload.burst = 0
    overload._be(0)
    for _, act in overload.engine.due:
        act()
    assert len(overload.engine.asked) == 1
    assert (overload.burst, overload.staying) == (1, 0.0)


def test_the_classes_are_all_counted():
    counted = Counted()
    assert [counted.share_refused(name) for name in CLASSES] == [0.0] * 4
    counted.refused["starts"] += [0.1, 0.1, 0.1]
    counted.taken["starts"].append(0.1)
    assert counted.share_refused("starts") == 0.75
    assert counted.all_refused() == [0.1] * 3


def test_what_the_load_took_is_told_and_excuses_nothing():
    taken = replace(STEP, name="10x", saved=850.0, own_cpu=0.2 + CORES * 0.1)
    found = Overloaded([STEP, taken], back=4.0)
    assert found.kept_per_core()["10x"] > 0.93
    assert found.kept()["10x"] == 0.85
    assert found.shortcomings() == ["10x: 85% of the best goodput"]
