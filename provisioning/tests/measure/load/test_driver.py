"""Load processes: respondents are logged in, used once, and never lent twice."""

from __future__ import annotations

import time

import pytest

from provisioning.commands import Refusal
from provisioning.measure.load.driver import Driver, Drivers
from provisioning.measure.load.respondent import RehearsalSurvey
from provisioning.measure.load.tally import Tally
from provisioning.measure.load.target import target_of
from provisioning.tests.measure.load.helpers import DESCRIBED, Server, reply

pytestmark = pytest.mark.slow

PAGES = len(DESCRIBED["pages"])


def driver_of(server: Server, codes: int = 3) -> Driver:
    described = RehearsalSurvey.of(DESCRIBED)
    names = [f"CODE{n}" for n in range(codes)]
    return Driver(target_of(server.address), described, names)


def count(server: Server, start: bytes) -> int:
    return sum(request.startswith(start) for request in server.requests)


def test_as_many_respondents_log_in_as_the_saves_need(survey_server):
    driver = driver_of(survey_server)
    assert driver.enter(PAGES + 1) == 2
    assert driver.saves_left == 2 * PAGES
    assert driver.enter(PAGES) == 0
    assert count(survey_server, b"POST / ") == 2


def test_too_few_respondents_are_refused(survey_server):
    with pytest.raises(Refusal, match="raise --respondents"):
        driver_of(survey_server).enter(4 * PAGES)


def test_a_failing_login_is_refused_with_its_reason(survey_server):
    survey_server.answer = lambda request, send: send(reply(b"", "500 Error"))
    with pytest.raises(Refusal, match="Logging in fails: {'status 500': 1}"):
        driver_of(survey_server).enter(1)


def test_no_page_is_saved_twice_by_a_respondent(survey_server):
    driver = driver_of(survey_server)
    driver.enter(3 * PAGES)
    with pytest.raises(Refusal, match="raise --respondents"):
        driver.save(present=3, together=2, warm=0.0, seconds=60)
    saves = [
        each.split(b" ", 2)[1]
        for each in survey_server.requests
        if b" /take/pages/" in each.split(b"\r\n", 1)[0]
    ]
    assert sorted(saves) == sorted(
        b"/take/pages/%d/" % n for n in range(1, PAGES + 1) for _ in range(3)
    )


def test_saves_that_remain_are_used_by_the_next_measurement(survey_server):
    driver = driver_of(survey_server, codes=400)
    driver.enter(400 * PAGES)
    answer = survey_server.answer

    def slowly(request, send):
        # However fast the machine is, the first measurement can't use them up.
        time.sleep(0.001)
        answer(request, send)

    survey_server.answer = slowly
    first = driver.save(present=4, together=2, warm=0.0, seconds=0.05)
    assert first.failed() == 0
    left = driver.saves_left
    assert 0 < left < 400 * PAGES
    driver.save(present=4, together=2, warm=0.0, seconds=0.05)
    assert driver.saves_left < left
    assert count(survey_server, b"POST / ") == 400


def test_respondents_of_a_room_are_at_different_stages(survey_server):
    driver = driver_of(survey_server)
    assert driver.enter_room(3) == 3
    rest = [len(list(requests)) for requests in driver.room]
    visit = 2 * PAGES - 6 + 3
    assert rest[0] == visit
    assert rest[0] > rest[1] > rest[2] > 0


@pytest.mark.parametrize("rate", [0.0, 50.0])
def test_a_mix_keeps_the_room_full(survey_server, rate):
    driver = driver_of(survey_server, codes=4_000)
    driver.enter_room(4)
    tally = driver.mix(together=2, warm=0.0, seconds=0.2, rate=rate)
    assert tally.failed() == 0
    assert count(survey_server, b"POST / ") >= 4
    assert len(set(driver.room)) == 4


def test_one_address_can_be_fetched_again_and_again(server):
    server.answer = lambda request, send: send(reply(b"pong"))
    tally = driver_of(server).fetch(
        target=target_of(server.address),
        path="/ping/",
        accepted=(200,),
        together=2,
        seconds=0.1,
    )
    assert tally.failed() == 0
    assert count(server, b"GET /ping/ HTTP/1.1\r\n") == len(server.requests) > 0


@pytest.mark.parametrize(("accepted", "fails"), [((200, 404), False), ((200,), True)])
def test_a_fetched_reply_has_to_have_an_accepted_status(server, accepted, fails):
    server.answer = lambda request, send: send(reply(b"", "404 Not Found"))
    target = target_of(server.address)
    tally = driver_of(server).fetch(
        target=target, path="/x/", accepted=accepted, together=1, seconds=0.1
    )
    assert set(tally.failures_by_name()) == ({"status 404"} if fails else set())
    assert bool(tally.answered()) is not fails


# Processes


@pytest.fixture
def drivers(survey_server):
    survey = RehearsalSurvey.of(DESCRIBED)
    codes = [f"CODE{n}" for n in range(5)]
    drivers = Drivers(2, target_of(survey_server.address), survey, codes)
    yield drivers
    drivers.stop()


def test_codes_are_divided_between_processes(drivers):
    assert len(drivers) == 2
    assert drivers.do("enter", 2 * PAGES) == [2, 2]
    # Three of the five codes are the first process's.
    with pytest.raises(Refusal, match="raise --respondents"):
        drivers.do("enter", 3 * PAGES)


def test_the_caller_measures_while_the_processes_work(drivers):
    called = []
    assert drivers.do("enter", 1, meanwhile=lambda: called.append(1)) == [1, 1]
    assert called == [1]


def test_tallies_of_all_processes_are_merged(drivers, survey_server):
    survey_server.answer = lambda request, send: send(reply(b"pong"))
    tally = drivers.tally(
        "fetch",
        target=target_of(survey_server.address),
        path="/ping/",
        accepted=(200,),
        together=1,
        seconds=0.1,
    )
    assert isinstance(tally, Tally)
    assert survey_server.connections >= 2


def test_a_process_that_ended_is_a_refusal(drivers):
    for process in drivers.processes:
        process.kill()
        process.join()
    with pytest.raises((Refusal, BrokenPipeError)):
        drivers.do("enter", 1)
