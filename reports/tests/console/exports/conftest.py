from __future__ import annotations

from reports.tests.exports.conftest import (  # noqa: F401
    enrol,
    fall,
    nothing_remembered,
    spring,
)
