"""List the texts of a draft, each with the item at which it is reported."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from survey.instrument.definitions.schema import Texts
from survey.instrument.xlsform.draft import BlockDraft, Draft, ItemDraft

TextKind = Literal["title", "heading", "label", "hint", "guidance", "message", "option"]
TAG = re.compile(r"<[^<>]{1,200}>|\*\*|__")
# A piped answer is read as a word.
REFERENCE = re.compile(r"\$\{[^{}]{0,200}\}")
SENTENCE_END = re.compile(r"(?<=[.!?…])[\"”’»)]*\s+|\n+")
WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")


@dataclass(frozen=True, slots=True)
class DraftText:
    """`item` is None for texts of the whole survey."""

    kind: TextKind
    texts: Texts
    item: ItemDraft | None


def texts_of(draft: Draft) -> Iterator[DraftText]:
    """Yield all texts that respondents read, in their order."""
    yield DraftText("title", draft.title, None)
    seen: set[str] = set()
    for page in draft.pages:
        shown = [item for item in page.items() if item.is_shown]
        if page.title:
            yield DraftText("title", page.title, shown[0] if shown else None)
        for block in page.blocks:
            yield from _texts_of_block(draft, block, seen)


def _texts_of_block(
    draft: Draft, block: BlockDraft, seen: set[str]
) -> Iterator[DraftText]:
    if block.label:
        yield DraftText("heading", block.label, next(iter(block.items), None))
    for item in block.items:
        yield DraftText("label", item.label, item)
        yield DraftText("hint", item.hint, item)
        yield DraftText("guidance", item.guidance, item)
        yield DraftText("message", item.rules.get("required_message", {}), item)
        yield DraftText("message", item.rules.get("constraint_message", {}), item)
        if item.option_set not in seen:
            seen.add(item.option_set)
            for option in draft.option_sets.get(item.option_set, []):
                yield DraftText("option", option.label, item)


def plain(text: str) -> str:
    """Leave out what is not read: tags, emphasis and the names of piped answers."""
    return REFERENCE.sub("Alex", TAG.sub("", text))


def sentences(text: str) -> list[str]:
    parts = (part.strip() for part in SENTENCE_END.split(plain(text)))
    return [part for part in parts if WORD.search(part)]


def words(text: str) -> list[str]:
    return WORD.findall(text)


def folded(text: str) -> str:
    """Return a text as it is compared: its words, without signs and capitals."""
    return " ".join(re.findall(r"\w+", text)).casefold()


def question_numbers(draft: Draft) -> dict[str, int]:
    """Return the numbers of questions by their names, as the editor counts them."""
    numbers: dict[int, int] = {}
    for item in draft.items():
        # The text for *Other* is in the row of its question.
        if item.is_answerable:
            numbers.setdefault(item.row.number, len(numbers) + 1)
    return {
        item.name: numbers[item.row.number]
        for item in draft.items()
        if item.row.number in numbers
    }


def shortened(text: str, longest: int = 60) -> str:
    """Quote the beginning of a text in a sentence."""
    line = " ".join(TAG.sub("", text).split())
    if len(line) <= longest:
        return line
    return line[:longest].rsplit(" ", 1)[0] + "\N{HORIZONTAL ELLIPSIS}"
