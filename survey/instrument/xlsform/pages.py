"""Divide the tree of groups into pages and blocks.

A field-list group is a page, and so is a group at the top. A group that contains
field-list groups is a section: its parts become pages, with its label as their
title if they have none. Questions outside of groups are gathered, about five
to a page.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from django.utils.translation import gettext as _

from survey.instrument.xlsform.columns import SurveyRow
from survey.instrument.xlsform.draft import BlockDraft, ItemDraft, PageDraft, Texts
from survey.instrument.xlsform.outline import Group, Question
from survey.instrument.xlsform.problems import Findings

ABOUT = 5
# A grid or a question with its *Other* stays whole, even if it is one more.
AT_MOST = 7
LONG_PAGE = 25

Nodes = list[Group | Question]


def paginate(root: Group, findings: Findings) -> list[PageDraft]:
    # Calculations and hidden items need no page of their own.
    pages: list[PageDraft] = []
    waiting: list[BlockDraft] = []
    for page in pages_of(root, {}, findings):
        if any(item.is_shown for item in page.items()):
            page.blocks = waiting + page.blocks
            waiting = []
            pages.append(page)
        elif pages:
            pages[-1].blocks += page.blocks
        else:
            waiting += page.blocks
    name_pages(pages)
    for page in pages:
        shown = [item for item in page.items() if item.is_shown]
        if len(shown) > LONG_PAGE:
            reason = _("a page of %(shown)s questions: field-list groups divide it") % {
                "shown": len(shown)
            }
            shown[0].row.warn(findings, "type", reason, page.name)
    return pages


def pages_of(group: Group, title: Texts, findings: Findings) -> Iterator[PageDraft]:
    loose: Nodes = []
    for node in group.nodes:
        if isinstance(node, Question):
            loose.append(node)
            continue
        yield from loose_pages(loose, title, findings)
        loose = []
        if is_section(node):
            yield from pages_of(node, node.label or title, findings)
            continue
        builder = BlockBuilder(findings)
        # The label of a table-list group is the stem of its grid.
        blocks = builder.add([node] if node.is_table_list else node.nodes)
        name = node.row.get("name") if node.row else ""
        if blocks:
            own_title = {} if node.is_table_list else node.label
            yield PageDraft(name, dict(own_title or title), blocks, node.row)
        elif node.row and not node.is_table_list:
            node.row.warn(findings, "name", _("a group without questions: ignored"))
    yield from loose_pages(loose, title, findings)


def is_section(group: Group) -> bool:
    if group.is_field_list or group.is_table_list:
        return False
    inner = [node for node in group.nodes if isinstance(node, Group)]
    return any(node.is_field_list or is_section(node) for node in inner)


def loose_pages(nodes: Nodes, title: Texts, findings: Findings) -> Iterator[PageDraft]:
    """Gather questions outside of groups, without dividing a unit."""
    pages: list[Nodes] = []
    size = 0
    for unit in units(nodes):
        added = sum(map(counts, unit))
        if not pages or (size and (size >= ABOUT or size + added > AT_MOST)):
            pages.append([])
            size = 0
        pages[-1] += unit
        size += added
    for page in pages:
        blocks = BlockBuilder(findings).add(page)
        if blocks:
            yield PageDraft("", dict(title), blocks)


def units(nodes: Nodes) -> Iterator[Nodes]:
    """Keep together what belongs together: a grid, a note and its question."""
    unit: Nodes = []
    for node in nodes:
        is_grid_row = isinstance(node, Question) and node.place == "list-nolabel"
        if any(map(counts, unit)) and not is_grid_row:
            yield unit
            unit = []
        unit.append(node)
    if unit:
        yield unit


def counts(node: Group | Question) -> bool:
    if not isinstance(node, Question) or node.place == "label":
        return False
    return node.item.is_answerable


@dataclass
class OpenBlock:
    """The block that the next question may join."""

    block: BlockDraft
    option_set: str = ""
    # The row with the appearance `label`, if one began the grid.
    heading: SurveyRow | None = None


class BlockBuilder:
    """Gather the questions of one page into blocks.

    No heading is lost: it waits for the first block that can have it.
    """

    def __init__(self, findings: Findings) -> None:
        self.findings = findings
        self.blocks: list[BlockDraft] = []
        self.unseen: list[ItemDraft] = []
        self.open: OpenBlock | None = None
        self.heading: Texts = {}
        # Whose label waits in `heading`.
        self.heading_row: SurveyRow | None = None

    def add(self, nodes: Nodes) -> list[BlockDraft]:
        self.add_nodes(nodes, {}, None)
        if self.unseen:
            self.blocks.append(BlockDraft(items=self.unseen))
        return self.blocks

    def add_nodes(
        self, nodes: Nodes, heading: Texts, heading_row: SurveyRow | None
    ) -> None:
        self.heading = joined(self.heading, heading)
        self.heading_row = heading_row or self.heading_row
        for node in nodes:
            if isinstance(node, Question):
                self.add_question(node)
                continue
            self.close()
            label = node.label
            if node.is_table_list and node.row:
                label = joined(label, node.row.text("hint"))
            waiting, before = self.heading, len(self.blocks)
            self.add_nodes(node.nodes, label, node.row)
            if len(self.blocks) == before:
                # No block could have the group's own label.
                self.heading = waiting
        self.close()

    def add_question(self, question: Question) -> None:
        item = question.item
        if not item.is_shown:
            self.unseen.append(item)
        elif question.place == "label":
            self.close()
            self.begin(item.label, item, heading=item.row)
        elif question.place == "list-nolabel":
            grid = self.block_for(item, is_grid=True)
            if item.option_set and item.option_set != grid.option_set:
                reason = _(
                    "the rows of a grid share one list of options, here %(option_set)s"
                ) % {"option_set": f"{grid.option_set!r}"}
                item.row.refuse(self.findings, "type", reason)
            item.rules.pop("appearance", None)
            grid.block.items.append(item)
        else:
            self.block_for(item, is_grid=False).block.items.append(item)
        if question.other_text:
            block = self.block_for(question.other_text, is_grid=False).block
            block.items.append(question.other_text)

    def begin(
        self,
        label: Texts,
        grid_item: ItemDraft | None = None,
        heading: SurveyRow | None = None,
    ) -> OpenBlock:
        """Open a block: a grid of this item's options if there is an item."""
        block = BlockDraft(
            joined(self.heading, label),
            is_grid=grid_item is not None,
            row=heading or self.heading_row,
        )
        self.heading, self.heading_row = {}, None
        option_set = grid_item.option_set if grid_item else ""
        self.open = OpenBlock(block, option_set, heading)
        self.blocks.append(block)
        return self.open

    def block_for(self, item: ItemDraft, *, is_grid: bool) -> OpenBlock:
        if self.open and self.open.block.is_grid == is_grid:
            return self.open
        self.close()
        return self.begin({}, item if is_grid else None)

    def close(self) -> None:
        if self.open and not self.open.block.items and self.open.heading:
            reason = _("no rows with the appearance list-nolabel follow this heading")
            self.open.heading.refuse(self.findings, "appearance", reason)
        self.open = None


def joined(first: Texts, second: Texts) -> Texts:
    """Join both texts in each language, the second on its own line."""
    return {
        code: "\n".join(text for text in (first.get(code), second.get(code)) if text)
        for code in [*first, *(code for code in second if code not in first)]
    }


def name_pages(pages: list[PageDraft]) -> None:
    """Give every page a name of its own, if possible the one of its group."""
    given = {page.name for page in pages}
    used: set[str] = set()
    for position, page in enumerate(pages, start=1):
        base = page.name or f"page_{position}"
        name, number = base, 2
        while name in used or (name in given and not page.name):
            name, number = f"{base}_{number}", number + 1
        page.name = name
        used.add(name)
