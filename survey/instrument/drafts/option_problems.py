"""Report options that were added in the editor and have no text yet.

Without one, people see the stored value, such as "5". Rows of an uploaded workbook may
be meant so: the ends of a scale have texts, and the numbers between them none.
"""

from __future__ import annotations

import re

from django.utils.translation import gettext as _

from survey.instrument.drafts.workbook import (
    FIRST_ROW,
    DraftBook,
    Row,
    Sheet,
    first_key,
)
from survey.instrument.xlsform.problems import Findings
from survey.instrument.xlsform.types import parse_type

OF_WORKBOOK = re.compile(rf"{first_key('choices', 0)[:-1]}\d+")


def is_blank(choices: Sheet, row: Row) -> bool:
    """Return whether an option was added in the editor and has no text at all."""
    labels = (n for n, column in choices.known.known.items() if column.key == "label")
    is_added = row.cells and not OF_WORKBOOK.fullmatch(row.key)
    return bool(is_added) and not any(row.cells.get(number) for number in labels)


def report_options_without_text(book: DraftBook, findings: Findings) -> None:
    choices, survey = book.sheets.get("choices"), book.sheets.get("survey")
    if choices is None or survey is None:
        return
    blank = [
        (place, choices.value(row, "list"))
        for place, row in enumerate(choices.rows, FIRST_ROW)
        if is_blank(choices, row)
    ]
    if not blank:
        return
    used = {parse_type(survey.value(row, "type")).option_set for row in survey.rows}
    columns = choices.known.known.values()
    headers = (column.header for column in columns if column.key == "label")
    header = next(headers, "label")
    for place, option_set in blank:
        if option_set in used:
            findings.refuse("choices", place, header, _("the option has no text"))
