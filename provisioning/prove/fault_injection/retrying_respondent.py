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
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from provisioning.measure.load.engine import (
    Connection,
    Engine,
    Exchange,
    Scenario,
    clock,
    play,
)
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
from provisioning.measure.load.target import Target
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

    def take_survey(self) -> Scenario:
        yield from self._enter(self._login_steps)
        thinking = self.pool.thinking
        while not self.is_gone:
            yield min(self.random.expovariate(1 / thinking), 5 * thinking)
            # Or saving has ended meanwhile, or waits for a login.
            if self.is_gone:
                return
            if not self.plan:
                if self.is_inside and self.queue.is_empty:
                    yield from self._finish_or_leave()
            # Pages are answered offline too.
            elif len(self.queue.waiting) < len(self.pool.source.pages):
                yield from self._answer(self.plan.pop(0))

    # Logging in

    @property
    def _login_steps(self) -> Sequence[Callable[[], Request]]:
        browser = self.browser
        return browser.login_page, browser.login, browser.display

    def _enter(self, steps: Sequence[Callable[[], Request]]) -> Scenario:
        """Open the survey, as often as it needs; leave if it has been finished."""
        self.is_inside = False
        while not self.is_inside:
            for step in steps:
                request = step()
                exchange = yield request.data
                if request.check(exchange):
                    break
            else:
                self.base, self.seen = self.browser.base, self.browser.seen
                # Included in `seen`, unless a promotion has lost them.
                self.acknowledged.clear()
                self.next_revision = max(self.next_revision, self.base)
                self.failures = 0
                self.is_inside = True
                return
            reply = exchange.reply
            if json_object(reply).get("error") == "finished":
                self._leave()
                return
            if reply is not None and reply.status == 401:
                steps = self._login_steps
            elif step is steps[-1]:
                steps = [step]
            yield self._back_off()

    # Answering

    def _answer(self, page: int) -> Scenario:
        is_idle = self.is_inside and self.queue.is_empty
        if self.random.random() < OTHER_DEVICE and is_idle:
            # A last packet of the old device is under way meanwhile.
            self._send_late(page, 2 * self.pool.thinking)
            self._change_device()
            self.plan.insert(0, page)
            yield from self._enter(self._login_steps)
            return
        if self.random.random() < LATE and is_idle:
            # A packet of this tab arrives after its own successor.
            self._send_late(page, self.pool.thinking)
            self.plan.append(page)
        self.queue.put(self._new_save(page))
        if self.is_inside:
            self.queue.drain(self.engine, self._save)

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

    def _save(self, save: PendingSave) -> Generator[bytes | float, Any, bool]:
        """Send a save once; return whether others may be sent then."""
        kind = "retry" if save.attempts else "first"
        if self.random.random() < DOUBLED:
            play(self.engine, self._send_double(save))
        receipt = yield from self._send(save, kind, self.browser)
        if receipt.kind == "saved":
            self._note_saved(save)
        elif not self.queue.has(save):
            # Newer answers wait.
            pass
        elif receipt.kind == "session":
            self.is_inside = False
            yield self._back_off()
            yield from self._enter(self._login_steps)
        elif receipt.error == "superseded":
            # *Continue here*: the page again, above what the server has.
            self.queue.remove(save)
            self.plan.insert(0, save.page)
            yield from self._enter([self.browser.display])
        elif receipt.kind in ("halt", "refused"):
            self._leave()
        elif receipt.reply == "cut" and not save.was_cut:
            # The server closed a kept connection at that moment: browsers send
            # such a request again by themselves, over another connection.
            save.was_cut = True
            self.engine.drop_free_connections()
        else:
            yield self._back_off(receipt.after)
        return self.is_inside and not self.is_gone

    def _send_double(self, save: PendingSave) -> Scenario:
        # After the first.
        yield 0.0
        receipt = yield from self._send(save, "double", self.browser)
        if receipt.kind == "saved":
            self._note_saved(save)

    def _send_late(self, page: int, longest: float) -> None:
        save, browser = self._new_save(page), self.browser

        def send() -> Scenario:
            yield self.random.random() * longest
            receipt = yield from self._send(save, "late", browser)
            # The old device's late receipt is not seen on the new one, which
            # learns of it by "superseded", and then opens the survey again.
            if receipt.outcome == ACKED and save.revision >= self.base:
                self._note_acknowledged(save)

        play(self.engine, send())

    def _send(
        self, save: PendingSave, kind: str, browser: Respondent
    ) -> Generator[bytes, Exchange, Receipt]:
        save.attempts += 1
        exchange = yield browser.post_save(save.page, save.body)
        receipt = read_receipt(exchange, save.revision)
        self._log(save, receipt, exchange, kind)
        return receipt

    def _note_saved(self, save: PendingSave) -> None:
        self.failures = 0
        self._note_acknowledged(save)
        self.queue.remove(save)

    def _note_acknowledged(self, save: PendingSave) -> None:
        known = self.acknowledged.get(save.page, 0)
        self.acknowledged[save.page] = max(known, save.revision)

    # Finishing

    def _finish_or_leave(self) -> Scenario:
        if not self.is_finishing and self.random.random() >= FINISHES:
            self._leave()
            return
        self.is_finishing = True
        review = self.browser.review()
        if not review.check((yield review.data)):
            save = PendingSave(FINISHING, 0, self.number)
            # Browsers send it again by themselves after a cut, as they do saves.
            for kind in ("first", "retry"):
                exchange = yield self.browser.finish().data
                status = exchange.reply.status if exchange.reply else 0
                outcome = ACKED if status == 302 else UNKNOWN
                receipt = Receipt(outcome, "", str(status or exchange.failure))
                self._log(save, receipt, exchange, kind)
                if outcome == ACKED:
                    self._leave()
                    return
                if receipt.reply != "cut":
                    break
                save.attempts += 1
                self.engine.drop_free_connections()
        # Already finished, logged out, or a fault: opening the survey tells.
        yield self._back_off()
        yield from self._enter([self.browser.display])

    def _leave(self) -> None:
        if not self.is_gone:
            self.is_gone = True
            self.leave(self)

    # Shared

    def _back_off(self, after: float = 0.0) -> float:
        """Return seconds with full jitter, so that a school does not return at once."""
        self.failures += 1
        longest = min(LONGEST_WAIT, FIRST_WAIT * 2 ** min(self.failures, 10))
        return self.random.random() * max(longest, min(after, LONGEST_WAIT))

    def _log(
        self, save: PendingSave, receipt: Receipt, exchange: Exchange, kind: str
    ) -> None:
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
        target: Target,
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
        self.engine = LossyEngine(target, connections=2 * self.seats)
        self.survey = RehearsalSurvey.of(rehearsal.described)
        self.source = AnswerSource.of(seed, rehearsal.described)
        # Seconds between two pages of one respondent, on average.
        self.thinking = seats / rate
        # From the engine's clock to the wall clock, which all processes share.
        self.offset = time.time() - clock()
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
        # So that saves without a reply are logged.
        self.engine.abandon()
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
        play(self.engine, respondent.take_survey())

    def _check_end(self) -> None:
        if self.is_closing:
            self.deadline = self.deadline or clock() + PATIENCE
            for respondent in self.present:
                respondent.hurry()
            is_done = not self.present and not self.engine.unanswered
            if is_done or clock() > self.deadline:
                self.engine.stop()
                return
        self.engine.later(CHECK_INTERVAL, self._check_end)
