from __future__ import annotations

import pytest


@pytest.fixture
def unanswered(monkeypatch):
    """Load people of the demo without their answers, which take most of the time."""
    for name in ("load.make_up_responses", "parents.answer_survey"):
        monkeypatch.setattr(f"survey.simulation.demo.{name}", lambda *_, **__: None)
