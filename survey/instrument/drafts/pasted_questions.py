"""Read the questions of a questionnaire that is pasted as text.

Each line gets a role, which its author can change, and lines become blocks: pages and
questions. What a line is guessed to be:

- a page: "Page 2", "Section: …", "# …", or a short line alone above a question;
- a question: a number (as the first one has it) or a question mark, or the first of
  several lines after a blank one;
- its answers: the lines below, with bullets, boxes, letters or other numbers, or
  plain up to a blank line. "(choose all that apply)" or boxes make it one with several
  answers, but for yes and no;
- a question without answers is a text; "describe", "explain", "comments" or several
  lines to write on make it a long one, and "(number)" a whole number;
- a grid: a line of answers, or the top of a table, with statements below;
- required: a trailing "*" or "(required)".

Nothing becomes a rule: lines such as "If yes, …" stay texts, with a remark to make the
rule. Words are known in English, Spanish and Arabic.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from django.utils.translation import gettext as _

from survey.instrument.drafts.pasted_lines import (
    BOX,
    DRAWN,
    LETTER,
    NUMBER,
    ROUND,
    Line,
    answers_in,
    is_counted,
)
from survey.instrument.drafts.pasted_roles import (
    LONG,
    LONGEST_REQUIRED,
    REQUIRED,
    ROUTE,
    Role,
    is_prose,
    page_title,
)

GRID, NOTE, LONG_TEXT = "grid", "note", "long_text"
SELECTS = ("select_one", "select_multiple")

SEVERAL = re.compile(
    r"(?:all|any|every) (?:that|which|of the following that) appl(?:y|ies)"
    r"|(?:select|choose|check|mark|tick|pick) (?:all|up to|as many|more than)"
    r"|more than one|tod[ao]s? (?:l[ao]s )?(?:que|las opciones|lo que)"
    r"|m[áa]s de un[ao]|كل ما ينطبق|جميع ما ينطبق|كل الإجابات|أكثر من",
    re.IGNORECASE,
)
NUMBER_NOTE = re.compile(
    r"\((?:a )?(?:whole )?(?:number|n[úu]mero|رقم)\)", re.IGNORECASE
)
HOW_MANY = re.compile(r"\bhow many\b|\bcu[áa]nt[oa]s\b|كم عدد", re.IGNORECASE)
ROUTED = re.compile(
    r"\b(?:skip to|go to|pase a|vaya a|continue to)\b|→|انتقل إلى", re.IGNORECASE
)
YES_NO = frozenset(
    ("yes", "no", "sí", "si", "نعم", "لا", "not sure", "don’t know", "don't know")
    + ("i don’t know", "i don't know", "no sé", "no estoy seguro", "لا أعرف", "unsure")
)


@dataclass(slots=True)
class Piece:
    """A text of a block, the line that it is from, and its translation."""

    line: int
    text: str
    translation: str = ""


@dataclass(slots=True)
class Block:
    """A page with a title, a question, or lines that are left out.

    `kind` is a type of question, `grid`, `page` or `out`. Of a block that only the
    translation has, the texts are translations.
    """

    kind: str
    lines: list[Line]
    label: Piece
    hints: list[Piece] = field(default_factory=list)
    options: list[Piece] = field(default_factory=list)
    statements: list[Piece] = field(default_factory=list)
    is_required: bool = False
    remarks: list[str] = field(default_factory=list)
    is_only_translation: bool = False

    @property
    def number(self) -> int:
        return self.lines[0].number

    @property
    def is_question(self) -> bool:
        return self.kind not in ("page", "out")

    @property
    def used_options(self) -> list[Piece]:
        return self.options if self.kind in (*SELECTS, GRID) else []

    def pieces(self) -> Iterator[Piece]:
        yield self.label
        yield from (*self.hints, *self.options, *self.statements)


def build_blocks(
    lines: Iterable[Line],
    roles: Mapping[int, Role],
    kinds: Mapping[int, str] | None = None,
    required: Mapping[int, bool] | None = None,
) -> list[Block]:
    """Put lines together to pages and questions.

    `kinds` and `required` are by the number of a block's first line, and go before
    what is guessed.
    """
    blocks: list[Block] = []
    for line in lines:
        role = roles[line.number]
        last = blocks[-1] if blocks else None
        if role in (Role.QUESTION, Role.PAGE):
            blocks.append(_begun(line, role))
        elif role == Role.OUT:
            is_drawn = line.is_to_write_on and last and last.is_question
            if last and (last.kind == "out" or is_drawn):
                last.lines.append(line)
            else:
                blocks.append(Block("out", [line], Piece(line.number, "")))
        else:
            if last is None or not last.is_question:
                last = Block("", [], Piece(line.number, ""))
                blocks.append(last)
            last.lines.append(line)
            _add(last, line, role)
    blocks = [*_with_filled_pages(blocks)]
    for block in blocks:
        if block.is_question:
            _finish(block, kinds or {}, required or {})
    return blocks


def _begun(line: Line, role: Role) -> Block:
    if role == Role.PAGE:
        title = page_title(line)
        text = title.text if title else line.raw
        return Block("page", [line], Piece(line.number, text))
    text = line.raw if line.parts else line.text
    return Block("", [line], Piece(line.number, text), is_required=line.is_starred)


def _add(block: Block, line: Line, role: Role) -> None:
    if role == Role.MORE:
        pieces = reversed([*block.pieces()])
        target = max(pieces, key=lambda piece: piece.line)
        target.text = f"{target.text} {line.raw}".strip()
    elif role == Role.HINT:
        block.hints.append(Piece(line.number, line.text))
    elif role == Role.ANSWERS:
        parts = line.parts or answers_in(line.raw, is_certain=True)
        block.options += [Piece(line.number, part) for part in parts]
    elif role == Role.ANSWER:
        block.options.append(Piece(line.number, line.text))
    else:
        block.statements.append(Piece(line.number, line.text))


def _with_filled_pages(blocks: Sequence[Block]) -> Iterator[Block]:
    """Make notes of the titles of pages that no question follows."""
    shown = [block for block in blocks if block.kind != "out"]
    after = {
        id(block): following
        for block, following in zip(shown, [*shown[1:], None], strict=False)
    }
    for block in blocks:
        following = after.get(id(block))
        if block.kind == "page" and (following is None or not following.is_question):
            if not block.label.text:
                block.kind = "out"
            else:
                block.kind = NOTE
                block.remarks.append(
                    _("No question follows this title, so it is a text of its own.")
                )
        yield block


def _finish(
    block: Block, kinds: Mapping[int, str], required: Mapping[int, bool]
) -> None:
    """Read what the texts of a question say of it, and guess its type."""
    _keep_other_marks(block)
    if block.statements and not block.options:
        cells = next((line.cells for line in block.lines if line.is_row), ())
        block.options = [Piece(block.lines[-1].number, text) for text in cells]
    has_lines = _read_label(block)
    guess = block.kind or _guess_kind(block, has_lines)
    block.kind = kinds.get(block.number, guess)
    if block.statements and block.kind not in (GRID, *SELECTS):
        block.kind = GRID
    if block.kind == GRID and not block.statements:
        block.kind = SELECTS[0]
    block.is_required = required.get(block.number, block.is_required)
    block.is_required &= block.kind != NOTE
    block.remarks += _remarks(block)


def _keep_other_marks(block: Block) -> None:
    """Leave numbers and letters in the texts of a list that does not count up."""
    by_number = {line.number: line for line in block.lines}
    for pieces in (block.options, block.statements):
        lines = [by_number[piece.line] for piece in pieces]
        marked = [line for line in lines if line.mark in (NUMBER, LETTER)]
        is_list = len(marked) == len(lines) and is_counted(lines)
        # Statements are numbered on, as questions are.
        if is_list or (pieces is block.statements and len(marked) > 1):
            continue
        for piece, line in zip(pieces, lines, strict=True):
            if line.mark in (NUMBER, LETTER) and not line.is_row:
                piece.text = line.raw


def _read_label(block: Block) -> int:
    """Take marks off the text of a question; return the lines to write on."""
    drawn = sum(line.is_to_write_on for line in block.lines)
    text = block.label.text
    bare = text.rstrip("_.… \t") if text.endswith(DRAWN) else text
    if bare != text and bare:
        text, drawn = bare, drawn + 1
    end = text[-LONGEST_REQUIRED:]
    if match := REQUIRED.search(end):
        text, block.is_required = text[: match.start() - len(end)].rstrip(), True
    block.label.text = text
    return drawn


def _guess_kind(block: Block, drawn: int) -> str:
    texts = " ".join([block.label.text, *(hint.text for hint in block.hints)])
    if block.statements:
        return GRID
    if block.options:
        marks = [line.mark for line in block.lines if line.mark in (BOX, ROUND)]
        is_ticked = BOX in marks and ROUND not in marks
        is_ticked |= any(
            line.parts and ("☐" in line.raw or "[" in line.raw) for line in block.lines
        )
        is_yes_no = all(piece.text.casefold() in YES_NO for piece in block.options)
        is_several = SEVERAL.search(texts) or (is_ticked and not is_yes_no)
        return SELECTS[1] if is_several else SELECTS[0]
    first = block.lines[0]
    if NUMBER_NOTE.search(texts):
        return "integer"
    if LONG.search(texts) or drawn > 1:
        return LONG_TEXT
    is_asked = first.asks or first.mark == NUMBER or drawn
    return NOTE if not is_asked and is_prose(block.label.text) else "text"


def _remarks(block: Block) -> Iterator[str]:
    """Say what is left to do by hand, and what this type has no room for."""
    texts = [piece.text for piece in block.pieces()]
    if any(ROUTE.match(text) or ROUTED.search(text) for text in texts):
        yield _(
            "It says who answers this or where to go on. Make a rule of it in the"
            " editor: the text alone does nothing."
        )
    if not block.label.text and not block.statements:
        yield _("It has no text yet.")
    if block.kind == "text" and HOW_MANY.search(block.label.text):
        yield _("Is the answer a number? Then choose the type “Whole number”.")
    if block.options and not block.used_options:
        yield _("This type has no answers, so they are not inserted.")
    if block.kind in (*SELECTS, GRID) and not block.options:
        yield _("It has no answers yet: you get two to write over.")
    if len(block.used_options) == 1:
        yield _("It has a single answer. Is this line an answer?")
    if any("__" in piece.text for piece in block.options):
        yield _(
            "An answer has a line to write on. Add a question of the type “Text”"
            " for it."
        )
        for piece in block.options:
            piece.text = re.sub(r"_{2,}", "", piece.text).strip() or piece.text
