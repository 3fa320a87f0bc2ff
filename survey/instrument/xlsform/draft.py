"""A survey as it was read from a file, before it is stored."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from survey.instrument.definitions.schema import (
    ANSWERABLE,
    VISIBLE,
    Expr,
    ItemRules,
    LanguageDefinition,
    Measures,
    Texts,
)
from survey.instrument.xlsform.columns import SurveyRow


@dataclass
class OptionDraft:
    value: str
    label: Texts
    attributes: dict[str, str] = field(default_factory=dict)


@dataclass
class ItemDraft:
    """`rules` as in `survey.models.Item.rules`; `row` is its row in the file.

    `rules["relevant"]` includes that of all groups around the item;
    `own_relevant` is only that of its own row.
    """

    name: str
    kind: str
    row: SurveyRow
    label: Texts = field(default_factory=dict)
    hint: Texts = field(default_factory=dict)
    guidance: Texts = field(default_factory=dict)
    option_set: str = ""
    rules: ItemRules = field(default_factory=lambda: ItemRules())
    own_relevant: Expr | None = None

    @property
    def is_answerable(self) -> bool:
        return self.kind in ANSWERABLE

    @property
    def is_shown(self) -> bool:
        return self.kind in VISIBLE


@dataclass
class BlockDraft:
    """`row` is that of the heading or grid, if a row of its own has the label."""

    label: Texts = field(default_factory=dict)
    is_grid: bool = False
    items: list[ItemDraft] = field(default_factory=list)
    row: SurveyRow | None = None


@dataclass
class PageDraft:
    """`row` begins the page's group; None for questions outside of groups."""

    name: str
    title: Texts = field(default_factory=dict)
    blocks: list[BlockDraft] = field(default_factory=list)
    row: SurveyRow | None = None

    def items(self) -> Iterator[ItemDraft]:
        for block in self.blocks:
            yield from block.items


@dataclass
class Draft:
    name: str
    version: str
    title: Texts
    languages: list[LanguageDefinition]
    option_sets: dict[str, list[OptionDraft]]
    pages: list[PageDraft]
    measures: Measures | None = None

    def items(self) -> Iterator[ItemDraft]:
        for page in self.pages:
            yield from page.items()
