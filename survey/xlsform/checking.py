"""What can only be said of a survey as a whole: names that rules and texts
read, rules that wait for each other, answers that no option gives."""

from __future__ import annotations

import difflib
from collections.abc import Iterator

from survey.definitions.expressions import labels_of, references
from survey.definitions.rule_costs import MAX_PAGE_COST, RuleCosts
from survey.definitions.rule_dependencies import CycleError, evaluation_order
from survey.definitions.schema import RULES, Expr, OptionDefinition, RuledItem
from survey.xlsform.columns import Row
from survey.xlsform.draft import Draft, ItemDraft, OptionDraft, PageDraft, Texts
from survey.xlsform.names import has_open_reference, quoted_names, tidied
from survey.xlsform.outline import Group, Outline
from survey.xlsform.problems import Findings

COLUMN_OF_RULE = {"default_expression": "default"}


def check_whole(draft: Draft, outline: Outline, findings: Findings) -> None:
    _Whole(draft, outline, findings).check()


class _Whole:
    def __init__(self, draft: Draft, outline: Outline, findings: Findings) -> None:
        self.draft = draft
        self.outline = outline
        self.findings = findings
        self.items = outline.names
        self.page_of = {
            item.name: position
            for position, page in enumerate(draft.pages)
            for item in page.items()
        }

    def check(self) -> None:
        for item in self.items.values():
            self._check_item(item)
        for group in self.outline.groups:
            if group.row and group.own_relevant is not None:
                first = next(_items_of(group), None)
                here = self.page_of.get(first.name) if first else None
                self._check_rule(group.row, "relevant", group.own_relevant, here)
        for row in self.outline.headings:
            self._check_pipes(row, "label", row.texts.get("label", {}))
        self._tidy_headings()
        self._check_cycles()
        self._check_work()
        if not self.items:
            self.findings.refuse("survey", None, "", "the survey has no questions")
        elif not any(item.is_answerable for item in self.items.values()):
            self.findings.refuse("survey", None, "", "nothing in it can be answered")

    def _check_item(self, item: ItemDraft) -> None:
        here = self.page_of.get(item.name)
        for rule in RULES:
            expression = item.rules.get(rule)
            if rule == "relevant":
                # A group's own row answers for the group's part of it.
                expression = item.own_relevant
            if expression is not None:
                self._check_rule(item.row, rule, expression, here)
        for key, texts in _texts(item):
            self._check_pipes(item.row, key, texts)

    def _check_rule(
        self, row: Row, rule: str, expression: Expr, here: int | None
    ) -> None:
        column = COLUMN_OF_RULE.get(rule, rule)
        for name in sorted(references(expression) | labels_of(expression)):
            reason = self._why_unreadable(name)
            if reason:
                row.refuse(self.findings, column, reason)
            elif rule == "relevant":
                self._warn_of_later(row, name, here)
        for name in sorted(labels_of(expression) & self.items.keys()):
            if not self.items[name].option_set:
                row.refuse(self.findings, column, f"${{{name}}} has no options")
        for name, value in _compared(expression):
            self._check_compared(row, column, name, value)

    def _why_unreadable(self, name: str) -> str:
        if name in self.items:
            if self.items[name].kind == "note":
                return f"${{{name}}} is a note, which holds no answer"
            return ""
        if name in self.outline.dropped:
            return f"${{{name}}} is {self.outline.dropped[name]}: it holds no answer"
        folded = {known.casefold(): known for known in self.items}
        close = difflib.get_close_matches(name.casefold()[:64], folded, 1)
        hint = f"; did you mean ${{{folded[close[0]]}}}?" if close else ""
        return f"there is no item ${{{name}}}{hint}"

    def _warn_of_later(self, row: Row, name: str, here: int | None) -> None:
        there = self.page_of.get(name)
        asked = self.items[name].is_answerable
        if asked and here is not None and there is not None and there > here:
            reason = f"reads ${{{name}}}, which is asked on a later page"
            row.warn(self.findings, "relevant", reason)

    def _check_compared(self, row: Row, column: str, name: str, value: str) -> None:
        option_set = self.items[name].option_set if name in self.items else ""
        options: list[OptionDraft] = self.draft.option_sets.get(option_set, [])
        if options and value and value not in {option.value for option in options}:
            reason = f"${{{name}}} has no option {value!r}: this is never true"
            row.warn(self.findings, column, reason)

    def _check_pipes(self, row: Row, key: str, texts: Texts) -> None:
        for code, text in texts.items():
            for name in quoted_names(text):
                if reason := self._why_unreadable(name):
                    row.refuse(self.findings, key, reason, text)
            if has_open_reference(text):
                row.refuse(self.findings, key, "a ${ is never closed", text)
            texts[code] = tidied(text)

    def _tidy_headings(self) -> None:
        for page in self.draft.pages:
            for texts in (page.title, *(block.label for block in page.blocks)):
                texts.update({code: tidied(text) for code, text in texts.items()})

    def _check_cycles(self) -> None:
        # One cycle at a time is found; each is told and taken out, so that
        # the next is found as well.
        rules: dict[str, RuledItem] = {
            name: {"kind": item.kind, **item.rules} for name, item in self.items.items()
        }
        while True:
            try:
                evaluation_order(rules)
            except CycleError as error:
                self._refuse_cycle(error.cycle)
                for name in error.cycle:
                    rules[name] = {"kind": rules[name]["kind"]}
            else:
                return

    def _check_work(self) -> None:
        rules: dict[str, RuledItem] = {
            name: {"kind": item.kind, "option_set": item.option_set, **item.rules}
            for name, item in self.items.items()
        }
        sets: dict[str, list[OptionDefinition]] = {
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
        rule_costs = RuleCosts(rules, sets)
        for page in self.draft.pages:
            costs = {
                (item.name, rule): units
                for item in page.items()
                if item.name in rules
                for rule, units in rule_costs.of_item(rules[item.name]).items()
            }
            if sum(costs.values()) > MAX_PAGE_COST:
                self._refuse_work(page, costs)

    def _refuse_work(self, page: PageDraft, costs: dict[tuple[str, str], int]) -> None:
        # The page as a whole is too heavy; its heaviest rule is where to begin.
        name, rule = max(costs, key=lambda one: costs[one])
        row, column = self.items[name].row, COLUMN_OF_RULE.get(rule, rule)
        whole, part = sum(costs.values()), costs[name, rule]
        reason = (
            f"the rules of the page {page.name!r} take too long: they count {whole:,}"
            f" of at most {MAX_PAGE_COST:,}, and {part:,} of it is the {column} of"
            f" ${{{name}}}; shorten it, lessen the options that it filters,"
            " or divide the page"
        )
        row.refuse(self.findings, column, reason, row.get(column))

    def _refuse_cycle(self, cycle: list[str]) -> None:
        item = self.items[cycle[0]]
        follower = cycle[1]
        rule = next(
            (
                rule
                for rule in ("relevant", "calculation", "choice_filter")
                if rule in item.rules and follower in references(item.rules[rule])
            ),
            "default",
        )
        path = " → ".join(f"${{{name}}}" for name in cycle)
        reason = f"waits for itself in a circle: {path}"
        item.row.refuse(self.findings, rule, reason, item.row.get(rule) or item.name)


def _texts(item: ItemDraft) -> Iterator[tuple[str, Texts]]:
    yield "label", item.label
    yield "hint", item.hint
    yield "guidance", item.guidance
    for message in ("required_message", "constraint_message"):
        if message in item.rules:
            yield message, item.rules[message]


def _items_of(group: Group) -> Iterator[ItemDraft]:
    for node in group.nodes:
        if isinstance(node, Group):
            yield from _items_of(node)
        else:
            yield node.item


def _compared(expression: Expr) -> Iterator[tuple[str, str]]:
    """Item and literal of each `${item} = 'literal'` and `selected(...)`."""
    waiting = [expression]
    while waiting:
        node = waiting.pop()
        if not isinstance(node, list):
            continue
        waiting += node[1:]
        if node[0] in ("=", "selected") and len(node) == 3:
            left, right = node[1], node[2]
            if node[0] == "=" and isinstance(right, list):
                left, right = right, left
            if isinstance(left, list) and left[0] == "$" and isinstance(right, str):
                yield left[1], right
