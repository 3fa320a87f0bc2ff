"""What a request says of pasted questions: the texts, and what each line is.

The page sends the texts each time, and with them what its user has changed of the
guesses: in its menus, and as JSON in a hidden field, which has earlier changes.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from django.http import QueryDict
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from survey.console.surveys.contents import KIND_WORDS
from survey.console.surveys.editor.fields import KINDS
from survey.console.surveys.editor.panels import KIND_NAMES
from survey.instrument.drafts.commands import CommandRefused, languages_of
from survey.instrument.drafts.pasted_inserting import (
    Inserted,
    insert_blocks,
)
from survey.instrument.drafts.pasted_lines import Line, TextTooLong, read_lines
from survey.instrument.drafts.pasted_questions import (
    GRID,
    SELECTS,
    Block,
    build_blocks,
)
from survey.instrument.drafts.pasted_roles import Role, guess_roles
from survey.instrument.drafts.pasted_translations import translate
from survey.instrument.drafts.workbook import DraftBook
from survey.instrument.xlsform.languages import Language

# With two fields each, they stay below the 1,000 fields that Django reads.
MOST_QUESTIONS = 300
# Lines whose menus are shown at a time.
MOST_OPENED = 300
MOST_CHANGES = 10_000

EXAMPLE = gettext_lazy(
    "Section: Getting to school\n"
    "1. How do you get to school? (Choose all that apply)\n"
    "- Walk\n"
    "- School bus\n"
    "2. I feel safe on the way. *\n"
    "Agree\n"
    "Disagree\n"
    "3. Please explain why."
)
ROLE_NAMES = {
    Role.QUESTION: gettext_lazy("Question or text"),
    Role.MORE: gettext_lazy("Goes on with the line above"),
    Role.HINT: gettext_lazy("Help text"),
    Role.ANSWER: gettext_lazy("Answer"),
    Role.ANSWERS: gettext_lazy("Several answers in one line"),
    Role.STATEMENT: gettext_lazy("Statement of a grid"),
    Role.PAGE: gettext_lazy("Title of a page"),
    Role.OUT: gettext_lazy("Leave out"),
}


@dataclass(slots=True)
class Changes:
    """What a user has changed of the guesses, by the numbers of lines."""

    read: str = ""
    roles: dict[int, Role] = field(default_factory=dict)
    kinds: dict[int, str] = field(default_factory=dict)
    required: dict[int, bool] = field(default_factory=dict)
    # The first and last line that menus are shown of.
    opened: tuple[int, int] = (0, 0)

    @classmethod
    def of(cls, data: QueryDict) -> Changes:
        changes = cls()
        try:
            stored = json.loads(data.get("changes") or "{}")
            changes.read = str(stored.get("read", ""))
            for name, value in stored.get("roles", {}).items():
                changes.set_role(name, str(value))
            for name, value in stored.get("kinds", {}).items():
                changes.set_kind(name, str(value))
            for name, value in stored.get("required", {}).items():
                if (number := _number_of(name)) is not None:
                    changes.required[number] = bool(value)
            changes.open("-".join(map(str, stored.get("opened", ()))))
        except (ValueError, TypeError, AttributeError, RecursionError):
            return cls()
        return changes

    def add(self, data: QueryDict, shown: Mapping[int, Block]) -> None:
        """Take what the menus and boxes of the page say.

        `shown` are the blocks of the page by their first lines: a guess that stays as
        it is may be another one when the lines of its question have changed.
        """
        for name in data:
            what, _dash, number = name.partition("-")
            if what == "role":
                self.set_role(number, data.get(name, ""))
            elif what == "kind" and (block := shown.get(_number_of(number) or 0)):
                if data.get(name) != block.kind:
                    self.set_kind(number, data.get(name, ""))
                is_required = f"required-{number}" in data
                if is_required != block.is_required:
                    self.required[block.number] = is_required
        if "open" in data:
            self.open(data.get("open", ""))

    def set_role(self, number: str, role: str) -> None:
        line = _number_of(number)
        if line is not None and role in {*Role} and len(self.roles) < MOST_CHANGES:
            self.roles[line] = Role(role)

    def set_kind(self, number: str, kind: str) -> None:
        line = _number_of(number)
        is_known = kind in (*KINDS, GRID)
        if line is not None and is_known and len(self.kinds) < MOST_CHANGES:
            self.kinds[line] = kind

    def open(self, lines: str) -> None:
        first, _dash, last = lines.partition("-")
        start, end = _number_of(first), _number_of(last)
        if start is not None and end is not None:
            self.opened = (start, min(end, start + MOST_OPENED - 1))

    def as_json(self) -> str:
        return json.dumps(
            {
                "read": self.read,
                "roles": self.roles,
                "kinds": self.kinds,
                "required": self.required,
                "opened": self.opened,
            }
        )


def _number_of(text: str) -> int | None:
    is_number = text.isascii() and text.isdecimal() and len(text) < 6
    return int(text) if is_number else None


def _digest(text: str) -> str:
    content = text.replace("\r\n", "\n").encode("utf-8", "replace")
    return hashlib.blake2b(content, digest_size=8).hexdigest()


class Paste:
    """Texts that somebody has pasted, and the questions that they become.

    `error` says what is wrong with a text; there are no blocks then.
    """

    def __init__(self, data: QueryDict, languages: list[Language]) -> None:
        self.text = data.get("text", "")
        self.translation = data.get("translation", "")
        self.first, *self.other_languages = languages
        codes = {language.code: language for language in self.other_languages}
        asked = data.get("translated_into", "")
        self.second = codes.get(asked) or next(iter(self.other_languages), None)
        self.error = ""
        self.changes = Changes.of(data)
        read, self.changes.read = self.changes.read, self.digest
        self.was_edited = bool(read) and read != self.digest
        if read.partition("-")[0] != self.digest.partition("-")[0]:
            # Lines have other numbers now.
            self.changes = Changes(self.digest)
        elif self._can_be_read():
            blocks = self._built()
            self.changes.add(data, {block.number: block for block in blocks})

    @cached_property
    def digest(self) -> str:
        """Name the text, and behind a dash what else was read."""
        code = self.second.code if self.second else ""
        return f"{_digest(self.text)}-{_digest(self.translation + code)}"

    @property
    def languages(self) -> list[Language]:
        has_second = self.second is not None and bool(self.translation.strip())
        return [self.first, *([self.second] if self.second and has_second else [])]

    @cached_property
    def lines(self) -> list[Line]:
        return read_lines(self.text)

    def _can_be_read(self) -> bool:
        try:
            return bool(self.lines)
        except TextTooLong:
            return False

    @cached_property
    def guesses(self) -> dict[int, Role]:
        return guess_roles(self.lines)

    @property
    def roles(self) -> dict[int, Role]:
        changed = self.changes.roles
        return {line: changed.get(line, role) for line, role in self.guesses.items()}

    def _built(self) -> list[Block]:
        kinds, required = self.changes.kinds, self.changes.required
        return build_blocks(self.lines, self.roles, kinds, required)

    @cached_property
    def blocks(self) -> list[Block]:
        """Return what the texts become; [] with an `error`."""
        try:
            blocks = self._built()
            if self.second and self.translation.strip():
                translated = read_lines(self.translation)
                # Before translations are paired, which takes their product.
                self._refuse_many(build_blocks(translated, guess_roles(translated)))
                self._refuse_many(blocks)
                blocks = translate(
                    blocks, self.lines, self.roles, translated, self.second.name
                )
            self._refuse_many(blocks)
        except TextTooLong as error:
            self.error = str(error)
            return []
        if not any(block.is_question for block in blocks):
            self.error = _("There are no questions in this text.")
            if not self.text.strip():
                self.error = _("Paste your questions first.")
        return blocks

    def _refuse_many(self, blocks: list[Block]) -> None:
        count = len(blocks)
        if count > MOST_QUESTIONS:
            raise TextTooLong(
                _(
                    "Insert at most %(most)s questions at a time. This text has about"
                    " %(count)s."
                )
                % {"most": MOST_QUESTIONS, "count": f"{count:,}"}
            )

    @cached_property
    def questions(self) -> int:
        return sum(
            block.is_question and not block.is_only_translation for block in self.blocks
        )

    @property
    def summary(self) -> str:
        pages = sum(block.kind == "page" for block in self.blocks)
        words = ngettext("%(n)s question", "%(n)s questions", self.questions) % {
            "n": self.questions
        }
        if not pages:
            return words
        return ngettext(
            "%(questions)s and %(n)s new page",
            "%(questions)s and %(n)s new pages",
            pages,
        ) % {"questions": words, "n": pages}

    @property
    def offer(self) -> str:
        """Ask whether to make questions of lines; "" if they are a text."""
        questions = [block for block in self.blocks if block.is_question]
        has_answers = any(block.used_options for block in questions)
        if self.error or (len(questions) < 2 and not has_answers):
            return ""
        return ngettext(
            "Make a question with its answers of these lines?",
            "Make %(n)s questions of these lines?",
            self.questions,
        ) % {"n": self.questions}

    def cards(self) -> list[Card]:
        """Return the blocks as the preview shows them; questions are counted."""
        cards, count = [], 0
        for block in self.blocks:
            count += block.is_question and not block.is_only_translation
            cards.append(Card(block, count, self))
        return cards


@dataclass(frozen=True, slots=True)
class Card:
    """A block of the preview with its menus."""

    block: Block
    count: int
    paste: Paste

    @property
    def kinds(self) -> list[tuple[str, str]]:
        kinds: Mapping[str, object] = KIND_NAMES
        if self.block.statements:
            kinds = {
                GRID: _("grid: statements with one scale"),
                **{kind: KIND_WORDS[kind] for kind in SELECTS},
            }
        return [(kind, str(words)) for kind, words in kinds.items()]

    @property
    def is_translated(self) -> bool:
        return any(piece.translation for piece in self.block.pieces())

    @property
    def code(self) -> str:
        """Return the language of the texts of the block."""
        second = self.paste.second
        is_second = self.block.is_only_translation and second
        return second.code if second and is_second else self.paste.first.code

    @property
    def lines(self) -> str:
        numbers = [line.number for line in self.block.lines]
        return f"{numbers[0]}-{numbers[-1]}"

    @property
    def opened(self) -> list[tuple[Line, Role]]:
        """Return the lines whose menus are shown, and what they are now."""
        if self.block.is_only_translation:
            return []
        first, last = self.paste.changes.opened
        roles = self.paste.roles if last else {}
        return [
            (line, roles[line.number])
            for line in self.block.lines
            if first <= line.number <= last
        ]

    @property
    def can_be_opened(self) -> bool:
        return not self.block.is_only_translation and not self.opened


def insert_pasted(book: DraftBook, data: QueryDict, *, after: str) -> Inserted:
    """Insert what a request has pasted. Raises CommandRefused."""
    paste = Paste(data, languages_of(book))
    if paste.was_edited:
        raise CommandRefused(
            _("The text was changed after the preview. Check it again, then insert it.")
        )
    blocks = paste.blocks
    if paste.error:
        raise CommandRefused(paste.error)
    return insert_blocks(book, blocks, after=after, languages=paste.languages)
