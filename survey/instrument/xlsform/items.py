"""Read a row of the survey sheet as an item."""

from __future__ import annotations

from dataclasses import replace

from django.utils.translation import gettext as _

from survey.instrument.definitions.expressions import (
    columns_of,
    reads_clock,
    references,
)
from survey.instrument.definitions.schema import Expr
from survey.instrument.xlsform.choices import Choices, check_spaces
from survey.instrument.xlsform.columns import SurveyRow
from survey.instrument.xlsform.draft import ItemDraft, OptionDraft, Texts
from survey.instrument.xlsform.languages import english_name
from survey.instrument.xlsform.names import quoted_names
from survey.instrument.xlsform.problems import Findings
from survey.instrument.xlsform.rules import (
    SELECTS,
    both,
    compiled,
    read_default,
    read_looks,
    read_parameters,
    read_required,
    yes_or_no,
)
from survey.instrument.xlsform.types import RowType

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

    def __init__(self, choices: Choices, languages: list[str]) -> None:
        self.sets = choices.sets
        self.shared = choices.shared
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
        if extended not in self.sets:
            self.warn_of_languages(row, findings)
        other_option = OptionDraft(OTHER_VALUE, in_languages(OTHER, self.languages))
        self.sets.setdefault(extended, [*map(replace, self.sets[name]), other_option])
        return extended

    def warn_of_languages(self, row: SurveyRow, findings: Findings) -> None:
        """Name the languages that have no words for *Other*."""
        missing = [code for code in self.languages if code.split("-")[0] not in OTHER]
        if missing:
            reason = _(
                "%(languages)s: shown as 'Other' and 'Please specify' in English;"
                " to translate them, write an option and a text question instead"
                " of or_other"
            )
            names = ", ".join(map(english_name, missing))
            row.warn(findings, "type", reason % {"languages": names})


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
    if item.kind == "calculate":
        read_calculation(item, findings)
    else:
        read_rules(item, type_, option_sets, findings)
    if row.get("trigger"):
        read_trigger(item, findings)
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
        read_own_calculation(item, findings)
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


def read_own_calculation(item: ItemDraft, findings: Findings) -> None:
    """Read the calculation of a row that is shown: a computed text, or a default."""
    row, kind = item.row, item.kind
    is_computed = kind == "note" or yes_or_no(row.get("read_only"))
    expression = compiled(row, "calculation", findings)
    if kind in (*SELECTS, "range", "acknowledge") and is_computed:
        # A computed value could be no option, and could not be changed.
        reason = _("not for %(kind)s rows with read_only: use a calculate row")
        row.refuse(findings, "calculation", reason % {"kind": kind})
    elif is_computed:
        if kind != "text":
            reason = _("the computed value is shown and stored as text")
            row.warn(findings, "type", reason)
        item.kind = "text"
        row.values["read_only"] = "yes"
        if expression is not None:
            item.rules["calculation"] = expression
    elif expression is not None:
        item.rules["default_expression"] = expression
        reason = _(
            "read as a default: it is computed once, when the question is first"
            " shown, and people can change it"
        )
        row.warn(findings, "calculation", reason)
    if expression is not None and row.values.pop("default", ""):
        row.warn(findings, "default", _("ignored: the item is calculated"))


def read_trigger(item: ItemDraft, findings: Findings) -> None:
    """Ignore the trigger of a calculation that changes with nothing else."""
    row = item.row
    triggers = quoted_names(row.get("trigger"))
    calculation = item.rules.get("calculation")
    if (
        not triggers
        or calculation is None
        or reads_clock(calculation)
        or not references(calculation) <= set(triggers)
    ):
        reason = _("a calculation cannot wait for another answer: remove the trigger")
        row.refuse(findings, "trigger", reason)
        return
    # There is no value before the first answer.
    answered: list[Expr] = [["!=", ["$", name], ""] for name in triggers]
    any_answered = answered[0] if len(answered) == 1 else ["or", *answered]
    item.rules["calculation"] = ["if", any_answered, calculation, ""]
    reason = _("ignored: the calculation follows %(trigger)s anyway")
    row.warn(findings, "trigger", reason % {"trigger": row.get("trigger")}, "")


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
    shared = option_sets.shared.get(type_.option_set, set())
    if expression is not None and shared:
        expression = with_shared(expression, shared, set())
        if expression is None:
            reason = _("compare %(columns)s once, with = and an answer: options repeat")
            columns_shown = ", ".join(sorted(shared))
            row.refuse(findings, "choice_filter", reason % {"columns": columns_shown})
    if expression is not None:
        item.rules["choice_filter"] = expression


def with_shared(expression: Expr, shared: set[str], compared: set[str]) -> Expr | None:
    """Compare columns that have several values; None if that could differ.

    A filter holds for one of the repeated options exactly if it reads the column
    once, by `=` and outside of not(). `compared` are the columns read so far.
    """
    if isinstance(expression, list) and expression[0] in ("and", "or"):
        parts = [with_shared(part, shared, compared) for part in expression[1:]]
        return None if None in parts else [expression[0], *parts]
    columns = columns_of(expression) & shared
    if not columns:
        return expression
    if not isinstance(expression, list) or expression[0] != "=" or columns & compared:
        return None
    compared |= columns
    for column, answer in (expression[1:], expression[:0:-1]):
        is_text = isinstance(answer, str) or (
            isinstance(answer, list) and answer[0] == "$"
        )
        if is_text and column in [["col", name] for name in columns]:
            return ["selected", column, answer]
    return None


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
