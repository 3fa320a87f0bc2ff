"""Name the places that have results."""

from __future__ import annotations

from reports.models import GroupResults

LEVELS = GroupResults.Level

# Level and key of a district or school; 0 for the state.
Place = tuple[str, int]
STATE: Place = (LEVELS.STATE.value, 0)
