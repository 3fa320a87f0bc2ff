"""Check a survey as a whole: names in rules and texts, circles, work per page."""

from __future__ import annotations

import difflib
from collections.abc import Iterator

from django.utils.translation import gettext as _

from survey.instrument.definitions.expressions import labels_of, references
from survey.instrument.definitions.piping import piped_in_labels
from survey.instrument.definitions.rule_costs import MAX_PAGE_COST, RuleCosts
from survey.instrument.definitions.rule_dependencies import (
    CycleError,
    evaluation_order,
    items_read,
)
from survey.instrument.definitions.schema import (
    RULES,
    Expr,
    OptionDefinition,
    RuledItem,
)
from survey.instrument.xlsform.columns import SurveyRow
from survey.instrument.xlsform.draft import Draft, ItemDraft, OptionDraft, Texts
from survey.instrument.xlsform.names import has_open_reference, normalised, quoted_names
from survey.instrument.xlsform.outline import Group, Outline
from survey.instrument.xlsform.problems import Findings

COLUMN_OF_RULE = {"default_expression": "default"}


def check_survey(
    draft: Draft, outline: Outline, choices: list[SurveyRow], findings: Findings
) -> None:
    """Report what can only be seen when all rows were read.

    References in texts are normalised on the way.
    """
    checker = SurveyChecker(draft, outline, findings)
    checker.check_items()
    checker.check_headings()
    checker.check_options(choices)
    checker.check_cycles()
    checker.check_work()
    if not outline.names:
        findings.refuse("survey", None, "", _("the survey has no questions"))
    elif not any(item.is_answerable for item in outline.names.values()):
        findings.refuse("survey", None, "", _("nothing in it can be answered"))


class SurveyChecker:
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
        self.option_sets: dict[str, list[OptionDefinition]] = {
            name: [
                {
                    "value": option.value,
                    "label": option.label,
                    "attributes": option.attributes,
                }
                for option in options
            ]
            for name, options in draft.option_sets.items()
        }

    def check_items(self) -> None:
        for item in self.items.values():
            page = self.page_of.get(item.name)
            for rule in RULES:
                expression = item.rules.get(rule)
                if rule == "relevant":
                    # The rule of a group is reported at the group's own row.
                    expression = item.own_relevant
                if expression is not None:
                    self.check_rule(item.row, rule, expression, page)
            self.check_texts(item.row, "label", item.label)
            self.check_texts(item.row, "hint", item.hint)
            self.check_texts(item.row, "guidance", item.guidance)
            for message in ("required_message", "constraint_message"):
                if message in item.rules:
                    self.check_texts(item.row, message, item.rules[message])

    def check_headings(self) -> None:
        for group in self.outline.groups:
            if group.row and group.own_relevant is not None:
                first = next(items_of(group), None)
                page = self.page_of.get(first.name) if first else None
                self.check_rule(group.row, "relevant", group.own_relevant, page)
        for row in self.outline.headings:
            self.check_texts(row, "label", row.texts.get("label", {}))
        for page_draft in self.draft.pages:
            for texts in (
                page_draft.title,
                *(block.label for block in page_draft.blocks),
            ):
                normalise(texts)

    def check_options(self, rows: list[SurveyRow]) -> None:
        for row in rows:
            self.check_texts(row, "label", row.texts.get("label", {}))
        for options in self.draft.option_sets.values():
            for option in options:
                normalise(option.label)
        piped = piped_in_labels(self.option_sets)
        for item in self.items.values():
            is_menu = "minimal" in item.rules.get("appearance", ())
            if item.kind == "select_one" and is_menu and piped.get(item.option_set):
                reason = _("a menu cannot quote answers: shown as buttons")
                item.row.warn(self.findings, "appearance", reason)

    def check_rule(
        self, row: SurveyRow, rule: str, expression: Expr, page: int | None
    ) -> None:
        column = COLUMN_OF_RULE.get(rule, rule)
        for name in sorted(references(expression) | labels_of(expression)):
            if reason := self.why_unreadable(name):
                row.refuse(self.findings, column, reason)
                continue
            read_on = self.page_of.get(name)
            is_later = page is not None and read_on is not None and read_on > page
            if rule == "relevant" and is_later and self.items[name].is_answerable:
                reason = _("reads ${%(name)s}, which is asked on a later page") % {
                    "name": name
                }
                row.warn(self.findings, "relevant", reason)
        for name in sorted(labels_of(expression) & self.items.keys()):
            if not self.items[name].option_set:
                row.refuse(
                    self.findings,
                    column,
                    _("${%(name)s} has no options") % {"name": name},
                )
        for name, value in comparisons(expression):
            option_set = self.items[name].option_set if name in self.items else ""
            options: list[OptionDraft] = self.draft.option_sets.get(option_set, [])
            values = {option.value for option in options}
            if values and value and value not in values:
                reason = _(
                    "${%(name)s} has no option %(value)s: this is never true"
                ) % {"name": name, "value": f"{value!r}"}
                row.warn(self.findings, column, reason)

    def check_texts(self, row: SurveyRow, key: str, texts: Texts) -> None:
        for text in texts.values():
            if "${" not in text:
                continue
            for name in quoted_names(text):
                if reason := self.why_unreadable(name, is_text=True):
                    row.refuse(self.findings, key, reason, text)
            if has_open_reference(text):
                row.refuse(self.findings, key, _("a ${ is never closed"), text)
        normalise(texts)

    def why_unreadable(self, name: str, *, is_text: bool = False) -> str:
        """Explain why a rule or text cannot read this name; empty if it can."""
        if is_text and name in self.outline.fields.ambiguous:
            return self.outline.fields.why_ambiguous(name)
        if name in self.items:
            if self.items[name].kind == "note":
                return _("${%(name)s} is a note, which has no answer") % {"name": name}
            return ""
        if name in self.outline.dropped:
            return _("${%(name)s} is %(dropped)s: it has no answer") % {
                "name": name,
                "dropped": self.outline.dropped[name],
            }
        folded = {known.casefold(): known for known in self.items}
        # Cut, because difflib takes quadratic time and a cell has 32,767 letters.
        close = difflib.get_close_matches(name.casefold()[:64], folded, 1)
        hint = (
            _("; did you mean ${%(folded)s}?") % {"folded": folded[close[0]]}
            if close
            else ""
        )
        return _("there is no item ${%(name)s}%(hint)s") % {"name": name, "hint": hint}

    def check_cycles(self) -> None:
        # One cycle at a time is found; each is reported and taken out, so that
        # the next is found as well.
        rules = self.ruled_items()
        piped = piped_in_labels(self.option_sets)
        while True:
            try:
                evaluation_order(rules, piped)
            except CycleError as error:
                cycle = error.cycle
            else:
                return
            item = self.items[cycle[0]]
            column = "default"
            for rule in ("relevant", "calculation", "choice_filter"):
                if rule not in item.rules:
                    continue
                if cycle[1] in items_read(item.rules[rule], rules, piped):
                    column = rule
                    break
            path = " → ".join(f"${{{name}}}" for name in cycle)
            reason = _("depends on itself: %(path)s") % {"path": path}
            text = item.row.get(column) or item.name
            item.row.refuse(self.findings, column, reason, text)
            for name in cycle:
                rules[name] = {"kind": rules[name]["kind"]}

    def ruled_items(self) -> dict[str, RuledItem]:
        return {
            name: {"kind": item.kind, "option_set": item.option_set, **item.rules}
            for name, item in self.items.items()
        }

    def check_work(self) -> None:
        rules = self.ruled_items()
        rule_costs = RuleCosts(rules, self.option_sets)
        for page in self.draft.pages:
            costs = {
                (item.name, rule): units
                for item in page.items()
                if item.name in rules
                for rule, units in rule_costs.of_item(rules[item.name]).items()
            }
            total = sum(costs.values())
            if total <= MAX_PAGE_COST:
                continue
            # The page as a whole is too heavy; its heaviest rule is reported.
            name, rule = max(costs, key=lambda cost: costs[cost])
            row, column = self.items[name].row, COLUMN_OF_RULE.get(rule, rule)
            reason = _(
                "the rules of the page %(name)s take too long: they count"
                " %(total)s of at most %(max_page_cost)s, and %(costs)s of it"
                " is the %(column)s of ${%(name_2)s}; shorten it, filter"
                " fewer options, or divide the page"
            ) % {
                "name": f"{page.name!r}",
                "total": f"{total:,}",
                "max_page_cost": f"{MAX_PAGE_COST:,}",
                "costs": f"{costs[name, rule]:,}",
                "column": column,
                "name_2": name,
            }
            row.refuse(self.findings, column, reason, row.get(column))


def normalise(texts: Texts) -> None:
    for code, text in texts.items():
        texts[code] = normalised(text)


def items_of(group: Group) -> Iterator[ItemDraft]:
    for node in group.nodes:
        if isinstance(node, Group):
            yield from items_of(node)
        else:
            yield node.item


def comparisons(expression: Expr) -> Iterator[tuple[str, str]]:
    """Find item and literal of each `${item} = 'literal'` and `selected(...)`."""
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
