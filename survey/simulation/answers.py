"""Made-up answers to any published survey, for rehearsals of the load.

A take is what one person's browser would send: the pages that show, in
order, with answers that every rule accepts, so that it can be finished.
Values are drawn and tried against the survey's own rules; nothing is known
here of particular surveys (as `survey.simulation.demo.answers` does know its own).
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal

from survey.definitions.expressions import labels_of, references
from survey.definitions.rules import RuleState, is_computed, state_of
from survey.definitions.schema import RULES, Expr, ItemDefinition, RangeScale
from survey.taking.published import Published
from survey.taking.validation import BadAnswer, check_page, stored_text

Wire = str | list[str] | None
Answers = dict[str, Wire]

BLANK = 0.04
BLANK_TEXT = 0.4
# A page is drawn again, where its rules refuse it, up to as many times.
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
class Turn:
    """One page: its answers, and those of somebody who came back to it."""

    page: int
    answers: Answers
    changed: Answers


def made_up_take(
    published: Published, *, draw: random.Random, now: datetime
) -> list[Turn]:
    """The turns of one person. Raises NoAnswerFound."""
    maker = _Maker(published, draw, now)
    turns = list(maker.turns())
    maker.check(turns)
    return turns


class _Maker:
    def __init__(
        self, published: Published, draw: random.Random, now: datetime
    ) -> None:
        self.published = published
        self.definition = published.definition
        self.items = published.definition["items"]
        self.draw = draw
        self.now = now
        self.given: dict[str, str] = {}
        self.read = _read_by_others(self.items)

    def turns(self) -> Iterator[Turn]:
        for n in range(1, len(self.published.answerable) + 1):
            answers, state = self._answered(n)
            if n not in state.visible_pages():
                continue
            self.given |= self._texts(answers)
            yield Turn(n, answers, self._changed(n, answers))

    def check(self, turns: list[Turn]) -> None:
        """Every body is accepted, and the whole can be finished, in any language."""
        for turn in turns:
            self._check_saved(turn.page, turn.answers)
            self._check_saved(turn.page, turn.changed)
        for answers in ("answers", "changed"):
            texts: dict[str, str] = {}
            for turn in turns:
                texts |= self._texts(getattr(turn, answers))
            for language in self.published.languages:
                if problems := self._state(texts, language).problems:
                    raise NoAnswerFound(sorted(problems))

    def _check_saved(self, n: int, answers: Answers) -> None:
        language = self.published.languages[0]
        problems = check_page(
            self.published, n, answers, **self._clock(), language=language
        )[1]
        if problems:
            raise NoAnswerFound(sorted(problems))

    # One page

    def _answered(self, n: int) -> tuple[Answers, RuleState]:
        expected = self.published.answerable[n - 1]
        state = self._state(self.given)
        answers = {name: self._drawn(name, state) for name in expected}
        for left in reversed(range(MOST_TRIES)):
            state = self._state(self.given | self._texts(answers))
            for name in expected:
                self._settle(name, answers, state)
            state = self._state(self.given | self._texts(answers))
            wrong = self._wrong(n, state)
            if not wrong:
                return answers, state
            # A rule of an earlier page may refuse what stands on this one.
            again = wrong & expected.keys() or expected.keys()
            for name in again:
                given_up = left < MOST_TRIES // 2 and not state.required(name)
                answers[name] = None if given_up else self._drawn(name, state, True)
        raise NoAnswerFound(sorted(wrong))

    def _settle(self, name: str, answers: Answers, state: RuleState) -> None:
        """What the browser sends whatever its person does."""
        item = self.items[name]
        if not state.relevant[name]:
            answers[name] = None
        elif is_computed(item):
            answers[name] = self._computed(name, state.values[name])
        elif answers[name] is None and state.required(name):
            answers[name] = self._drawn(name, state, True)

    def _computed(self, name: str, text: str) -> Wire:
        several = self.items[name]["kind"] == "select_multiple"
        wire: Wire = text.split(" ") if several and text else text or None
        try:
            stored_text(self.items[name], wire, self.definition)
        except BadAnswer:
            return None
        return wire

    def _wrong(self, n: int, state: RuleState) -> set[str]:
        return {name for name in state.problems if self.items[name]["page"] <= n}

    def _changed(self, n: int, answers: Answers) -> Answers:
        """Other answers to what no rule reads, so that the rest stays right."""
        changed = dict(answers)
        for name in answers:
            if answers[name] is None or name in self.read or self._is_fixed(name):
                continue
            state = self._state(self.given)
            other = changed | {name: self._drawn(name, state, True)}
            if not self._wrong(n, self._state(self.given | self._texts(other))):
                changed = other
        return changed

    def _is_fixed(self, name: str) -> bool:
        return is_computed(self.items[name]) or bool(self.items[name].get("read_only"))

    # One answer

    def _drawn(self, name: str, state: RuleState, answered: bool = False) -> Wire:
        item = self.items[name]
        if item.get("read_only"):
            return item.get("default") or None
        likely = BLANK_TEXT if item["kind"] == "text" else BLANK
        if not answered and self.draw.random() < likely:
            return None
        if item["kind"] in ("select_one", "select_multiple"):
            return self._chosen(item["kind"], name, state)
        if item["kind"] == "acknowledge":
            return "OK"
        if item["kind"] == "range":
            return self._in_range(item["range"])
        if item["kind"] == "text":
            return self.draw.choice([*TEXTS, *map(str, _constants(item))])
        if item["kind"] in ("integer", "decimal"):
            return self._number(item)
        return self._moment(item["kind"])

    def _chosen(self, kind: str, name: str, state: RuleState) -> Wire:
        offered = [option["value"] for option in state.offered(name)]
        if not offered:
            return None
        if kind == "select_one":
            return self.draw.choice(offered)
        many = min(len(offered), self.draw.choice((1, 1, 2, 3)))
        chosen = set(self.draw.sample(offered, many))
        return [value for value in offered if value in chosen]

    def _in_range(self, bounds: RangeScale) -> str:
        start, end, step = map(
            Decimal, (bounds["start"], bounds["end"], bounds["step"])
        )
        return format(start + step * self.draw.randint(0, int((end - start) / step)))

    def _number(self, item: ItemDefinition) -> str:
        # A rule names the limits it compares with: the answer lies near one.
        near = [round(number) for number in _constants(item)] or [0]
        reach = self.draw.choice((0, 1, 5, 20, 100))
        number = self.draw.choice(near) + self.draw.randint(-reach, reach)
        if item["kind"] == "decimal" and self.draw.random() < 0.5:
            return f"{number}.5"
        return str(number)

    def _moment(self, kind: str) -> str:
        days = self.draw.choice((0, 30, 365, 3_650, 18_000))
        moment = self.now.replace(tzinfo=None, second=0, microsecond=0) - timedelta(
            days=self.draw.randint(-min(days, 365), days),
            minutes=self.draw.randint(0, 1_439),
        )
        text = moment.isoformat(timespec="minutes")
        date, time = text.split("T")
        return {"date": date, "time": time, "datetime": text}[kind]

    # The rules

    def _state(self, texts: Mapping[str, str], language: str = "") -> RuleState:
        language = language or self.published.languages[0]
        return state_of(self.definition, texts, **self._clock(), language=language)

    def _clock(self) -> dict[str, str]:
        return {
            "today": self.now.date().isoformat(),
            "now": self.now.isoformat(timespec="seconds"),
        }

    @staticmethod
    def _texts(answers: Answers) -> dict[str, str]:
        return {
            name: " ".join(wire) if isinstance(wire, list) else wire
            for name, wire in answers.items()
            if wire
        }


def _read_by_others(items: Mapping[str, ItemDefinition]) -> set[str]:
    read: set[str] = set()
    for name, item in items.items():
        for rule in RULES:
            if rule in item:
                found = references(item[rule]) | set(labels_of(item[rule]))
                read |= set(found) - {name}
    return read


def _constants(item: ItemDefinition) -> list[float]:
    return list(_numbers(item.get("constraint")))


def _numbers(expr: Expr | None) -> Iterator[float]:
    if isinstance(expr, list):
        for part in expr[1:]:
            yield from _numbers(part)
    elif isinstance(expr, int | float) and not isinstance(expr, bool):
        yield expr
