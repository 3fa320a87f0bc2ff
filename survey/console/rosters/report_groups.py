"""Group the rows and places of a report that a person should look at."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def report_groups(report: Mapping[str, Any]) -> dict[str, object]:
    """Return what the dry run's page lists before the confirmation."""
    left = report.get("left") or []
    return {
        "left": left,
        "left_total": sum(entry["people"] for entry in left),
        "other_roles": sorted((report.get("other_roles") or {}).items()),
        "dropped": report.get("dropped") or [],
    }
