"""`provisioning/faults --matrix`: how an action is repeated, and what is required."""

from __future__ import annotations

import pytest

from provisioning.measure.load.respondent import RehearsalSurvey, Respondent
from provisioning.measure.load.target import target_of
from provisioning.prove.fault_injection import matrix
from provisioning.prove.fault_injection.matrix import (
    LATER,
    NEVER,
    QUEUED,
    WORKS,
    Action,
    ActionLog,
    Cell,
    MatrixRun,
    visit,
)
from provisioning.tests.measure.load.helpers import DESCRIBED, Server, receipt, reply


@pytest.fixture(autouse=True)
def without_pauses(monkeypatch):
    monkeypatch.setattr(matrix, "PAUSE", 0.0)


def failing(*failures):
    """Return a step that fails with these, then succeeds."""
    left = list(failures)
    return lambda log: left.pop(0) if left else ""


def cell(*, accepted=None, done=None, required=LATER):
    return Cell(ActionLog("save page", accepted=accepted, done=done), 15.0, required)


def test_each_step_is_repeated_until_it_succeeds():
    steps = [failing("status 503", "timeout"), failing(), failing("not ready")]
    log = Action("exports", steps, accepting=1).run(60.0)
    failures = [failure for _, failure in log.failures]
    assert failures == ["status 503", "timeout", "not ready"]
    assert log.accepted is not None
    assert log.accepted <= log.done


def test_an_action_that_never_succeeds_ends():
    log = Action("rates", [lambda log: "cut"], accepting=1).run(0.0)
    assert (log.accepted, log.done) == (None, None)


@pytest.mark.parametrize(
    ("times", "outcome", "summary"),
    [
        ({"accepted": 0.5, "done": 2.0}, WORKS, "works 2.0 s"),
        ({"accepted": 0.5, "done": 18.0}, QUEUED, "queued 3.0 s"),
        ({"accepted": 16.0, "done": 18.0}, LATER, "later 3.0 s"),
        ({"accepted": 16.0}, NEVER, "never"),
    ],
)
def test_an_outcome_tells_what_happened_before_the_fault_ended(times, outcome, summary):
    result = cell(**times)
    assert (result.outcome, result.summary()) == (outcome, summary)


def test_a_better_outcome_is_allowed_and_a_worse_one_is_missed():
    assert cell(accepted=1.0, done=2.0, required=QUEUED).is_as_required
    assert cell(accepted=1.0, done=18.0, required=QUEUED).is_as_required
    assert not cell(accepted=16.0, done=18.0, required=QUEUED).is_as_required
    assert not cell(accepted=1.0, required=LATER).is_as_required


def test_what_is_missed_names_program_fault_and_action():
    run = MatrixRun.__new__(MatrixRun)
    run.wrong = ["Redis, down: the page that was saved is not stored"]
    late = cell(accepted=16.0, done=18.0, required=WORKS)
    run.cells = {("Redis", "hung"): [late, cell(accepted=1.0, done=2.0)]}
    assert run.shortcomings() == [
        "Redis, down: the page that was saved is not stored",
        "Redis, hung: save page later, not works",
    ]


def test_a_save_whose_reply_is_lost_is_repeated_to_the_byte():
    server = Server()
    requests = []

    def answer(request, send):
        requests.append(request)
        body = b"" if len(requests) == 1 else receipt(request)
        status = "503 Service Unavailable" if len(requests) == 1 else "200 OK"
        send(reply(body, status))

    server.answer = answer
    survey = RehearsalSurvey.of(DESCRIBED)
    saver = Respondent("CODE", survey, target_of(server.address))
    answers = survey.draw_answers(1, saver.chance)
    try:
        log = visit("save page", saver, lambda: saver.save(1, answers)).run(60.0)
    finally:
        server.close()
    assert [failure for _, failure in log.failures] == ["status 503"]
    assert requests[0] == requests[1]
    assert log.done is not None
