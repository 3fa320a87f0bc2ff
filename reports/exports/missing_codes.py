"""Codes for cells without an answer, the same in a whole file."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass

# An answer has at most 15 digits, so a code with more is always free.
_MOST_DIGITS = 16
LOOKALIKE = re.compile(rb"\x1f(-9{1,15}[6789])(?:\.[0-9]+)?(?=[\x1f\t\n]|$)")


@dataclass(frozen=True, slots=True)
class MissingCodes:
    # The rules of the survey did not show the item to this person.
    not_applicable: int = -97
    # Seen and left blank.
    skipped: int = -98
    # Never shown.
    not_reached: int = -99
    # Left out of files without names; only where "*" can be no cell.
    masked: int = -96


def choose_missing_codes(taken: Collection[int]) -> MissingCodes:
    """Return -97, -98 and -99, or -997 and so on if an answer has that value.

    `taken` are the answers that look like codes, or lie between two of them: SPSS can
    declare four codes as a range only.
    """
    # All three codes change together, so that they stay recognisable.
    for nines in range(1, _MOST_DIGITS):
        start = int("9" * nines) * 10
        codes = (-(start + 7), -(start + 8), -(start + 9), -(start + 6))
        if not any(code in taken for code in codes):
            return MissingCodes(*codes)
    raise AssertionError("An answer has more digits than pages accept.")


def code_lookalikes(line: bytes) -> set[int]:
    """Return the answers in a line of the stream that look like codes, cut to whole."""
    # The regular expression is slow, and such answers are rare.
    if b"\x1f-9" not in line:
        return set()
    return {int(digits) for digits in LOOKALIKE.findall(line)}
