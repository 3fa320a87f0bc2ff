from __future__ import annotations

import statistics
from collections.abc import Sequence


def percentile(values: Sequence[float], percent: int) -> float:
    """Return a percentile from 1 to 99, interpolated; 0 without two values."""
    if len(values) < 2:
        return 0.0
    return statistics.quantiles(values, n=100)[percent - 1]
