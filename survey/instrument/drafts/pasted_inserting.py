"""Insert pasted questions into a draft: a command, which `store.change_draft` runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.utils.translation import gettext as _

from survey.instrument.bank.content import options_by_list, texts_of
from survey.instrument.bank.locks import locked_rows
from survey.instrument.drafts.commands import (
    BEGIN,
    END,
    FIELD_LIST,
    GRID,
    TABLE_LIST,
    CommandRefused,
    end_of_page,
    kind_of,
    kind_with_list,
    languages_of,
    names_in,
    text_column,
)
from survey.instrument.drafts.names import free_name, made_name, name_from_text
from survey.instrument.drafts.pasted_questions import (
    LONG_TEXT,
    NOTE,
    SELECTS,
    Block,
    Piece,
)
from survey.instrument.drafts.workbook import DraftBook, Sheet
from survey.instrument.xlsform.choices import MAX_OPTIONS
from survey.instrument.xlsform.languages import Language
from survey.instrument.xlsform.outline import MAX_ITEMS
from survey.instrument.xlsform.types import parse_type

Cells = dict[int, str]


@dataclass(frozen=True, slots=True)
class Inserted:
    """The row of the first question or page, and how many questions there are."""

    key: str
    questions: int


def insert_blocks(
    book: DraftBook, blocks: Sequence[Block], *, after: str, languages: list[Language]
) -> Inserted:
    """Insert questions below a row, and pages below its page.

    `languages` are those of the texts and, if there is a second one, of their
    translations. Raises CommandRefused and LimitReached.
    """
    wanted = [
        block
        for block in blocks
        if block.kind != "out" and not block.is_only_translation
    ]
    questions = sum(block.is_question for block in wanted)
    items = sum(count_items(block) for block in wanted)
    if not questions:
        raise CommandRefused(_("There are no questions in this text."))
    survey = book.sheet("survey")
    kinds = [kind_of(survey, row) for row in survey.rows if row.cells]
    there = sum(kind not in ("begin", "end", "metadata") for kind in kinds)
    if there + items > MAX_ITEMS:
        raise CommandRefused(
            _(
                "A survey has at most %(most)s questions. This one has %(there)s, and"
                " %(new)s would be added."
            )
            % {"most": f"{MAX_ITEMS:,}", "there": f"{there:,}", "new": f"{items:,}"}
        )
    rows = RowWriter(book, languages)
    first_page = next(
        (place for place, block in enumerate(wanted) if block.kind == "page"),
        len(wanted),
    )
    head = [row for block in wanted[:first_page] for row in rows.of_question(block)]
    pages = rows.of_pages(wanted[first_page:])
    rows.lists.store()
    made = book.insert(survey, after, head) if head else []
    if pages:
        last = end_of_page(survey, made[-1] if made else after)
        made += book.insert(survey, last, pages)
    return Inserted(made[0], questions)


def count_items(block: Block) -> int:
    """Return how many variables a block is: each statement of a grid is one."""
    if not block.is_question:
        return 0
    return len(block.statements) + (block.kind != GRID) if block.statements else 1


class RowWriter:
    """Makes the rows of questions and pages, each with a name that is free."""

    def __init__(self, book: DraftBook, languages: list[Language]) -> None:
        self.book = book
        self.sheet: Sheet = book.sheet("survey")
        self.typed = self.sheet.column("type")
        self.languages = languages
        self.taken = names_in(book)
        self.lists = OptionLists(book, languages, self.taken)

    def of_pages(self, blocks: Sequence[Block]) -> list[Cells]:
        rows: list[Cells] = []
        for block in blocks:
            if block.kind != "page":
                rows += self.of_question(block)
                continue
            if rows:
                rows.append({self.typed: END})
            looks = {self.sheet.column("appearance"): FIELD_LIST}
            rows.append(self._row(BEGIN, block.label, "page") | looks)
        return [*rows, {self.typed: END}] if rows else []

    def of_question(self, block: Block) -> list[Cells]:
        hints = self._texts(
            "hint",
            Piece(
                block.number,
                "\n".join(hint.text for hint in block.hints),
                "\n".join(filter(None, (hint.translation for hint in block.hints))),
            ),
        )
        required = {self.sheet.column("required"): "yes"} if block.is_required else {}
        if block.kind == GRID:
            looks = {self.sheet.column("appearance"): TABLE_LIST}
            begin = self._row(BEGIN, block.label, "grid") | looks | hints
            statements = self._statements(block, SELECTS[0], required)
            return [begin, *statements, {self.typed: END}]
        if block.statements:
            stem = self._row(NOTE, block.label, "question") | hints
            return [stem, *self._statements(block, block.kind, required)]
        kind = "text" if block.kind == LONG_TEXT else block.kind
        row = self._row(kind, block.label, "question") | hints | required
        if kind in SELECTS:
            name = row[self.sheet.column("name")]
            row[self.typed] = self._select(kind, block.options, name)
        if block.kind == LONG_TEXT:
            row[self.sheet.column("appearance")] = "multiline"
        return [row]

    def _statements(self, block: Block, kind: str, required: Cells) -> list[Cells]:
        rows = [self._row(kind, piece, "question") for piece in block.statements]
        named = self.sheet.column("name")
        typed = self._select(kind, block.options, rows[0][named])
        return [row | {self.typed: typed} | required for row in rows]

    def _row(self, kind: str, label: Piece, otherwise: str) -> Cells:
        name = free_name(name_from_text(label.text) or otherwise, self.taken)
        self.taken.add(name)
        named = made_name(self.sheet, name)
        return {self.typed: kind, **named, **self._texts("label", label)}

    def _texts(self, field: str, piece: Piece) -> Cells:
        texts = zip(self.languages, (piece.text, piece.translation), strict=False)
        return {
            text_column(self.book, self.sheet, field, language): text
            for language, text in texts
            if text
        }

    def _select(self, kind: str, options: Sequence[Piece], name: str) -> str:
        if options:
            return f"{kind} {self.lists.name_for(options, name)}"
        cell = kind_with_list(self.book, kind, "", name)
        self.taken.add(parse_type(cell).option_set)
        return cell


@dataclass(slots=True)
class OptionList:
    """`labels` are by language, `keys` the rows of a list that is there already."""

    name: str
    labels: list[dict[str, str]]
    keys: list[str]


class OptionLists:
    """Finds the list of a draft that has the same options, or makes one."""

    def __init__(
        self, book: DraftBook, languages: list[Language], taken: set[str]
    ) -> None:
        self.book, self.languages, self.taken = book, languages, taken
        self.made: list[OptionList] = []
        self.known: dict[tuple[str, ...], list[OptionList]] = {}
        choices, all_languages = book.sheet("choices"), languages_of(book)
        locked = self._lists_of_locked_questions()
        for name, rows in options_by_list(book).items():
            if not name or name in locked:
                continue
            labels = [texts_of(choices, row, "label", all_languages) for row in rows]
            self._remember(OptionList(name, labels, [row.key for row in rows]))

    def _lists_of_locked_questions(self) -> set[str]:
        survey = self.book.sheet("survey")
        keys = locked_rows(self.book).questions
        return {
            parse_type(survey.value(survey.row(key), "type")).option_set for key in keys
        }

    def _remember(self, options: OptionList) -> None:
        code = self.languages[0].code
        texts = tuple(labels.get(code, "") for labels in options.labels)
        self.known.setdefault(texts, []).append(options)

    def name_for(self, pieces: Sequence[Piece], question: str) -> str:
        """Return a list with these texts. Raises CommandRefused if it is too long."""
        if len(pieces) > MAX_OPTIONS:
            raise CommandRefused(
                _("A list has at most %(most)s options.") % {"most": f"{MAX_OPTIONS:,}"}
            )
        codes = [language.code for language in self.languages]
        labels = [
            {
                code: text
                for code, text in zip(
                    codes, (piece.text, piece.translation), strict=False
                )
                if text
            }
            for piece in pieces
        ]
        for known in self.known.get(tuple(piece.text for piece in pieces), []):
            pairs = [*zip(known.labels, labels, strict=True)]
            if all(
                here.get(code, text) == text
                for here, wanted in pairs
                for code, text in wanted.items()
            ):
                self._complete(known, labels)
                return known.name
        name = free_name(f"{question}_options", self.taken)
        self.taken.add(name)
        options = OptionList(name, labels, [])
        self.made.append(options)
        self._remember(options)
        return name

    def _complete(self, known: OptionList, labels: list[dict[str, str]]) -> None:
        """Write the labels that a list does not have yet."""
        choices = self.book.sheet("choices")
        by_code = {language.code: language for language in self.languages}
        for place, wanted in enumerate(labels):
            missing = {
                code: text
                for code, text in wanted.items()
                if code not in known.labels[place]
            }
            known.labels[place] |= missing
            if missing and known.keys:
                cells = {
                    text_column(self.book, choices, "label", by_code[code]): text
                    for code, text in missing.items()
                }
                self.book.set_cells(choices, known.keys[place], cells)

    def store(self) -> None:
        """Insert the new lists, with the values 1, 2, 3."""
        choices = self.book.sheet("choices")
        listed, valued = choices.column("list"), choices.column("name")
        columns = {
            language.code: text_column(self.book, choices, "label", language)
            for language in self.languages
        }
        rows = [
            {
                listed: options.name,
                valued: str(value),
                **{columns[code]: text for code, text in labels.items()},
            }
            for options in self.made
            for value, labels in enumerate(options.labels, 1)
        ]
        if rows:
            last = choices.rows[-1].key if choices.rows else ""
            self.book.insert(choices, last, rows)
