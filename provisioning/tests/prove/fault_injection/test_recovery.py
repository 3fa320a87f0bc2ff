"""When saving has recovered from a fault, and which attempts have failed."""

from __future__ import annotations

import pytest

from provisioning.measure.load.respondent import ACKED, REJECTED, UNKNOWN
from provisioning.prove.fault_injection.recovery import Baseline, Timeline
from provisioning.prove.fault_injection.saves import Attempt

BASELINE = Baseline(per_second=100, p95=0.010, median=0.005)
WINDOW = 2.0


def attempt(answered, *, seconds=0.005, reply="200", kind="first", revision=0):
    outcome = {"200": ACKED, "409 superseded": REJECTED}.get(reply, UNKNOWN)
    return Attempt(
        number="",
        respondent=1,
        page=1,
        revision=revision or int(answered * 1000),
        tab="1",
        seen=0,
        answers="",
        sent=answered - seconds,
        answered=answered,
        outcome=outcome,
        kind=kind,
        reply=reply,
        receipt=0,
        at="",
    )


def load(begin, end, **changes):
    """Return a hundred attempts a second."""
    count = round((end - begin) * 100)
    return [attempt(begin + (n + 0.5) / 100, **changes) for n in range(count)]


def timeline(*parts):
    history = Timeline()
    for part in parts:
        history.add(part)
    return history


def recovered(history, since=10.0, now=30.0):
    return history.recovered(since, now, BASELINE, WINDOW)


def test_recovery_is_the_start_of_the_first_good_window():
    outage = load(10, 14, reply="503 database")
    history = timeline(load(0, 10), outage, load(14, 30))
    assert recovered(history) == pytest.approx(4, abs=0.3)


def test_a_fault_without_effect_is_recovered_from_at_once():
    assert recovered(timeline(load(0, 30))) == 0


def test_there_is_no_recovery_while_failures_go_on():
    history = timeline(load(0, 10), load(10, 30, reply="503 database"))
    assert recovered(history) is None


def test_one_failure_in_two_hundred_is_no_recovery():
    history = timeline(load(0, 30), [attempt(15.01, reply="timeout")])
    assert recovered(history, since=14.0) == pytest.approx(1.25)


def test_slow_answers_are_no_recovery():
    history = timeline(load(0, 10), load(10, 13, seconds=0.2), load(13, 30))
    assert recovered(history) >= 2.5


def test_delays_below_fifty_milliseconds_are_allowed():
    assert recovered(timeline(load(0, 30, seconds=0.045))) == 0
    assert recovered(timeline(load(0, 30, seconds=0.055))) is None


def test_silence_is_no_recovery():
    history = timeline(load(0, 10), load(17, 30))
    assert recovered(history) == pytest.approx(6, abs=0.3)


def test_a_save_that_hung_counts_when_it_was_answered():
    history = timeline(load(0, 30), [attempt(20.0, seconds=9.9, reply="timeout")])
    assert recovered(history, since=18.5) > 1


def test_a_rightly_superseded_save_is_no_failure():
    history = timeline(load(0, 30, reply="409 superseded"))
    assert recovered(history) == 0
    assert history.failures(0, 30).total() == 0


def test_a_cut_save_that_succeeds_at_once_is_resent():
    cut = attempt(5.0, reply="cut", revision=7)
    late = attempt(5.1, reply="cut", kind="late")
    resent = attempt(5.2, kind="retry", revision=7)
    history = timeline([cut, late, resent])
    assert history.failures(0, 10) == {"resent": 1}
    # A busy machine may take longer to answer.
    slow = attempt(7.0, seconds=1.9, kind="retry", revision=7)
    assert timeline([cut, slow]).failures(0, 10) == {"resent": 1}


def test_a_cut_save_that_does_not_succeed_at_once_has_failed():
    cut = attempt(5.0, reply="cut", revision=7)
    too_late = attempt(7.0, kind="retry", revision=7)
    assert timeline([cut]).failures(0, 10) == {"cut": 1}
    assert timeline([cut, too_late]).failures(0, 10) == {"cut": 1}


def test_medians_are_of_successful_saves():
    history = timeline(load(0, 10), load(0, 10, seconds=3, reply="503 database"))
    assert history.median(0, 10) == pytest.approx(0.005)
    assert history.median(20, 30) == 0


def test_the_baseline_is_the_slower_of_two_calm_times():
    busy = Baseline(per_second=80, p95=0.080, median=0.040)
    assert BASELINE.or_as_in(busy).limit == pytest.approx(0.160)
    quiet = Baseline(per_second=200, p95=0.002, median=0.001)
    assert BASELINE.or_as_in(quiet).limit == BASELINE.limit
    assert BASELINE.or_as_in(Baseline(0, 0, 0)) == BASELINE
