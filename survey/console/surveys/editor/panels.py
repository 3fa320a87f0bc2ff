"""Describe the settings of a question, grid, page or survey, field by field."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property

from django.utils.text import Truncator, capfirst
from django.utils.translation import gettext as _
from django.utils.translation import pgettext, pgettext_lazy

from survey.console.surveys.contents import KIND_WORDS
from survey.console.surveys.editor.bank import lock_of
from survey.console.surveys.editor.field_views import (
    Choices,
    FieldView,
    OptionsView,
    OptionView,
    Panel,
    RuleView,
    View,
)
from survey.console.surveys.editor.fields import (
    GRID_KIND,
    KINDS,
    SETTINGS,
    Address,
    Fields,
    measure_of,
)
from survey.console.surveys.editor.outline import GRID, Entry, Outline, PageEntry
from survey.console.surveys.editor.rules import FIELDS, EditorRuleForm, rule_form
from survey.instrument.bank.content import is_locked_field
from survey.instrument.bank.locks import locked_rows
from survey.instrument.definitions.schema import NUMBERS, SELECTS
from survey.instrument.drafts.commands import questions_using
from survey.instrument.drafts.groups import (
    can_be_grid,
    can_begin_section,
    can_have_heading,
)
from survey.instrument.drafts.limits import limits_of_row
from survey.instrument.drafts.option_rows import first_labels, options_of
from survey.instrument.drafts.reading import DraftReading
from survey.instrument.drafts.ready_options import ready_lists
from survey.instrument.drafts.workbook import Row
from survey.instrument.xlsform.problems import Problem
from survey.instrument.xlsform.types import parse_type

LINE, TEXT, CODE, SELECT, TICK, NUMBER = (
    *("line", "text", "code", "select", "tick", "number"),
)
# Longer lists are shown whole only if somebody asks for it.
SHOWN_OPTIONS = 100
# Of a question in the menu of lists.
LONGEST_TEXT = 60
KIND_NAMES = {
    kind: KIND_WORDS.get(kind, pgettext_lazy("question type", "long text"))
    for kind in KINDS
}


class PanelBuilder:
    """`filled` are forms of rules as a user has just filled them in."""

    def __init__(
        self,
        reading: DraftReading,
        outline: Outline,
        view: View,
        filled: Mapping[str, EditorRuleForm],
    ) -> None:
        self.filled = filled
        self.reading = reading
        self.book = reading.book
        self.sheet = reading.book.sheet("survey")
        self.outline = outline
        self.view = view
        self.fields = Fields(reading.book)
        codes = dict.fromkeys(filter(None, (view.language, view.second)))
        known = {language.code: language for language in self.fields.languages}
        self.shown = [known[code] for code in codes if code in known]
        self.locked = locked_rows(reading.book).questions

    def build(self, key: str) -> Panel:
        page, entry = self.outline.by_key.get(key, (None, None))
        if page is None:
            return self.survey()
        if entry is None:
            return self.page(page)
        if entry.sort == "question":
            return self.question(page, entry)
        if entry.sort == "row":
            return self.row(entry)
        return self.group(entry)

    # The parts

    def view_of(
        self,
        address: Address,
        label: str,
        widget: str = LINE,
        **more: object,
    ) -> FieldView:
        # A question without a text is only unfinished.
        is_question = (address.sheet, address.field) == ("survey", "label")
        problems = [
            str(problem.reason)
            for problem in self.problems_of(address)
            if not (is_question and not self.fields.read(address))
        ]
        value = self.fields.read(address)
        question = self.locked.get(address.key)
        cell = CELLS.get(address.field, address.field)
        if question and is_locked_field(question, cell, address.language):
            more["is_locked"] = True
        return FieldView(
            str(address),
            label,
            widget,
            value,
            is_stale=self.fields.is_stale(address),
            problems=problems,
            **more,  # type: ignore[arg-type]
        )

    def problems_of(self, address: Address) -> Iterable[Problem]:
        """Return the problems of a cell; of a text, in the first language."""
        if address.language and address.language != self.fields.languages[0].code:
            return
        sheet = self.book.sheet(address.sheet)
        key = address.key
        if key == SETTINGS:
            key = sheet.rows[0].key if sheet.rows else ""
        wanted = CELLS.get(address.field, address.field)
        headers = {
            column.header
            for column in sheet.known.known.values()
            if column.key == wanted
        } | {wanted}
        for problem in self.reading.problems_by_key.get(key, ()):
            if problem.sheet == address.sheet and problem.column in headers:
                yield problem

    def texts(
        self, key: str, field: str, label: str, sheet: str = "survey", **more: object
    ) -> list[FieldView]:
        """Return a field for each language that is shown."""
        views = []
        for language in self.shown:
            address = Address(sheet, key, field, language.code)
            name = f"{label} ({language.name})" if len(self.shown) > 1 else label
            views.append(self.view_of(address, name, TEXT, language=language, **more))
        return views

    def rule(self, key: str, rule: str, label: str) -> RuleView:
        code = self.view_of(Address("survey", key, FIELDS[rule]), label, CODE)
        form = rule_form(
            self.reading, key, rule, code.value, language=self.view.language
        )
        filled = self.filled.get(rule)
        if form and filled and (filled.is_unfinished or filled.is_loose(form)):
            # The next change is compared with what is stored now.
            filled.take_over(form)
            form = filled
        message = []
        if rule == "constraint" and code.value:
            message = self.texts(
                key, "constraint_message", _("Message if not accepted")
            )
        return RuleView(rule, label, form, code, message)

    def rest_of(self, key: str, shown: Iterable[FieldView]) -> list[str]:
        """Return the problems of a row that stand at none of its fields."""
        at_fields = {text for view in shown for text in view.problems}
        return [
            f"{problem.column}: {problem.reason}" if problem.column else problem.reason
            for problem in self.outline.problems.get(key, ())
            if problem.reason not in at_fields
            and not (self.outline.is_about_label(problem))
        ]

    # The panels

    def question(self, page: PageEntry, entry: Entry) -> Panel:
        key, row = entry.key, self.sheet.row(entry.key)
        panel = Panel(
            "question",
            key,
            _("Question %(number)s") % {"number": entry.number}
            if entry.number
            else capfirst(str(KIND_WORDS.get(entry.kind, entry.kind))),
            languages=self.fields.languages,
        )
        panel.texts = [
            *self.texts(
                key,
                "label",
                _("Text") if entry.kind == "note" else _("Question"),
                placeholder=_("Write your question"),
            ),
            *self.texts(key, "hint", _("Hint"), placeholder=_("None")),
            *self.guidance(key),
        ]
        panel.kind = self.kind(key, row)
        kind = parse_type(self.sheet.value(row, "type")).kind
        if kind in SELECTS:
            panel.options = self.options(row)
        if kind == "range":
            panel.scale_name = _("Scale")
            panel.scale = self.numbers(
                key,
                ("start", pgettext("scale", "From"), "1"),
                ("end", pgettext("scale", "To"), "10"),
                ("step", pgettext("scale", "Step"), "1"),
            )
        elif kind in NUMBERS and limits_of_row(self.book, row) is not None:
            panel.scale_name = _("Accepted numbers")
            panel.scale = self.numbers(
                key,
                ("smallest", pgettext("number", "Smallest"), _("None")),
                ("largest", pgettext("number", "Largest"), _("None")),
            )
        if kind not in ("note", "calculate", "hidden"):
            panel.answer = self.answer(key, kind)
        panel.rules = self.rules(key, kind)
        panel.more = self.more(key, row, kind)
        panel.grid = self.grids.get(key, "")
        panel.lock = lock_of(self.book, key)
        panel.groupings = self.groupings(page, key)
        shown = [
            *(panel.texts + panel.scale + panel.answer + panel.more),
            panel.kind,
            *self.rule_fields(panel.rules),
            *self.option_fields(panel.options),
        ]
        panel.problems = self.rest_of(key, shown)
        return panel

    def numbers(self, key: str, *fields: tuple[str, str, str]) -> list[FieldView]:
        """Return fields by name, label and placeholder."""
        return [
            self.view_of(
                Address("survey", key, name), label, NUMBER, placeholder=placeholder
            )
            for name, label, placeholder in fields
        ]

    def guidance(self, key: str) -> list[FieldView]:
        """Return the fields of a text that respondents open; a grid shows none."""
        views = self.texts(
            key,
            "guidance",
            _("More help"),
            placeholder=_("None"),
            hint=_("People see it when they open it."),
        )
        is_shown = key not in self.grids or any(view.value for view in views)
        return views if is_shown else []

    def groupings(self, page: PageEntry, key: str) -> list[tuple[str, str]]:
        acts = []
        if not page.key:
            top = ",".join(shown.key for shown in page.entries if not shown.depth)
            acts.append((f"wrap:{top}", _("Give this page a title")))
        if can_have_heading(self.sheet, key):
            acts.append((f"heading:{key}", _("Put a heading above")))
        if can_be_grid(self.sheet, key) and key not in self.locked:
            acts.append((f"grid:{key}", _("Make a grid")))
        return acts

    def kind(self, key: str, row: Row) -> FieldView:
        view = self.view_of(Address("survey", key, "kind"), _("Type"), SELECT)
        choices = [(kind, str(words)) for kind, words in KIND_NAMES.items()]
        if view.value not in KIND_NAMES:
            words = str(KIND_WORDS.get(view.value, self.sheet.value(row, "type")))
            choices.append((view.value, words))
        if key in self.locked:
            choices = [choice for choice in choices if choice[0] == view.value]
        elif can_be_grid(self.sheet, key):
            choices.insert(2, (GRID_KIND, _("grid: statements with one scale")))
        return replace(view, choices=choices)

    def answer(self, key: str, kind: str) -> list[FieldView]:
        """Return the fields about how a question is answered."""
        required = self.view_of(
            Address("survey", key, "required_choice"),
            _("Required"),
            SELECT,
            choices=[("", _("No")), ("yes", _("Yes")), ("if", _("If …"))],
        )
        views = [required]
        if required.value:
            label = _("Message if it is required")
            views += self.texts(key, "required_message", label)
        if kind in SELECTS:
            layouts = [
                ("", _("Below each other")),
                ("horizontal", _("Side by side")),
                ("minimal", _("Menu")),
            ]
            if kind == "select_one":
                layouts.append(("likert", _("Scale with a line")))
            views += [
                self.view_of(
                    Address("survey", key, "layout"),
                    _("Layout"),
                    SELECT,
                    choices=layouts,
                ),
                self.view_of(
                    Address("survey", key, "shuffle"), _("Shuffle the options"), TICK
                ),
            ]
        return views

    def rules(self, key: str, kind: str) -> list[RuleView]:
        views = [self.rule(key, "relevant", _("Show this question if"))]
        if kind in ("note", "calculate", "hidden"):
            return views
        views.append(self.rule(key, "required", _("Required if")))
        views.append(self.rule(key, "constraint", _("Accepted if")))
        if kind in SELECTS:
            views.append(self.rule(key, "choice_filter", _("Options offered if")))
        return views

    def more(self, key: str, row: Row, kind: str) -> list[FieldView]:
        views = [
            self.view_of(
                Address("survey", key, "name"),
                _("Variable name"),
                LINE,
                hint=_("The column in exports. It is made from the text."),
            )
        ]
        if kind == "calculate":
            address = Address("survey", key, "calculation")
            views.insert(0, self.view_of(address, _("Calculated as"), CODE))
        measures = self.book.sheet("measures")
        names = [
            (measures.value(row, "name"), self.measure_label(row))
            for row in measures.rows
            if measures.value(row, "name")
            and measures.value(row, "type").lower() != "essential"
        ]
        if names and kind in ("select_one", "range", "integer", "decimal"):
            views.append(
                self.view_of(
                    Address("survey", key, "measure"),
                    _("Counts for the measure"),
                    SELECT,
                    choices=[("", pgettext("measure", "None")), *names],
                )
            )
            if measure_of(self.book, row)[0]:
                views.append(
                    self.view_of(
                        Address("survey", key, "reversed"),
                        _("Reversed: agreeing is a bad sign"),
                        TICK,
                    )
                )
        return views

    def measure_label(self, row: Row) -> str:
        measures = self.book.sheet("measures")
        for language in (*self.shown, *self.fields.languages, None):
            number = measures.column_or_none("label", language)
            if number is not None and row.cells.get(number):
                return row.cells[number]
        return measures.value(row, "name")

    def options(self, row: Row) -> OptionsView:
        type_ = parse_type(self.sheet.value(row, "type"))
        rows = options_of(self.book, type_.option_set)
        users = self.users_of(type_.option_set, row)
        is_locked = bool(users) and self.view.options != "everywhere"
        if row.key in self.locked:
            users, is_locked = 0, True
        most = len(rows) if self.view.options == "all" else SHOWN_OPTIONS
        views = []
        for number, option in enumerate(rows[:most], 1):
            labels = self.texts(
                option.key,
                "label",
                _("Option %(n)s") % {"n": number},
                "choices",
                is_bare=True,
                is_locked=is_locked,
            )
            value = self.view_of(
                Address("choices", option.key, "name"),
                _("Value of option %(n)s") % {"n": number},
                LINE,
                is_bare=True,
                is_locked=is_locked,
            )
            text = labels[0].value
            placeholder = text if text in first_labels(value.value) else ""
            views.append(OptionView(option.key, number, labels, value, placeholder))
        lists = [] if row.key in self.locked else self.lists(type_)
        ready = [] if is_locked else ready_lists(self.book, type_.option_set)
        return OptionsView(
            type_.option_set, views, len(rows), users, is_locked, lists, ready
        )

    def users_of(self, option_set: str, row: Row) -> int:
        """Count the questions that share a list, without those of the same grid."""
        grid = self.grids.get(row.key)
        outside = [
            user
            for user in questions_using(self.book, option_set)
            if user.key != row.key and (not grid or self.grids.get(user.key) != grid)
        ]
        return len(outside) + 1 if outside else 0

    @cached_property
    def grids(self) -> dict[str, str]:
        """Return the grid around each question that is in one, by their keys."""
        entries = [entry for page in self.outline.pages for entry in page.entries]
        grids = {entry.key for entry in entries if entry.sort == GRID}
        return {entry.key: entry.group for entry in entries if entry.group in grids}

    def lists(self, type_: object) -> Choices:
        choices = self.book.sheet("choices")
        labels: dict[str, list[str]] = {}
        number = choices.column_or_none("label", self.shown[0])
        if number is None:
            number = choices.column_or_none("label")
        listed = choices.column_or_none("list") or 0
        for row in choices.rows:
            name = row.cells.get(listed, "")
            shown = labels.setdefault(name, [])
            if name and len(shown) < 3:
                shown.append(row.cells.get(number or 0, ""))
        users = self.first_users
        return [
            (
                name,
                _("Same answers as: %(question)s") % {"question": users[name]}
                if name in users
                else ", ".join(filter(None, shown)) or name,
            )
            for name, shown in labels.items()
            if name
        ]

    @cached_property
    def first_users(self) -> dict[str, str]:
        """Return the number and text of the first question that uses each list."""
        users: dict[str, str] = {}
        for page in self.outline.pages:
            for entry in page.entries:
                row = self.reading.rows[entry.place]
                type_ = parse_type(self.sheet.value(row, "type"))
                if entry.number and type_.option_set:
                    text = Truncator(entry.text or _("No text yet")).chars(LONGEST_TEXT)
                    users.setdefault(type_.option_set, f"{entry.number}. {text}")
        return users

    def rule_fields(self, rules: Iterable[RuleView]) -> Iterable[FieldView]:
        for rule in rules:
            yield rule.code
            yield from rule.message

    def option_fields(self, options: OptionsView | None) -> Iterable[FieldView]:
        for option in options.options if options else ():
            yield option.value
            yield from option.labels

    def group(self, entry: Entry) -> Panel:
        """Return the settings of a grid, or of a heading with its questions."""
        key = entry.key
        is_grid = entry.sort == GRID
        title = _("Grid") if is_grid else _("Heading")
        panel = Panel(entry.sort, key, title, languages=self.fields.languages)
        panel.texts = self.texts(
            key,
            "label",
            _("Question above the grid") if is_grid else _("Heading"),
            placeholder=_("How much do you agree?") if is_grid else "",
        )
        rows = self.rows_of(key)
        if is_grid:
            panel.rows = [
                (
                    row.key,
                    self.texts(
                        row.key,
                        "label",
                        _("Statement %(n)s") % {"n": number},
                        is_bare=True,
                    ),
                )
                for number, row in enumerate(rows, 1)
            ]
            if rows and parse_type(self.sheet.value(rows[0], "type")).option_set:
                panel.options = self.options(rows[0])
        else:
            panel.groupings = [(f"unwrap:{key}", _("Remove the heading"))]
        panel.rules = [self.rule(key, "relevant", _("Show these questions if"))]
        shown = [
            *panel.texts,
            *self.rule_fields(panel.rules),
            *self.option_fields(panel.options),
        ]
        panel.problems = self.rest_of(key, shown)
        return panel

    def rows_of(self, key: str) -> list[Row]:
        """Return the questions of a grid or heading, in order."""
        page, _entry = self.outline.by_key[key]
        return [
            self.sheet.row(shown.key) for shown in page.entries if shown.group == key
        ]

    def page(self, page: PageEntry) -> Panel:
        key = page.key
        panel = Panel(
            "page",
            key,
            _("Page %(number)s") % {"number": page.number},
            languages=self.fields.languages,
        )
        panel.texts = self.texts(key, "label", _("Page title"), placeholder=_("None"))
        panel.rules = [self.rule(key, "relevant", _("Show this page if"))]
        panel.more = [
            self.view_of(Address("survey", key, "name"), _("Name of the page"), LINE)
        ]
        if can_begin_section(self.sheet, key):
            panel.groupings = [(f"section:{key}", _("Begin a section here"))]
        if page.section:
            panel.groupings = [(f"unwrap:{page.section}", _("Remove the section"))]
            panel.more = [
                *self.texts(page.section, "label", _("Title of the section")),
                *panel.more,
            ]
        panel.problems = self.rest_of(
            key, [*panel.texts, *self.rule_fields(panel.rules), *panel.more]
        )
        return panel

    def row(self, entry: Entry) -> Panel:
        """Return a row that cannot be shown, as it is written."""
        panel = Panel("row", entry.key, _("Row that can’t be shown"))
        panel.more = [
            self.view_of(Address("survey", entry.key, "type"), "type", LINE),
            self.view_of(Address("survey", entry.key, "name"), "name", LINE),
        ]
        panel.problems = self.rest_of(entry.key, panel.more)
        return panel

    def survey(self) -> Panel:
        panel = Panel("survey", "", _("Survey"), languages=self.fields.languages)
        panel.texts = self.texts(SETTINGS, "title", _("Title"), "settings")
        panel.more = [
            self.view_of(Address("settings", SETTINGS, "version"), _("Version"), LINE)
        ]
        shown: Sequence[FieldView] = [*panel.texts, *panel.more]
        at_fields = {text for view in shown for text in view.problems}
        choices = self.book.sheet("choices")
        used = {
            parse_type(self.sheet.value(row, "type")).option_set
            for row in self.sheet.rows
        }
        rows = {row.key for row in self.sheet.rows}
        rows |= {row.key for row in choices.rows if choices.value(row, "list") in used}
        panel.problems = [
            str(problem)
            for key, problems in self.reading.problems_by_key.items()
            for problem in problems
            if key not in rows and problem.reason not in at_fields
        ]
        return panel


# The cell of a field that is a part of it.
CELLS = {
    "kind": "type",
    "smallest": "constraint",
    "largest": "constraint",
    "required_if": "required",
    "layout": "appearance",
    "shuffle": "parameters",
    "start": "parameters",
    "end": "parameters",
    "step": "parameters",
}
