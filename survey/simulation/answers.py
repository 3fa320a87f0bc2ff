"""Make up answers to any published survey, for load tests.

A simulated take is what one person's browser sends: the visible pages in
order, with answers that every rule accepts, so that it can be completed.
Values are drawn and tried against the survey's own rules. One person's answers
on scales lean the same way, so that measures of them have something to show.
Nothing here knows a particular survey; `survey.simulation.demo.answers` knows
those of the demo.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal

from survey.instrument.definitions.expressions import labels_of
from survey.instrument.definitions.piping import piped_in_labels
from survey.instrument.definitions.rule_dependencies import items_read
from survey.instrument.definitions.rules import RuleState, is_computed, state_of
from survey.instrument.definitions.schema import RULES, Expr
from survey.taking.published import Published
from survey.taking.validation import BadAnswer, check_page, stored_text

Wire = str | list[str] | None
Answers = dict[str, Wire]

BLANK = 0.04
BLANK_TEXT = 0.4
# The usual answer on a scale, between its least (0) and most (1), and the standard
# deviations between people and between one person's answers.
USUAL, PERSON, NOISE = 0.6, 0.16, 0.16
# A page is drawn again as long as its rules refuse it, so many times at most.
MOST_TRIES = 200
TEXTS = (
    "More time between lessons would help.",
    "The new library is the best part of our school – señora Gómez runs it!",
    "Nothing to add.",
    "Lunch lines are too long; by the time I sit down, the bell rings.",
    "Lincoln",
    "Grade 7",
    "maya@example.org",
    "773-555-0143",
    "60637",
    "12",
    "yes",
)


class NoAnswerFound(ValueError):
    """The rules refuse every value that was tried for these items."""

    def __init__(self, names: list[str]) -> None:
        super().__init__(", ".join(names))
        self.names = names


@dataclass(frozen=True, slots=True)
class SimulatedPage:
    """The answers to one page, and other answers for a second visit."""

    page: int
    answers: Answers
    changed: Answers


def simulate_take(
    published: Published, *, draw: random.Random, now: datetime
) -> list[SimulatedPage]:
    """Make up the pages that one person sends. Raises NoAnswerFound."""
    simulator = TakeSimulator(published, draw, now)
    pages = list(simulator.pages())
    simulator.check(pages)
    return pages


class TakeSimulator:
    def __init__(
        self, published: Published, draw: random.Random, now: datetime
    ) -> None:
        self.published = published
        self.definition = published.definition
        self.items = published.definition["items"]
        self.draw = draw
        self.now = now
        self.clock = {
            "today": now.date().isoformat(),
            "now": now.isoformat(timespec="seconds"),
        }
        self.leaning = draw.gauss(USUAL, PERSON)
        # The stored texts of the pages so far.
        self.given: dict[str, str] = {}
        # Items that a rule of another item reads.
        self.read: set[str] = set()
        piped = piped_in_labels(published.definition["option_sets"])
        for name, item in self.items.items():
            for rule in RULES:
                if rule in item:
                    read = items_read(item[rule], self.items, piped)
                    self.read |= (read | labels_of(item[rule])) - {name}

    def pages(self) -> Iterator[SimulatedPage]:
        for n in range(1, len(self.published.answerable) + 1):
            answers, state = self.answer_page(n)
            if n not in state.visible_pages():
                continue
            self.given |= texts_of(answers)
            yield SimulatedPage(n, answers, self.change_answers(n, answers))

    def check(self, pages: list[SimulatedPage]) -> None:
        """Check that every page is accepted and the take complete, in any language."""
        first = self.published.languages[0]
        for page in pages:
            for answers in (page.answers, page.changed):
                _, problems = check_page(
                    self.published, page.page, answers, **self.clock, language=first
                )
                if problems:
                    raise NoAnswerFound(sorted(problems))
        for whole in (
            [page.answers for page in pages],
            [page.changed for page in pages],
        ):
            texts: dict[str, str] = {}
            for answers in whole:
                texts |= texts_of(answers)
            for language in self.published.languages:
                if refused := self.state(texts, language).problems:
                    raise NoAnswerFound(sorted(refused))

    def answer_page(self, n: int) -> tuple[Answers, RuleState]:
        expected = self.published.answerable[n - 1]
        state = self.state(self.given)
        answers = {name: self.draw_answer(name, state) for name in expected}
        for left in reversed(range(MOST_TRIES)):
            state = self.state(self.given | texts_of(answers))
            for name in expected:
                # As the browser does, whatever its person answers.
                if not state.relevant[name]:
                    answers[name] = None
                elif is_computed(self.items[name]):
                    answers[name] = self.computed_answer(name, state.values[name])
                elif answers[name] is None and state.required(name):
                    answers[name] = self.draw_answer(name, state, answered=True)
            state = self.state(self.given | texts_of(answers))
            refused = self.refused(n, state)
            if not refused:
                return answers, state
            # A rule of an earlier page may refuse an answer on this one.
            for name in refused & expected.keys() or expected.keys():
                if left < MOST_TRIES // 2 and not state.required(name):
                    answers[name] = None
                else:
                    answers[name] = self.draw_answer(name, state, answered=True)
        raise NoAnswerFound(sorted(refused))

    def computed_answer(self, name: str, text: str) -> Wire:
        is_list = self.items[name]["kind"] == "select_multiple"
        wire: Wire = text.split(" ") if is_list and text else text or None
        try:
            stored_text(self.items[name], wire, self.definition)
        except BadAnswer:
            return None
        return wire

    def refused(self, n: int, state: RuleState) -> set[str]:
        return {name for name in state.problems if self.items[name]["page"] <= n}

    def change_answers(self, n: int, answers: Answers) -> Answers:
        """Draw other answers to items that no rule reads, so that all stay valid."""
        changed = dict(answers)
        for name, answer in answers.items():
            item = self.items[name]
            is_fixed = is_computed(item) or item.get("read_only")
            if answer is None or name in self.read or is_fixed:
                continue
            state = self.state(self.given)
            candidate = changed | {name: self.draw_answer(name, state, answered=True)}
            if not self.refused(n, self.state(self.given | texts_of(candidate))):
                changed = candidate
        return changed

    def draw_answer(
        self, name: str, state: RuleState, *, answered: bool = False
    ) -> Wire:
        item = self.items[name]
        kind = item["kind"]
        if item.get("read_only"):
            return item.get("default") or None
        likely = BLANK_TEXT if kind == "text" else BLANK
        if not answered and self.draw.random() < likely:
            return None
        if kind in ("select_one", "select_multiple"):
            offered = [option["value"] for option in state.offered(name)]
            if not offered:
                return None
            if kind == "select_one":
                # Rules that refused an answer may accept any other.
                if answered or not is_scale(offered):
                    return self.draw.choice(offered)
                place = self.leaning + self.draw.gauss(0, NOISE)
                return offered[max(0, min(int(place * len(offered)), len(offered) - 1))]
            count = min(len(offered), self.draw.choice((1, 1, 2, 3)))
            chosen = set(self.draw.sample(offered, count))
            return [value for value in offered if value in chosen]
        if kind == "acknowledge":
            return "OK"
        constants = list(numbers_in(item.get("constraint")))
        if kind == "range":
            scale = item["range"]
            start, end = Decimal(scale["start"]), Decimal(scale["end"])
            step = Decimal(scale["step"])
            steps = self.draw.randint(0, int((end - start) / step))
            return format(start + step * steps)
        if kind == "text":
            return self.draw.choice([*TEXTS, *map(str, constants)])
        if kind in ("integer", "decimal"):
            # A rule names the limits it compares with: the answer is near one.
            near = [round(number) for number in constants] or [0]
            reach = self.draw.choice((0, 1, 5, 20, 100))
            number = self.draw.choice(near) + self.draw.randint(-reach, reach)
            is_half = kind == "decimal" and self.draw.random() < 0.5
            return f"{number}.5" if is_half else str(number)
        return self.draw_moment(kind)

    def draw_moment(self, kind: str) -> str:
        days = self.draw.choice((0, 30, 365, 3_650, 18_000))
        moment = self.now.replace(tzinfo=None, second=0, microsecond=0) - timedelta(
            days=self.draw.randint(-min(days, 365), days),
            minutes=self.draw.randint(0, 1_439),
        )
        text = moment.isoformat(timespec="minutes")
        date, time = text.split("T")
        return {"date": date, "time": time, "datetime": text}[kind]

    def state(self, texts: Mapping[str, str], language: str = "") -> RuleState:
        language = language or self.published.languages[0]
        return state_of(self.definition, texts, **self.clock, language=language)


def is_scale(values: list[str]) -> bool:
    """Tell whether values are numbers that rise, as on a scale of agreement."""
    if len(values) < 3 or not all(value.isdecimal() for value in values):
        return False
    numbers = list(map(int, values))
    return numbers == sorted(numbers)


def texts_of(answers: Answers) -> dict[str, str]:
    return {
        name: " ".join(wire) if isinstance(wire, list) else wire
        for name, wire in answers.items()
        if wire
    }


def numbers_in(expr: Expr | None) -> Iterator[float]:
    if isinstance(expr, list):
        for part in expr[1:]:
            yield from numbers_in(part)
    elif isinstance(expr, int | float) and not isinstance(expr, bool):
        yield expr
