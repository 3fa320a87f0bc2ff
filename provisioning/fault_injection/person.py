"""A person at a browser that keeps what is not yet saved, and tries again.

As in static/js/queue.js: one slot for each page, one save in flight, the
newest answers of a page take the place of those that wait, and a retry is
the same to the byte. On top of it everything that networks and people do:
sendings that are doubled, packets that arrive late, answers that are changed,
and a second device.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any
from urllib.parse import urlencode

from provisioning.fault_injection.answers import Pages, answers_for, fingerprint
from provisioning.fault_injection.attempts import (
    ACKED,
    FINISHING,
    UNKNOWN,
    Attempt,
    AttemptLog,
)
from provisioning.fault_injection.wire import (
    Browser,
    Receipt,
    json_of,
    read_receipt,
    reviewed_in,
)
from provisioning.load.engine import Engine, Exchange

FIRST_WAIT = 0.5
# A browser waits up to a minute. Here nobody does, so that what is measured
# is when the server is back, and not when somebody asks it.
LONGEST_WAIT = 2.0
DOUBLED = 0.03
LATE = 0.03
CHANGED = 0.3
OTHER_DEVICE = 0.05
FINISHES = 0.3
ROUNDS = 3
FORM = "application/x-www-form-urlencoded"


@dataclass
class Save:
    page: int
    revision: int
    body: bytes
    answers: str
    attempts: int = 0
    was_cut: bool = False


@dataclass(frozen=True)
class Scene:
    """What all the people of one process share."""

    engine: Engine
    log: AttemptLog
    pages: Pages
    seed: int
    # Seconds between two pages of one person, on average.
    thinking: float
    # From the engine's clock to the wall clock, which all processes share.
    offset: float
    # Saves without a reply yet: whoever ends must write them down as unknown.
    open: set[Exchange] = field(default_factory=set)


class Person:
    def __init__(
        self,
        scene: Scene,
        respondent: int,
        code: str,
        leave: Callable[[Person], None],
    ) -> None:
        self.scene = scene
        self.respondent = respondent
        self.code = code
        self.leave = leave
        self.random = Random(f"{scene.seed}:{respondent}")  # noqa: S311
        self.browser = Browser(scene.engine.target)
        self.waiting: dict[int, Save] = {}
        self.flying: Save | None = None
        self.acknowledged: dict[int, int] = {}
        self.next = self.base = 0
        self.seen: list[int] = []
        self.csrf = ""
        self.failures = 0
        self.is_inside = False
        self.is_resting = False
        self.is_backing_off = False
        self.is_gone = False
        self.is_finishing = False
        self.plan = self._plan()

    def _plan(self) -> list[int]:
        """The pages in the order of their answering; some a second time."""
        plan: list[int] = []
        for page in [*self.scene.pages] * ROUNDS:
            plan.append(page)
            if self.random.random() < CHANGED:
                plan.append(self.random.randint(1, page))
        return plan

    # Coming in

    def come(self) -> None:
        """Type the code, on whatever device this is."""
        self.is_inside = False
        self._ask(self.browser.get("/"), self._type_code)

    def _type_code(self, exchange: Exchange) -> None:
        csrf = json_of(exchange.reply).get("csrf")
        if not csrf:
            self._later(self.come)
            return
        form = urlencode({"code": self.code, "csrfmiddlewaretoken": csrf})
        self._ask(self.browser.post("/", form.encode(), FORM), self._admitted)

    def _admitted(self, exchange: Exchange) -> None:
        if "tag" in json_of(exchange.reply):
            self._open_shell()
        else:
            self._later(self.come)

    def _open_shell(self) -> None:
        self._ask(self.browser.get("/take/"), self._shown)

    def _shown(self, exchange: Exchange) -> None:
        shell = json_of(exchange.reply)
        if shell.get("error") == "finished":
            self._go()
        elif "revision" in shell:
            self._begin(shell)
        elif exchange.reply is not None and exchange.reply.status == 401:
            self._later(self.come)
        else:
            self._later(self._open_shell)

    def _begin(self, shell: dict[str, Any]) -> None:
        self.browser.tag = shell["tag"]
        self.csrf = shell["csrf"]
        self.base = shell["revision"]
        self.next = max(self.next, self.base)
        self.seen = shell["seen"]
        self.failures = 0
        self.is_inside = True
        self._kick()
        if not self.is_resting:
            self._rest()

    # Answering

    def _rest(self) -> None:
        self.is_resting = True
        pause = min(
            self.random.expovariate(1 / self.scene.thinking), 5 * self.scene.thinking
        )
        self.scene.engine.later(pause, self._turn)

    def _turn(self) -> None:
        self.is_resting = False
        if self.is_gone:
            return
        if not self.plan:
            self._end()
        elif len(self.waiting) < len(self.scene.pages):
            self._answer(self.plan.pop(0))
            self._rest()
        else:
            self._rest()

    def _answer(self, page: int) -> None:
        if self.random.random() < OTHER_DEVICE and self._is_idle():
            self._change_device(page)
            return
        if self.random.random() < LATE and self._is_idle():
            self._overtake(page)
            return
        self.waiting[page] = self._new_save(page)
        self._kick()

    def _is_idle(self) -> bool:
        return self.is_inside and not self.waiting and self.flying is None

    def _new_save(self, page: int) -> Save:
        revision = self.next
        self.next += 1
        answers = answers_for(
            seed=self.scene.seed,
            respondent=self.respondent,
            page=page,
            revision=revision,
            items=self.scene.pages[page],
        )
        seen = max(self.seen[page - 1], self.acknowledged.get(page, 0))
        content = {
            "revision": revision,
            "seen": seen,
            "base": self.base,
            "answers": answers,
        }
        body = json.dumps(content, separators=(",", ":")).encode()
        return Save(page, revision, body, fingerprint(answers))

    def _change_device(self, page: int) -> None:
        """Go on elsewhere, while a last packet of the old device is under way."""
        late, old = self._new_save(page), self.browser
        self.browser = Browser(self.scene.engine.target)
        self.plan.insert(0, page)
        pause = self.random.random() * 2 * self.scene.thinking
        self.scene.engine.later(pause, lambda: self._send(late, "late", old))
        self.come()

    def _overtake(self, page: int) -> None:
        """A packet of this tab that arrives after its own successor."""
        late, browser = self._new_save(page), self.browser
        self.waiting[page] = self._new_save(page)
        self.plan.append(page)
        pause = self.random.random() * self.scene.thinking
        self.scene.engine.later(pause, lambda: self._send(late, "late", browser))
        self._kick()

    # Saving

    def _kick(self) -> None:
        if not self.is_inside or self.is_backing_off:
            return
        if self.flying or not self.waiting:
            return
        save = min(self.waiting.values(), key=lambda one: (one.attempts, one.revision))
        kind = "retry" if save.attempts else "first"
        self.flying = save
        self._send(save, kind, self.browser)
        if self.random.random() < DOUBLED:
            self._send(save, "double", self.browser)

    def _send(self, save: Save, kind: str, browser: Browser) -> None:
        save.attempts += 1
        number = f"{self.respondent}-{save.revision}-{save.attempts}"
        data = browser.post(f"/take/pages/{save.page}/", save.body, "application/json")

        def answered(exchange: Exchange) -> None:
            self.scene.open.discard(exchange)
            receipt = read_receipt(exchange, save.revision)
            self._write(number, save.page, save, exchange, kind, receipt)
            if kind == "late":
                self._note_late(save, receipt)
            else:
                self._settle(save, kind, receipt)

        self.scene.open.add(self.scene.engine.ask(data, answered))

    def _note_late(self, save: Save, receipt: Receipt) -> None:
        # The old device's person has not seen it; the new one's tab finds out
        # by being told that it was superseded, and looks again.
        if receipt.outcome == ACKED and save.revision >= self.base:
            self._note(save)

    def _note(self, save: Save) -> None:
        known = self.acknowledged.get(save.page, 0)
        self.acknowledged[save.page] = max(known, save.revision)

    def _settle(self, save: Save, kind: str, receipt: Receipt) -> None:
        if kind != "double":
            self.flying = None
        if receipt.kind == "saved":
            self.failures = 0
            self._note(save)
            if self.waiting.get(save.page) is save:
                del self.waiting[save.page]
            self._kick()
        elif kind == "double" or self.waiting.get(save.page) is not save:
            self._kick()
        else:
            self._failed(save, receipt)

    def _failed(self, save: Save, receipt: Receipt) -> None:
        if receipt.kind == "session":
            self.is_inside = False
            self._later(self.come)
        elif receipt.error == "superseded":
            # *Continue here*: these answers again, above what was found.
            del self.waiting[save.page]
            self.plan.insert(0, save.page)
            self.is_inside = False
            self._open_shell()
        elif receipt.kind in ("halt", "refused"):
            self._go()
        elif receipt.reply == "cut" and not save.was_cut:
            # The server closed a kept connection just then: browsers send
            # such a request again by themselves, over another one.
            save.was_cut = True
            self.scene.engine.drop_free_connections()
            self._kick()
        else:
            self.is_backing_off = True
            self._later(self._try_again, receipt.after)

    def _try_again(self) -> None:
        self.is_backing_off = False
        self._kick()

    # Finishing

    def _end(self) -> None:
        if self.waiting or self.flying or not self.is_inside:
            self._rest()
        elif self.is_finishing or self.random.random() < FINISHES:
            self.is_finishing = True
            ask = self.browser.get("/take/complete/", accept="text/html")
            self._ask(ask, self._finish)
        else:
            self._go()

    def _finish(self, exchange: Exchange) -> None:
        reviewed = reviewed_in(exchange.reply)
        if not reviewed:
            # Finished already, the session is over, or not now: the shell tells.
            self._later(self._open_shell)
            return
        form = urlencode({"reviewed": reviewed, "csrfmiddlewaretoken": self.csrf})
        data = self.browser.post("/take/complete/", form.encode(), FORM)
        self.scene.open.add(self.scene.engine.ask(data, self._finished))

    def _finished(self, exchange: Exchange) -> None:
        self.scene.open.discard(exchange)
        reply = exchange.reply
        status = reply.status if reply else 0
        outcome = ACKED if status == 302 else UNKNOWN
        said = str(status) if status else exchange.failure
        receipt = Receipt(outcome, "", said)
        save = Save(FINISHING, 0, b"", "")
        number = f"{self.respondent}-finish"
        self._write(number, FINISHING, save, exchange, "first", receipt)
        if outcome == ACKED:
            self._go()
        else:
            self._later(self._open_shell)

    def _go(self) -> None:
        if not self.is_gone:
            self.is_gone = True
            self.leave(self)

    def hurry(self) -> None:
        """Answer no more; save what waits, and go."""
        self.plan.clear()

    # Shared

    def _ask(self, data: bytes, done: Callable[[Exchange], None]) -> None:
        browser = self.browser

        def answered(exchange: Exchange) -> None:
            if exchange.reply is not None:
                browser.keep_cookies(exchange.reply)
            done(exchange)

        self.scene.engine.ask(data, answered)

    def _later(self, act: Callable[[], None], after: float = 0.0) -> None:
        """Full jitter, as a school that lost its network must not return at once."""
        self.failures += 1
        longest = min(LONGEST_WAIT, FIRST_WAIT * 2 ** min(self.failures, 10))
        wait = self.random.random() * max(longest, min(after, LONGEST_WAIT))
        self.scene.engine.later(wait, act)

    def _write(
        self,
        number: str,
        page: int,
        save: Save,
        exchange: Exchange,
        kind: str,
        receipt: Receipt,
    ) -> None:
        self.scene.log.write(
            Attempt(
                number=number,
                respondent=self.respondent,
                page=page,
                revision=save.revision,
                answers=save.answers,
                sent=round(exchange.scheduled + self.scene.offset, 6),
                answered=round(exchange.answered + self.scene.offset, 6),
                outcome=receipt.outcome,
                kind=kind,
                reply=receipt.reply.replace("\t", " ").replace("\n", " "),
                receipt=receipt.revision,
                at=receipt.at,
            )
        )
