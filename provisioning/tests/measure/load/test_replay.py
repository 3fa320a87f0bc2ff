"""Logged requests are sent again by people who can send them, when they are due."""

from __future__ import annotations

import time

import pytest

from provisioning.measure.jmeter.replay import (
    ASKED,
    DISPLAYED,
    OUTSIDE,
    REVIEWED,
    Replay,
    assign_people,
    preparation,
)
from provisioning.measure.load.access_log import LoggedRequest, Step
from provisioning.measure.load.crowd import Crowd
from provisioning.measure.load.respondent import RehearsalSurvey, Respondent
from provisioning.measure.load.target import target_of
from provisioning.tests.measure.load.helpers import DESCRIBED, engine_for, reply

VISIT = [
    (Step.LOGIN_PAGE, 0),
    (Step.LOGIN, 0),
    (Step.DISPLAY, 0),
    (Step.CONTENT, 1),
    (Step.SAVE, 1),
    (Step.SAVE, 2),
    (Step.REVIEW, 0),
    (Step.FINISH, 0),
    (Step.REVIEW, 0),
]


def log_of(*steps: tuple[Step, int], every: float = 1.0) -> list[LoggedRequest]:
    return [LoggedRequest(n * every, *step) for n, step in enumerate(steps)]


def befores(*steps: tuple[Step, int]) -> list[int]:
    return [person.before for person in assign_people(log_of(*steps))[0]]


def test_one_persons_requests_go_to_one_person():
    people, senders = assign_people(log_of(*VISIT))
    assert [person.before for person in people] == [OUTSIDE]
    assert senders[3] is None
    assert {sender for sender in senders if sender} == set(people)


def test_people_do_not_mix_while_their_pages_differ():
    maya, jamal = (Step.SAVE, 1), (Step.SAVE, 5)
    people, senders = assign_people(
        log_of(maya, jamal, (Step.SAVE, 6), (Step.SAVE, 2), (Step.SAVE, 4))
    )
    assert senders == [people[n] for n in (0, 1, 1, 0, 0)]
    assert [person.before for person in people] == [0, 4]


@pytest.mark.parametrize(
    ("step", "before"),
    [
        ((Step.LOGIN, 0), ASKED),
        ((Step.SAVE, 9), 8),
        ((Step.FINISH, 0), REVIEWED),
    ],
)
def test_what_nobody_can_have_sent_is_of_somebody_from_before(step, before):
    assert befores(step) == [before]


def test_nobody_saves_before_the_survey_is_displayed():
    people, senders = assign_people(log_of(*VISIT[:2], (Step.SAVE, 1), (Step.SAVE, 2)))
    assert [person.before for person in people] == [OUTSIDE, DISPLAYED]
    assert senders[2:] == [people[1], people[1]]


def test_a_reload_does_not_need_another_person():
    assert befores(*VISIT[:6], (Step.DISPLAY, 0), *VISIT[6:]) == [OUTSIDE]


def replayed(server, requests, *, speed=1.0):
    survey, target = RehearsalSurvey.of(DESCRIBED), target_of(server.address)
    people, senders = assign_people(requests)
    respondents = {
        p: Respondent(f"CODE{n}", survey, target) for n, p in enumerate(people)
    }
    engine = engine_for(server)
    visits = (preparation(person, respondents[person]) for person in people)
    assert not Crowd(engine, visits).run_closed(together=4).failed()
    server.requests.clear()
    nobody = Respondent("", survey, target)
    replay = Replay(
        engine, requests, senders, {None: nobody, **respondents}, speed=speed
    )
    replay.run()
    engine.close()
    return replay


def sent(server) -> list[str]:
    return [each.split(b" HTTP")[0].decode() for each in server.requests]


@pytest.mark.slow
def test_a_visit_is_sent_again_in_its_order_and_faster(survey_server):
    began = time.monotonic()
    replay = replayed(survey_server, log_of(*VISIT, every=0.5), speed=10)
    # Four seconds of the log.
    assert time.monotonic() - began >= 0.4
    assert [each.failure for each in replay.samples] == [""] * len(VISIT)
    assert sent(survey_server) == [
        "GET /",
        "POST /",
        "GET /take/",
        f"GET /content/{'d' * 64}/r1/en/1/",
        "POST /take/pages/1/",
        "POST /take/pages/2/",
        "GET /take/complete/",
        "POST /take/complete/",
        "GET /take/complete/",
    ]
    assert [each.page for each in replay.samples if each.page] == [1, 1, 2]


@pytest.mark.slow
def test_people_from_before_are_logged_in_first(survey_server):
    requests = log_of((Step.SAVE, 4), (Step.FINISH, 0), (Step.SAVE, 5), every=0.01)
    replay = replayed(survey_server, requests)
    assert [each.failure for each in replay.samples] == ["", "", ""]


@pytest.mark.slow
def test_requests_are_due_whatever_the_server_does(survey_server):
    answer = survey_server.answer

    def slow(request, send):
        if b"/take/pages/" in request:
            time.sleep(0.3)
        answer(request, send)

    survey_server.answer = slow
    requests = log_of((Step.SAVE, 1), (Step.SAVE, 5), (Step.SAVE, 2), every=0.01)
    replay = replayed(survey_server, requests)
    # Two people at once; the second page waited for the first.
    first, between, second = (each.seconds for each in replay.samples)
    assert first >= 0.3
    assert between >= 0.3
    assert second >= 0.55


@pytest.mark.slow
def test_a_person_stops_at_an_error_and_the_rest_is_counted(survey_server):
    answer = survey_server.answer

    def refuse(request, send):
        if b"POST /take/pages/2/" in request:
            send(reply(b"", "503 Service Unavailable"))
        else:
            answer(request, send)

    survey_server.answer = refuse
    replay = replayed(survey_server, log_of(*VISIT, every=0.01))
    assert [each.failure for each in replay.samples if each.failure] == ["status 503"]
    assert replay.not_sent == 3
    assert len(replay.samples) + replay.not_sent == len(VISIT)
