"""What the checks of /readyz and /metrics answer."""

from __future__ import annotations

from dataclasses import dataclass, field

# Name in metrics_page.SERVER_METRICS, value, values of its labels.
Sample = tuple[str, float, tuple[str, ...]]

# Seconds for one answer.
TIMEOUT = 0.5


@dataclass(frozen=True, slots=True)
class Answer:
    """The result of one check."""

    # None: not configured here, or unknown.
    ok: bool | None
    detail: str
    ms: float = 0.0
    samples: list[Sample] = field(default_factory=list)
    # PostgreSQL only: position in the log, and age of the newest transaction.
    position: int | None = None
    age: float | None = None


NOT_SET_UP = Answer(None, "not set up here")
