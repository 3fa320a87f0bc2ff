"""Rules of a draft in words: which a row has, and what was chosen in their forms."""

from __future__ import annotations

from collections.abc import Mapping

from django.utils.functional import cached_property
from django.utils.text import capfirst
from django.utils.translation import gettext as _

from survey.console.surveys.editor.fields import Address
from survey.console.surveys.editor.rule_form import RuleForm
from survey.instrument.drafts.conditions import words_of
from survey.instrument.drafts.reading import DraftReading
from survey.instrument.drafts.rule_hints import rule_problems
from survey.instrument.drafts.rule_sentences import sentence_of
from survey.instrument.drafts.subjects import subjects_of

# The field that a rule is stored in, by the rule.
FIELDS = {
    "relevant": "relevant",
    "required": "required_if",
    "constraint": "constraint",
    "choice_filter": "choice_filter",
}


class EditorRuleForm(RuleForm):
    """A rule in the settings of a question or page.

    A button that draws the form anew also saves what is complete.
    """

    is_page = False
    # Why it cannot be stored: "unfinished" or "refused".
    state = ""

    @property
    def legend(self) -> str:
        if self.is_page and self.rule == "relevant":
            return _("Show this page if")
        return super().legend

    @property
    def summary(self) -> str:
        """Say the rule in a line, also if there is none or if it is code."""
        if self.is_code:
            group = words_of(self.seen, self.subjects, depth=None)
            return capfirst(sentence_of(group, self.subjects)) if group else self.seen
        if self.initial and self.initial.parts:
            return capfirst(sentence_of(self.initial, self.subjects))
        return {
            "relevant": _("Shown to everybody"),
            "required": _("Choose when an answer is required"),
            "constraint": _("Every answer is accepted"),
            "choice_filter": _("All options are offered"),
        }[self.rule]

    @property
    def is_open(self) -> bool:
        return self.data is not None

    @property
    def is_unfinished(self) -> bool:
        # An empty form has one blank row.
        has_blank = len(self.rows) > 1 and any(row.is_blank for row in self.rows)
        return not self.is_complete or has_blank

    def is_loose(self, stored: EditorRuleForm) -> bool:
        """Return whether it has a group that the stored rule does not need.

        It stays while its conditions are chosen: a group of one condition gets more.
        """
        is_same = (
            self.cleaned_group is not None and self.cleaned_group == stored.initial
        )
        return is_same and self.groups != stored.groups

    def take_over(self, stored: EditorRuleForm) -> None:
        """Compare what is posted next with the rule that is stored now."""
        self.hints = stored.hints
        if self.is_complete:
            self.seen, self.code = stored.seen, stored.code
            self.initial, self.is_code = stored.initial, stored.is_code

    @cached_property
    def is_complete(self) -> bool:
        """Return whether `expression` can be stored; without errors while choosing."""
        is_choosing = bool(self.posted("do", ""))
        self.data = {**(self.data or {}), f"{self.prefix}-do": ""}
        is_valid = self.is_valid()
        if not is_valid:
            missing = all(row.missing == row.errors.keys() for row in self.rows)
            self.state = "unfinished" if missing and not self.error else "refused"
        for row in self.rows if is_choosing else ():
            for name in row.missing:
                del row.errors[name]
        return is_valid


def rule_form(
    reading: DraftReading,
    key: str,
    rule: str,
    expression: str,
    *,
    language: str,
    data: Mapping[str, str] | None = None,
) -> EditorRuleForm | None:
    """Return the form of a rule; None if the draft cannot be read so far."""
    draft = reading.draft
    if draft is None:
        return None
    name, is_page = first_item(reading, key)
    if not name:
        return None
    form = EditorRuleForm(
        rule,
        subjects_of(
            draft, rule, name, language, labels=reading.option_labels(language)
        ),
        data,
        expression=expression,
        prefix=f"rule-{rule}",
    )
    form.is_page = is_page
    if expression and rule in ("relevant", "required", "constraint", "choice_filter"):
        form.hints = rule_problems(draft, name, rule, expression)  # type: ignore[arg-type]
    return form


def first_item(reading: DraftReading, key: str) -> tuple[str, bool]:
    """Return the name of a question, or of the first one of a group."""
    for name, item_key in reading.keys.items():
        if item_key == key:
            return name, False
    for page in reading.draft.pages if reading.draft else ():
        items = [item.name for item in page.items()]
        if page.row and items and reading.rows[page.row.number].key == key:
            return items[0], True
        for block in page.blocks:
            row = reading.rows[block.row.number] if block.row else None
            if row and row.key == key and block.items:
                return block.items[0].name, False
    return "", False


def posted_rules(data: Mapping[str, str]) -> list[str]:
    return [rule for rule in FIELDS if f"rule-{rule}-seen" in data]


def address_of(key: str, rule: str) -> Address:
    return Address("survey", key, FIELDS[rule])
