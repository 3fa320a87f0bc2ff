"""The command's last line and exit code."""

from __future__ import annotations

import json
from collections import Counter
from contextlib import nullcontext

import pytest

from provisioning.prove.suppression_attack import attack

FOUND = {
    "role public|recovered": 0,
    "role public|narrowed": 0,
    "role state|recovered": 0,
    "role state|narrowed": 0,
    "role state|group_scores": 12,
    "history 1 opt-out|protected": 0,
    "history 1 opt-out|unprotected": 4,
    "lost 3|all": 100,
    "lost 3|lost": 5,
    "recovered_unprotected": 40,
    "attacked": 900,
}


@pytest.fixture
def run(monkeypatch, capsys):
    def run(**figures):
        """Return the exit code and the last line, as if this had been found."""
        monkeypatch.setattr("sys.argv", ["attack_suppression", "--count=3"])
        monkeypatch.setattr(attack, "sqlite_application", lambda **_: nullcontext())
        everything = Counter({**FOUND, **figures})
        monkeypatch.setattr(attack, "attack", lambda *_: (everything, ["a leak"]))
        code = attack.main()
        return code, json.loads(capsys.readouterr().out.splitlines()[-1])

    return run


def test_the_last_line_has_what_was_found(run):
    code, figures = run()
    assert code == 0
    assert figures["passed"] is True
    assert figures["recovered"] == figures["narrowed"] == 0
    assert figures["roles"]["state"]["group_scores"] == 12
    assert figures["histories"] == {"1 opt-out": {"protected": 0, "unprotected": 4}}
    assert figures["lost_measures"] == {"3": 0.05}
    assert (figures["seed"], figures["count"]) == (1, 3)


@pytest.mark.parametrize(
    "counts",
    [
        {"role public|recovered": 1},
        {"role state|narrowed": 1},
        {"history 1 opt-out|protected": 1},
        # An attack that recovers nothing without protection proves nothing.
        {"history 1 opt-out|unprotected": 0},
        {"recovered_unprotected": 0},
        # Without scores of groups, none was attacked.
        {"role state|group_scores": 0},
        {"lost 3|lost": 6},
    ],
)
def test_the_command_fails_if_anything_leaks_or_too_much_is_hidden(run, counts):
    code, figures = run(**counts)
    assert code == 1
    assert figures["passed"] is False
