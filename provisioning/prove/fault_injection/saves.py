"""Simulate the queue of a browser's page saves, as in static/js/queue.js.

One slot for each page, one save in flight; newer answers of a page replace
those that wait.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(eq=False, slots=True)
class PendingSave:
    page: int
    # Grows with each save of the respondent.
    revision: int
    respondent: int = 0
    # The tab that made it, and the newest revision of the page that it had shown.
    tab: str = ""
    seen: int = 0
    # Fingerprint of the answers.
    answers: str = ""
    body: str = ""
    attempts: int = 0
    was_cut: bool = False


@dataclass(slots=True)
class SaveQueue:
    # Page -> what waits for a receipt.
    waiting: dict[int, PendingSave] = field(default_factory=dict)
    in_flight: PendingSave | None = None
    # Between a failure and the next attempt.
    is_backing_off: bool = False

    @property
    def is_empty(self) -> bool:
        return not self.waiting and self.in_flight is None

    def put(self, save: PendingSave) -> None:
        self.waiting[save.page] = save

    def has(self, save: PendingSave) -> bool:
        return self.waiting.get(save.page) is save

    def remove(self, save: PendingSave) -> None:
        """Remove a save, unless newer answers have replaced it."""
        if self.has(save):
            del self.waiting[save.page]

    def next_to_send(self) -> PendingSave | None:
        """Return the save that was tried least, and count it as in flight."""
        if self.is_backing_off or self.in_flight or not self.waiting:
            return None
        self.in_flight = min(
            self.waiting.values(), key=lambda save: (save.attempts, save.revision)
        )
        return self.in_flight
