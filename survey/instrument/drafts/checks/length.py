"""Estimate how long answering a survey takes on a phone."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from django.utils.translation import gettext as _

from survey.instrument.definitions.schema import MOMENTS, NUMBERS, Texts
from survey.instrument.drafts.checks.check import Audience, Check, hint
from survey.instrument.drafts.checks.texts import plain, words
from survey.instrument.xlsform.draft import BlockDraft, Draft, ItemDraft, PageDraft

# A question that stands alone takes about 10 seconds: Pew Research Center (2022), How
# we keep our online surveys from running too long.
ALONE = 10
# Ten rows of a grid or more in a minute: Amplitude Research, Online market research.
GRID_ROW = 6
# Several choices take twice as long as one, a number 27 seconds on a phone, and a
# text half a minute or more: First Line Research (2018), Two fingers are better than
# one. A long text takes a minute: Amplitude Research.
SEVERAL = 2 * ALONE
NUMBER = 27
SHORT_TEXT, LONG_TEXT = 30, 60
# Words per minute, of what is only read. Adults: Brysbaert (2019), How many words do
# we read per minute? Students: as grade 5 reads aloud in spring, at the median, in
# Hasbrouck and Tindal (2017), An update to compiled ORF norms.
WORDS_PER_MINUTE = {Audience.STUDENTS: 146, Audience.ADULTS: 238}
# About 20 minutes is what schools plan for.
MOST_MINUTES = 20


def minutes_of(
    draft: Draft,
    audience: Audience = Audience.ADULTS,
    seconds: Mapping[str, float] | None = None,
) -> int:
    """Return the minutes, at least 1, that answering the whole survey takes."""
    total = sum(page.seconds for page in page_lengths(draft, audience, seconds))
    return max(1, math.ceil(total / 60))


@dataclass(frozen=True, slots=True)
class PageLength:
    """How long a page takes, and whether all of it was recorded."""

    page: PageDraft
    seconds: float
    is_recorded: bool


def page_lengths(
    draft: Draft,
    audience: Audience = Audience.ADULTS,
    seconds: Mapping[str, float] | None = None,
) -> list[PageLength]:
    """Return the seconds of each page.

    `seconds` are recorded ones by the names of items, where they are known. A
    question that only some people are shown counts half.
    """
    recorded = seconds or {}
    lengths = []
    for page in draft.pages:
        total = 0.0
        for block in page.blocks:
            # A recorded time contains that of reading what stands above.
            if not any(item.name in recorded for item in block.items):
                total += _reading(block.label, draft, audience)
            for item in block.items:
                estimate = _estimate(item, block, draft, audience)
                share = 0.5 if "relevant" in item.rules else 1
                total += share * recorded.get(item.name, estimate)
        shown = [item.name for item in page.items() if item.is_shown]
        lengths.append(PageLength(page, total, recorded.keys() >= {*shown}))
    return lengths


def _estimate(
    item: ItemDraft, block: BlockDraft, draft: Draft, audience: Audience
) -> float:
    if item.kind == "note":
        return _reading(item.label, draft, audience)
    if item.kind == "text":
        is_long = "multiline" in item.rules.get("appearance", [])
        return LONG_TEXT if is_long else SHORT_TEXT
    if item.kind == "select_multiple":
        return SEVERAL
    if item.kind == "range":
        return ALONE
    if item.kind in NUMBERS | MOMENTS:
        return NUMBER
    if block.is_grid:
        return GRID_ROW
    return ALONE if item.is_answerable else 0


def _reading(texts: Texts, draft: Draft, audience: Audience) -> float:
    text = texts.get(draft.languages[0]["code"], "")
    return len(words(plain(text))) * 60 / WORDS_PER_MINUTE[audience]


def check_length(
    draft: Draft, audience: Audience, seconds: Mapping[str, float] | None
) -> Iterator[Check]:
    minutes = minutes_of(draft, audience, seconds)
    if minutes > MOST_MINUTES:
        message = _(
            "This survey takes about %(minutes)s minutes on a phone. Many people stop"
            " after %(most)s minutes: leave out questions that you can do without."
        ) % {"minutes": minutes, "most": MOST_MINUTES}
        yield hint("length", message)
