"""Import fixtures of other apps that these tests need."""

from __future__ import annotations

from survey.tests.flushing import flush_thaws  # noqa: F401
