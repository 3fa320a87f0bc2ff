"""Read the rows of a draft: its pages, its problems by row, and what to show.

A draft of 300 questions in three languages takes 20 ms. Readings of committed rows
are kept in memory by the number of the last change.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from django.db import transaction
from django.utils.translation import get_language

from survey.instrument.bank.locks import report_differences
from survey.instrument.definitions.expressions import references
from survey.instrument.definitions.piping import piped_in_labels
from survey.instrument.definitions.publishing import FORMAT
from survey.instrument.definitions.rule_dependencies import (
    CycleError,
    evaluation_order,
    local_rules,
)
from survey.instrument.definitions.schema import (
    RULES,
    SELECTS,
    ItemDefinition,
    OptionDefinition,
    SurveyDefinition,
)
from survey.instrument.drafts.collector import paused_collector
from survey.instrument.drafts.option_problems import report_options_without_text
from survey.instrument.drafts.store import load_book
from survey.instrument.drafts.subjects import OptionLabels, option_labels
from survey.instrument.drafts.workbook import FIRST_ROW, DraftBook, Row
from survey.instrument.xlsform.draft import Draft, ItemDraft
from survey.instrument.xlsform.problems import (
    FileRefused,
    Findings,
    Problem,
    in_reading_order,
)
from survey.instrument.xlsform.reading import read_draft
from survey.instrument.xlsform.workbook import SHEETS
from survey.models import Survey

MOST_IN_MEMORY = 8


@dataclass(frozen=True)
class DraftReading:
    """What the reader of workbooks makes of a draft's rows.

    `draft` is there also if there are problems, unless nothing can be read at all.
    """

    book: DraftBook
    draft: Draft | None
    problems: list[Problem]
    warnings: list[Problem]
    # Of the survey sheet, by row number.
    rows: Mapping[int, Row] = field(default_factory=dict)
    _labels: dict[str, OptionLabels] = field(default_factory=dict)

    @cached_property
    def problems_by_key(self) -> dict[str, list[Problem]]:
        """Problems by the key of their row, of all sheets; "" for the others."""
        by_key: dict[str, list[Problem]] = {}
        for problem in self.problems:
            by_key.setdefault(self.key_of(problem), []).append(problem)
        return by_key

    def key_of(self, problem: Problem) -> str:
        sheet = self.book.sheets.get(problem.sheet)
        place = (problem.row or 0) - FIRST_ROW
        if sheet is None or not 0 <= place < len(sheet.rows):
            return ""
        return sheet.rows[place].key

    @cached_property
    def keys(self) -> dict[str, str]:
        """Return the key of each item's row, by the item's name."""
        if self.draft is None:
            return {}
        return {
            item.name: self.rows[item.row.number].key for item in self.draft.items()
        }

    def option_labels(self, language: str) -> OptionLabels:
        """Return the options of each list, once for all rules of a page."""
        if self.draft is None:
            return {}
        if language not in self._labels:
            self._labels[language] = option_labels(self.draft, language)
        return self._labels[language]

    @cached_property
    def definition(self) -> SurveyDefinition | None:
        """The survey to show, without rules if there are problems."""
        if self.draft is None or not self.draft.pages:
            return None
        return definition_of(self.draft, with_rules=not self.problems)

    @cached_property
    def drawn_definition(self) -> SurveyDefinition | None:
        """The survey to draw, not to answer: without rules that cannot be followed."""
        if self.draft is None or not self.draft.pages:
            return None
        return definition_of(self.draft, left_out=self.unreadable_rules)

    @property
    def unreadable_rules(self) -> set[str]:
        """Return the items with a problem in another column than that of the text."""
        if self.draft is None or not self.problems:
            return set()
        columns = self.book.sheet("survey").known.known.values()
        labels = {column.header for column in columns if column.key == "label"}
        rows = {
            problem.row
            for problem in self.problems
            if problem.sheet == "survey" and problem.column not in labels
        }
        items = [*self.draft.items()]
        known = {item.name for item in items}
        return {
            item.name
            for item in items
            if item.row.number in rows
            or any(
                references(item.rules[rule]) - known
                for rule in RULES
                if rule in item.rules
            )
        }


# By the survey, its last change, the language of the problems, and how it was checked.
_in_memory: OrderedDict[tuple[object, ...], DraftReading] = OrderedDict()


def read_rows_of(survey: Survey, *, with_pyxform: bool = True) -> DraftReading:
    """Return the reading of a draft, from memory or by 2 statements.

    Pyxform finds hardly anything more: where a draft is read after each change, a third
    of the time is saved without it.
    """
    key = (
        *(survey.pk, survey.created_at, survey.last_change),
        *(get_language(), with_pyxform),
    )
    reading = _in_memory.get(key)
    if reading is not None:
        _in_memory.move_to_end(key)
        return reading
    new = read_stored_rows(survey, with_pyxform=with_pyxform)

    def remember() -> None:
        _in_memory[key] = new
        while len(_in_memory) > MOST_IN_MEMORY:
            _in_memory.popitem(last=False)

    # Rows that are rolled back have a number that others will get.
    transaction.on_commit(remember)
    return new


@paused_collector()
def read_stored_rows(survey: Survey, *, with_pyxform: bool = True) -> DraftReading:
    """Read the rows as they are stored, not from memory."""
    return read_book(load_book(survey), name=survey.name, with_pyxform=with_pyxform)


def read_book(book: DraftBook, *, name: str, with_pyxform: bool = True) -> DraftReading:
    findings = Findings()
    sheets = {
        title: sheet.as_survey_sheet()
        for title, sheet in book.sheets.items()
        if title in SHEETS
    }
    draft = None
    try:
        draft = read_draft(sheets, name, findings, with_pyxform=with_pyxform)
    except FileRefused as refusal:
        findings.refuse("", None, "", str(refusal))
    report_differences(book, findings)
    report_options_without_text(book, findings)
    rows = book.sheet("survey").rows
    return DraftReading(
        book,
        draft,
        in_reading_order(findings.problems),
        in_reading_order(findings.warnings),
        dict(enumerate(rows, FIRST_ROW)),
    )


def definition_of(
    draft: Draft, *, with_rules: bool = True, left_out: Collection[str] = ()
) -> SurveyDefinition:
    """Compile a definition without storing anything; ids are numbers of rows.

    The rules of items that are `left_out` are dropped.
    """
    option_sets: dict[str, list[OptionDefinition]] = {
        name: [
            {
                "value": option.value,
                "label": option.label,
                "attributes": option.attributes,
            }
            for option in options
        ]
        for name, options in draft.option_sets.items()
    }
    items: dict[str, ItemDefinition] = {}
    for number, page in enumerate(draft.pages, 1):
        page_items = {
            item.name: _item_of(
                item, number, option_sets, with_rules and item.name not in left_out
            )
            for item in page.items()
        }
        for compiled in page_items.values():
            if local := local_rules(compiled, page_items):
                compiled["local"] = local
        items |= page_items
    try:
        order = evaluation_order(items, piped_in_labels(option_sets))
    except CycleError:
        return definition_of(draft, with_rules=False)
    return {
        "format": FORMAT,
        "name": draft.name,
        "version": draft.version,
        "title": draft.title,
        "languages": draft.languages,
        "option_sets": option_sets,
        "pages": [
            {
                "name": page.name,
                "title": page.title,
                "blocks": [
                    {
                        "label": block.label,
                        "grid": block.is_grid,
                        "items": [item.name for item in block.items],
                    }
                    for block in page.blocks
                ],
            }
            for page in draft.pages
        ],
        "items": items,
        "order": order,
    }


def _item_of(
    item: ItemDraft,
    page: int,
    option_sets: Mapping[str, list[OptionDefinition]],
    with_rules: bool,
) -> ItemDefinition:
    compiled: ItemDefinition = {"id": item.row.number, "page": page, "kind": item.kind}
    if item.label:
        compiled["label"] = item.label
    if item.hint:
        compiled["hint"] = item.hint
    if item.guidance:
        compiled["guidance"] = item.guidance
    compiled.update(item.rules)
    if not with_rules:
        for rule in RULES:
            compiled.pop(rule, None)  # type: ignore[misc]
    if item.option_set in option_sets:
        compiled["option_set"] = item.option_set
    elif item.kind in SELECTS:
        # Its list of options is missing, which is one of the problems.
        compiled["kind"] = "note"
    return compiled
