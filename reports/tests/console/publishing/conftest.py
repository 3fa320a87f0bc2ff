"""Results that can be published."""

from __future__ import annotations

from reports.tests.console.scores.conftest import (  # noqa: F401
    fall,
    shared_fall,
)
from reports.tests.publishing.conftest import publish  # noqa: F401
from reports.tests.scores.conftest import shared_staff, staff  # noqa: F401
from survey.tests.conftest import empty_caches  # noqa: F401
