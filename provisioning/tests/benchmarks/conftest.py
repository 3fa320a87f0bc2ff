from __future__ import annotations

from survey.tests.database_flush import flush_disables_triggers  # noqa: F401
