"""Apply the rules of a survey to one respondent's answers.

`static/js/rules.js` does the same in the browser; the vectors in
`survey/tests/definitions/rules_vectors.json` run through both. Answers are
text: "" or no entry is blank, and a multiple choice is its values joined by
one space.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from survey.instrument.definitions.expressions import (
    Context,
    Value,
    evaluate,
    to_boolean,
    to_text,
)
from survey.instrument.definitions.piping import fill_pipes
from survey.instrument.definitions.schema import (
    ANSWERABLE,
    RULES,
    SELECTS,
    VISIBLE,
    Expr,
    OptionDefinition,
    RuledItem,
    RuleName,
    SurveyDefinition,
)

# As long as any answer; calculations that feed each other would otherwise
# double a text again and again.
MAX_VALUE_LENGTH = 5000


@dataclass(frozen=True)
class Clock:
    """`today` is YYYY-MM-DD and `now` an ISO time with offset."""

    today: str
    now: str


class PlainItems(NamedTuple):
    """Items without any rule, prepared once: in most surveys these are nearly all."""

    # By their names: True, and "".
    relevant: Mapping[str, bool]
    blank: Mapping[str, str]
    # What may be chosen.
    offered: Mapping[str, Collection[str]]
    pages: Collection[int]
    # The names of all other items, in the order of the definition.
    ruled: Sequence[str]


@dataclass
class RuleState:
    """Results of the rules for one set of answers, by the items' names.

    `values` has "" for an item that is not relevant. `problems` maps relevant
    items to "required", "option" (no longer offered) or "constraint".
    """

    definition: SurveyDefinition
    clock: Clock
    language: str
    only_local: bool = False
    relevant: dict[str, bool] = field(default_factory=dict)
    values: dict[str, str] = field(default_factory=dict)
    problems: dict[str, str] = field(default_factory=dict)
    plain: PlainItems | None = None

    def item(self, name: str) -> RuledItem:
        return self.definition["items"][name]

    def rule(self, item: RuledItem, rule: RuleName) -> Expr | None:
        """Return the rule's expression, or None where it must not be applied."""
        expr = item.get(rule)
        if expr is None or (self.only_local and rule not in item.get("local", ())):
            return None
        return expr

    def value_of(self, expr: Expr, row: Mapping[str, str] | None = None) -> Value:
        context = Context(
            values=self.values,
            today=self.clock.today,
            now=self.clock.now,
            choice_label=self.choice_label,
            row=row or {},
        )
        return evaluate(expr, context)

    def holds(self, item: RuledItem, rule: RuleName, default: bool) -> bool:
        expr = self.rule(item, rule)
        return default if expr is None else to_boolean(self.value_of(expr))

    def options(self, name: str) -> list[OptionDefinition]:
        item = self.definition["items"].get(name)
        option_set = item.get("option_set", "") if item else ""
        return self.definition["option_sets"].get(option_set, [])

    def offered(self, name: str) -> list[OptionDefinition]:
        """Return the item's options that its choice filter lets through."""
        return [o for o in self.options(name) if self.offers(name, o)]

    def offers(self, name: str, option: OptionDefinition) -> bool:
        expr = self.rule(self.item(name), "choice_filter")
        return expr is None or to_boolean(self.value_of(expr, filter_row(option)))

    def required(self, name: str) -> bool:
        return self.holds(self.item(name), "required", False)

    def visible_pages(self) -> set[int]:
        """Return the numbers, from 1, of the pages on which anything shows."""
        relevant, items = self.relevant, self.definition["items"]
        pages = {
            items[name]["page"]
            for name in (self.plain.ruled if self.plain else items)
            if items[name]["kind"] in VISIBLE and relevant.get(name, False)
        }
        return pages.union(self.plain.pages) if self.plain else pages

    def choice_label(self, name: str, value: str) -> str:
        """Return the label in the state's language, with the answers that it quotes.

        The labels of several values are listed.
        """
        options = self.options(name)
        # Nearly always a single value, and no reason to label all 5,000 options.
        for option in options:
            if option["value"] == value:
                return fill_pipes(self.label_of(option), self.values)
        labels = {option["value"]: self.label_of(option) for option in options}
        chosen = [labels[part] for part in value.split(" ") if part in labels]
        return fill_pipes(", ".join(chosen), self.values)

    def label_of(self, option: OptionDefinition) -> str:
        first = self.definition["languages"][0]["code"]
        labels = option["label"]
        return labels.get(self.language) or labels.get(first) or option["value"]

    def compute_values(self, names: Iterable[str], answers: Mapping[str, str]) -> None:
        items, values = self.definition["items"], self.values
        for name in names:
            item = items[name]
            # Most items have no rules, and asking costs as much as the rest.
            relevant = "relevant" not in item or self.holds(item, "relevant", True)
            self.relevant[name] = relevant
            if not relevant:
                values[name] = ""
            elif item["kind"] == "hidden":
                values[name] = str(item.get("default", ""))
            elif is_computed(item):
                expr = self.rule(item, "calculation")
                value = "" if expr is None else self.value_of(expr)
                # As ODK stores it: NaN is no answer.
                not_a_number = isinstance(value, float) and math.isnan(value)
                text = "" if not_a_number else to_text(value)
                values[name] = text[:MAX_VALUE_LENGTH]
            else:
                values[name] = answers.get(name) or ""

    def take_plain(self, answers: Mapping[str, str]) -> Sequence[str]:
        """Do what `compute_values` does with plain items; return the other names."""
        if self.plain is None:
            return self.definition["order"]
        blank = self.plain.blank
        self.relevant.update(self.plain.relevant)
        self.values.update(blank)
        self.values.update({n: text for n, text in answers.items() if n in blank})
        return self.plain.ruled

    def find_problems(self, names: Iterable[str]) -> None:
        for name in names:
            item = self.definition["items"][name]
            if not self.relevant[name] or item["kind"] not in ANSWERABLE:
                continue
            value = self.values[name]
            if value == "":
                if self.holds(item, "required", False):
                    self.problems[name] = "required"
            elif item["kind"] in SELECTS and not self.is_offered(name, value):
                self.problems[name] = "option"
            elif "constraint" in item and not self.holds(item, "constraint", True):
                self.problems[name] = "constraint"

    def is_offered(self, name: str, value: str) -> bool:
        item = self.definition["items"][name]
        if item["kind"] != "select_multiple":
            # As in `compute_values`, of most items.
            is_filtered = "choice_filter" in item
            options = self.definition["option_sets"].get(item.get("option_set", ""), ())
            for option in options:
                if option["value"] == value and (
                    not is_filtered or self.offers(name, option)
                ):
                    return True
            return False
        chosen = set(value.split(" "))
        # The filter runs for the chosen options alone, not for 5,000.
        known = [o for o in self.options(name) if o["value"] in chosen]
        return chosen <= {o["value"] for o in known if self.offers(name, o)}


def state_of(
    definition: SurveyDefinition,
    answers: Mapping[str, str],
    plain: PlainItems | None = None,
    /,
    *,
    today: str,
    now: str,
    language: str,
) -> RuleState:
    """Apply all rules of the survey, as at finishing and export.

    `plain` are `plain_items` of the definition, for callers that cache them.
    """
    state = RuleState(definition, Clock(today, now), language, plain=plain)
    names = state.take_plain(answers)
    state.compute_values(names, answers)
    state.find_problems(names)
    values = state.values
    for name, offered in plain.offered.items() if plain else ():
        if values[name] and values[name] not in offered:
            state.problems[name] = "option"
    return state


def page_state(
    definition: SurveyDefinition,
    number: int,
    answers: Mapping[str, str],
    *,
    today: str,
    now: str,
    language: str,
    names: Collection[str] = (),
) -> RuleState:
    """Apply the rules that read nothing but page `number`, as at saving it.

    A rule that reads more counts as fulfilled: pages arrive in any order.
    `names` are `names_on` of the page, for callers that cache them.
    """
    names = names or names_on(definition, number)
    state = RuleState(definition, Clock(today, now), language, only_local=True)
    state.compute_values(names, answers)
    state.find_problems(names)
    return state


def values_of(
    definition: SurveyDefinition,
    answers: Mapping[str, str],
    *,
    names: Collection[str],
    today: str,
    now: str,
    language: str,
) -> RuleState:
    """Compute relevance and values only, without looking for problems.

    `names` are in the definition's order, with everything that they read.
    """
    state = RuleState(definition, Clock(today, now), language)
    state.compute_values(names, answers)
    return state


def plain_items(definition: SurveyDefinition) -> PlainItems:
    items, sets = definition["items"], definition["option_sets"]
    kinds = ANSWERABLE - {"select_multiple"}
    plain = {
        name: item
        for name, item in items.items()
        if item["kind"] in kinds and not item.keys() & set(RULES)
    }
    return PlainItems(
        relevant=dict.fromkeys(plain, True),
        blank=dict.fromkeys(plain, ""),
        offered={
            name: {
                option["value"] for option in sets.get(item.get("option_set", ""), ())
            }
            for name, item in plain.items()
            if item["kind"] == "select_one"
        },
        pages={item["page"] for item in plain.values()},
        ruled=[name for name in definition["order"] if name not in plain],
    )


def names_on(definition: SurveyDefinition, number: int) -> list[str]:
    """Return the items of a page, each after those that its rules read."""
    items = definition["items"]
    return [name for name in definition["order"] if items[name]["page"] == number]


def is_computed(item: RuledItem) -> bool:
    """Return whether a calculation sets the value and answers are ignored."""
    if item["kind"] == "calculate":
        return True
    return bool(item.get("read_only")) and "calculation" in item


def filter_row(option: OptionDefinition) -> dict[str, str]:
    """Return the columns of an option that a choice filter can read."""
    return {**option.get("attributes", {}), "name": option["value"]}
