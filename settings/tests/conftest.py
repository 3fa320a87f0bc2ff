"""Import fixtures of other apps that these tests need."""

from __future__ import annotations

from survey.tests.database_flush import quick_flush  # noqa: F401
