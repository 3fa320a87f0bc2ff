"""Say what is wrong with the rules of a draft, in the words of its authors."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from survey.instrument.definitions.expressions import (
    labels_of,
    reads_clock,
    references,
)
from survey.instrument.definitions.piping import piped_in_labels
from survey.instrument.definitions.rule_costs import MAX_PAGE_COST, RuleCosts
from survey.instrument.definitions.rule_dependencies import CycleError, evaluation_order
from survey.instrument.definitions.schema import (
    Expr,
    OptionDefinition,
    RuledItem,
    RuleName,
)
from survey.instrument.drafts.conditions import BLANKNESS, condition_of
from survey.instrument.drafts.rule_logic import RuleLogic, atoms, truth
from survey.instrument.drafts.subjects import plain_label
from survey.instrument.xlsform.checking import comparisons
from survey.instrument.xlsform.draft import Draft, ItemDraft
from survey.instrument.xlsform.problems import Findings
from survey.instrument.xlsform.rules import both, compiled

NEVER: dict[str, str | Promise] = {
    "relevant": gettext_lazy(
        "This question is never shown: its rule can never be true."
    ),
    "constraint": gettext_lazy("No answer is accepted: this rule can never be true."),
    "required": gettext_lazy(
        "An answer is never required: this rule can never be true."
    ),
}
ALWAYS: dict[str, str | Promise] = {
    "relevant": gettext_lazy(
        "This rule is always true. Remove it to always show this question."
    ),
    "constraint": gettext_lazy("Every answer is accepted: this rule is always true."),
    "required": gettext_lazy(
        "This rule is always true. Remove it, and make the question required."
    ),
}


@dataclass(frozen=True)
class Hint:
    """Something about a rule: `rule` is its column, `row` that of the survey sheet.

    `kind` is one of `unreadable`, `unknown`, `later`, `itself`, `circle`, `no option`,
    `never`, `always`, `unreachable`, `unanswered` and `work`; `names` are the
    questions that it is about. The rule cannot be published if it is one of `ERRORS`.
    """

    item: str
    row: int
    rule: str
    kind: str
    message: str
    names: tuple[str, ...] = ()

    @property
    def is_error(self) -> bool:
        return self.kind in ERRORS


ERRORS = frozenset(("unreadable", "unknown", "itself", "circle", "work"))


def rule_hints(draft: Draft) -> list[Hint]:
    """Find rules that are never or always true, or read what is asked later.

    Also questions that nobody can reach.
    """
    checker = RuleChecker(draft)
    return [hint for item in draft.items() for hint in checker.item_hints(item)]


def rule_problems(draft: Draft, name: str, rule: RuleName, text: str) -> list[Hint]:
    """Check a rule while it is written, as if it were in the draft already.

    For the rule of a group, `name` is its first item.
    """
    return RuleChecker(draft).problems(name, rule, text)


class RuleChecker:
    def __init__(self, draft: Draft) -> None:
        self.draft = draft
        self.items = {item.name: item for item in draft.items()}
        self.logic = RuleLogic(draft)
        self.judged_groups: set[str] = set()

    def item_hints(self, item: ItemDraft) -> Iterator[Hint]:
        if item.name != item.row.get("name"):
            # The text that `or_other` adds has no rule that its author wrote.
            return
        groups = self.groups_relevant(item)
        if isinstance(groups, list) and repr(groups) not in self.judged_groups:
            # The rule of a group is reported once, at its first question.
            self.judged_groups.add(repr(groups))
            yield from self.late_names(item, "relevant", groups)
            yield from self.judged(item, "relevant", groups)
        if isinstance(item.own_relevant, list):
            yield from self.late_names(item, "relevant", item.own_relevant)
            yield from self.judged(item, "relevant", item.own_relevant)
        for rule in ("constraint", "required"):
            expr = item.rules.get(rule)
            if isinstance(expr, list):
                yield from self.late_names(item, rule, expr)
                yield from self.judged(item, rule, expr)

    def judged(self, item: ItemDraft, rule: str, expr: Expr) -> list[Hint]:
        hints = list(self.missing_options(item, rule, expr))
        judged = item.name if rule == "constraint" else ""
        can_be_true = self.logic.may_be_true(expr, judged=judged)
        can_be_false = self.logic.may_be_true(["not", expr], judged=judged)
        if can_be_true is False and can_be_false:
            hints.append(self.hint(item, rule, "never", str(NEVER[rule])))
        elif can_be_false is False and can_be_true:
            hints.append(self.hint(item, rule, "always", str(ALWAYS[rule])))
        elif rule == "relevant":
            groups = self.groups_relevant(item)
            combined = expr if groups == expr else both(groups, expr) or expr
            if self.logic.may_be_true(combined, with_rules_of_questions=True) is False:
                names = tuple(sorted(references(combined) & self.items.keys()))
                message = _(
                    "This question is never shown: its rule cannot be true together"
                    " with the rules of %(questions)s."
                ) % {"questions": self.listed(names)}
                hints.append(self.hint(item, rule, "unreachable", message, names))
            else:
                hints += self.true_unanswered(item, rule, expr)
        return hints

    def true_unanswered(self, item: ItemDraft, rule: str, expr: Expr) -> Iterator[Hint]:
        """Find a rule that shows a question before those that it reads are answered.

        `${grade} != '1'` does. A rule that says so itself is meant so.
        """
        names = sorted(references(expr) & self.items.keys())
        if not names or reads_clock(expr) or labels_of(expr):
            return
        if not truth(expr, dict.fromkeys(names, ""), {}):
            return
        may_be_blank = [
            name
            for name in names
            if self.page_of[name] >= self.page_of[item.name]
            or self.items[name].rules.get("required") is not True
            or self.items[name].rules.get("relevant") is not None
        ]
        conditions = [condition_of(atom, self.logic.subjects) for atom in atoms(expr)]
        asked = {row.item for row in conditions if row and row.operator in BLANKNESS}
        blank = tuple(name for name in may_be_blank if name not in asked)
        if blank and len(blank) == len(names):
            message = _(
                "This question is also shown while %(questions)s is not answered. To"
                " wait for the answer, add the condition “is answered”."
            ) % {"questions": self.listed(blank)}
            yield self.hint(item, rule, "unanswered", message, blank)

    @cached_property
    def page_of(self) -> dict[str, int]:
        """Return the number of the page of each item, by its name."""
        return {
            item.name: number
            for number, page in enumerate(self.draft.pages)
            for item in page.items()
        }

    def groups_relevant(self, item: ItemDraft) -> Expr | None:
        """Return the rule of the groups around an item, without its own."""
        combined = item.rules.get("relevant")
        if item.own_relevant is None or combined is None:
            return combined
        if combined == item.own_relevant:
            return None
        # As `both` puts them together.
        outer: Expr = combined[1] if isinstance(combined, list) else combined
        return outer

    def missing_options(self, item: ItemDraft, rule: str, expr: Expr) -> Iterator[Hint]:
        for name, value in comparisons(expr):
            read = self.items.get(name)
            options = self.draft.option_sets.get(read.option_set, []) if read else []
            if options and value and value not in {o.value for o in options}:
                message = _(
                    "“%(value)s” is not an option of %(question)s. Choose one of its"
                    " options."
                ) % {"value": value, "question": self.listed((name,))}
                yield self.hint(item, rule, "no option", message, (name,))

    def problems(self, name: str, rule: RuleName, text: str) -> list[Hint]:
        item = self.items[name]
        findings = Findings()
        row = replace(item.row, values={**item.row.values, rule: text})
        columns: set[str] = set()
        if rule == "choice_filter":
            options = self.draft.option_sets.get(item.option_set, [])
            columns = {"name"}.union(*(option.attributes for option in options))
        has_self = rule in ("constraint", "required")
        expr = compiled(
            row, rule, findings, self_name=name if has_self else None, columns=columns
        )
        hints = [
            self.hint(
                item,
                rule,
                "unreadable",
                _("This rule cannot be read: %(reason)s.") % {"reason": problem.reason},
            )
            for problem in findings.problems
        ]
        if not isinstance(expr, list):
            return hints
        hints += self.unreadable_names(item, rule, expr)
        if not hints:
            hints += self.cycles(item, rule, expr) or self.late_names(item, rule, expr)
            hints += self.work(item, rule, expr)
        if not any(hint.is_error for hint in hints) and rule in NEVER:
            hints += self.judged(item, rule, expr)
        return hints

    def unreadable_names(
        self, item: ItemDraft, rule: str, expr: Expr
    ) -> Iterator[Hint]:
        for name in sorted(references(expr) | labels_of(expr)):
            if name == item.name and rule not in ("constraint", "required"):
                message = _("A question cannot decide by its own answer.")
                yield self.hint(item, rule, "itself", message, (name,))
            elif name not in self.items:
                message = _("There is no question named “%(name)s”.") % {"name": name}
                folded = {known.casefold(): known for known in self.items}
                close = difflib.get_close_matches(name.casefold()[:64], folded, 1)
                if close:
                    nearest = folded[close[0]]
                    suggestion = _("Did you mean “%(name)s”?") % {"name": nearest}
                    message = f"{message} {suggestion}"
                names = tuple(folded[known] for known in close)
                yield self.hint(item, rule, "unknown", message, names)
            elif self.items[name].kind == "note":
                message = _("%(question)s is a text without an answer.")
                message %= {"question": self.listed((name,))}
                yield self.hint(item, rule, "unknown", message, (name,))

    def late_names(self, item: ItemDraft, rule: str, expr: Expr) -> Iterator[Hint]:
        position = {name: number for number, name in enumerate(self.items)}
        later = tuple(
            name
            for name in sorted(
                references(expr) & position.keys(), key=lambda name: position[name]
            )
            if position[name] > position[item.name] and self.items[name].is_answerable
        )
        if later:
            message = _(
                "This rule reads %(questions)s, asked later. It cannot be"
                " true before it is answered."
            ) % {"questions": self.listed(later)}
            yield self.hint(item, rule, "later", message, later)

    def ruled_items(
        self, changed: ItemDraft, rule: RuleName, expr: Expr
    ) -> dict[str, RuledItem]:
        items: dict[str, RuledItem] = {
            name: {"kind": item.kind, "option_set": item.option_set, **item.rules}
            for name, item in self.items.items()
        }
        combined = both(self.groups_relevant(changed), expr)
        items[changed.name][rule] = (
            expr if rule != "relevant" or not combined else combined
        )
        return items

    def option_sets(self) -> dict[str, list[OptionDefinition]]:
        return {
            name: [
                {
                    "value": option.value,
                    "label": option.label,
                    "attributes": option.attributes,
                }
                for option in options
            ]
            for name, options in self.draft.option_sets.items()
        }

    def cycles(self, item: ItemDraft, rule: RuleName, expr: Expr) -> list[Hint]:
        rules = self.ruled_items(item, rule, expr)
        piped = piped_in_labels(self.option_sets())
        # One circle at a time is reported, perhaps of other questions first.
        while True:
            try:
                evaluation_order(rules, piped)
            except CycleError as error:
                names = tuple(error.cycle[:-1])
            else:
                return []
            if item.name in names:
                message = _(
                    "These questions wait for each other: %(questions)s. Change the"
                    " rule of one of them."
                ) % {"questions": self.listed(names)}
                return [self.hint(item, rule, "circle", message, names)]
            for name in names:
                rules[name] = {"kind": rules[name]["kind"]}

    def work(self, item: ItemDraft, rule: RuleName, expr: Expr) -> Iterator[Hint]:
        rules = self.ruled_items(item, rule, expr)
        costs = RuleCosts(rules, self.option_sets())
        for page in self.draft.pages:
            names = [entry.name for entry in page.items()]
            if item.name not in names:
                continue
            units = sum(sum(costs.of_item(rules[name]).values()) for name in names)
            if units > MAX_PAGE_COST:
                message = _(
                    "The rules of this page take too long: %(percent)s%% of what is"
                    " allowed. Shorten this rule, or divide the page."
                ) % {"percent": round(100 * units / MAX_PAGE_COST)}
                yield self.hint(item, rule, "work", message)

    def listed(self, names: tuple[str, ...]) -> str:
        return ", ".join(
            f"“{plain_label(self.items[name].label, '') or name}”" for name in names
        )

    def hint(
        self,
        item: ItemDraft,
        rule: str,
        kind: str,
        message: str,
        names: tuple[str, ...] = (),
    ) -> Hint:
        return Hint(item.name, item.row.number, rule, kind, message, names)
