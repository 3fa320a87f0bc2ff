from __future__ import annotations

from reports.tests.exports.conftest import (  # noqa: F401
    empty_caches,
    enrol,
    fall,
    first_survey,
    second_survey,
    spring,
)
