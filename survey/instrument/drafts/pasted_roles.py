"""Guess what each line of a pasted questionnaire is: a question, an answer, a page.

`pasted_questions.py` says how, and makes questions of the lines.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from survey.instrument.drafts.pasted_lines import (
    ANSWER_MARKS,
    LETTER,
    NUMBER,
    QUESTION_SIGNS,
    Line,
)

LONGEST_HEADING = 80
LONGEST_ANSWER = 100
LONGEST_REQUIRED = 30
# So long is a line of an e-mail before its program breaks it.
WRAPPED = 55

PAGE = re.compile(
    r"page break|salto de p[áa]gina|فاصل صفحات"
    r"|#{1,6}\s*(?P<heading>[^\s#].*)"
    r"|(?:page|p[áa]gina|صفحة|الصفحة)\s{0,3}\d{1,3}"
    r"(?P<footer>\s{1,3}(?:of|de|من)\s{1,3}\d{1,3})?(?:\s?[:.–—-]\s*(?P<title>.*))?"
    r"|(?:section|part|secci[óo]n|parte|القسم|قسم|الجزء)"
    r"(?:\s{0,3}(?P<n>\d{1,3}|[ivx]{1,4}|[a-z]|\w{2,10}(?=\s?:))?\s?[:.–—-]\s*"
    r"(?P<section>\S.*)|\s{1,3}(?:\d{1,3}|[ivx]{1,4}|[a-z]))",
    re.IGNORECASE,
)
LONG = re.compile(
    r"\b(?:describe|explain|comments?|in your own words|tell us (?:more|about)"
    r"|descri(?:ba|be|ban)|explique|explica|comentarios?|por qu[ée])\b"
    r"|اشرح|صف |وضح|تعليق|ملاحظات",
    re.IGNORECASE,
)
REQUIRED = re.compile(
    r"[(\[]\s?(?:required|obligatori[ao]|requerid[ao]|إلزامي|مطلوب)\s?[)\]]\s?\*?$|\*+$",
    re.IGNORECASE,
)
ROUTE = re.compile(
    r"^[(\[]?(?:if\b|skip to\b|go to\b|only if\b|si (?!no\b)\S+|pase a\b|vaya a\b"
    r"|إذا|انتقل)",
    re.IGNORECASE,
)
HELP = re.compile(
    r"(?:please\b|choose\b|select\b|check\b|mark\b|circle\b|tick\b|note:|hint:"
    r"|por favor|elija\b|marque\b|seleccione\b|escoja\b|nota:|يرجى|الرجاء|اختر|ضع )",
    re.IGNORECASE,
)


class Role(StrEnum):
    """What a line is."""

    QUESTION = "question"
    MORE = "more"
    HINT = "hint"
    ANSWER = "answer"
    ANSWERS = "answers"
    STATEMENT = "statement"
    PAGE = "page"
    OUT = "out"


def guess_roles(lines: Sequence[Line]) -> dict[int, Role]:
    """Return what each line is, by its number."""
    return RoleReader(lines).read()


class RoleReader:
    """Reads lines from the first to the last, and remembers the last question."""

    def __init__(self, lines: Sequence[Line]) -> None:
        self.lines = lines
        self.roles: dict[int, Role] = {}
        # The last question, its first answer, and the last line of answers.
        self.question: Line | None = None
        self.answer: Line | None = None
        self.is_in_grid = False
        self.is_run_until = 0
        gaps = [line.gap for line in lines[1:]]
        # In an e-mail or on a web page, a blank line may follow each line.
        is_spaced = len(gaps) > 3 and sum(gap > 0 for gap in gaps) > 0.6 * len(gaps)
        self.least_gap = 2 if is_spaced else 1
        self.styles = self._styles_of_questions()

    def _styles_of_questions(self) -> set[str]:
        numbered = [line for line in self.lines if line.mark == NUMBER]
        styles = {line.style for line in numbered if line.asks or line.style == "Q"}
        is_below_question = False
        for line in self.lines:
            # Numbers below a question without one are those of its answers.
            if line.mark == NUMBER and not (is_below_question or styles):
                styles = {line.style}
            is_marked_on = is_below_question and bool(line.mark) and not line.gap
            is_below_question = (line.asks and not line.mark) or is_marked_on
        return styles

    def read(self) -> dict[int, Role]:
        for place, line in enumerate(self.lines):
            self.roles[line.number] = self._read(place, line)
        return self.roles

    def _read(self, place: int, line: Line) -> Role:
        if page := page_title(line):
            self._leave()
            return Role.OUT if page.is_footer else Role.PAGE
        if line.is_to_write_on or line.is_wordless:
            return Role.OUT
        if line.is_row:
            return Role.STATEMENT
        if self._is_hint(line):
            return Role.HINT
        if line.parts and not (line.is_slashed and self.answer):
            return self._read_answers(place, line)
        is_numbered = line.mark == NUMBER and line.style in self.styles
        if (
            ROUTE.match(line.text)
            and not (line.asks or is_numbered)
            and self.question is not None
        ):
            return Role.HINT
        if line.number <= self.is_run_until:
            self.answer = line
            return Role.ANSWER
        if self.is_in_grid and self._is_statement(line):
            return Role.STATEMENT
        if self._is_wrapped(place, line):
            return Role.MORE
        if self._is_asked(place, line):
            return self._begin(line)
        return self._read_below(place, line)

    def _leave(self) -> None:
        self.question = self.answer = None
        self.is_in_grid = False

    def _begin(self, line: Line) -> Role:
        self._leave()
        self.question = line
        return Role.QUESTION

    def _is_apart(self, line: Line) -> bool:
        return line.gap >= self.least_gap

    def _next(self, place: int) -> Line | None:
        return self.lines[place + 1] if place + 1 < len(self.lines) else None

    def _is_hint(self, line: Line) -> bool:
        if (
            not self.question
            or self.answer
            or self.is_in_grid
            or line.mark
            or line.asks
        ):
            return False
        text = line.text
        is_aside = text.startswith("(") and text.endswith(")") and not line.parts
        ends = (".", ")", ":", "…")
        return is_aside or bool(HELP.match(text) and text.endswith(ends))

    def _read_answers(self, place: int, line: Line) -> Role:
        """Read a line of several answers: a grid's if statements follow."""
        if self._has_statements(place):
            if self.question is None or self.answer:
                self._leave()
            self.is_in_grid = True
            return Role.ANSWERS
        if self.question is None:
            return self._begin(line)
        self.answer = line
        return Role.ANSWERS

    def _has_statements(self, place: int) -> bool:
        rest = self.lines[place + 1 : place + 3]
        if not rest or rest[0].parts or rest[0].asks or page_title(rest[0]):
            return False
        first = rest[0]
        if first.is_row or self.lines[place].is_header:
            return True
        if first.mark == NUMBER and first.style in self.styles:
            stem = self.question
            return stem is None or stem.style != first.style
        if first.mark in (LETTER, NUMBER, *ANSWER_MARKS):
            return not self.answer
        is_long = len(first.text.split()) > 2 and len(self.lines[place].parts) > 2
        follows = len(rest) > 1 and not (rest[1].asks or rest[1].parts or rest[1].mark)
        return is_long and follows and not self._is_apart(first)

    def _is_statement(self, line: Line) -> bool:
        if line.asks or line.is_drawn or line.style == "Q":
            return False
        if line.mark == NUMBER and line.style in self.styles:
            stem = self.question
            return stem is None or stem.style != line.style
        return bool(line.mark) or not self._is_apart(line)

    def _is_asked(self, place: int, line: Line) -> bool:
        """Return whether a line is a question by its number or question mark."""
        if line.mark == NUMBER and line.style in self.styles:
            if end := self._end_of_run(place, line):
                self.is_run_until = end
                return False
            return True
        if line.is_drawn and not line.mark:
            return True
        if line.asks:
            after = self._next(place)
            if not line.mark or self.question is None or after is None:
                return True
            return (after.mark, after.style) != (line.mark, line.style)
        return False

    def _end_of_run(self, place: int, line: Line) -> int:
        """Return the last of lines that count from 1 below a question, or 0."""
        if not self.question or self.answer or line.label != "1" or line.asks:
            return 0
        if self._is_apart(line) and self.question.asks is False:
            return 0
        run = [line]
        for after in self.lines[place + 1 :]:
            is_next = after.mark == NUMBER and after.style == line.style
            if not is_next or after.asks or after.label != str(len(run) + 1):
                break
            run.append(after)
        return run[-1].number if len(run) > 1 else 0

    def _is_wrapped(self, place: int, line: Line) -> bool:
        """Return whether a line goes on with the one above, broken by a program."""
        if not place or line.mark or line.gap or not line.text[:1].islower():
            return False
        above = self.lines[place - 1]
        if self.roles[above.number] not in (Role.QUESTION, Role.MORE, Role.HINT):
            return False
        is_open = not above.text.endswith((*QUESTION_SIGNS, ".", ":", "*", ")"))
        return is_open and len(above.text) >= WRAPPED

    def _read_below(self, place: int, line: Line) -> Role:
        """Read a line that is no question by itself: by what is around it."""
        if line.mark and self.question:
            self.answer = line
            return Role.ANSWER
        after = self._next(place)
        leads = after is not None and not self._is_apart(after)
        if after is not None and after.is_row:
            return self._begin(line)
        if self.question is None or self._is_apart(line):
            if self._are_answers_apart(place, line):
                self.answer = line
                return Role.ANSWER
            return self._read_first(place, line)
        is_label = line.text.endswith(":") and not self.answer
        if self.question.is_drawn or (is_label and not line.mark):
            return self._begin(line)
        if self.answer and self.answer.mark and not line.mark:
            if leads and after and after.mark in (self.answer.mark, *ANSWER_MARKS):
                return self._begin(line)
            if is_prose(line.text):
                return self._begin(line)
        if self.question.mark == "" and is_prose(self.question.text):
            if is_prose(line.text) or not leads:
                return Role.MORE
            return self._begin(line)
        if is_prose(line.text) and not self.answer:
            return Role.HINT if self.least_gap == 1 else self._begin(line)
        if self._is_answered_below(place, line):
            return self._begin(line)
        self.answer = line
        return Role.ANSWER

    def _are_answers_apart(self, place: int, line: Line) -> bool:
        """Return whether a blank line divides a numbered question from its answers."""
        if not self.question or self.answer or self.question.style not in self.styles:
            return False
        block = [line]
        for after in self.lines[place + 1 :]:
            if self._is_apart(after) or after.mark:
                break
            block.append(after)
        return len(block) > 1 and not any(
            len(each.text) > LONGEST_HEADING
            or each.asks
            or each.is_drawn
            or each.text.endswith(":")
            or each.parts
            for each in block
        )

    def _is_answered_below(self, place: int, line: Line) -> bool:
        after = self._next(place)
        if after is None or line.mark:
            return False
        has_parts = bool(after.parts) and not after.is_slashed
        is_first_of_list = after.mark in ANSWER_MARKS or has_parts
        return is_first_of_list and (self.answer is not None or line.text.endswith(":"))

    def _read_first(self, place: int, line: Line) -> Role:
        """Read a line below a blank one, or the first of all."""
        after = self._next(place)
        if self.least_gap > 1 and self.question and not self._is_apart(line):
            return Role.ANSWER
        is_heading = (
            not line.mark
            and len(line.text) <= LONGEST_HEADING
            and not line.text.endswith((".", "!", ":", ",", ";", "_", "*"))
            and not REQUIRED.search(line.text[-LONGEST_REQUIRED:])
        )
        is_alone = after is None or after.gap > 0 or page_title(after) is not None
        asks_next = after is not None and (
            after.asks
            or after.is_drawn
            or after.text.endswith(":")
            or after.mark == NUMBER
            or page_title(after) is not None
        )
        is_led_in = after is not None and (
            after.parts or after.is_to_write_on or after.mark in (*ANSWER_MARKS, LETTER)
        )
        if is_heading and after and (asks_next or is_alone) and not is_led_in:
            self._leave()
            return Role.PAGE
        return self._begin(line)


@dataclass(frozen=True, slots=True)
class PageTitle:
    text: str
    is_footer: bool = False


def page_title(line: Line) -> PageTitle | None:
    """Return the title of a line such as "Section 2: About you"; None for others."""
    if line.mark or line.asks or len(line.raw) > 2 * LONGEST_HEADING:
        return None
    match = PAGE.fullmatch(line.raw.strip("-–— "))
    if match is None:
        return None
    title = match["heading"] or match["title"] or match["section"] or ""
    return PageTitle(title.strip(), match["footer"] is not None and not title)


def is_prose(text: str) -> bool:
    """Return whether a text is an introduction rather than a question or an answer."""
    is_sentence = text.endswith((".", "!")) and len(text.split()) > 3
    is_sentence |= text.endswith((",", "!"))
    return (is_sentence or len(text) > LONGEST_ANSWER) and not LONG.search(text)
