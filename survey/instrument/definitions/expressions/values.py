"""Convert values of expressions to booleans, numbers and text, as XPath does.

Where a number is wanted, text that is a date counts as days since 1970-01-01,
a date and time as days with a fraction, and a time as a fraction of a day. All
are local times: an offset is not applied. Other text is NaN.
"""

from __future__ import annotations

import math
import re
from datetime import date
from decimal import Decimal

Value = str | float | bool

SPACE = " \t\r\n"
NUMBER = re.compile(r"-?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)")
CLOCK = r"([0-9]{2}):([0-9]{2})(?::([0-9]{2}(?:\.[0-9]{1,9})?))?"
TIME = re.compile(CLOCK)
MOMENT = re.compile(
    rf"([0-9]{{4}})-([0-9]{{2}})-([0-9]{{2}})"
    rf"(?:T{CLOCK}(?:Z|[+-][0-9]{{2}}:?[0-9]{{2}})?)?"
)
EPOCH = date(1970, 1, 1).toordinal()
# From here on `repr` writes an exponent, and the shortest digits end in zeros.
LARGEST_PLAIN = 1e16


def to_boolean(value: Value) -> bool:
    if isinstance(value, float):
        return value != 0 and not math.isnan(value)
    return bool(value)


def to_number(value: Value) -> float:
    """Convert to a number; text that is no number, date or time is NaN."""
    if not isinstance(value, str):
        return float(value)
    stripped = value.strip(SPACE)
    if NUMBER.fullmatch(stripped):
        return float(stripped)
    clock = TIME.fullmatch(stripped)
    if clock:
        return day_fraction(*clock.groups())
    match = MOMENT.fullmatch(stripped)
    if not match:
        return math.nan
    year, month, day, *clock_groups = match.groups()
    try:
        ordinal = date(int(year), int(month), int(day)).toordinal()
    except ValueError:
        return math.nan
    return float(ordinal - EPOCH) + day_fraction(*clock_groups)


def to_text(value: Value) -> str:
    """Convert to text: no exponent, no `.0`, the shortest exact digits."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    if value == int(value) and abs(value) < LARGEST_PLAIN:
        return str(int(value))
    return format(Decimal(repr(float(value))), "f")


def day_fraction(hour: str | None, minute: str | None, second: str | None) -> float:
    if hour is None or minute is None:
        return 0.0
    hours, minutes, seconds = int(hour), int(minute), float(second or 0)
    if hours > 23 or minutes > 59 or seconds >= 60:
        return math.nan
    return (hours * 3600 + minutes * 60 + seconds) / 86400
