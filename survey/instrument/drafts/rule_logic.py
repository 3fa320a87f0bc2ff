"""Find out whether a rule can be true, by trying out answers.

Every question that a rule reads gets answers that stand for all others: its options,
or the numbers, days and texts at which a condition changes. What cannot be tried out
(calculations, patterns, the clock) may be true or false, so that nothing is claimed
that might be wrong.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import date, timedelta
from decimal import Decimal

from survey.instrument.definitions.expressions import (
    Context,
    evaluate,
    labels_of,
    reads_clock,
    references,
    to_boolean,
    to_text,
)
from survey.instrument.definitions.schema import Expr
from survey.instrument.drafts.conditions import (
    COUNTS,
    PARTS,
    REFERENCE,
    Condition,
    Operator,
    condition_of,
    is_day,
)
from survey.instrument.drafts.subjects import subjects_of
from survey.instrument.xlsform.draft import Draft, ItemDraft
from survey.instrument.xlsform.rules import count_steps

# At most 0.05 s for a rule.
MOST_WORLDS = 5_000
MOST_OPTIONS = 200
# All their combinations are tried: 256.
MOST_COMBINED_OPTIONS = 8
MOST_MENTIONED_OPTIONS = 5
# Of a text that no rule mentions.
LETTER = "\N{REPLACEMENT CHARACTER}"


@dataclass(frozen=True)
class Answers:
    """Possible answers to a question, the blank one first.

    They are complete if there are no others; else they stand for the others only
    in conditions that compare them with a fixed value.
    """

    texts: tuple[str, ...]
    is_complete: bool


class RuleLogic:
    def __init__(self, draft: Draft) -> None:
        self.items: dict[str, ItemDraft] = {item.name: item for item in draft.items()}
        self.option_sets = draft.option_sets
        self.subjects = subjects_of(draft, "", "")

    def may_be_true(
        self, expr: Expr, *, judged: str = "", with_rules_of_questions: bool = False
    ) -> bool | None:
        """Return whether answers make the rule true; None if that is too much to try.

        `judged` is the item whose answer is judged: it is not blank. On demand, a
        question has an answer only where its own rules show it.
        """
        names = references(expr) & self.items.keys()
        relevant = self.relevance_of(names) if with_rules_of_questions else {}
        names = names.union(*map(references, relevant.values())) & self.items.keys()
        rules = [expr, *relevant.values()]
        rules += [rule for name in names if (rule := self.own_constraint(name))]
        answers = self.answers_to(names, rules)
        for name, tried in answers.items():
            answers[name] = (
                replace(tried, texts=tuple(filter(None, tried.texts)))
                if name == judged
                else self.accepted(name, tried)
            )
        narrowed = self.narrowed(expr, relevant, answers)
        unknown = sorted(
            {
                repr(atom)
                for rule in (expr, *relevant.values())
                for atom in atoms(rule)
                if not self.is_decided(atom, answers)
            }
        )
        worlds = math.prod(map(len, narrowed.values()))
        if worlds * 2 ** len(unknown) > MOST_WORLDS:
            return None
        for texts in itertools.product(*narrowed.values()):
            values = dict(zip(narrowed, texts, strict=True))
            for truths in itertools.product((True, False), repeat=len(unknown)):
                assumed = dict(zip(unknown, truths, strict=True))
                if truth(expr, values, assumed) and all(
                    truth(rule, values, assumed)
                    for name, rule in relevant.items()
                    if values.get(name)
                ):
                    return True
        return False

    def narrowed(
        self,
        expr: Expr,
        relevant: dict[str, Expr],
        answers: dict[str, Answers],
    ) -> dict[str, tuple[str, ...]]:
        """Leave out answers that make a necessary part of the rule false.

        A question that must be answered must be shown: its own rule is necessary, too.
        """
        texts = {name: tried.texts for name, tried in answers.items()}
        waiting, necessary = [expr], set(relevant)
        while waiting:
            for part in conjuncts(waiting.pop()):
                read = references(part)
                if len(read) != 1 or not all(
                    self.is_decided(atom, answers) for atom in atoms(part)
                ):
                    continue
                [name] = read
                texts[name] = tuple(
                    text for text in texts[name] if truth(part, {name: text}, {})
                )
                if name in necessary and "" not in texts[name]:
                    necessary.remove(name)
                    waiting.append(relevant[name])
        return texts

    def relevance_of(self, names: Iterable[str]) -> dict[str, Expr]:
        """Return the rules that show these questions, and those that they read."""
        relevant: dict[str, Expr] = {}
        waiting = sorted(names)
        seen = set(waiting)
        while waiting:
            name = waiting.pop()
            rule = self.items[name].rules.get("relevant")
            if rule is not None:
                relevant[name] = rule
                further = (references(rule) & self.items.keys()) - seen
                seen |= further
                waiting += sorted(further)
        return relevant

    def own_constraint(self, name: str) -> Expr | None:
        rule = self.items[name].rules.get("constraint")
        return rule if rule is not None and references(rule) <= {name} else None

    def answers_to(self, names: Iterable[str], rules: list[Expr]) -> dict[str, Answers]:
        conditions: dict[str, list[Condition]] = {name: [] for name in names}
        for rule in rules:
            for atom in atoms(rule):
                condition = condition_of(atom, self.subjects)
                if condition and is_fixed(condition) and condition.item in conditions:
                    conditions[condition.item].append(condition)
        answers = {}
        for name in sorted(conditions):
            tried = self.possible_answers(self.items[name], conditions[name])
            if tried is not None:
                answers[name] = tried
        return answers

    def accepted(self, name: str, answers: Answers) -> Answers:
        """Leave out what the question's own constraint refuses."""
        rule = self.own_constraint(name)
        if rule is None or not all(
            self.is_decided(atom, {name: answers}) for atom in atoms(rule)
        ):
            return answers
        texts = (
            text for text in answers.texts if not text or truth(rule, {name: text}, {})
        )
        return replace(answers, texts=tuple(texts))

    def is_decided(self, atom: Expr, answers: Mapping[str, Answers]) -> bool:
        if reads_clock(atom) or labels_of(atom):
            return False
        read = references(atom)
        if not read <= answers.keys():
            return False
        if all(answers[name].is_complete for name in read):
            return True
        condition = condition_of(atom, self.subjects)
        return condition is not None and is_fixed(condition)

    def possible_answers(
        self, item: ItemDraft, conditions: list[Condition]
    ) -> Answers | None:
        values = [option.value for option in self.option_sets.get(item.option_set, [])]
        if item.kind == "acknowledge":
            return Answers(("", "OK"), is_complete=True)
        if item.kind == "select_one" and len(values) <= MOST_OPTIONS:
            return Answers(("", *values), is_complete=True)
        if item.kind == "select_multiple":
            return combinations(values, conditions)
        if item.kind == "range":
            scale = item.rules.get("range")
            if scale is None or count_steps(scale) > MOST_OPTIONS:
                return None
            start, step = Decimal(scale["start"]), Decimal(scale["step"])
            steps = range(int(count_steps(scale)) + 1)
            numbers = (to_text(float(start + n * step)) for n in steps)
            return Answers(("", *numbers), is_complete=True)
        literals = [condition.value for condition in conditions if condition.value]
        if item.kind in ("integer", "decimal"):
            return numbers_around(literals, is_whole=item.kind == "integer")
        if item.kind == "date":
            days = (date.fromisoformat(value) for value in literals if is_day(value))
            near = {day + timedelta(n) for day in days for n in (-1, 0, 1)}
            texts = sorted(day.isoformat() for day in near) or ["2000-01-01"]
            return Answers(("", *texts), is_complete=False)
        if item.kind == "text":
            return texts_for(conditions)
        return None


def is_fixed(condition: Condition) -> bool:
    """Return whether representative answers decide the condition."""
    is_partial = condition.operator in PARTS
    return not is_partial and not REFERENCE.fullmatch(condition.value)


def combinations(values: list[str], conditions: list[Condition]) -> Answers | None:
    is_complete = len(values) <= MOST_COMBINED_OPTIONS
    if not is_complete:
        if any(condition.operator in COUNTS for condition in conditions):
            return None
        mentioned = {condition.value for condition in conditions}
        some = [value for value in values if value in mentioned]
        if len(some) > MOST_MENTIONED_OPTIONS:
            return None
        values = [*some, *[value for value in values if value not in mentioned][:1]]
    texts = (
        " ".join(chosen)
        for count in range(len(values) + 1)
        for chosen in itertools.combinations(values, count)
    )
    return Answers(tuple(texts), is_complete)


def numbers_around(literals: list[str], *, is_whole: bool) -> Answers:
    """Choose a number at, between and beyond the literals."""
    points = sorted(map(Decimal, literals)) or [Decimal(0)]
    if is_whole:
        near = {math.floor(point) + n for point in points for n in (-1, 0, 1, 2)}
        numbers = sorted(map(Decimal, near))
    else:
        between = [(low + high) / 2 for low, high in itertools.pairwise(points)]
        numbers = sorted({points[0] - 1, points[-1] + 1, *points, *between})
    return Answers(("", *(format(number, "f") for number in numbers)), False)


def texts_for(conditions: list[Condition]) -> Answers:
    lengths = {1}
    texts = []
    for condition in conditions:
        if condition.operator in COUNTS:
            lengths |= {int(condition.value) + n for n in (-1, 0, 1)}
        elif condition.operator in (Operator.IS, Operator.IS_NOT):
            texts.append(condition.value)
    texts += [LETTER * length for length in sorted(lengths) if length > 0]
    return Answers(("", *dict.fromkeys(texts)), is_complete=False)


def atoms(expr: Expr) -> Iterator[Expr]:
    """Yield the parts that `and`, `or` and `not` put together."""
    if isinstance(expr, list) and expr[0] in ("and", "or", "not"):
        for part in expr[1:]:
            yield from atoms(part)
    else:
        yield expr


def conjuncts(expr: Expr) -> Iterator[Expr]:
    """Yield the parts that must all be true."""
    if isinstance(expr, list) and expr[0] == "and":
        for part in expr[1:]:
            yield from conjuncts(part)
    else:
        yield expr


def truth(expr: Expr, values: Mapping[str, str], assumed: Mapping[str, bool]) -> bool:
    if isinstance(expr, list):
        operation, *parts = expr
        if operation == "and":
            return all(truth(part, values, assumed) for part in parts)
        if operation == "or":
            return any(truth(part, values, assumed) for part in parts)
        if operation == "not":
            return not truth(parts[0], values, assumed)
        if assumed and (known := assumed.get(repr(expr))) is not None:
            return known
    return to_boolean(evaluate(expr, Context(values)))
