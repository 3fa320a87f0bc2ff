"""Write the sheets of an XLSForm row by row, with the lines of the report."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from functools import cache

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop
from openpyxl import Workbook
from openpyxl.cell import WriteOnlyCell

from survey.instrument.foreign.conditions import Untranslatable
from survey.instrument.foreign.converted import Cells, Converted, Outcome, Part
from survey.instrument.foreign.names import Names, Taken, option_value
from survey.instrument.foreign.texts import (
    Texts,
    plain_text,
    shown_text,
    with_references,
)
from survey.instrument.xlsform.choices import MAX_OPTIONS
from survey.instrument.xlsform.items import OTHER, SPECIFY_OTHER, in_languages
from survey.instrument.xlsform.languages import CODE, canonical_code, own_name
from survey.instrument.xlsform.outline import MAX_ITEMS
from survey.instrument.xlsform.problems import quoted
from survey.instrument.xlsform.reading import (
    LONGEST_SETTING,
    LONGEST_TITLE,
    MAX_LANGUAGES,
)
from survey.instrument.xlsform.workbook import CONTROL, MAX_ROWS

# Room for the header, and for groups that are still open.
MOST_ROWS = MAX_ROWS - 200
ESCAPE = re.compile(r"_x([0-9A-Fa-f]{4})_")
UNANSWERED = gettext_noop("a question left blank passes, whatever the smallest number")
SHEETS = ("survey", "choices", "settings")
# Of 10,000 lines of a report, a person reads the first hundred.
LONGEST_RULE = 500


@dataclass(slots=True)
class Options:
    """A list on the choices sheet; `values` by code of the original."""

    name: str
    values: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class Question:
    """What a converter knows of one row; texts may have markup.

    `place` and `shown` name it in the report; rules are expressions.
    """

    place: str
    name: str
    type: str
    label: Texts
    hint: Texts = field(default_factory=dict)
    message: Texts = field(default_factory=dict)
    cells: Cells = field(default_factory=dict)
    changes: list[str] = field(default_factory=list)
    # A row that belongs to the question before it has no line of its own.
    is_part: bool = False
    shown: str = ""


class SheetWriter:
    """Collects rows, and the report, in the order of the original."""

    def __init__(self, languages: Iterable[str]) -> None:
        self.converted = Converted({sheet: [] for sheet in SHEETS})
        self.converted.places = {sheet: [] for sheet in SHEETS}
        self.note = self.converted.note
        offered = list(languages)
        self.codes = {code: language_code(code) for code in offered[:MAX_LANGUAGES]}
        if rest := offered[MAX_LANGUAGES:]:
            reason = _("a survey has at most %(most)s languages")
            words = quoted(", ".join(rest), LONGEST_RULE)
            self.refuse_setting("", words, reason % {"most": MAX_LANGUAGES})
        self.names = Names()
        self.lists: dict[tuple[object, ...], Options] = {}
        self.list_names = Names()
        self.questions = 0
        self.open: list[tuple[int, str, str]] = []

    @property
    def survey(self) -> list[Cells]:
        return self.converted.sheets["survey"]

    def write(self, sheet: str, place: str, cells: Cells) -> None:
        self.converted.sheets[sheet].append(
            {header: text for header, text in cells.items() if text}
        )
        self.converted.places[sheet].append(place)

    def settings(self, title: Texts, name: str = "") -> None:
        """Write the settings; a survey without a name has that of its file."""
        cells, losses = self.texts("form_title", title, LONGEST_TITLE)
        cells |= {"form_id": quoted(name, LONGEST_SETTING), "version": "1"}
        if self.codes:
            first = next(iter(self.codes.values()))
            cells["default_language"] = language_name(first)
        self.write("settings", "", cells)
        if not title:
            return
        outcome = outcome_of(losses)
        self.note("", shown_text(title), outcome, "; ".join(losses), "setting")

    def texts(
        self, header: str, texts: Texts, longest: int = 0
    ) -> tuple[Cells, list[str]]:
        """Return the cells of a text in all languages, and what was lost."""
        cells: Cells = {}
        losses: dict[str, None] = {}
        for language, text in texts.items():
            plain, lost = plain_text(text)
            losses |= dict.fromkeys(lost)
            code = self.codes.get(language)
            if plain and code:
                plain, literals = with_references(plain)
                if literals:
                    reason = _("computed texts are shown as written: %(names)s")
                    names = quoted(", ".join(dict.fromkeys(literals)), 200)
                    losses[reason % {"names": names}] = None
                plain = plain[:longest] if longest else plain
                cells.setdefault(f"{header}::{language_name(code)}", plain)
        return cells, list(losses)

    def options(
        self, place: str, codes: list[tuple[str, Texts]], base: str
    ) -> Options | None:
        """Return the list with these options; equal lists are one."""
        used = Taken()
        rows: list[tuple[str, str, Cells]] = []
        losses: dict[str, None] = {}
        changed: list[str] = []
        for code, label in codes:
            value = option_value(code, used)
            if value != code:
                changed.append(f"{code} → {value}")
            cells, lost = self.texts("label", label)
            losses |= dict.fromkeys(lost)
            rows.append((code, value, cells))
        key = tuple((code, *sorted(cells.items())) for code, _value, cells in rows)
        if key in self.lists:
            return self.lists[key]
        shown = ", ".join(shown_text(label, 30) or code for code, label in codes[:8])
        reason = ""
        if not rows:
            reason = _("it has no options")
        elif len(rows) > MAX_OPTIONS:
            reason = _("it has %(count)s options; a list has at most %(most)s") % {
                "count": f"{len(rows):,}",
                "most": f"{MAX_OPTIONS:,}",
            }
        elif len(self.converted.sheets["choices"]) + len(rows) > MOST_ROWS:
            reason = _("a survey has at most %(most)s options") % {
                "most": f"{MOST_ROWS:,}"
            }
        if reason:
            self.note(place, shown, "refused", reason, "options")
            return None
        options = Options(self.list_names.name_for(base, "list"))
        for code, value, cells in rows:
            options.values[code] = value
            first = {"list_name": options.name, "name": value}
            # A list without labels would show only values.
            self.write("choices", place, {**first, **cells})
        if changed:
            names = ", ".join(changed[:10]) + (", …" if len(changed) > 10 else "")
            losses[_("values renamed: %(names)s") % {"names": names}] = None
        outcome = outcome_of(losses)
        self.note(place, shown, outcome, "; ".join(losses), "options")
        self.lists[key] = options
        return options

    def other_option(self, label: Texts | None = None) -> tuple[str, Texts]:
        """Return the option *Other*, in words of the original or our own."""
        return "other", label or self.our_words(OTHER)

    def our_words(self, texts: Texts) -> Texts:
        words = in_languages(texts, list(self.codes.values()))
        return {
            language: words.get(code, texts["en"])
            for language, code in self.codes.items()
        }

    def other_text(self, question: Question, option: str, label: Texts | None) -> None:
        """Ask for details where the option of a question is chosen."""
        name = self.names.unique(f"{question.name}_{option}"[:60])
        relevant = f"selected(${{{question.name}}}, '{option}')"
        self.ask(
            Question(
                question.place,
                name,
                "text",
                label or self.our_words(SPECIFY_OTHER),
                cells={"relevant": relevant},
                is_part=True,
            )
        )

    def begin(
        self,
        place: str,
        label: Texts,
        appearance: str = "",
        relevant: str = "",
        name: str = "",
        part: Part | None = "group",
    ) -> list[str]:
        """Open a group; return what its label lost, for those without a line."""
        cells, losses = self.texts("label", label)
        name = self.names.name_for(name or place, "page")
        row = {"type": "begin group", "name": name, **cells}
        row |= {"appearance": appearance, "relevant": relevant}
        self.open.append((len(self.survey), place, shown_text(label)))
        self.write("survey", place, row)
        if part:
            outcome = outcome_of(losses)
            self.note(place, shown_text(label), outcome, "; ".join(losses), part)
        return losses

    def begin_grid(self, question: Question, appearance: str, name: str = "") -> None:
        """Open the group of a question with several rows, whose line comes later."""
        relevant = question.cells.get("relevant", "")
        losses = self.begin(
            question.place, question.label, appearance, relevant, name, part=None
        )
        if question.hint and appearance:
            cells, lost = self.texts("hint", question.hint)
            self.survey[-1].update(cells)
            losses = losses + lost
        elif question.hint and (hint := shown_text(question.hint)):
            losses.append(_("not taken over: %(names)s") % {"names": hint})
        known = question.changes
        known += [loss for loss in dict.fromkeys(losses) if loss not in known]

    def end(self) -> None:
        index, place, _shown = self.open.pop()
        if index == len(self.survey) - 1:
            # Nothing of it can be asked.
            self.survey.pop()
            self.converted.places["survey"].pop()
            return
        self.write("survey", place, {"type": "end group"})

    def ask(self, question: Question) -> bool:
        """Write the row of a question and its line; False if there is no room."""
        shown = question.shown or shown_text(question.label)
        is_note = question.type == "note"
        if self.questions >= MAX_ITEMS or len(self.survey) > MOST_ROWS:
            reason = _("a survey has at most %(most)s questions") % {
                "most": f"{MAX_ITEMS:,}"
            }
            self.note(question.place, shown, "refused", reason)
            return False
        changes = list(dict.fromkeys(question.changes))
        cells, losses = self.texts("label", question.label)
        row = {"type": question.type, "name": question.name, **cells}
        if not cells and question.type not in ("calculate", "hidden"):
            if is_note:
                self.note(question.place, shown, "refused", _("it has no text"))
                return False
            code = next(iter(self.codes.values()), "en")
            row[f"label::{language_name(code)}"] = question.place or question.name
            changes.append(_("it had no text: its code is shown"))
        hints, lost = self.texts("hint", question.hint)
        losses += lost
        messages, lost = self.texts("constraint_message", question.message)
        if question.cells.get("constraint"):
            row |= messages
        row |= {**hints, **question.cells}
        self.write("survey", question.place, row)
        self.questions += 1
        changes += [loss for loss in dict.fromkeys(losses) if loss not in changes]
        if not question.is_part or changes:
            outcome = outcome_of(changes)
            self.note(question.place, shown, outcome, "; ".join(changes))
        return True

    def rule(
        self, place: str, source: str, translate: Callable[[], str], what: str = ""
    ) -> str:
        """Return a translated rule; "" if it has no equal here, as the report says."""
        shown = quoted(f"{what}: {source}" if what else source, LONGEST_RULE)
        try:
            written = translate()
        except Untranslatable as refusal:
            self.note(place, shown, "refused", str(refusal), "rule")
            return ""
        except RecursionError:
            reason = _("the rule is nested too deeply")
            self.note(place, shown, "refused", reason, "rule")
            return ""
        self.note(place, shown, "taken", "", "rule")
        return written

    def refuse_setting(self, place: str, text: str, reason: str = "") -> None:
        reason = reason or _("surveys have no such setting")
        self.note(place, quoted(text, LONGEST_RULE), "refused", reason, "setting")


def outcome_of(changes: Collection[str]) -> Outcome:
    return "changed" if changes else "taken"


def language_code(code: str) -> str:
    """Return the code that XLSForm writes for a language of another program."""
    code = code.replace("_", "-")
    special = {"zh-s": "zh-Hans", "zh-t": "zh-Hant"}
    if code.lower() in special:
        return special[code.lower()]
    if not CODE.fullmatch(code):
        primary = code.split("-")[0]
        code = primary if CODE.fullmatch(primary) else "en"
    return canonical_code(code)


@cache
def language_name(code: str) -> str:
    """Write a language as the headers of an XLSForm: `Deutsch (de)`."""
    primary, _hyphen, rest = code.partition("-")
    name = own_name(code)
    # Some programs have two manners of address in one language: de-informal.
    if name == code and rest:
        name = f"{own_name(primary)}, {rest}"
    return f"{name} ({code})"


def workbook_of(sheets: dict[str, list[Cells]]) -> bytes:
    """Write sheets as an XLSForm workbook, all cells as text."""
    book = Workbook(write_only=True)
    for title, rows in sheets.items():
        sheet = book.create_sheet(title)
        headers = list(dict.fromkeys(header for row in rows for header in row))

        def cell(text: str, sheet: object = sheet) -> WriteOnlyCell:
            # Excel escapes characters so, and texts that look like an escape.
            text = ESCAPE.sub(r"_x005F_x\1_", CONTROL.sub("", text))
            made = WriteOnlyCell(sheet, text)
            # Otherwise a text that begins with = would be a formula.
            made.data_type = "s"
            made.number_format = "@"
            return made

        sheet.append([cell(header) for header in headers])
        for row in rows:
            sheet.append([cell(row.get(header, "")) for header in headers])
    content = io.BytesIO()
    book.save(content)
    return content.getvalue()
