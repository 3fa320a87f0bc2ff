"""Report options that were added in the editor and have no text yet.

Without one, people see the stored value, such as "5". Rows of an uploaded workbook may
be meant so: the ends of a scale have texts, and the numbers between them none.
"""

from __future__ import annotations

import re

from django.utils.translation import gettext as _

from survey.instrument.drafts.workbook import FIRST_ROW, DraftBook, first_key
from survey.instrument.xlsform.problems import Findings
from survey.instrument.xlsform.types import parse_type

OF_WORKBOOK = re.compile(rf"{first_key('choices', 0)[:-1]}\d+")


def report_options_without_text(book: DraftBook, findings: Findings) -> None:
    choices, survey = book.sheets.get("choices"), book.sheets.get("survey")
    if choices is None or survey is None:
        return
    labels = {
        number: column.header
        for number, column in choices.known.known.items()
        if column.key == "label"
    }
    blank = [
        (place, choices.value(row, "list"))
        for place, row in enumerate(choices.rows, FIRST_ROW)
        if row.cells
        and not OF_WORKBOOK.fullmatch(row.key)
        and not any(row.cells.get(number) for number in labels)
    ]
    if not blank:
        return
    used = {parse_type(survey.value(row, "type")).option_set for row in survey.rows}
    header = next(iter(labels.values()), "label")
    for place, option_set in blank:
        if option_set in used:
            findings.refuse("choices", place, header, _("the option has no text"))
