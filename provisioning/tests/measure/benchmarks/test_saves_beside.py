"""Measure saves at half of the limit, with a simulated load."""

from __future__ import annotations

import time
from types import SimpleNamespace

import pytest
import yaml

from provisioning.commands import Refusal
from provisioning.installation.environment import ROLES
from provisioning.measure.benchmarks import results, timed_requests
from provisioning.measure.benchmarks.timed_requests import TimedReply, save_beside


def test_a_job_that_runs_after_the_saves_ends_in_a_sentence(load):
    def job() -> float:
        time.sleep(0.6)
        return 0.01

    with pytest.raises(Refusal, match="The roll-up ran after the saves"):
        save_beside(
            job, name="roll-up", target=None, students=[], rounds=1, seconds=0.3
        )


@pytest.fixture
def load(monkeypatch):
    """Serve 200 saves a second; while the job runs, the last fifth gets no reply."""
    load = SimpleNamespace(rates=[], job_runs=False)

    def send_requests(target, people, *, seconds, rate=0):
        load.rates.append(rate)
        began = time.monotonic()
        if not rate:
            return [TimedReply(began, 1, 0)] * int(200 * seconds)
        time.sleep(seconds)
        number = round(rate * seconds)
        answered = number - load.job_runs * number // 5
        return [
            TimedReply(began + place * seconds / number, 1, 0)
            for place in range(answered)
        ]

    monkeypatch.setattr(timed_requests, "send_requests", send_requests)
    return load


def test_saves_are_sent_at_half_of_the_limit_with_and_without_the_job(load, capsys):
    def job() -> float:
        load.job_runs = True
        time.sleep(0.6)
        load.job_runs = False
        return 0.6

    saves = save_beside(
        job, name="roll-up", target=None, students=[], rounds=2, seconds=0.5
    )
    # A warm-up and the limit; then each kind of round, twice.
    assert load.rates == [0, 0, 100, 100, 100, 100]
    assert saves.alone == pytest.approx(100, abs=3)
    assert saves.during == pytest.approx(80, abs=5)
    assert saves.lost_percent == pytest.approx(20, abs=6)
    assert "% were lost" in capsys.readouterr().out


def test_scores_are_measured_with_the_priority_of_their_worker():
    defaults = yaml.safe_load((ROLES / "worker/defaults/main.yml").read_text())
    assert defaults["scan_nice"] == results.NICE
