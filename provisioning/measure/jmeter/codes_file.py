"""Read the file of codes, as strictly as JMeter takes its lines."""

from __future__ import annotations

import re
from collections.abc import Container
from pathlib import Path

from provisioning.commands import Refusal

HEADER = "code,take"
# JMeter knows no quotes.
LINE = re.compile(r"([0-9A-Za-z-]+),([1-9]\d*)")
ADVICE = "manage.py jmeter_data writes such a file"


def read_codes(path: Path, takes: Container[int] | None = None) -> list[str]:
    """Return the lines below the header.

    `takes` are those of the file with the pages. Raises Refusal for a line that JMeter
    would send as something else than a code.
    """
    try:
        # A byte order mark stands in the header, which JMeter skips.
        header, *lines = path.read_text(encoding="utf-8-sig").splitlines() or [""]
    except UnicodeDecodeError:
        raise Refusal(f"{path} is no text in UTF-8: {ADVICE}") from None
    if header != HEADER:
        raise Refusal(
            f"{path}, row 1: the header has to be {HEADER}, with a comma and without"
            f" quotes: {ADVICE}"
        )
    for row, line in enumerate(lines, start=2):
        # The line is not shown: with a code, anyone can answer.
        if (match := LINE.fullmatch(line)) is None:
            raise Refusal(
                f"{path}, row {row}: it has to be a code, a comma and the number of a"
                f" take, without quotes and spaces: {ADVICE}"
            )
        if takes is not None and int(match[2]) not in takes:
            raise Refusal(
                f"{path}, row {row}: the file of --pages has no take {match[2]}: give"
                " the two files that manage.py jmeter_data wrote together"
            )
    return lines
