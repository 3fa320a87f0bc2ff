from __future__ import annotations

import pytest


@pytest.fixture
def unanswered(monkeypatch):
    """Load the demo's last wave only, without answers, which take most of the time."""
    monkeypatch.setattr("survey.simulation.demo.load.CLOSED", ())
    for name in ("load.make_up_responses", "parents.answer_survey"):
        monkeypatch.setattr(f"survey.simulation.demo.{name}", lambda *_, **__: None)
