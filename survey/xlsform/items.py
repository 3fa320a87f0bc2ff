"""Read a row of the survey sheet as an item."""

from __future__ import annotations

from dataclasses import replace

from django.utils.translation import gettext as _

from survey.definitions.schema import Expr
from survey.xlsform.choices import check_spaces
from survey.xlsform.columns import SurveyRow
from survey.xlsform.draft import ItemDraft, OptionDraft, Texts
from survey.xlsform.problems import Findings
from survey.xlsform.rules import (
    SELECTS,
    both,
    compiled,
    read_default,
    read_looks,
    read_parameters,
    read_required,
    yes_or_no,
)
from survey.xlsform.types import RowType

# Columns that an item without an answer cannot have.
ANSWERING = (
    "required",
    "required_message",
    "constraint",
    "constraint_message",
    "choice_filter",
    "parameters",
)
UNSEEN = (*ANSWERING, "hint", "guidance", "appearance")

# What pyxform calls the option that it adds for `or_other`.
OTHER_VALUE = "other"
OTHER: Texts = {
    "en": "Other",
    "es": "Otro",
    "ar": "غير ذلك",
    "fr": "Autre",
    "pt": "Outro",
    "de": "Andere",
    "pl": "Inne",
    "zh": "其他",
    "vi": "Khác",
}
# Without "you": an imported survey is for students (tú) or adults (usted).
SPECIFY_OTHER: Texts = {
    "en": "Please specify",
    "es": "Especificar",
    "ar": "يرجى التحديد",
    "fr": "À préciser",
    "pt": "Especificar",
    "de": "Bitte angeben",
    "pl": "Proszę podać",
    "zh": "请说明",
    "vi": "Vui lòng ghi rõ",
}


class OptionSets:
    """The lists of the choices sheet, and their copies with *Other*."""

    def __init__(
        self, sets: dict[str, list[OptionDraft]], languages: list[str]
    ) -> None:
        self.sets = sets
        self.languages = languages

    def attributes(self, name: str) -> set[str]:
        columns = {
            key for option in self.sets.get(name, ()) for key in option.attributes
        }
        return columns | {"name"}

    def find(self, row: SurveyRow, type_: RowType, findings: Findings) -> str:
        """Return the name of the set that this row uses; empty if there is none."""
        name = type_.option_set
        if name not in self.sets:
            reason = _("the choices sheet has no list %(name)s") % {"name": f"{name!r}"}
            row.refuse(findings, "type", reason)
            return ""
        if type_.kind == "select_multiple":
            check_spaces(name, self.sets[name], row, findings)
        has_other = any(option.value == OTHER_VALUE for option in self.sets[name])
        if not type_.or_other or has_other:
            return name
        # A copy that ends with *Other*: rows that use the bare list keep it.
        extended = f"{name} or_other"
        other = OptionDraft(OTHER_VALUE, in_languages(OTHER, self.languages))
        self.sets.setdefault(extended, [*map(replace, self.sets[name]), other])
        return extended


def in_languages(texts: Texts, languages: list[str]) -> Texts:
    known = {
        code: texts[code.split("-")[0]]
        for code in languages
        if code.split("-")[0] in texts
    }
    return {languages[0]: texts["en"], **known}


def read_item(
    row: SurveyRow,
    type_: RowType,
    relevant: Expr | None,
    option_sets: OptionSets,
    findings: Findings,
) -> ItemDraft:
    """Read the item of a row; `relevant` is the rule of the groups around it."""
    item = ItemDraft(row.get("name"), type_.kind, row)
    if item.kind == "hidden" and row.get("calculation"):
        item.kind = "calculate"
    if item.kind in SELECTS:
        item.option_set = option_sets.find(row, type_, findings)
    if type_.constraint:
        row.values.setdefault("constraint", type_.constraint)
    if row.media:
        row.refuse(
            findings, "media", _("pictures, sound and video cannot be shown yet")
        )
    if item.is_shown:
        item.label, item.hint = row.text("label"), row.text("hint")
        item.guidance = row.text("guidance")
        # A control that has no name cannot be announced by a screen reader.
        if not item.label and "label" not in row.get("appearance").split():
            row.refuse(findings, "label", _("the question has no label"), item.name)
    if not item.is_answerable:
        for key in ANSWERING if item.kind == "note" else UNSEEN:
            if row.values.pop(key, "") or row.texts.pop(key, {}):
                reason = _("ignored: a %(kind)s has no answer") % {"kind": item.kind}
                row.warn(findings, key, reason, item.name)
    if row.get("trigger"):
        reason = _("a calculation cannot wait for another answer: remove the trigger")
        row.refuse(findings, "trigger", reason)
    if item.kind == "calculate":
        read_calculation(item, findings)
    else:
        read_rules(item, type_, option_sets, findings)
    item.own_relevant = compiled(row, "relevant", findings)
    relevance = both(relevant, item.own_relevant)
    if relevance is not None:
        item.rules["relevant"] = relevance
    return item


def read_calculation(item: ItemDraft, findings: Findings) -> None:
    row = item.row
    expression = compiled(row, "calculation", findings)
    if expression is not None:
        item.rules["calculation"] = expression
    elif not row.get("calculation"):
        row.refuse(findings, "calculation", _("the calculation is missing"), item.name)
    if row.get("default"):
        row.warn(findings, "default", _("ignored: the item is calculated"))


def read_rules(
    item: ItemDraft, type_: RowType, option_sets: OptionSets, findings: Findings
) -> None:
    row = item.row
    if row.get("calculation"):
        # Of other kinds a computed value could be refused when the page is
        # saved, and the respondent could not change it.
        if item.kind == "text" and yes_or_no(row.get("read_only")):
            calculation = compiled(row, "calculation", findings)
            if calculation is not None:
                item.rules["calculation"] = calculation
        else:
            reason = _(
                "not for %(kind)s rows that people answer: use a calculate"
                " row and show it in a note, or a text row with read_only yes"
            ) % {"kind": item.kind}
            row.refuse(findings, "calculation", reason)
    read_required(item, findings)
    constraint = compiled(row, "constraint", findings, self_name=item.name)
    if constraint is not None:
        item.rules["constraint"] = constraint
    if "required" in item.rules and (message := row.text("required_message")):
        item.rules["required_message"] = message
    if constraint is not None and (message := row.text("constraint_message")):
        item.rules["constraint_message"] = message
    read_filter(item, type_, option_sets, findings)
    read_looks(item, findings)
    if item.is_answerable:
        read_parameters(item, findings)
    if item.kind == "note":
        if row.get("default"):
            row.warn(findings, "default", _("ignored: a note has no answer"))
        return
    read_default(item, option_sets.sets.get(item.option_set, []), findings)
    if item.kind == "hidden" and "default_expression" in item.rules:
        # It cannot be changed, so its first value is its value.
        item.kind = "calculate"
        item.rules["calculation"] = ["once", item.rules.pop("default_expression")]
    read_only = row.get("read_only")
    if read_only and yes_or_no(read_only) is None:
        row.refuse(findings, "read_only", _("is yes or no"))
    elif read_only and yes_or_no(read_only) and item.is_answerable:
        item.rules["read_only"] = True


def read_filter(
    item: ItemDraft, type_: RowType, option_sets: OptionSets, findings: Findings
) -> None:
    row = item.row
    if not row.get("choice_filter"):
        return
    if item.kind not in SELECTS:
        if item.is_answerable:
            row.refuse(
                findings,
                "choice_filter",
                _("a %(kind)s has no options") % {"kind": item.kind},
            )
        return
    if type_.or_other:
        reason = _("or_other cannot be filtered: add the option to the list")
        row.refuse(findings, "choice_filter", reason)
        return
    columns = option_sets.attributes(type_.option_set)
    expression = compiled(row, "choice_filter", findings, columns=columns)
    if expression is not None:
        item.rules["choice_filter"] = expression


def other_item(item: ItemDraft, languages: list[str]) -> ItemDraft:
    """Make the text item that asks for details when *Other* is chosen.

    Its name is the one that pyxform gives it.
    """
    relevant: Expr = ["selected", ["$", item.name], OTHER_VALUE]
    if "relevant" in item.rules:
        relevant = ["and", item.rules["relevant"], relevant]
    return ItemDraft(
        name=f"{item.name}_other",
        kind="text",
        row=item.row,
        label=in_languages(SPECIFY_OTHER, languages),
        rules={"relevant": relevant},
    )
