"""Read the survey templates that are shipped with the product.

Each is a folder of sheets of an XLSForm as CSV, so that a change of a template can
be reviewed line by line. `templates.csv` lists them, in the order of the screens.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from survey.instrument.definitions.schema import Texts
from survey.instrument.drafts.checks.check import Audience
from survey.instrument.drafts.checks.length import minutes_of
from survey.instrument.xlsform.draft import Draft
from survey.instrument.xlsform.problems import Findings
from survey.instrument.xlsform.reading import read_draft
from survey.instrument.xlsform.workbook import SHEETS, SurveySheet

FOLDER = Path(__file__).parent
Sheets = dict[str, list[list[str]]]


@dataclass(frozen=True, slots=True)
class Template:
    """`minutes` is how long answering takes on a phone."""

    key: str
    title: Texts
    description: Texts
    pages: int
    questions: int
    minutes: int


@cache
def templates() -> Sequence[Template]:
    """List the templates; 50 ms each, once."""
    listed = []
    for key, *descriptions in read_rows(FOLDER / "templates.csv")[1:]:
        draft = draft_of(sheets_of(key))
        audience = Audience.STUDENTS if key == "students" else Audience.ADULTS
        languages = [language["code"] for language in draft.languages]
        listed.append(
            Template(
                key=key,
                title=draft.title,
                description=dict(zip(languages, descriptions, strict=True)),
                pages=len(draft.pages),
                questions=sum(item.is_answerable for item in draft.items()),
                minutes=minutes_of(draft, audience),
            )
        )
    return tuple(listed)


def sheets_of(key: str) -> Sheets:
    """Return the sheets of a template; the first row of each is its header.

    Raises KeyError if there is no such template.
    """
    if key not in {row[0] for row in read_rows(FOLDER / "templates.csv")[1:]}:
        raise KeyError(key)
    return {name: read_rows(FOLDER / key / f"{name}.csv") for name in SHEETS}


def read_rows(path: Path) -> list[list[str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.reader(file))


def draft_of(sheets: Mapping[str, Sequence[Sequence[str]]]) -> Draft:
    """Read the sheets of a template, which have no problems: a test sees to it."""
    return read_draft(survey_sheets(sheets), "", Findings())


def survey_sheets(
    sheets: Mapping[str, Sequence[Sequence[str]]],
) -> dict[str, SurveySheet]:
    """Number rows and columns as in a workbook, whose blank cells do not exist."""
    return {
        name: SurveySheet(
            name,
            headers=dict(enumerate(header, start=1)),
            rows={
                number: {
                    column: text for column, text in enumerate(row, start=1) if text
                }
                for number, row in enumerate(rows, start=2)
            },
        )
        for name, (header, *rows) in sheets.items()
    }
