"""Save pages alone and beside scans, with the load and the stack replaced."""

from __future__ import annotations

import time
from contextlib import contextmanager
from types import SimpleNamespace

import pytest

from provisioning.commands import Refusal
from provisioning.measure.benchmarks import feeds


@pytest.fixture
def load(monkeypatch):
    """Remember the rates that are offered; the second one is served less well."""
    load = SimpleNamespace(rates=[], is_scanning=False, scanned=[], beside=[])

    @contextmanager
    def rehearsal_of(stack, size, purpose):
        yield "rehearsal"

    def offer(rehearsal, rate):
        load.rates.append(rate)
        load.beside.append(load.is_scanning)
        time.sleep(0.1)
        saves = 400.0 if len(load.rates) == 1 else 390.0
        return {"saves_per_s": saves, "failed": len(load.rates) - 1, "p99": 20.0}

    monkeypatch.setattr(feeds, "rehearsal_of", rehearsal_of)
    monkeypatch.setattr(feeds, "mix", lambda *_: {"mix_per_s": 1600.0})
    monkeypatch.setattr(feeds, "offer", offer)
    return load


def test_the_same_rate_is_offered_alone_and_then_beside_scans(load):
    def scan_all():
        load.is_scanning, began = True, time.monotonic()
        time.sleep(0.02)
        load.scanned.append(time.monotonic() - began)
        return load.scanned[-1]

    stack = SimpleNamespace(sql=lambda _: [["t" if load.is_scanning else "f"]])
    result = feeds.saves_beside_scans(stack, 1, scan_all)

    assert load.rates == [800.0, 800.0]
    assert load.beside == [False, True]
    assert load.scanned
    assert result.pop("scanning_share") == pytest.approx(1, abs=0.3)
    assert result == {
        "saves_alone_per_s": 400.0,
        "saves_beside_per_s": 390.0,
        "saves_kept": 0.975,
        "requests_refused": 1,
        "p99_alone_ms": 20.0,
        "p99_beside_ms": 20.0,
    }


def test_saves_are_not_measured_beside_nothing(load, monkeypatch):
    monkeypatch.setattr(feeds, "wait_until", lambda happened, seconds: happened())
    stack = SimpleNamespace(sql=lambda _: [["f"]])
    with pytest.raises(Refusal, match="No scan has begun"):
        feeds.saves_beside_scans(stack, 1, lambda: time.sleep(0.01) or 0.01)
    assert len(load.rates) == 1
