"""Hold what the settings of the editor show: fields, options, rules and panels."""

from __future__ import annotations

from dataclasses import dataclass, field

from survey.console.surveys.editor.rules import EditorRuleForm
from survey.instrument.drafts.ready_options import ReadyList
from survey.instrument.xlsform.languages import Language

Choices = list[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class FieldView:
    """A field of the settings, with the address that it is sent with."""

    address: str
    label: str
    widget: str
    value: str
    hint: str = ""
    placeholder: str = ""
    language: Language | None = None
    choices: Choices = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    # Whether the label is only for screen readers.
    is_bare: bool = False
    is_locked: bool = False
    # Of a translation, whether the original is newer.
    is_stale: bool = False


@dataclass(frozen=True, slots=True)
class OptionView:
    key: str
    number: int
    labels: list[FieldView]
    value: FieldView
    # The text that a new option begins with, if nobody has written over it.
    placeholder: str = ""


@dataclass(frozen=True, slots=True)
class OptionsView:
    name: str
    options: list[OptionView]
    count: int
    # How many other questions share the list, if they are not in the same grid.
    users: int = 0
    is_locked: bool = False
    lists: Choices = field(default_factory=list)
    # Ready-made ones, for a list that nobody has written yet.
    ready: list[ReadyList] = field(default_factory=list)

    @property
    def is_cut(self) -> bool:
        return len(self.options) < self.count


@dataclass(frozen=True, slots=True)
class RuleView:
    """A rule in words; `code` is there for one that no form can show."""

    rule: str
    label: str
    form: EditorRuleForm | None
    code: FieldView
    message: list[FieldView] = field(default_factory=list)


@dataclass(slots=True)
class Panel:
    """The settings of the selected row. `sort` chooses the template."""

    sort: str
    key: str
    title: str
    texts: list[FieldView] = field(default_factory=list)
    kind: FieldView | None = None
    options: OptionsView | None = None
    # Numbers beside each other: of a scale, or the limits of a number.
    scale: list[FieldView] = field(default_factory=list)
    scale_name: str = ""
    answer: list[FieldView] = field(default_factory=list)
    rules: list[RuleView] = field(default_factory=list)
    more: list[FieldView] = field(default_factory=list)
    rows: list[tuple[str, list[FieldView]]] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    languages: list[Language] = field(default_factory=list)
    # That it is a question of the bank; None if it is not.
    lock: dict[str, object] | None = None
    # The grid that a statement is in.
    grid: str = ""
    # Acts that put it into a group or take the group away: (act, its words).
    groupings: list[tuple[str, str]] = field(default_factory=list)


@dataclass(frozen=True)
class View:
    """What a user has chosen to see: languages, and lists of options."""

    language: str
    second: str = ""
    # "everywhere" if a shared list may be changed; "all" for long lists.
    options: str = ""
