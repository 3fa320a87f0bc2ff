from __future__ import annotations

from survey.tests.database_flush import quick_flush  # noqa: F401
