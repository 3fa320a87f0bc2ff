"""Why a cell has no answer: three codes, the same in a whole file."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass

# An answer has at most 15 digits, so there is always a code with more.
_LONGEST = 16
CANDIDATE = re.compile(rb"\x1f(-9{1,15}[789])(?:\.0+)?(?=[\x1f\t\n]|$)")


@dataclass(frozen=True, slots=True)
class Missing:
    # By the rules of the survey the item was not for this person.
    not_applicable: int = -97
    # Seen and left blank.
    skipped: int = -98
    # Never shown.
    not_reached: int = -99


def missing_codes(taken: Collection[int]) -> Missing:
    """-97, -98 and -99; where somebody answered one of these, -997 and so on.

    `taken` are the answers that look like codes.
    """
    for nines in range(1, _LONGEST):
        start = int("9" * nines) * 10
        codes = (-(start + 7), -(start + 8), -(start + 9))
        if not any(code in taken for code in codes):
            return Missing(*codes)
    raise AssertionError("An answer with more digits than a page takes.")


def like_codes(line: bytes) -> set[int]:
    """Answers of one line of the stream (see `reading`) that look like a code."""
    if b"\x1f-9" not in line:
        return set()
    return {int(found) for found in CANDIDATE.findall(line)}
