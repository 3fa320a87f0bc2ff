from __future__ import annotations

import pytest

from survey.people.rosters.oneroster.store import OneRosterStore


@pytest.fixture
def store(tmp_path):
    return OneRosterStore(tmp_path / "store.sqlite3")
