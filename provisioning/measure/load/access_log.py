"""Read respondents' requests from nginx's access log.

A line is one request, written when it ended, to the second. It names no client,
no code and nothing that was sent.
"""

from __future__ import annotations

import gzip
import json
import re
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from pathlib import Path

# Lines that are described one by one; all are counted.
MOST_PROBLEMS = 5
LONGEST_REQUEST = 24 * 60 * 60
GZIP = b"\x1f\x8b"


class Step(Enum):
    """What a respondent's browser requests; a group is the number of a page."""

    LOGIN_PAGE = "GET /"
    LOGIN = "POST /"
    DISPLAY = "GET /take/"
    CONTENT = r"GET /content/[-\w]+/[-\w]+/[-\w]+/([0-9]{1,2}|100)/"
    SAVE = "POST /take/pages/([1-9][0-9]?|100)/"
    REVIEW = "GET /take/complete/"
    FINISH = "POST /take/complete/"


@dataclass(frozen=True, slots=True)
class LoggedRequest:
    # When it was sent, in seconds since 1970.
    moment: float
    step: Step
    page: int


@dataclass(slots=True)
class AccessLog:
    # In the order in which they were sent.
    requests: list[LoggedRequest] = field(default_factory=list)
    lines: int = 0
    # Reason -> lines that can't be replayed.
    skipped: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)

    def skip(self, reason: str, place: str = "", why: object = "") -> None:
        self.skipped[reason] += 1
        if place and len(self.problems) < MOST_PROBLEMS:
            self.problems.append(f"{place}: {why}")


def read_access_log(
    paths: Sequence[Path],
    *,
    begin: datetime | None = None,
    end: datetime | None = None,
) -> AccessLog:
    """Read files in any order, compressed or not; keep requests that ended in time."""
    log = AccessLog()
    seen: set[str] = set()
    # Second in which it ended, its duration, step and page.
    ended: list[tuple[float, float, Step, int]] = []
    for path in paths:
        for place, line in _lines(path, log):
            log.lines += 1
            try:
                row = json.loads(line)
                moment = datetime.fromisoformat(row["time"])
                if moment.tzinfo is None:
                    raise ValueError(f"{row['time']} has no time zone")
                seconds, status = float(row["seconds"]), int(row["status"])
                request, key = f"{row['method']} {row['path']}", row["request_id"]
                if not 0 <= seconds < LONGEST_REQUEST:
                    raise ValueError(f"it took {seconds} seconds")
            except KeyError as error:
                log.skip("broken", place, f"it has no {error}")
            except (ValueError, TypeError, RecursionError) as error:
                log.skip("broken", place, f"it is no line of this log ({error})")
            else:
                step, page = _step_of(request)
                if (begin and moment < begin) or (end and moment >= end):
                    log.skip("outside the window")
                elif step is None:
                    log.skip("not of the survey")
                elif 400 <= status < 499:
                    log.skip("refused")
                elif key in seen:
                    log.skip("repeated")
                else:
                    seen.add(key)
                    ended.append((moment.timestamp(), seconds, step, page))
    # The requests of a second are spread over it, in the order of their lines.
    in_second = Counter(second for second, *_ in ended)
    before: Counter[float] = Counter()
    for second, took, kind, number in ended:
        sent = second + before[second] / in_second[second] - took
        before[second] += 1
        log.requests.append(LoggedRequest(sent, kind, number))
    log.requests.sort(key=lambda request: request.moment)
    return log


def _lines(path: Path, log: AccessLog) -> Iterator[tuple[str, str]]:
    """Yield each line after its place; report a file that ends too early."""
    with path.open("rb") as file:
        is_compressed = file.read(2) == GZIP
    number = 0
    with gzip.open(path) if is_compressed else path.open("rb") as file:
        try:
            for number, line in enumerate(file, start=1):
                if line.strip():
                    yield f"{path.name}:{number}", line.decode(errors="replace")
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            log.skip("broken", f"{path.name}:{number + 1}", f"{error}")


def _step_of(request: str) -> tuple[Step | None, int]:
    for step in Step:
        if match := re.fullmatch(step.value, request):
            return step, int(match[1]) if match.groups() else 0
    return None, 0
