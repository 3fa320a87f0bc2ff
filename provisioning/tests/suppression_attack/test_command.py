"""The command's last line and exit code."""

from __future__ import annotations

import json
from collections import Counter
from contextlib import nullcontext

import pytest

from provisioning.suppression_attack import attack

FOUND = Counter(
    hierarchies=3,
    attacked=900,
    recovered_unprotected=40,
    means_recovered_unprotected=2,
    public_recovered_unprotected=5,
    coordinator_recovered_unprotected=6,
    cells=1000,
    hidden=400,
    small_hidden=12,
    small_optimum=10,
)
DEMO = {
    "recovered": 0,
    "narrowed_below_3": 0,
    "shown_differently": 0,
    "recovered_unprotected": 7,
}


@pytest.fixture
def run(monkeypatch, capsys):
    def run(found=FOUND, demo=DEMO):
        """Return the exit code and the last line, as if this had been found."""
        monkeypatch.setattr("sys.argv", ["attack_suppression", "--count=3"])
        monkeypatch.setattr(attack, "sqlite_application", lambda **_: nullcontext())
        monkeypatch.setattr(attack, "attack", lambda *_: Counter(found))
        monkeypatch.setattr(attack, "attack_demo", lambda _: demo)
        code = attack.main()
        return code, json.loads(capsys.readouterr().out.splitlines()[-1])

    return run


def test_the_last_line_has_what_was_found(run):
    code, figures = run()
    assert code == 0
    assert figures["passed"] is True
    assert figures["hierarchies"] == 3
    assert figures["recovered"] == figures["narrowed_below_3"] == 0
    assert figures["recovered_unprotected"] == 40
    assert figures["hidden_share"] == 0.4
    assert figures["share_of_optimum"] == 1.2


@pytest.mark.parametrize(
    "found",
    [
        {"recovered": 1},
        {"narrowed_below_3": 1},
        {"shown_differently": 1},
        {"waves_recovered": 1},
        {"waves_narrowed_below_3": 1},
        # An attack that recovers nothing without protection proves nothing.
        {"recovered_unprotected": 0},
        {"means_recovered_unprotected": 0},
        {"public_recovered_unprotected": 0},
        {"coordinator_recovered_unprotected": 0},
        {"small_hidden": 16},
    ],
)
def test_the_command_fails_if_anything_is_missed(run, found):
    code, figures = run({**FOUND, **found})
    assert code == 1
    assert figures["passed"] is False


@pytest.mark.parametrize("name", ["recovered", "narrowed_below_3", "shown_differently"])
def test_the_command_fails_for_the_demonstration_as_well(run, name):
    assert run(demo={**DEMO, name: 1})[0] == 1
