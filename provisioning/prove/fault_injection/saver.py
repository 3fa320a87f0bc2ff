"""Save pages by the product's own function, and log each attempt."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from django.db import Error

from provisioning.measure.load.respondent import ACKED, REJECTED, UNKNOWN, Receipt
from provisioning.prove.fault_injection.saves import (
    ANSWERED,
    AnswerSource,
    Attempt,
    Item,
    PendingSave,
    fingerprint,
)
from survey.taking import storage

ADMINISTRATION = 1
VALUES = ("1", "2", "3", "4", "5")
PAGES = {
    page: [Item(page * 100 + n, f"p{page}_q{n}", VALUES) for n in range(5)]
    for page in (1, 2, 3)
}


@dataclass
class Saver:
    source: AnswerSource
    log: Callable[[Attempt], None]

    def save(
        self,
        respondent: int,
        page: int,
        revision: int,
        *,
        tab: str = "",
        seen: int | None = None,
    ) -> str:
        """Save a page as the view does, and return the outcome."""
        # Not at the top: it needs Django to be set up.
        from survey.taking.unavailable import ServiceUnavailable, run_with_retry

        answers = self.source.answers(respondent, page, revision)
        newest = sys.maxsize if seen is None else seen
        save = PendingSave(
            page, revision, respondent, tab, newest, fingerprint(answers)
        )
        stored = self.source.stored(respondent, page, revision)
        rows = [storage.AnswerRow(item, ANSWERED, stored[item]) for item in stored]
        sent, reply = time.time(), Receipt(UNKNOWN, "retry", "cut")
        with suppress(Error, ServiceUnavailable):
            receipt = run_with_retry(
                lambda: storage.save_page(
                    administration_id=ADMINISTRATION,
                    respondent_id=respondent,
                    issue=1,
                    revision=revision,
                    rows=rows,
                    seen=seen,
                )
            )
            reply = Receipt(REJECTED, "halt", f"409 {receipt.outcome.value}")
            if receipt.outcome == storage.Outcome.SAVED and receipt.saved_at:
                at = receipt.saved_at.isoformat(timespec="seconds")
                reply = Receipt(ACKED, "saved", "200", revision, at)
        self.log(Attempt.of(save, reply, "first", (sent, time.time())))
        return reply.outcome
