"""An answer counts as acknowledged if it arrived before the power failed."""

from __future__ import annotations

from provisioning.measure.load.respondent import ACKED, UNKNOWN, Receipt
from provisioning.prove.fault_injection.saves import (
    AnswerSource,
    Attempt,
    Item,
    PendingSave,
    fingerprint,
)
from provisioning.prove.fault_injection.verdict import Judge, StoredAnswer
from provisioning.prove.power_loss.__main__ import attempts_until

SOURCE = AnswerSource(5, {1: [Item(11, "q1", ("1", "2"))]})


def saved(revision, sent, answered):
    answers = fingerprint(SOURCE.answers(7, 1, revision))
    save = PendingSave(1, revision, 7, answers=answers)
    at = "2026-11-24T10:00:00+00:00"
    receipt = Receipt(ACKED, "saved", "200", revision, at)
    return Attempt.of(save, receipt, "first", (sent, answered))


def stored(revision):
    value = SOURCE.stored(7, 1, revision)[11]
    return [StoredAnswer(7, 11, "a", value, revision)]


def counts(instant, rows):
    attempts = attempts_until([saved(1, 1.0, 2.0), saved(2, 3.0, 4.0)], instant)
    verdict = Judge(SOURCE, attempts, rows).verdict()
    return {name: count for name, count in verdict.counts().items() if count}


def test_an_answer_that_arrived_in_time_has_to_be_there():
    assert counts(5.0, stored(2)) == {}
    assert counts(5.0, stored(1)) == {"lost": 1, "regressions": 1}
    assert counts(5.0, []) == {"lost": 1}


def test_an_answer_under_way_may_be_there_or_not():
    assert counts(3.5, stored(1)) == {}
    assert counts(3.5, stored(2)) == {"recovered": 1}
    assert counts(3.5, []) == {"lost": 1}


def test_what_is_sent_later_must_not_be_there():
    assert counts(2.5, stored(1)) == {}
    assert counts(2.5, stored(2)) == {"unexpected": 1}
    assert counts(0.5, []) == {}


def test_the_reply_to_a_save_under_way_is_forgotten():
    (attempt,) = attempts_until([saved(1, 1.0, 2.0)], 1.5)
    assert (attempt.outcome, attempt.receipt, attempt.at) == (UNKNOWN, 0, "")
