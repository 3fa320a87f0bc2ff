"""List the pages and questions of a draft, for the left side of the editor."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

from survey.console.surveys.contents import KIND_WORDS
from survey.instrument.definitions.expressions import references
from survey.instrument.definitions.piping import PIPE
from survey.instrument.definitions.schema import ANSWERABLE, RULES, Texts
from survey.instrument.drafts.commands import is_page, kind_of
from survey.instrument.drafts.reading import DraftReading
from survey.instrument.xlsform.draft import BlockDraft, ItemDraft, PageDraft
from survey.instrument.xlsform.problems import Problem
from survey.instrument.xlsform.types import parse_type

GRID, HEADING, QUESTION, ROW = "grid", "heading", "question", "row"


@dataclass(slots=True)
class Entry:
    """A question, grid, heading or row that cannot be shown.

    `number` counts questions, `place` is the row's in the sheet.
    """

    key: str
    sort: str
    place: int
    kind: str = ""
    text: str = ""
    name: str = ""
    number: int = 0
    depth: int = 0
    problems: list[Problem] = field(default_factory=list)
    # A text that nobody has written yet is not wrong, but missing.
    is_unfinished: bool = False
    # The grid or heading that it is in.
    group: str = ""
    # Its rule or text reads the answer to a question that comes later.
    reads_later: bool = False

    @property
    def kind_words(self) -> str:
        return str(KIND_WORDS.get(self.kind, self.kind))


@dataclass(slots=True)
class PageEntry:
    """A page; `key` is empty for questions outside of groups."""

    number: int
    name: str
    key: str = ""
    title: str = ""
    section: str = ""
    # Of the section, for its first page.
    section_title: str = ""
    begins_section: bool = False
    entries: list[Entry] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)

    @property
    def last(self) -> str:
        """Return the row below which a new question of this page goes."""
        top = [entry for entry in self.entries if not entry.depth]
        return top[-1].key if top else self.key


class Outline:
    def __init__(self, reading: DraftReading, language: str) -> None:
        self.reading = reading
        self.language = language
        self.sheet = reading.book.sheet("survey")
        self.around = self._groups_around()
        # Groups that are entries themselves.
        self.listed: set[str] = set()
        self.problems = dict(reading.problems_by_key)
        self._add_problems_of_options()
        self.pages = self._pages()
        self.by_key: dict[str, tuple[PageEntry, Entry | None]] = {}
        for page in self.pages:
            if page.key:
                self.by_key[page.key] = (page, None)
            for entry in page.entries:
                self.by_key[entry.key] = (page, entry)

    def page_of(self, key: str) -> PageEntry | None:
        page, _entry = self.by_key.get(key, (None, None))
        return page

    def first_key(self) -> str:
        return next(
            (entry.key for page in self.pages for entry in page.entries),
            self.pages[0].key if self.pages else "",
        )

    def wrong_keys(self) -> list[str]:
        """Return the rows with problems; "" for the survey as a whole."""
        wrong = []
        for page in self.pages:
            if page.key and page.problems:
                wrong.append(page.key)
            wrong += [entry.key for entry in page.entries if entry.problems]
        return wrong or [""] * bool(self.reading.problems_by_key.get(""))

    def label(self, texts: Texts) -> str:
        return texts.get(self.language) or next(filter(None, texts.values()), "")

    def _add_problems_of_options(self) -> None:
        """Show what is wrong with a list of options at the questions that use it."""
        choices = self.reading.book.sheet("choices")
        by_list: dict[str, list[Problem]] = {}
        for row in choices.rows:
            if problems := self.problems.get(row.key):
                by_list.setdefault(choices.value(row, "list"), []).extend(problems)
        if not by_list:
            return
        for row in self.sheet.rows:
            option_set = parse_type(self.sheet.value(row, "type")).option_set
            if problems := by_list.get(option_set):
                self.problems[row.key] = [*self.problems.get(row.key, []), *problems]

    def _pages(self) -> list[PageEntry]:
        draft = self.reading.draft
        pages: list[PageEntry] = []
        seen: set[str] = set()
        number = 0
        for position, page in enumerate(draft.pages if draft else (), 1):
            shown = PageEntry(position, page.name, *self._head_of(page))
            shown.problems = self.problems.get(shown.key, [])
            for block in page.blocks:
                shown.entries += self._entries_of(block, seen)
            shown.entries.sort(key=lambda entry: entry.place)
            for entry in shown.entries:
                if entry.sort == QUESTION and entry.kind in ANSWERABLE:
                    number += 1
                    entry.number = number
            seen.add(shown.key)
            self._begin_section(shown, pages[-1].section if pages else "")
            pages.append(shown)
        self._add_rest(pages, seen)
        return pages

    def _head_of(self, page: PageDraft) -> tuple[str, str, str]:
        """Return the key, title and section of a page."""
        title = self.label(page.title)
        if page.row is None:
            return "", title, ""
        row = self.reading.rows[page.row.number]
        return row.key, title, next(iter(self.around[row.key]), "")

    def _begin_section(self, page: PageEntry, before: str) -> None:
        """Give a page the title of its section, if it is the first one in it."""
        if not page.section or page.section == before:
            return
        page.begins_section = True
        row = self.sheet.row(page.section)
        titles = {
            column.language.code if column.language else "": row.cells[number]
            for number, column in self.sheet.known.known.items()
            if column.key == "label" and number in row.cells
        }
        page.section_title = titles.get(self.language) or next(
            iter(titles.values()), ""
        )

    def _groups_around(self) -> dict[str, tuple[str, ...]]:
        """Return the groups that each row is in, the outermost one first."""
        around: dict[str, tuple[str, ...]] = {}
        groups: tuple[str, ...] = ()
        for row in self.sheet.rows:
            kind = kind_of(self.sheet, row)
            if kind == "end":
                groups = groups[:-1]
            around[row.key] = groups
            if kind == "begin":
                groups = (*groups, row.key)
        return around

    def _entries_of(self, block: BlockDraft, seen: set[str]) -> Iterator[Entry]:
        if block.row is not None:
            row = self.reading.rows[block.row.number]
            if row.key not in seen and not is_page(self.sheet, row):
                seen.add(row.key)
                self.listed.add(row.key)
                sort = GRID if block.is_grid else HEADING
                yield self._entry(row.key, sort, block.row.number, sort, block.label)
        for item in block.items:
            key = self.reading.rows[item.row.number].key
            # The text for *Other* is no row of its own.
            if key in seen:
                continue
            seen.add(key)
            entry = self._entry(key, QUESTION, item.row.number, item.kind, item.label)
            entry.name = item.name
            around = reversed(self.around[key])
            entry.group = next((group for group in around if group in self.listed), "")
            entry.depth = int(bool(entry.group))
            entry.reads_later = self.reads_later(item)
            yield entry

    def _entry(
        self,
        key: str,
        sort: str,
        place: int,
        kind: str,
        label: Texts,
    ) -> Entry:
        problems = self.problems.get(key, [])
        entry = Entry(key, sort, place, kind, self.label(label))
        entry.is_unfinished = not entry.text and sort == QUESTION
        if entry.is_unfinished:
            problems = [row for row in problems if not self.is_about_label(row)]
        entry.problems = problems
        return entry

    def reads_later(self, item: ItemDraft) -> bool:
        """Return whether an item waits for an answer that comes after it."""
        if not item.is_shown:
            return False
        read = {name for text in item.label.values() for name in PIPE.findall(text)}
        for rule in RULES:
            if rule in item.rules:
                read |= references(item.rules[rule])
        place = item.row.number
        return any(self.answered.get(name, 0) > place for name in read)

    @cached_property
    def answered(self) -> dict[str, int]:
        """Return the rows of the items that somebody answers, by their names."""
        draft = self.reading.draft
        items = draft.items() if draft else ()
        return {item.name: item.row.number for item in items if item.is_answerable}

    def is_about_label(self, problem: Problem) -> bool:
        return any(
            column.header == problem.column and column.key == "label"
            for column in self.sheet.known.known.values()
        )

    def _add_rest(self, pages: list[PageEntry], seen: set[str]) -> None:
        """Add rows that the reader refuses, to be corrected or deleted."""
        page: PageEntry | None = None
        by_key = {entry.key: shown for shown in pages for entry in shown.entries}
        by_key |= {shown.key: shown for shown in pages if shown.key}
        for place, row in self.reading.rows.items():
            page = by_key.get(row.key, page)
            if row.key in seen or not row.cells:
                continue
            kind = kind_of(self.sheet, row)
            if kind in ("end", "metadata", "begin"):
                continue
            if page is None:
                page = pages[0] if pages else PageEntry(1, "")
                if not pages:
                    pages.append(page)
            entry = Entry(row.key, ROW, place, kind)
            entry.text = next(
                (text for number, text in sorted(row.cells.items()) if number > 1), ""
            )
            entry.name = self.sheet.value(row, "name")
            entry.problems = self.problems.get(row.key, [])
            page.entries.append(entry)
            page.entries.sort(key=lambda shown: shown.place)
