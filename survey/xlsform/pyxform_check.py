"""What pyxform, the reference reader, says of a survey.

pyxform stops at its first error and mostly without a column, so the rows are
read here, with its own tables of spellings, and every problem is told at
once. Then pyxform reads the same cells, under the headers and types as they
were understood. Whatever it still refuses is a problem too: a survey that
this reader takes and others of the trade do not would be found out too late.
"""

from __future__ import annotations

import re

from pyxform.errors import PyXFormError
from pyxform.xls2json import workbook_to_json
from pyxform.xls2json_backends import DefinitionData

from survey.xlsform.columns import Row
from survey.xlsform.languages import Language
from survey.xlsform.problems import Findings

ROW = re.compile(r"\[row : (\d+)\]\s*")

Cells = dict[str, str]


def ask_pyxform(
    survey: list[Row],
    choices: list[Row],
    settings: Cells,
    languages: list[Language],
    findings: Findings,
) -> None:
    definition = DefinitionData(
        survey=_with_gaps(survey, languages),
        choices=_with_gaps(choices, languages),
        settings=[settings],
        survey_header=_headers(survey, languages, {"type": None, "name": None}),
        choices_header=_headers(choices, languages, {"list name": None, "name": None}),
        settings_header=[dict.fromkeys(settings)],
        sheet_names=["survey", "choices", "settings"],
    )
    try:
        workbook_to_json(definition, form_name="data", warnings=[])
    except PyXFormError as error:
        _tell(str(error), findings)
    # It was made for files that people mean well with; on others it can fail
    # in any way, and none may become a traceback.
    except Exception as error:
        reason = f"pyxform cannot read the survey ({type(error).__name__})"
        findings.refuse("survey", None, "", reason, str(error))


def _tell(message: str, findings: Findings) -> None:
    row = ROW.search(message)
    sheet = "choices" if "'choices' sheet" in message else "survey"
    number = int(row[1]) if row else None
    findings.refuse(sheet, number, "", ROW.sub("", message).strip())


def _with_gaps(rows: list[Row], languages: list[Language]) -> list[Cells]:
    """pyxform counts rows by their places in the list, from 2."""
    by_number = {row.number: row for row in rows}
    last = max(by_number, default=1)
    return [
        _cells(by_number[number], languages) if number in by_number else {}
        for number in range(2, last + 1)
    ]


CANONICAL = {
    "list": "list name",
    "guidance": "guidance_hint",
    "required": "bind::required",
    "required_message": "bind::jr:requiredMsg",
    "relevant": "bind::relevant",
    "constraint": "bind::constraint",
    "constraint_message": "bind::jr:constraintMsg",
    "calculation": "bind::calculate",
    "read_only": "bind::readonly",
    "appearance": "control::appearance",
}
TAKEN = (
    frozenset(["type", "name", "default", "parameters", "choice_filter", "list"])
    | CANONICAL.keys()
)


def _cells(row: Row, languages: list[Language]) -> Cells:
    if row.values.get("canonical type") == "metadata" or row.values.get("disabled"):
        return {}
    cells = {
        CANONICAL.get(key, key): value
        for key, value in row.values.items()
        if key in TAKEN
    }
    if "canonical type" in row.values:
        cells["type"] = row.values["canonical type"]
    for key, texts in row.texts.items():
        for language in languages:
            if language.code in texts and key != "media":
                cells[_with_language(key, language)] = texts[language.code]
    return {**cells, **row.free}


def _with_language(key: str, language: Language) -> str:
    return f"{CANONICAL.get(key, key)}::{language.name} ({language.code})"


def _headers(
    rows: list[Row], languages: list[Language], first: dict[str, None]
) -> list[dict[str, None]]:
    return [first | {key: None for row in rows for key in _cells(row, languages)}]
