"""Results that can be published."""

from __future__ import annotations

from reports.tests.console.scores.conftest import fall, survey  # noqa: F401
from reports.tests.publishing.conftest import publish  # noqa: F401
from survey.tests.conftest import empty_caches  # noqa: F401
