"""Ask for a rule in words, or as an expression.

The form works by POST alone: adding and removing rows are submit buttons. With htmx
they, and the choice of a question, draw the form again in place.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from django.utils.functional import cached_property
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts.control_characters import has_control_character
from survey.instrument.definitions.expressions import to_text
from survey.instrument.definitions.expressions.values import to_number
from survey.instrument.definitions.schema import MOMENTS, NUMBERS
from survey.instrument.drafts.conditions import (
    COLUMN,
    COUNT,
    COUNTS,
    LONGEST_VALUE,
    MOST_CONDITIONS,
    OPERATORS,
    ORDERS,
    REFERENCE,
    SAMENESS,
    THIS,
    TODAY,
    UNTYPED,
    WITHOUT_VALUE,
    Condition,
    Group,
    Operator,
    Subject,
    Subjects,
    expression_of,
    is_day,
    simplified,
    words_of,
)
from survey.instrument.drafts.rule_hints import Hint
from survey.instrument.drafts.rule_sentences import operator_label, sentence_of
from survey.instrument.xlsform.rules import DECIMAL, LONGEST_EXPRESSION

# A longer list of options is typed, and not sent with each rule.
MOST_LISTED = 200
AMONG = frozenset((Operator.AMONG, Operator.NOT_AMONG))
LEGENDS = {
    "relevant": gettext_lazy("Show this question if"),
    "required": gettext_lazy("An answer is required if"),
    "constraint": gettext_lazy("Accept an answer if"),
    "choice_filter": gettext_lazy("Offer an option if"),
}
JOINS = (
    ("all", gettext_lazy("all of these are true")),
    ("any", gettext_lazy("any of these is true")),
    ("none", gettext_lazy("none of these is true")),
)
Choices = list[tuple[str, str]]


class ValueRefused(Exception):
    """A value that a condition cannot have; the argument is a sentence."""


@dataclass
class RuleRow:
    """A condition as it is shown and posted; `errors` by field."""

    form: RuleForm
    number: int
    item: str = ""
    operator: str = ""
    value: str = ""
    errors: dict[str, str] = field(default_factory=dict)
    is_new: bool = False

    @property
    def name(self) -> str:
        return f"{self.form.prefix}-{self.number}"

    @property
    def place(self) -> int:
        """Count the conditions of all groups, for their names."""
        return self.form.rows.index(self) + 1

    @property
    def is_blank(self) -> bool:
        # A new condition about the answer itself has its subject from the beginning.
        is_untouched = not self.item or (self.item == THIS and self.has_value)
        return is_untouched and not self.value

    @property
    def subject(self) -> Subject | None:
        return self.form.subjects.get(self.item)

    @property
    def items(self) -> Choices:
        return [
            (name, item_label(name, subject))
            for name, subject in self.form.subjects.items()
            if subject.is_offered or name == self.item
        ]

    @property
    def operators(self) -> Choices:
        subject = self.subject or Subject("", "text")
        return [
            (str(operator), operator_label(subject, operator))
            for operator in subject.operators or OPERATORS["text"]
        ]

    @property
    def has_value(self) -> bool:
        return self.operator not in WITHOUT_VALUE

    @property
    def values(self) -> Choices:
        """Return the values to choose from; empty if one is typed."""
        subject = self.subject
        if subject is None or self.operator in COUNTS or self.is_typed:
            return []
        values = [] if self.operator in AMONG else list(subject.options)
        if subject.kind == "column":
            values += [
                (f"${{{name}}}", _("the answer to %(question)s") % {"question": label})
                for name, label in self.items
                if name != THIS and not name.startswith(COLUMN)
            ]
        is_missing = bool(self.value) and self.value not in dict(values)
        if values and is_missing and not self.is_unknown_option(self.value):
            values.append((self.value, self.value))
        return values

    @property
    def is_typed(self) -> bool:
        subject = self.subject
        return subject is not None and len(subject.options) > MOST_LISTED

    @property
    def hint(self) -> str:
        """Say how one of many options is named, and which one it is now."""
        if self.subject is None or not self.is_typed or self.operator in COUNTS:
            return ""
        if label := dict(self.subject.options).get(self.value):
            return label
        return _("Enter the text or the stored value of one of %(count)s options.") % {
            "count": f"{len(self.subject.options):,}"
        }

    @property
    def is_number(self) -> bool:
        kind = self.subject.kind if self.subject else ""
        return self.operator in COUNTS or kind in NUMBERS

    def condition(self) -> Condition | None:
        """Return the condition, or None and set `errors`."""
        subject = self.subject
        if subject is None:
            self.errors["item"] = _("Choose a question.")
            return None
        if self.operator not in subject.operators:
            self.errors["operator"] = _("Choose how to compare the answer.")
            return None
        operator = Operator(self.operator)
        if operator in WITHOUT_VALUE:
            return Condition(self.item, operator)
        try:
            self.value = self.clean_value(subject, operator)
        except ValueRefused as refused:
            self.errors["value"] = str(refused)
            return None
        return Condition(self.item, operator, self.value)

    @property
    def missing(self) -> set[str]:
        """Return the fields with an error because nothing is chosen there yet."""
        return {name for name in self.errors if not getattr(self, name)}

    def drop_unknown_option(self) -> None:
        """Forget the answer to a question that was chosen before this one."""
        is_listed = self.subject is not None and bool(self.subject.options)
        is_listed = is_listed and not self.is_typed and self.operator not in COUNTS
        if is_listed and self.value not in dict(self.values):
            self.value = ""

    def clean_value(self, subject: Subject, operator: Operator) -> str:
        """Return the value as conditions have it. Raises ValueRefused."""
        value = self.value
        if not value:
            if self.values:
                raise ValueRefused(_("Choose an answer."))
            raise ValueRefused(_("Enter an answer to compare with."))
        if len(value) > LONGEST_VALUE:
            message = _("Use at most %(most)s characters.") % {"most": LONGEST_VALUE}
            raise ValueRefused(message)
        if has_control_character(value):
            raise ValueRefused(_("Remove the invisible characters."))
        if operator in COUNTS:
            if not COUNT.fullmatch(value):
                raise ValueRefused(_("Enter a whole number, such as 3."))
            return str(int(value))
        if reference := REFERENCE.fullmatch(value):
            known = self.form.subjects.get(reference[1])
            if known is None or reference[1] in (self.item, THIS):
                raise ValueRefused(_("Choose another question to compare with."))
            return value
        if operator in AMONG or (subject.options and "${" in value):
            raise ValueRefused(_("Choose an answer from the list."))
        if "${" in value:
            raise ValueRefused(
                _("Remove “${”: a rule takes it for the answer to another question.")
            )
        if subject.kind in MOMENTS:
            return clean_moment(subject, value)
        if subject.kind in NUMBERS or operator in ORDERS:
            if DECIMAL.fullmatch(value):
                return to_text(to_number(value))
            if subject.kind in UNTYPED and not math.isnan(to_number(value)):
                return value
            raise ValueRefused(_("Enter a number, such as 12 or 4.5."))
        if subject.options and self.is_unknown_option(value):
            by_label = {label: value for value, label in subject.options}
            if self.is_typed and value in by_label:
                return by_label[value]
            raise ValueRefused(
                _("No option has this text or stored value.")
                if self.is_typed
                else _("Choose an answer from the list.")
            )
        if (
            subject.kind in UNTYPED
            and operator in SAMENESS
            and DECIMAL.fullmatch(value)
        ):
            return to_text(to_number(value))
        return value

    def is_unknown_option(self, value: str) -> bool:
        """Return whether the value is no option, and was not in the rule before."""
        before = self.form.initial
        return value not in dict(self.subject.options if self.subject else ()) and not (
            before
            and any(
                (condition.item, condition.value) == (self.item, value)
                for condition in before.conditions()
            )
        )


def clean_moment(subject: Subject, value: str) -> str:
    if subject.kind == "time":
        if ":" in value and not math.isnan(to_number(value)):
            return value
        raise ValueRefused(_("Enter a time, such as 08:30."))
    if value.casefold() in (TODAY, _("today").casefold()):
        return TODAY
    is_moment = subject.kind == "datetime" and "-" in value
    if is_day(value) or (is_moment and not math.isnan(to_number(value))):
        return value
    raise ValueRefused(_("Enter a date, such as 2026-09-01, or “today”."))


def item_label(name: str, subject: Subject) -> str:
    if name == THIS:
        return _("This answer")
    if name == f"{COLUMN}name":
        return _("The option")
    if name.startswith(COLUMN):
        return _("The option’s %(column)s") % {"column": subject.label or name[1:]}
    if not subject.number:
        return subject.label or name
    label = _("No text yet") if subject.label in ("", name) else subject.label
    return f"{subject.number}. {label}"


@dataclass
class RuleGroup:
    """A group of rows; number 0 is the outermost, in which the others are."""

    form: RuleForm
    number: int
    join: str = "all"
    parts: list[RuleRow | RuleGroup] = field(default_factory=list)

    @property
    def name(self) -> str:
        return f"{self.form.prefix}-group{self.number}-join"

    @property
    def has_join(self) -> bool:
        """Return whether it matters how the parts are put together."""
        return len(self.parts) > 1 or self.join == "none"

    @property
    def joins(self) -> Choices:
        return [(join, str(label)) for join, label in JOINS]

    @property
    def rows(self) -> list[RuleRow]:
        return [part for part in self.parts if isinstance(part, RuleRow)]

    @property
    def is_group(self) -> bool:
        """Tell templates a group from a row."""
        return True


class RuleForm:
    """Ask for the rule in one column of a row.

    `subjects` are what it may be about (`subjects_of`), `expression` is the cell as
    it is stored. After `is_valid()`, `expression` is the cell to store: the same text
    unless the person changed the rule. A submit button that only draws the form anew
    makes it invalid without errors; so does no data at all.
    """

    def __init__(
        self,
        rule: str,
        subjects: Subjects,
        data: Mapping[str, str] | None = None,
        *,
        expression: str = "",
        prefix: str = "",
        hints: list[Hint] | None = None,
    ) -> None:
        self.rule, self.subjects = rule, subjects
        self.prefix = prefix or rule
        self.data = data
        self.expression = expression
        self.hints = hints or []
        self.error = ""
        self.seen = self.posted("seen", expression)
        self.code = self.posted("code", expression)
        self.initial: Group | None = Group("all", ())
        if self.seen.strip():
            self.initial = words_of(self.seen, subjects)
        self.is_code = self.initial is None
        self.highest = 0
        self.outer = RuleGroup(self, 0)
        if data is None or f"{self.prefix}-group0-join" not in data:
            self.fill(self.outer, self.initial or Group("all", ()))
        else:
            self.read(data)
        if data is not None:
            self.act(self.posted("do", ""))
        if not self.outer.parts:
            self.add_row(self.outer)

    def posted(self, field_name: str, default: str) -> str:
        name = f"{self.prefix}-{field_name}"
        if self.data is None or name not in self.data:
            return default
        # Browsers send other line breaks than they were given.
        return self.data[name].replace("\r\n", "\n")

    @property
    def legend(self) -> str:
        return str(LEGENDS[self.rule])

    @property
    def is_stale(self) -> bool:
        """Return whether the cell was changed since the form was shown."""
        return self.seen != self.expression.replace("\r\n", "\n")

    @property
    def rows(self) -> list[RuleRow]:
        """Return all rows as they are shown."""
        return [
            row
            for part in self.outer.parts
            for row in (part.rows if isinstance(part, RuleGroup) else [part])
        ]

    @property
    def errors(self) -> dict[str, str]:
        """Return the errors by the id of their field, for a summary."""
        errors = {
            f"id_{row.name}-{name}": error
            for row in self.rows
            for name, error in row.errors.items()
        }
        return errors | ({f"id_{self.prefix}-code": self.error} if self.error else {})

    def fill(self, target: RuleGroup, group: Group) -> None:
        target.join = group.join
        for part in group.parts:
            if isinstance(part, Group):
                inner = self.add_group()
                self.fill(inner, part)
            else:
                row = self.add_row(target)
                row.item, row.operator = part.item, str(part.operator)
                row.value, row.is_new = part.value, False

    def add_row(self, group: RuleGroup) -> RuleRow:
        self.highest += 1
        row = RuleRow(self, self.highest, operator=str(Operator.IS))
        if THIS in self.subjects:
            row.item = THIS
            operators = self.subjects[THIS].operators
            usual = (Operator.AT_LEAST, Operator.COUNT_AT_MOST, *operators)
            row.operator = next((str(o) for o in usual if o in operators), "")
        group.parts.append(row)
        return row

    def add_group(self) -> RuleGroup:
        self.highest += 1
        group = RuleGroup(self, self.highest, "any")
        self.outer.parts.append(group)
        return group

    def read(self, data: Mapping[str, str]) -> None:
        is_redrawn = bool(self.posted("do", ""))
        groups = {0: self.outer}
        self.outer.join = self.posted_join(0)
        pattern = re.compile(rf"{re.escape(self.prefix)}-([0-9]{{1,6}})-item")
        numbers = sorted(int(m[1]) for name in data if (m := pattern.fullmatch(name)))
        for number in numbers[:MOST_CONDITIONS]:
            row = RuleRow(
                self,
                number,
                self.posted(f"{number}-item", ""),
                self.posted(f"{number}-operator", ""),
                self.posted(f"{number}-value", "").strip(),
            )
            subject = row.subject
            if is_redrawn and subject and row.operator not in subject.operators:
                # Another question was chosen: its answers are compared differently.
                row.operator = str((*subject.operators, "")[0])
            if is_redrawn:
                row.drop_unknown_option()
            posted_group = self.posted(f"{number}-group", "0")
            in_group = int(posted_group) if COUNT.fullmatch(posted_group) else 0
            if in_group not in groups:
                groups[in_group] = RuleGroup(self, in_group, self.posted_join(in_group))
                self.outer.parts.append(groups[in_group])
            groups[in_group].parts.append(row)
        self.highest = max([0, *numbers, *groups])

    def posted_join(self, number: int) -> str:
        join = self.posted(f"group{number}-join", "all")
        return join if join in dict(JOINS) else "all"

    def act(self, action: str) -> None:
        """Do what a button inside of the form asks for."""
        verb, _, number = action.partition("-")
        groups = [part for part in self.outer.parts if isinstance(part, RuleGroup)]
        if verb in ("add", "group") and len(self.rows) < MOST_CONDITIONS:
            target = self.outer
            if verb == "group":
                target = self.add_group()
            else:
                target = next((g for g in groups if str(g.number) == number), target)
            self.add_row(target).is_new = True
        elif verb == "remove":
            for group in (self.outer, *groups):
                group.parts = [
                    part
                    for part in group.parts
                    if isinstance(part, RuleGroup) or str(part.number) != number
                ]
            self.outer.parts = [
                part
                for part in self.outer.parts
                if not isinstance(part, RuleGroup) or part.parts
            ]

    def is_valid(self) -> bool:
        """Check what was posted, and set `expression` if it is right."""
        if self.data is None or self.posted("do", ""):
            return False
        group = self.cleaned_group
        is_code_changed = self.code.strip() != self.seen.strip()
        if is_code_changed:
            # Conditions that are not complete give way to code that is.
            for row in self.rows:
                row.errors.clear()
        if self.errors:
            return False
        is_changed = group is not None and group != self.initial
        if is_code_changed and is_changed:
            self.error = _(
                "You changed both the conditions and the code. Change only one of them."
            )
        elif is_code_changed and len(self.code) > LONGEST_EXPRESSION:
            self.error = _("Use at most %(most)s characters.") % {
                "most": LONGEST_EXPRESSION
            }
        elif is_code_changed:
            self.expression = self.code.strip()
        elif is_changed and group is not None:
            written = expression_of(group, self.subjects) if group.parts else ""
            if group.parts and words_of(written, self.subjects) != group:
                self.error = _("These conditions cannot be written as a rule.")
            elif len(written) > LONGEST_EXPRESSION:
                self.error = _("This rule is too long. Remove some conditions.")
            else:
                self.expression = written
        return not self.error

    @cached_property
    def cleaned_group(self) -> Group | None:
        """Return the conditions; None for code, or if there are errors."""
        if self.is_code:
            return None
        parts: list[Condition | Group] = []
        for part in self.outer.parts:
            rows = part.rows if isinstance(part, RuleGroup) else [part]
            conditions = [row.condition() for row in rows if not row.is_blank]
            read = tuple(condition for condition in conditions if condition)
            if isinstance(part, RuleGroup) and read:
                parts.append(Group(part.join, read))
            else:
                parts += read
        if any(row.errors for row in self.rows):
            return None
        group = Group(self.outer.join, tuple(parts))
        return simplified(group) if parts else Group("all", ())

    @property
    def groups(self) -> int:
        return sum(isinstance(part, RuleGroup) for part in self.outer.parts)

    @property
    def sentence(self) -> str:
        """Say the stored rule in words; empty if there is none, or it is code."""
        if not self.initial or not self.initial.parts:
            return ""
        return f"{self.legend} {sentence_of(self.initial, self.subjects)}."
