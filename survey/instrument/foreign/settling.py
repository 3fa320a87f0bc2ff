"""Leave out what the reader of workbooks refuses, with a line in the report."""

from __future__ import annotations

from dataclasses import replace

from django.utils.translation import gettext as _

from survey.instrument.foreign.converted import (
    Cells,
    Converted,
    ReportLine,
    UnreadableQuestionnaire,
)
from survey.instrument.foreign.recognise import convert
from survey.instrument.foreign.sheets import workbook_of
from survey.instrument.xlsform import Problem, Reading, read_xlsform
from survey.instrument.xlsform.problems import quoted
from survey.instrument.xlsform.reading import LONGEST_SETTING

# Read in a web request. The sheets are read several times: a file of this size takes
# half a second, and ten if it was made to be slow.
READ_AT_ONCE = 50_000
RULES = frozenset(
    ["relevant", "constraint", "required", "default", "choice_filter"]
    + ["parameters", "appearance", "calculation"]
)
# A question that is left out can make rules unreadable, and these others; a file
# that still has problems then is refused with them.
MOST_ROUNDS = 12


def read_questionnaire(content: bytes, name: str) -> tuple[Reading, list[ReportLine]]:
    """Convert and read a questionnaire of another program. Raises nothing.

    The source of the reading is the workbook that was made.
    """
    try:
        converted = convert(content)
    except UnreadableQuestionnaire as refusal:
        return Reading(None, [Problem("", None, "", str(refusal))], [], b""), []
    return settled(converted, name), converted.report


def settled(converted: Converted, name: str) -> Reading:
    """Read the sheets, and leave out rows and rules until they are accepted."""
    for _number in range(MOST_ROUNDS):
        if not any(row.get("name") for row in converted.sheets["survey"]):
            reason = _("No question of this file can be taken over.")
            return Reading(None, [Problem("", None, "", reason)], [], b"")
        content = workbook_of(converted.sheets)
        reading = read_xlsform(content, name=name[:LONGEST_SETTING])
        if not reading.problems or not leave_out(converted, reading.problems):
            break
    return reading


def leave_out(converted: Converted, problems: list[Problem]) -> bool:
    """Return whether anything was left out for these problems."""
    dropped: dict[str, set[int]] = {"survey": set(), "choices": set()}
    changed = False
    for problem in problems:
        if problem.sheet not in dropped or not problem.row:
            continue
        index = problem.row - 2
        rows = converted.sheets[problem.sheet]
        if not 0 <= index < len(rows) or index in dropped[problem.sheet]:
            continue
        row, place = rows[index], converted.places[problem.sheet][index]
        header = problem.column.split("::")[0]
        if header in RULES and row.get(header) and row["type"] != "calculate":
            text = row.pop(header)
            refuse_rule(converted, place, f"{header}: {text}", problem.reason)
            changed = True
        elif quote_nothing(row):
            reason = _("the text quotes an answer that is not there: shown as written")
            converted.note(place, row.get("name", ""), "changed", reason)
            changed = True
        elif not row.get("type", "").startswith(("begin ", "end ")):
            dropped[problem.sheet].add(index)
            refuse_row(converted, problem.sheet, row, place, problem.reason)
            changed = True
    for sheet, indexes in dropped.items():
        for index in sorted(indexes, reverse=True):
            del converted.sheets[sheet][index]
            del converted.places[sheet][index]
    return changed


def quote_nothing(row: Cells) -> bool:
    """Write `${name}` as text in all texts of a row."""
    changed = False
    for header, text in row.items():
        if "::" in header and "${" in text:
            row[header] = text.replace("${", "{")
            changed = True
    return changed


def refuse_rule(converted: Converted, place: str, text: str, reason: str) -> None:
    """Refuse a rule that seemed to be taken over."""
    taken = [
        position
        for position, line in enumerate(converted.report)
        if (line.place, line.part, line.outcome) == (place, "rule", "taken")
    ]
    if len(taken) == 1:
        line = converted.report[taken[0]]
        converted.report[taken[0]] = replace(line, outcome="refused", reason=reason)
        return
    converted.note(place, quoted(text, 300), "refused", reason, "rule")


def refuse_row(
    converted: Converted, sheet: str, row: Cells, place: str, reason: str
) -> None:
    name = row.get("name", "")
    if sheet == "choices":
        converted.note(place, name, "refused", reason, "options")
        return
    rows = zip(converted.sheets["survey"], converted.places["survey"], strict=True)
    siblings = sum(row_place == place and "name" in row for row, row_place in rows)
    for position, line in enumerate(converted.report):
        is_line = (line.place, line.part) == (place, "question")
        # A line that stands for several rows says what became of the others.
        if is_line and line.outcome != "refused" and siblings == 1:
            refused = replace(line, outcome="refused", reason=reason)
            converted.report[position] = refused
            return
    converted.note(f"{place} {name}".strip(), name, "refused", reason)
