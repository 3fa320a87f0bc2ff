"""Group the rows and places of a report that a person should look at."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from survey.people.rosters.file_summary import ROLE_WORDS

# A file of a state names thousands of schools.
MOST_SCHOOLS_LISTED = 50


def report_groups(report: Mapping[str, Any]) -> dict[str, object]:
    """Return what the dry run's page lists before the confirmation."""
    other_roles = report.get("other_roles") or {}
    left_by_school = report.get("left_by_school") or {}
    # Most people first.
    schools = sorted(left_by_school.items(), key=lambda entry: (-entry[1], entry[0]))
    return {
        "left": report.get("left", 0),
        "left_withdrawn": report.get("left_withdrawn", 0),
        "left_by_school": schools[:MOST_SCHOOLS_LISTED],
        "other_left_schools": len(schools[MOST_SCHOOLS_LISTED:]),
        "later": report.get("later", 0),
        "other_roles": [
            (ROLE_WORDS.get(role, role), rows)
            for role, rows in sorted(other_roles.items())
        ],
        "summary": report.get("summary") or [],
    }
