"""Turn Unix times into local days, quickly."""

from __future__ import annotations

from datetime import datetime, tzinfo

# Seconds. A date never changes within a quarter of an hour, in any time zone.
QUARTER = 900


class LocalDays(dict[int, str]):
    """ISO dates by the number of quarter hours since 1970, made when needed."""

    def __init__(self, zone: tzinfo) -> None:
        self.zone = zone

    def at(self, seconds: int) -> str:
        return self[seconds // QUARTER]

    def __missing__(self, quarter: int) -> str:
        moment = datetime.fromtimestamp(quarter * QUARTER, self.zone)
        day = self[quarter] = moment.date().isoformat()
        return day
