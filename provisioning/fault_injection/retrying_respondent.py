"""Simulate respondents with the retry queue of their browsers.

As in static/js/queue.js: one slot for each page, one save in flight, newer
answers of a page replace those that wait, and a retry is the same to the byte.
On top of it what networks and people do: saves that are sent twice, packets
that arrive late, answers that are changed, and a second device.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

from provisioning.fault_injection.answers import Pages, answers_for, fingerprint
from provisioning.fault_injection.attempts import FINISHING, Attempt, AttemptLog
from provisioning.load.engine import Engine, Exchange
from provisioning.load.respondent import (
    ACKED,
    JSON,
    UNKNOWN,
    Receipt,
    RehearsalSurvey,
    Request,
    Respondent,
    json_object,
    read_receipt,
)

FIRST_WAIT = 0.5
# A browser waits up to a minute. Here no one does, so that a run measures when
# the server is back, and not when it is asked.
LONGEST_WAIT = 2.0
# Shares of saves that are sent twice or late, and of pages that are answered
# again or continued on another device.
DOUBLED = 0.03
LATE = 0.03
CHANGED = 0.3
OTHER_DEVICE = 0.05
# Share of respondents who finish.
FINISHES = 0.3
ROUNDS = 3


@dataclass
class PendingSave:
    page: int
    revision: int
    body: str = ""
    # Fingerprint of the answers.
    answers: str = ""
    attempts: int = 0
    was_cut: bool = False


@dataclass(frozen=True)
class LoadContext:
    """State shared by all respondents of one process."""

    engine: Engine
    log: AttemptLog
    survey: RehearsalSurvey
    pages: Pages
    seed: int
    # Seconds between two pages of one respondent, on average.
    thinking: float
    # From the engine's clock to the wall clock, which all processes share.
    offset: float
    # Saves without a reply: at the end they are abandoned, and so logged.
    open: set[Exchange] = field(default_factory=set)


class RetryingRespondent:
    def __init__(
        self,
        context: LoadContext,
        number: int,
        code: str,
        leave: Callable[[RetryingRespondent], None],
    ) -> None:
        self.context = context
        self.engine = context.engine
        self.number = number
        self.code = code
        self.leave = leave
        self.random = Random(f"{context.seed}:{number}")  # noqa: S311
        self.browser = self._new_browser()
        # Page -> what waits for a receipt.
        self.waiting: dict[int, PendingSave] = {}
        self.in_flight: PendingSave | None = None
        self.acknowledged: dict[int, int] = {}
        # The next save's revision, on whatever device; and what the server had
        # when the survey was last opened.
        self.next_revision = self.base = 0
        self.seen: list[int] = []
        self.failures = 0
        self.is_inside = False
        self.is_pausing = False
        self.is_backing_off = False
        self.is_gone = False
        self.is_finishing = False
        # The pages in the order in which they are answered; some a second time.
        self.plan: list[int] = []
        for page in [*context.pages] * ROUNDS:
            self.plan.append(page)
            if self.random.random() < CHANGED:
                self.plan.append(self.random.randint(1, page))

    def hurry(self) -> None:
        """Answer nothing more, save what waits, and leave."""
        self.plan.clear()

    # Logging in

    def log_in(self) -> None:
        self.is_inside = False
        browser = self.browser

        def after_page(failure: str, exchange: Exchange) -> None:
            if failure:
                self._retry_later(self.log_in)
            else:
                self._request(browser.login(), after_code)

        def after_code(failure: str, exchange: Exchange) -> None:
            if failure:
                self._retry_later(self.log_in)
            else:
                self._open_survey()

        self._request(browser.login_page(), after_page)

    def _open_survey(self) -> None:
        def opened(failure: str, exchange: Exchange) -> None:
            reply = exchange.reply
            if not failure:
                self.base, self.seen = self.browser.base, self.browser.seen
                self.next_revision = max(self.next_revision, self.base)
                self.failures = 0
                self.is_inside = True
                self._save_next()
                if not self.is_pausing:
                    self._pause()
            elif json_object(reply).get("error") == "finished":
                self._leave()
            elif reply is not None and reply.status == 401:
                self._retry_later(self.log_in)
            else:
                self._retry_later(self._open_survey)

        self._request(self.browser.display(), opened)

    def _new_browser(self) -> Respondent:
        return Respondent(
            self.code, self.context.survey, self.engine.target, accept=JSON
        )

    # Answering

    def _pause(self) -> None:
        self.is_pausing = True
        thinking = self.context.thinking
        pause = min(self.random.expovariate(1 / thinking), 5 * thinking)
        self.engine.later(pause, self._turn_page)

    def _turn_page(self) -> None:
        self.is_pausing = False
        if self.is_gone:
            return
        if not self.plan:
            self._finish_or_leave()
            return
        if len(self.waiting) < len(self.context.pages):
            self._answer(self.plan.pop(0))
        self._pause()

    def _answer(self, page: int) -> None:
        is_idle = self.is_inside and not self.waiting and self.in_flight is None
        browser = self.browser
        if self.random.random() < OTHER_DEVICE and is_idle:
            # A last packet of the old device is under way meanwhile.
            late = self._new_save(page)
            self.browser = self._new_browser()
            self.plan.insert(0, page)
            wait = self.random.random() * 2 * self.context.thinking
            self.engine.later(wait, lambda: self._send(late, "late", browser))
            self.log_in()
            return
        if self.random.random() < LATE and is_idle:
            # A packet of this tab arrives after its own successor.
            late = self._new_save(page)
            self.plan.append(page)
            wait = self.random.random() * self.context.thinking
            self.engine.later(wait, lambda: self._send(late, "late", browser))
        self.waiting[page] = self._new_save(page)
        self._save_next()

    def _new_save(self, page: int) -> PendingSave:
        revision = self.next_revision
        self.next_revision += 1
        answers = answers_for(
            seed=self.context.seed,
            respondent=self.number,
            page=page,
            revision=revision,
            items=self.context.pages[page],
        )
        content = {
            "revision": revision,
            "seen": max(self.seen[page - 1], self.acknowledged.get(page, 0)),
            "base": self.base,
            "answers": answers,
        }
        body = json.dumps(content, separators=(",", ":"))
        return PendingSave(page, revision, body, fingerprint(answers))

    # Saving

    def _save_next(self) -> None:
        if not self.is_inside or self.is_backing_off:
            return
        if self.in_flight or not self.waiting:
            return
        save = min(
            self.waiting.values(), key=lambda save: (save.attempts, save.revision)
        )
        self.in_flight = save
        self._send(save, "retry" if save.attempts else "first", self.browser)
        if self.random.random() < DOUBLED:
            self._send(save, "double", self.browser)

    def _send(self, save: PendingSave, kind: str, browser: Respondent) -> None:
        save.attempts += 1
        number = f"{self.number}-{save.revision}-{save.attempts}"

        def receive(exchange: Exchange) -> None:
            self.context.open.discard(exchange)
            receipt = read_receipt(exchange, save.revision)
            self._log(number, save, exchange, kind, receipt)
            if kind != "late":
                self._settle(save, kind, receipt)
            # The old device's late receipt is not seen on the new one, which
            # learns of it by "superseded", and then opens the survey again.
            elif receipt.outcome == ACKED and save.revision >= self.base:
                self._note_acknowledged(save)

        data = browser.post_save(save.page, save.body)
        self.context.open.add(self.engine.ask(data, receive))

    def _note_acknowledged(self, save: PendingSave) -> None:
        known = self.acknowledged.get(save.page, 0)
        self.acknowledged[save.page] = max(known, save.revision)

    def _settle(self, save: PendingSave, kind: str, receipt: Receipt) -> None:
        if kind != "double":
            self.in_flight = None
        is_waiting = self.waiting.get(save.page) is save
        if receipt.kind == "saved":
            self.failures = 0
            self._note_acknowledged(save)
            if is_waiting:
                del self.waiting[save.page]
            self._save_next()
        elif kind == "double" or not is_waiting:
            self._save_next()
        elif receipt.kind == "session":
            self.is_inside = False
            self._retry_later(self.log_in)
        elif receipt.error == "superseded":
            # *Continue here*: the page again, above what the server has.
            del self.waiting[save.page]
            self.plan.insert(0, save.page)
            self.is_inside = False
            self._open_survey()
        elif receipt.kind in ("halt", "refused"):
            self._leave()
        elif receipt.reply == "cut" and not save.was_cut:
            # The server closed a kept connection at that moment: browsers send
            # such a request again by themselves, over another connection.
            save.was_cut = True
            self.engine.drop_free_connections()
            self._save_next()
        else:
            self.is_backing_off = True
            self._retry_later(self._end_back_off, receipt.after)

    def _end_back_off(self) -> None:
        self.is_backing_off = False
        self._save_next()

    # Finishing

    def _finish_or_leave(self) -> None:
        if self.waiting or self.in_flight or not self.is_inside:
            self._pause()
        elif self.is_finishing or self.random.random() < FINISHES:
            self.is_finishing = True
            self._request(self.browser.review(), self._confirm)
        else:
            self._leave()

    def _confirm(self, failure: str, exchange: Exchange) -> None:
        if failure:
            # Already finished, logged out, or a fault: opening the survey tells.
            self._retry_later(self._open_survey)
            return

        def receive(exchange: Exchange) -> None:
            self.context.open.discard(exchange)
            status = exchange.reply.status if exchange.reply else 0
            outcome = ACKED if status == 302 else UNKNOWN
            receipt = Receipt(outcome, "", str(status or exchange.failure))
            save = PendingSave(FINISHING, 0)
            self._log(f"{self.number}-finish", save, exchange, "first", receipt)
            if outcome == ACKED:
                self._leave()
            else:
                self._retry_later(self._open_survey)

        self.context.open.add(self.engine.ask(self.browser.finish().data, receive))

    def _leave(self) -> None:
        if not self.is_gone:
            self.is_gone = True
            self.leave(self)

    # Shared

    def _request(self, request: Request, done: Callable[[str, Exchange], None]) -> None:
        self.engine.ask(
            request.data, lambda exchange: done(request.check(exchange), exchange)
        )

    def _retry_later(self, act: Callable[[], None], after: float = 0.0) -> None:
        """Back off with full jitter, so that a school does not return at once."""
        self.failures += 1
        longest = min(LONGEST_WAIT, FIRST_WAIT * 2 ** min(self.failures, 10))
        wait = self.random.random() * max(longest, min(after, LONGEST_WAIT))
        self.engine.later(wait, act)

    def _log(
        self,
        number: str,
        save: PendingSave,
        exchange: Exchange,
        kind: str,
        receipt: Receipt,
    ) -> None:
        self.context.log.write(
            Attempt(
                number=number,
                respondent=self.number,
                page=save.page,
                revision=save.revision,
                answers=save.answers,
                sent=round(exchange.scheduled + self.context.offset, 6),
                answered=round(exchange.answered + self.context.offset, 6),
                outcome=receipt.outcome,
                kind=kind,
                reply=receipt.reply.replace("\t", " ").replace("\n", " "),
                receipt=receipt.revision,
                at=receipt.at,
            )
        )
