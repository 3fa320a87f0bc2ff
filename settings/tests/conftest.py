"""Fixtures of other apps that these tests need too."""

from __future__ import annotations

from survey.tests.flushing import flush_thaws  # noqa: F401
