"""Read the rows of the survey sheet as a tree of groups and questions."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from survey.instrument.definitions.schema import Expr
from survey.instrument.xlsform.columns import SurveyRow
from survey.instrument.xlsform.draft import ItemDraft, Texts
from survey.instrument.xlsform.fields import DEVICE, Fields
from survey.instrument.xlsform.items import OptionSets, other_item, read_item
from survey.instrument.xlsform.names import LONGEST_EXPORTED, why_not_a_name
from survey.instrument.xlsform.problems import Findings
from survey.instrument.xlsform.rules import both, compiled, yes_or_no
from survey.instrument.xlsform.types import RowType, parse_type

MAX_ITEMS = 1_000
DEEPEST_GROUP = 20
NO_REPEATS = gettext_noop("repeats cannot be imported yet: ask a fixed number of times")


@dataclass
class Question:
    """`place` is `label` for a grid's first row, `list-nolabel` for the rest."""

    item: ItemDraft
    place: str = ""
    other_text: ItemDraft | None = None


@dataclass
class Group:
    row: SurveyRow | None = None
    label: Texts = field(default_factory=dict)
    # Including the rules of all groups around it, and only its own.
    relevant: Expr | None = None
    own_relevant: Expr | None = None
    appearance: frozenset[str] = frozenset()
    nodes: list[Group | Question] = field(default_factory=list)
    control: str = "group"

    @property
    def is_field_list(self) -> bool:
        return "field-list" in self.appearance

    @property
    def is_table_list(self) -> bool:
        return "table-list" in self.appearance


class Outline:
    """Read the survey sheet row by row.

    `names` are the items; `dropped` are names that no expression can read,
    each with what it is instead.
    """

    def __init__(self, option_sets: OptionSets, findings: Findings) -> None:
        self.option_sets = option_sets
        self.findings = findings
        self.root = Group()
        self.open = [self.root]
        self.fields = Fields()
        self.names: dict[str, ItemDraft] = {}
        self.dropped: dict[str, str] = {}
        self.folded: dict[str, str] = {}
        # Rows whose label is a heading, and groups in the order of the sheet.
        self.headings: list[SurveyRow] = []
        self.groups: list[Group] = []

    def read(self, rows: list[SurveyRow], roots: Collection[str] = ()) -> None:
        """Read all rows; `roots` are what paths may begin with, besides `data`."""
        self.fields.read(rows, roots)
        for row in rows:
            if yes_or_no(row.get("disabled")):
                row.warn(self.findings, "disabled", _("the row is disabled: ignored"))
            elif row.get("type"):
                self.read_row(row)
            elif row.get("name") or row.texts.get("label"):
                reason = _("the row has no type")
                row.refuse(self.findings, "type", reason, row.get("name"))
            elif row.values or row.texts:
                row.warn(
                    self.findings, "type", _("a row without type and name: ignored")
                )
        for group in self.open[1:]:
            if group.row:
                reason = _("the %(control)s is never ended") % {
                    "control": group.control
                }
                group.row.refuse(self.findings, "type", reason)
        if len(self.names) > MAX_ITEMS:
            self.findings.refuse(
                "survey",
                None,
                "",
                _("more than %(max_items)s items in one survey")
                % {"max_items": f"{MAX_ITEMS:,}"},
            )

    def read_row(self, row: SurveyRow) -> None:
        type_ = parse_type(row.get("type"))
        if type_.kind == "calculate" and DEVICE.fullmatch(row.get("calculation")):
            type_ = RowType("metadata", canonical="metadata")
        row.values["canonical type"] = type_.canonical
        if type_.kind == "begin":
            self.begin_group(row, type_)
        elif type_.kind == "end":
            self.end_group(row, type_)
        elif type_.kind == "metadata":
            if row.get("name"):
                what = _("metadata, which is not collected")
                self.dropped.setdefault(row.get("name"), what)
            row.warn(
                self.findings, "type", _("not collected: dropped"), row.get("type")
            )
        elif type_.kind == "refused":
            if row.get("name"):
                self.dropped.setdefault(row.get("name"), _("refused"))
            row.refuse(self.findings, "type", _(type_.reason))
        else:
            self.add_question(row, type_)

    def begin_group(self, row: SurveyRow, type_: RowType) -> None:
        relevant = compiled(row, "relevant", self.findings)
        group = Group(
            row,
            row.text("label"),
            both(self.open[-1].relevant, relevant),
            relevant,
            frozenset(row.get("appearance").lower().split()),
            control=type_.control,
        )
        name = row.get("name")
        self.headings.append(row)
        if group.control != "group":
            row.refuse(self.findings, "type", _(NO_REPEATS))
        if reason := why_not_a_name(name):
            row.refuse(self.findings, "name", reason)
        # So that a rule which reads it is told what it is, not that it is missing.
        self.dropped.setdefault(name, "a group")
        if row.media:
            row.refuse(
                self.findings, "media", _("pictures and sound cannot be shown yet")
            )
        if row.texts.get("hint") and not group.is_table_list:
            row.warn(self.findings, "hint", _("ignored: a group has no hint"), name)
        for word in sorted(group.appearance - {"field-list", "table-list"}):
            row.warn(self.findings, "appearance", _("ignored on a group"), word)
        self.groups.append(group)
        # A group that is nested too deeply is still ended by its own end row.
        if len(self.open) <= DEEPEST_GROUP:
            self.open[-1].nodes.append(group)
        elif len(self.open) == DEEPEST_GROUP + 1:
            reason = _("groups are nested more than %(deepest_group)s deep") % {
                "deepest_group": DEEPEST_GROUP
            }
            row.refuse(self.findings, "type", reason)
        self.open.append(group)

    def end_group(self, row: SurveyRow, type_: RowType) -> None:
        if len(self.open) == 1:
            reason = _("ends a %(control)s that never began") % {
                "control": type_.control
            }
            row.refuse(self.findings, "type", reason)
            return
        group = self.open.pop()
        if group.control != type_.control and group.row:
            reason = _(
                "ends a %(ended)s, but the %(open)s of row %(number)s is open"
            ) % {
                "ended": type_.control,
                "open": group.control,
                "number": group.row.number,
            }
            row.refuse(self.findings, "type", reason)

    def add_question(self, row: SurveyRow, type_: RowType) -> None:
        name = row.get("name")
        if not name and type_.kind == "note":
            # As pyxform does: no rule reads a note.
            row.values["name"] = name = f"generated_note_name_{row.number}"
        if reason := why_not_a_name(name):
            row.refuse(self.findings, "name", reason)
        group = self.open[-1]
        item = read_item(row, type_, group.relevant, self.option_sets, self.findings)
        question = Question(item, place_in_grid(item, group))
        if question.place:
            self.check_grid_row(question, type_)
        if question.place == "label":
            self.headings.append(row)
            self.dropped.setdefault(name, _("the heading of a grid"))
        else:
            self.add_name(name, item)
            if type_.or_other:
                question.other_text = other_item(item, self.option_sets.languages)
                self.add_name(question.other_text.name, question.other_text)
        group.nodes.append(question)

    def add_name(self, name: str, item: ItemDraft) -> None:
        row = item.row
        if len(row.path) > 1 and row.path[-1] in self.fields.ambiguous:
            reason = _("used in several groups: answers are stored as %(name)s")
            row.warn(self.findings, "name", reason % {"name": name}, row.path[-1])
        if name in self.names:
            first = self.names[name].row.number
            reason = _("the name is used in row %(first)s already") % {"first": first}
            row.refuse(self.findings, "name", reason, name)
            return
        twin = self.folded.setdefault(name.casefold(), name)
        if twin != name:
            reason = _(
                "differs from %(twin)s only in case: exports must rename one"
            ) % {"twin": f"{twin!r}"}
            row.warn(self.findings, "name", reason, name)
        if len(name.encode()) > LONGEST_EXPORTED:
            reason = _(
                "longer than %(longest_exported)s bytes: exports must shorten it"
            ) % {"longest_exported": LONGEST_EXPORTED}
            row.warn(self.findings, "name", reason, name)
        self.names[name] = item

    def check_grid_row(self, question: Question, type_: RowType) -> None:
        row, item = question.item.row, question.item
        if type_.or_other:
            row.refuse(self.findings, "type", _("or_other cannot be used in a grid"))
        for key in ("choice_filter", "randomize"):
            if key in item.rules:
                column = "parameters" if key == "randomize" else key
                reason = _("the rows of a grid share all their options, in one order")
                row.refuse(self.findings, column, reason)
        if question.place == "label" and row.get("relevant"):
            reason = _("ignored on a grid's heading: write it on the rows of the grid")
            row.warn(self.findings, "relevant", reason)


def place_in_grid(item: ItemDraft, group: Group) -> str:
    """Return `label`, `list-nolabel`, or nothing outside of grids."""
    if not item.option_set and item.kind not in ("select_one", "select_multiple"):
        return ""
    words = item.row.get("appearance").lower().split()
    if group.is_table_list:
        return "list-nolabel"
    return next((word for word in words if word in ("label", "list-nolabel")), "")
