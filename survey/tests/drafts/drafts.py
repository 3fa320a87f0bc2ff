"""Make drafts for tests of the checks, from rows in two languages."""

from __future__ import annotations

from survey.instrument.drafts.checks import check_draft
from survey.tests.workbooks import read

HEADER = ["type", "name", "label::English (en)", "label::Español (es)", "required"]
CHOICES = [
    ["list_name", "name", "label::English (en)", "label::Español (es)"],
    ["agree", 1, "Strongly disagree", "Muy en desacuerdo"],
    ["agree", 2, "Disagree", "En desacuerdo"],
    ["agree", 3, "Agree", "De acuerdo"],
    ["yes_no", 1, "Yes", "Sí"],
    ["yes_no", 0, "No", "No"],
]
SETTINGS = [["form_id", "version", "default_language"], ["climate", "1", "en"]]


def draft(*rows, choices=()):
    width = len(HEADER)
    survey = [HEADER, *([*row, *[""] * (width - len(row))] for row in rows)]
    reading = read(survey, [*CHOICES, *choices], SETTINGS)
    assert reading.problems == []
    return reading.draft


def kinds(*rows, choices=(), **options):
    """Return what is reported: kind, item and language."""
    checks = check_draft(draft(*rows, choices=choices), **options)
    return [(check.kind, check.item, check.language) for check in checks]
