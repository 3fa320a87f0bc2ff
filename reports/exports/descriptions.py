"""Describe the columns of a file with a row for each respondent, for other programs.

Labels are those of the newest version that has the item, in the language of the
export; values of older versions follow.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from reports.answers.versions import SurveyVersion
from reports.exports.cells import NUMERIC_CODE
from reports.exports.codebook import block_of, respondent_columns
from reports.exports.columns import Variable, value_type
from reports.exports.row_builder import ExportPlan
from reports.exports.typed.columns import Described, Storage
from reports.models.exports import ValueType
from survey.instrument.definitions.schema import ItemDefinition

# In English, like the names of the columns and the codebook.
NOT_APPLICABLE, SKIPPED, NOT_REACHED = "Not applicable", "Skipped", "Not reached"
LEFT_OUT = "Left out, because few people answered"
CHOSEN = {"0": "Not chosen", "1": "Chosen"}
STORAGE_OF_KIND = {
    "date": Storage.DAY,
    "time": Storage.TIME,
    "datetime": Storage.MOMENT,
}


def described_columns(plan: ExportPlan) -> list[Described]:
    """Return the columns in the order of the file."""
    masked = masked_reason(plan)
    columns = [
        Described(header, meaning, None, missing=masked, masked=plan.missing.masked)
        for header, meaning in respondent_columns(plan)
    ]
    for variable in plan.columns.variables:
        columns += _columns_of(variable, plan)
    return columns


def masked_reason(plan: ExportPlan) -> dict[int, str]:
    """Return the code of what files without names leave out."""
    return {plan.missing.masked: LEFT_OUT} if plan.releases else {}


def _columns_of(variable: Variable, plan: ExportPlan) -> Iterator[Described]:
    versions = [
        plan.columns.versions[digest]
        for digest in plan.columns.versions
        if digest in variable.items
    ]
    newest = versions[0]
    item = variable.items[newest.digest]
    question = question_of(newest, item, variable.name, plan.language)
    values = _values(variable, versions, plan.language)
    missing = _missing(variable, plan)
    level = _level(newest, item, variable.name)
    storage = _storage(variable, values)
    if not variable.multiple:
        yield Described(
            variable.name,
            question,
            storage,
            values=values,
            missing=missing,
            masked=plan.missing.masked,
            level=level,
            question=question,
        )
        return
    for value, header in zip(variable.options, variable.columns, strict=True):
        yield Described(
            header,
            f"{question}: {values[value]}",
            Storage.NUMBER,
            values=CHOSEN,
            missing=missing,
            masked=plan.missing.masked,
            choice=variable.name,
            question=question,
        )


def question_of(
    version: SurveyVersion, item: ItemDefinition, name: str, language: str
) -> str:
    """Return the text of a question, behind the stem of its grid if it has one."""
    _page, block = block_of(version, name)
    stem = version.in_language(block["label"], language) if block["grid"] else ""
    label = version.in_language(item.get("label", {}), language)
    return " – ".join(filter(None, (stem, label))) or name


def _values(
    variable: Variable, versions: list[SurveyVersion], language: str
) -> Mapping[str, str]:
    texts: dict[str, str] = {}
    for version in versions:
        for option in version.options(variable.items[version.digest]):
            label = version.in_language(option["label"], language)
            texts.setdefault(option["value"], label or option["value"])
    return texts


def _missing(variable: Variable, plan: ExportPlan) -> dict[int, str]:
    """Return the reasons that a cell can have by their codes."""
    codes = plan.missing
    reasons = masked_reason(plan)
    kinds = {value_type(item["kind"]) for item in variable.items.values()}
    if any(map(plan.has_codes, kinds)):
        reasons[codes.not_applicable] = NOT_APPLICABLE
        reasons[codes.skipped] = SKIPPED
        reasons[codes.not_reached] = NOT_REACHED
    return reasons


def _level(version: SurveyVersion, item: ItemDefinition, name: str) -> str:
    """Return the level of measurement: of choices, only scales are ordinal."""
    kind = value_type(item["kind"])
    if kind in (ValueType.NUMBER, ValueType.DATE):
        return "scale"
    if item["kind"] != "select_one":
        return "nominal"
    _page, block = block_of(version, name)
    is_measured = any(
        part["name"] == name
        for measure in (version.measures["measures"] if version.measures else ())
        for part in measure["items"]
    )
    is_likert = "likert" in item.get("appearance", ())
    return "ordinal" if is_measured or is_likert or block["grid"] else "nominal"


def _storage(variable: Variable, values: Mapping[str, str]) -> Storage | None:
    """Return what the survey says the answers are.

    None of calculations and fixed values, which may be anything.
    """
    kinds = {item["kind"] for item in variable.items.values()}
    types = {value_type(kind) for kind in kinds}
    if len(types) > 1:
        return Storage.TEXT
    (only,) = types
    if only is ValueType.CHOICE:
        numeric = all(NUMERIC_CODE.fullmatch(value) for value in values)
        return Storage.NUMBER if numeric else Storage.TEXT
    if kinds & {"calculate", "hidden"}:
        return None
    if only is ValueType.NUMBER:
        return Storage.NUMBER
    storages = {STORAGE_OF_KIND.get(kind, Storage.TEXT) for kind in kinds}
    return storages.pop() if len(storages) == 1 else Storage.TEXT
