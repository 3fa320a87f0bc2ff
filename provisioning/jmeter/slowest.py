"""Find the view, the page and the survey whose requests took longest."""

from __future__ import annotations

from collections import Counter, defaultdict

from provisioning.load.tally import percentile_of

# Of fewer requests, the 95th percentile is the slowest one.
LEAST = 20

Figures = dict[str, dict[str, str | float]]


class Slowest:
    def __init__(self) -> None:
        # "view", "page" or "survey" -> its name -> seconds.
        self._seconds: dict[str, defaultdict[str, Counter[float]]] = {
            kind: defaultdict(Counter) for kind in ("view", "page", "survey")
        }

    def add(
        self, seconds: float, *, view: str, survey: str = "", page: int = 0
    ) -> None:
        names = {
            "view": view,
            "page": f"page {page} of {survey}" if page and survey else "",
            "survey": survey,
        }
        for kind, name in names.items():
            if name:
                self._seconds[kind][name][round(seconds, 4)] += 1

    def figures(self) -> Figures:
        """Return the slowest of each kind; nothing where all have too few requests."""
        found: Figures = {}
        for kind, names in self._seconds.items():
            enough = [
                (percentile_of(seconds, 95), name, seconds.total())
                for name, seconds in names.items()
                if seconds.total() >= LEAST
            ]
            if enough:
                p95, name, requests = max(enough)
                p95_ms = round(p95 * 1000, 1)
                found[kind] = {"name": name, "p95_ms": p95_ms, "requests": requests}
        return found


def sentence_of(figures: Figures) -> str:
    parts = [
        f"{kind} {str(each['name']).removeprefix('page ')}"
        f" (p95 {each['p95_ms']:g} ms of {each['requests']:,})"
        for kind, each in figures.items()
    ]
    return f"Slowest, of those with {LEAST} requests: {', '.join(parts) or 'none'}."
