from __future__ import annotations

import pytest

from accounts.tests.conftest import staff  # noqa: F401
from reports.tests.exports.conftest import (  # noqa: F401
    enrol,
    fall,
    first_survey,
    second_survey,
    spring,
)
from survey.tests.conftest import empty_caches  # noqa: F401


@pytest.fixture
def is_measured(monkeypatch):
    """Let agreeing that one is safe be good."""
    measure = {
        **{"name": "calm", "label": {"en": "Calm"}, "description": {}, "essential": ""},
        **{"direction": "positive", "missing": ["-1"]},
        "items": [{"name": "safe", "reversed": False}],
    }
    content = {"essentials": [], "measures": [measure]}
    path = "reports.console.results.page.measures_of"
    monkeypatch.setattr(path, lambda survey: content)
