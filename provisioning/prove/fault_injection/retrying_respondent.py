"""Simulate respondents with the retry queue of their browsers.

On top of it what networks and people do: saves that are sent twice, packets
that arrive late, answers that are changed, and a second device. A retry is the
same to the byte.
"""

from __future__ import annotations

import json
import random
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from provisioning.measure.load.engine import Connection, Engine, Exchange, clock
from provisioning.measure.load.replies import Reply
from provisioning.measure.load.respondent import (
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
from provisioning.measure.load.target import target_of
from provisioning.prove.fault_injection.saves import (
    FINISHING,
    LAST_LINE,
    AnswerSource,
    Attempt,
    PendingSave,
    SaveQueue,
    fingerprint,
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
# As in survey/taking/storage.py: a tab's revisions are equal modulo this number.
TABS = 2**20
# Share of respondents who finish.
FINISHES = 0.3
ROUNDS = 3
# Longer than any server takes to come back.
PATIENCE = 60.0
CHECK_INTERVAL = 0.2


@dataclass(frozen=True)
class Rehearsal:
    administration: int
    # As `manage.py open_rehearsal --json` prints it.
    described: dict[str, Any]
    # Each respondent's ID and access code.
    people: list[tuple[int, str]]


class RetryingRespondent:
    def __init__(
        self,
        pool: RespondentPool,
        number: int,
        code: str,
        leave: Callable[[RetryingRespondent], None],
    ) -> None:
        self.pool = pool
        self.engine = pool.engine
        self.number = number
        self.code = code
        self.leave = leave
        self.random = random.Random(f"{pool.source.seed}:{number}")  # noqa: S311
        self.queue = SaveQueue()
        # The next save's revision, on whatever device; and the tab's first.
        self.next_revision = self.base = 0
        self.failures = 0
        self.is_inside = False
        self.is_pausing = False
        self.is_gone = False
        self.is_finishing = False
        self._change_device()
        # The pages in the order in which they are answered; some a second time.
        self.plan: list[int] = []
        for page in [*pool.source.pages] * ROUNDS:
            self.plan.append(page)
            if self.random.random() < CHANGED:
                self.plan.append(self.random.randint(1, page))

    def _change_device(self) -> None:
        """Go on in another browser, which shows nothing yet."""
        self.tab = self.random.randrange(TABS)
        target = self.engine.target
        self.browser = Respondent(self.code, self.pool.survey, target, accept=JSON)
        # What the server had when this tab last opened the survey, by page, and
        # what the tab was told to be saved since.
        self.seen: list[int] = []
        self.acknowledged: dict[int, int] = {}

    def hurry(self) -> None:
        """Answer nothing more, save what waits, and leave."""
        self.plan.clear()

    # Logging in

    def log_in(self) -> None:
        self.is_inside = False
        steps = iter((self.browser.login_page, self.browser.login))

        def proceed(failure: str, exchange: Exchange | None = None) -> None:
            request = next(steps, None)
            if failure:
                self._retry_later(self.log_in)
            elif request is not None:
                self._request(request(), proceed)
            else:
                self._open_survey()

        proceed("")

    def _open_survey(self) -> None:
        browser = self.browser

        def opened(failure: str, exchange: Exchange) -> None:
            reply = exchange.reply
            if not failure:
                self.base, self.seen = browser.base, browser.seen
                # Included in `seen`, unless a promotion has lost them.
                self.acknowledged.clear()
                self.next_revision = max(self.next_revision, self.base)
                self.failures = 0
                self.is_inside = True
                self._save_next()
                if not self.is_pausing:
                    self._pause()
            elif json_object(reply).get("error") == "finished":
                self._leave()
            else:
                ended = reply is not None and reply.status == 401
                self._retry_later(self.log_in if ended else self._open_survey)

        self._request(browser.display(), opened)

    # Answering

    def _pause(self) -> None:
        self.is_pausing = True
        thinking = self.pool.thinking
        pause = min(self.random.expovariate(1 / thinking), 5 * thinking)
        self.engine.later(pause, self._turn_page)

    def _turn_page(self) -> None:
        self.is_pausing = False
        if self.is_gone:
            return
        if not self.plan:
            self._finish_or_leave()
            return
        # A page is answered offline, but not in a tab that is still empty.
        if self.seen and len(self.queue.waiting) < len(self.pool.source.pages):
            self._answer(self.plan.pop(0))
        self._pause()

    def _answer(self, page: int) -> None:
        is_idle = self.is_inside and self.queue.is_empty
        if self.random.random() < OTHER_DEVICE and is_idle:
            # A last packet of the old device is under way meanwhile.
            self._send_late(page, 2 * self.pool.thinking)
            self._change_device()
            self.plan.insert(0, page)
            self.log_in()
            return
        if self.random.random() < LATE and is_idle:
            # A packet of this tab arrives after its own successor.
            self._send_late(page, self.pool.thinking)
            self.plan.append(page)
        self.queue.put(self._new_save(page))
        self._save_next()

    def _send_late(self, page: int, longest: float) -> None:
        save, browser = self._new_save(page), self.browser
        wait = self.random.random() * longest
        self.engine.later(wait, lambda: self._send(save, "late", browser))

    def _new_save(self, page: int) -> PendingSave:
        # The next number that is this tab's.
        revision = self.next_revision + (self.tab - self.next_revision) % TABS
        self.next_revision = revision + 1
        answers = self.pool.source.answers(self.number, page, revision)
        seen = max(self.seen[page - 1], self.acknowledged.get(page, 0))
        content = {"revision": revision, "seen": seen, "answers": answers}
        body = json.dumps(content, separators=(",", ":"))
        key = fingerprint(answers)
        return PendingSave(page, revision, self.number, str(self.tab), seen, key, body)

    # Saving

    def _save_next(self) -> None:
        save = self.queue.next_to_send() if self.is_inside else None
        if save is None:
            return
        self._send(save, "retry" if save.attempts else "first", self.browser)
        if self.random.random() < DOUBLED:
            self._send(save, "double", self.browser)

    def _send(self, save: PendingSave, kind: str, browser: Respondent) -> None:
        save.attempts += 1

        def receive(exchange: Exchange) -> None:
            receipt = read_receipt(exchange, save.revision)
            self._log(save, receipt, exchange, kind)
            if kind != "late":
                self._settle(save, kind, receipt)
            # The old device's late receipt is not seen on the new one, which
            # learns of it by "superseded", and then opens the survey again.
            elif receipt.outcome == ACKED and save.revision >= self.base:
                self._note_acknowledged(save)

        data = browser.post_save(save.page, save.body)
        self.pool.open.add(self.engine.ask(data, receive))

    def _note_acknowledged(self, save: PendingSave) -> None:
        known = self.acknowledged.get(save.page, 0)
        self.acknowledged[save.page] = max(known, save.revision)

    def _settle(self, save: PendingSave, kind: str, receipt: Receipt) -> None:
        if kind != "double":
            self.queue.in_flight = None
        if receipt.kind == "saved":
            self.failures = 0
            self._note_acknowledged(save)
            self.queue.remove(save)
            self._save_next()
        elif kind == "double" or not self.queue.has(save):
            self._save_next()
        elif receipt.kind == "session":
            self.is_inside = False
            self._retry_later(self.log_in)
        elif receipt.error == "superseded":
            # *Continue here*: the page again, above what the server has.
            self.queue.remove(save)
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
            self.queue.is_backing_off = True
            self._retry_later(self._end_back_off, receipt.after)

    def _end_back_off(self) -> None:
        self.queue.is_backing_off = False
        self._save_next()

    # Finishing

    def _finish_or_leave(self) -> None:
        def confirm(failure: str, exchange: Exchange) -> None:
            if failure:
                # Already finished, logged out, or a fault: opening the survey tells.
                self._retry_later(self._open_survey)
            else:
                self._finish(PendingSave(FINISHING, 0, self.number))

        if not self.queue.is_empty or not self.is_inside:
            self._pause()
        elif self.is_finishing or self.random.random() < FINISHES:
            self.is_finishing = True
            self._request(self.browser.review(), confirm)
        else:
            self._leave()

    def _finish(self, save: PendingSave) -> None:
        def receive(exchange: Exchange) -> None:
            status = exchange.reply.status if exchange.reply else 0
            outcome = ACKED if status == 302 else UNKNOWN
            receipt = Receipt(outcome, "", str(status or exchange.failure))
            self._log(save, receipt, exchange, "retry" if save.was_cut else "first")
            if outcome == ACKED:
                self._leave()
            elif receipt.reply == "cut" and not save.was_cut:
                # Browsers send it again by themselves, as they do saves.
                save.was_cut = True
                save.attempts += 1
                self.engine.drop_free_connections()
                self._finish(save)
            else:
                self._retry_later(self._open_survey)

        data = self.browser.finish().data
        self.pool.open.add(self.engine.ask(data, receive))

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
        self, save: PendingSave, receipt: Receipt, exchange: Exchange, kind: str
    ) -> None:
        self.pool.open.discard(exchange)
        offset = self.pool.offset
        times = (exchange.scheduled + offset, exchange.answered + offset)
        self.pool.log.write(Attempt.of(save, receipt, kind, times).line())


class LossyEngine(Engine):
    """Lose replies after their requests passed."""

    share_lost = 0.0

    def answer(self, connection: Connection, exchange: Exchange, reply: Reply) -> None:
        if random.random() < self.share_lost:  # noqa: S311
            self.lose(connection, "cut")
        else:
            super().answer(connection, exchange, reply)


class RespondentPool:
    """Keep a number of respondents at work, and replace those that leave."""

    def __init__(
        self,
        rehearsal: Rehearsal,
        log: Path,
        *,
        url: str,
        seats: int,
        rate: float,
        seed: int,
    ) -> None:
        """Simulate `seats` respondents at a time, who save `rate` pages a second."""
        self.seats = seats
        self.people = deque(rehearsal.people)
        self.present: set[RetryingRespondent] = set()
        # Each line is one write that appends.
        self.log = log.open("a", buffering=1)
        self.engine = LossyEngine(target_of(url), connections=2 * self.seats)
        self.survey = RehearsalSurvey.of(rehearsal.described)
        self.source = AnswerSource.of(seed, rehearsal.described)
        # Seconds between two pages of one respondent, on average.
        self.thinking = seats / rate
        # From the engine's clock to the wall clock, which all processes share.
        self.offset = time.time() - clock()
        # Saves without a reply: at the end they are abandoned, and so logged.
        self.open: set[Exchange] = set()
        self.deadline = 0.0
        self.is_closing = False

    def run(self) -> bool:
        """Run until closed; return whether all respondents saved what they had."""
        for number in range(self.seats):
            # Not in the same moment: a class takes a while to sit down.
            wait = self.thinking * number / self.seats
            self.engine.later(wait, self._admit_next)
        self._check_end()
        self.engine.run()
        for exchange in list(self.open):
            self.engine.abandon(exchange)
        self.engine.close()
        if not self.present:
            self.log.write(LAST_LINE)
            self.log.close()
        return not self.present

    def _admit_next(self) -> None:
        if self.is_closing or not self.people:
            return

        def leave(respondent: RetryingRespondent) -> None:
            self.present.discard(respondent)
            # Those who did not finish come again after all others.
            if not respondent.is_finishing:
                self.people.append((respondent.number, respondent.code))
            self._admit_next()

        respondent = RetryingRespondent(self, *self.people.popleft(), leave)
        self.present.add(respondent)
        respondent.log_in()

    def _check_end(self) -> None:
        if self.is_closing:
            self.deadline = self.deadline or clock() + PATIENCE
            for respondent in self.present:
                respondent.hurry()
            is_done = not self.present and not self.open
            if is_done or clock() > self.deadline:
                self.engine.stop()
                return
        self.engine.later(CHECK_INTERVAL, self._check_end)
