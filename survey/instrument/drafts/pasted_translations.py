"""Give pasted questions their translations from a second text of the same form.

Two texts with the same marks line by line are read with the same roles. Others are
read each for itself, and their questions are paired in order, by their numbers, types
and answers. What has no partner is named, and stays in the list of blocks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from survey.instrument.drafts.pasted_lines import Line
from survey.instrument.drafts.pasted_questions import (
    Block,
    Piece,
    build_blocks,
)
from survey.instrument.drafts.pasted_roles import Role, guess_roles

# How many lines must have the same marks to be translations of each other.
ALIKE = 0.9


def translate(
    blocks: Sequence[Block],
    lines: Sequence[Line],
    roles: Mapping[int, Role],
    translated: Sequence[Line],
    language: str,
) -> list[Block]:
    """Return the blocks with their translations, and those that only they have.

    `language` is its name in remarks. The pieces of `blocks` are changed.
    """
    if _have_same_marks(lines, translated):
        of_line = {
            second.number: roles[first.number]
            for first, second in zip(lines, translated, strict=True)
        }
    else:
        of_line = guess_roles(translated)
    second_blocks = [
        block for block in build_blocks(translated, of_line) if block.kind != "out"
    ]
    shown = [block for block in blocks if block.kind != "out"]
    partners = _aligned(shown, second_blocks)
    by_block = {id(first): second for first, second in partners if first}
    before: dict[int | None, list[Block]] = {}
    waiting: list[Block] = []
    for first, second in partners:
        if first is None and second is not None:
            second.is_only_translation = True
            second.remarks = []
            waiting.append(second)
        elif first is not None:
            before[id(first)], waiting = waiting, []
    paired: list[Block] = []
    for block in blocks:
        paired += before.get(id(block), [])
        paired.append(block)
        if block.kind != "out":
            _join(block, by_block.get(id(block)), language)
    return [*paired, *waiting]


def _have_same_marks(lines: Sequence[Line], translated: Sequence[Line]) -> bool:
    if len(lines) != len(translated):
        return False
    alike = sum(
        (first.mark, len(first.parts), first.is_to_write_on)
        == (second.mark, len(second.parts), second.is_to_write_on)
        for first, second in zip(lines, translated, strict=True)
    )
    return alike >= ALIKE * len(lines)


def _aligned(
    blocks: Sequence[Block], second_blocks: Sequence[Block]
) -> list[tuple[Block | None, Block | None]]:
    """Pair blocks in order, so that as much as possible of them is alike."""
    best = [[0] * (len(second_blocks) + 1) for _block in range(len(blocks) + 1)]
    for row in range(len(blocks) - 1, -1, -1):
        for column in range(len(second_blocks) - 1, -1, -1):
            likeness = _likeness(blocks[row], second_blocks[column])
            together = best[row + 1][column + 1] + likeness if likeness else -1
            best[row][column] = max(
                together, best[row + 1][column], best[row][column + 1]
            )
    pairs: list[tuple[Block | None, Block | None]] = []
    row = column = 0
    while row < len(blocks) and column < len(second_blocks):
        likeness = _likeness(blocks[row], second_blocks[column])
        if likeness and best[row][column] == best[row + 1][column + 1] + likeness:
            pairs.append((blocks[row], second_blocks[column]))
            row, column = row + 1, column + 1
        elif best[row][column] == best[row + 1][column]:
            pairs.append((blocks[row], None))
            row += 1
        else:
            pairs.append((None, second_blocks[column]))
            column += 1
    pairs += [(block, None) for block in blocks[row:]]
    return pairs + [(None, block) for block in second_blocks[column:]]


def _likeness(block: Block, translation: Block) -> int:
    """Return how sure it is that two blocks are the same; 0 if they can't be."""
    if block.is_question != translation.is_question:
        return 0
    first, second = block.lines[0], translation.lines[0]
    if not block.is_question:
        return 3
    same_size = len(block.options) == len(translation.options)
    same_rows = len(block.statements) == len(translation.statements)
    same_number = first.mark == second.mark and first.label == second.label
    return 1 + 3 * same_size + 2 * same_rows + 3 * (same_number and bool(first.label))


def _join(block: Block, translation: Block | None, language: str) -> None:
    """Write the translations into the pieces of a block, and say what is missing."""
    if translation is None:
        block.remarks.append(_("Not there in %(language)s.") % {"language": language})
        return
    block.label.translation = translation.label.text
    for pieces, translations, words in (
        (block.hints, translation.hints, _hints),
        (block.options, translation.options, _answers),
        (block.statements, translation.statements, _statements),
    ):
        for piece, translated in zip(pieces, translations, strict=False):
            piece.translation = translated.text
        if len(pieces) != len(translations):
            block.remarks.append(
                _("Here: %(here)s. In %(language)s: %(there)s.")
                % {
                    "here": words(len(pieces)),
                    "there": words(len(translations)),
                    "language": language,
                }
            )
            block.remarks += _left_over(translations[len(pieces) :], language)


def _left_over(pieces: Sequence[Piece], language: str) -> list[str]:
    return [
        _("Only in %(language)s, and not inserted: “%(text)s”")
        % {"language": language, "text": piece.text}
        for piece in pieces
    ]


def _hints(count: int) -> str:
    return ngettext("%(n)s help text", "%(n)s help texts", count) % {"n": count}


def _answers(count: int) -> str:
    return ngettext("%(n)s answer", "%(n)s answers", count) % {"n": count}


def _statements(count: int) -> str:
    return ngettext("%(n)s statement", "%(n)s statements", count) % {"n": count}
