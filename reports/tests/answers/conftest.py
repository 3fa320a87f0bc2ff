from __future__ import annotations

from accounts.tests.conftest import staff  # noqa: F401
from reports.tests.exports.conftest import (  # noqa: F401
    enrol,
    fall,
    first_survey,
    second_survey,
    spring,
)
from survey.tests.conftest import empty_caches  # noqa: F401
