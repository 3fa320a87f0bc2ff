from __future__ import annotations

import pytest

from accounts.models import School
from survey.models import Administration, OpenCode
from survey.tests.open_codes.cast import open_code, open_to_parents


@pytest.fixture
def parents(db: None) -> Administration:
    return open_to_parents()


@pytest.fixture
def code(parents: Administration, lincoln: School) -> OpenCode:
    return open_code(parents, lincoln)
