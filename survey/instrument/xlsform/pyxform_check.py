"""Check a survey with pyxform, the reference reader, as well.

pyxform stops at its first error, mostly without a column, so the rows are read
by us, with its own tables of spellings, and all problems are reported at once.
Then pyxform reads the same cells, under the headers and types as they were
understood. What it still refuses is a problem too: otherwise a survey would be
accepted here and refused by every other program that reads XLSForm.
"""

from __future__ import annotations

import re

from django.utils.translation import gettext as _
from pyxform.errors import PyXFormError
from pyxform.xls2json import workbook_to_json
from pyxform.xls2json_backends import DefinitionData

from survey.instrument.xlsform.columns import SurveyRow
from survey.instrument.xlsform.languages import Language
from survey.instrument.xlsform.problems import Findings

ROW = re.compile(r"\[row : (\d+)\]\s*")

Cells = dict[str, str]


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
CHECKED = (
    frozenset(["type", "name", "default", "parameters", "choice_filter", "list"])
    | CANONICAL.keys()
)


def check_with_pyxform(
    survey: list[SurveyRow],
    choices: list[SurveyRow],
    settings: Cells,
    languages: list[Language],
    findings: Findings,
) -> None:
    survey_cells = cells_by_row(survey, languages)
    choices_cells = cells_by_row(choices, languages)
    headers = dict.fromkeys(key for row in survey_cells for key in row)
    choices_headers = dict.fromkeys(key for row in choices_cells for key in row)
    definition = DefinitionData(
        survey=survey_cells,
        choices=choices_cells,
        settings=[settings],
        survey_header=[{"type": None, "name": None, **headers}],
        choices_header=[{"list name": None, "name": None, **choices_headers}],
        settings_header=[dict.fromkeys(settings)],
        sheet_names=["survey", "choices", "settings"],
    )
    try:
        workbook_to_json(definition, form_name="data", warnings=[])
    except PyXFormError as error:
        message = str(error)
        row = ROW.search(message)
        sheet = "choices" if "'choices' sheet" in message else "survey"
        number = int(row[1]) if row else None
        findings.refuse(sheet, number, "", ROW.sub("", message).strip())
    # pyxform was written for well-meant files; on others it can fail in any
    # way, and none may become a traceback.
    except Exception as error:
        reason = _("pyxform cannot read the survey (%(name)s)") % {
            "name": type(error).__name__
        }
        findings.refuse("survey", None, "", reason, str(error))


def cells_by_row(rows: list[SurveyRow], languages: list[Language]) -> list[Cells]:
    """List the cells of all rows from 2, empty ones too: pyxform counts them."""
    by_number = {row.number: pyxform_cells(row, languages) for row in rows}
    last = max(by_number, default=1)
    return [by_number.get(number, {}) for number in range(2, last + 1)]


def pyxform_cells(row: SurveyRow, languages: list[Language]) -> Cells:
    # The survey has none of these rows, so pyxform's opinion of them is no reason
    # to refuse it.
    if row.values.get("canonical type") == "metadata" or row.values.get("disabled"):
        return {}
    cells = {
        CANONICAL.get(key, key): value
        for key, value in row.values.items()
        if key in CHECKED
    }
    if "canonical type" in row.values:
        cells["type"] = row.values["canonical type"]
    for key, texts in row.texts.items():
        for language in languages:
            if language.code in texts and key != "media":
                header = f"{CANONICAL.get(key, key)}::{language.name} ({language.code})"
                cells[header] = texts[language.code]
    return {**cells, **row.free}
