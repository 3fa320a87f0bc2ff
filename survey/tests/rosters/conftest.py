from __future__ import annotations

from functools import partial

import pytest

from survey.tests.rosters.roster_console import ConsoleClient


@pytest.fixture
def console_of(django_capture_on_commit_callbacks):
    """Return a function that logs a user in to the console."""
    return partial(ConsoleClient, capture_on_commit=django_capture_on_commit_callbacks)
