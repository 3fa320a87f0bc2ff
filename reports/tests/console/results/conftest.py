from __future__ import annotations

from accounts.tests.conftest import staff  # noqa: F401
from reports.tests.exports.conftest import enrol, fall, spring  # noqa: F401
from survey.tests.conftest import empty_caches  # noqa: F401
