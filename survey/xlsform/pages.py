"""The tree of groups to pages and blocks.

A field-list group is a page, and so is a group at the top. A group that holds
field-list groups is a section: its parts are paginated, under its label where
they have none. Questions outside of pages are gathered, about five to a page.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from survey.xlsform.columns import Row
from survey.xlsform.draft import BlockDraft, ItemDraft, PageDraft, Texts
from survey.xlsform.outline import Group, Question
from survey.xlsform.problems import Findings

ABOUT = 5
# A grid or a question with its *Other* stays whole, even if it is one more.
AT_MOST = 7
LONG_PAGE = 25


def paginate(root: Group, findings: Findings) -> list[PageDraft]:
    pages = list(_pages(root, {}, findings))
    pages = _without_unseen_pages(pages)
    _name(pages)
    for page in pages:
        shown = [item for item in page.items() if item.is_shown]
        if len(shown) > LONG_PAGE:
            reason = f"a page of {len(shown)} questions: field-list groups divide it"
            shown[0].row.warn(findings, "type", reason, page.name)
    return pages


def _pages(group: Group, title: Texts, findings: Findings) -> Iterator[PageDraft]:
    loose: list[Group | Question] = []
    for node in group.nodes:
        if isinstance(node, Question):
            loose.append(node)
            continue
        yield from _loose_pages(loose, title, findings)
        loose = []
        if _is_section(node):
            yield from _pages(node, node.label or title, findings)
        else:
            yield from _group_page(node, title, findings)
    yield from _loose_pages(loose, title, findings)


def _is_section(group: Group) -> bool:
    if group.is_field_list or group.is_table_list:
        return False
    inner = [node for node in group.nodes if isinstance(node, Group)]
    return any(node.is_field_list or _is_section(node) for node in inner)


def _group_page(group: Group, title: Texts, findings: Findings) -> Iterator[PageDraft]:
    name = group.row.get("name") if group.row else ""
    if group.is_table_list:
        blocks = _Blocks(findings).add_group(group, {})
        yield from _page(name, title, blocks)
        return
    blocks = _Blocks(findings).add(group.nodes, {})
    if not blocks and group.row:
        group.row.warn(findings, "name", "a group without questions: ignored")
    yield from _page(name, group.label or title, blocks)


def _loose_pages(
    nodes: list[Group | Question], title: Texts, findings: Findings
) -> Iterator[PageDraft]:
    for run in _runs(nodes):
        yield from _page("", title, _Blocks(findings).add(run, {}))


def _page(name: str, title: Texts, blocks: list[BlockDraft]) -> Iterator[PageDraft]:
    if blocks:
        yield PageDraft(name, dict(title), blocks)


def _runs(nodes: list[Group | Question]) -> Iterator[list[Group | Question]]:
    run: list[Group | Question] = []
    size = 0
    for unit in _units(nodes):
        added = sum(1 for node in unit if _counts(node))
        if size and (size >= ABOUT or size + added > AT_MOST):
            yield run
            run, size = [], 0
        run, size = run + unit, size + added
    if run:
        yield run


def _counts(node: Group | Question) -> bool:
    if not isinstance(node, Question) or node.place == "label":
        return False
    return node.item.is_answerable


def _units(nodes: list[Group | Question]) -> Iterator[list[Group | Question]]:
    """What must stay together: a grid, and a note with what it introduces."""
    unit: list[Group | Question] = []
    for node in nodes:
        if unit and _begins_a_unit(unit, node):
            yield unit
            unit = []
        unit.append(node)
    if unit:
        yield unit


def _begins_a_unit(unit: list[Group | Question], node: Group | Question) -> bool:
    if not any(_counts(one) for one in unit):
        return False
    return not (isinstance(node, Question) and node.place == "list-nolabel")


@dataclass
class _Open:
    """The block that the next question may join."""

    block: BlockDraft
    option_set: str = ""
    # The row with the appearance `label`, where one began the grid.
    heading: Row | None = None


class _Blocks:
    """Questions of one page, gathered into blocks. A heading is never lost:
    it waits for the first block that can carry it."""

    def __init__(self, findings: Findings) -> None:
        self.findings = findings
        self.blocks: list[BlockDraft] = []
        self.unseen: list[ItemDraft] = []
        self.open: _Open | None = None
        self.heading: Texts = {}

    def add(self, nodes: list[Group | Question], heading: Texts) -> list[BlockDraft]:
        self._add(nodes, heading)
        if self.unseen:
            self.blocks.append(BlockDraft(items=self.unseen))
        return self.blocks

    def add_group(self, group: Group, heading: Texts) -> list[BlockDraft]:
        return self.add([group], heading)

    def _add(self, nodes: list[Group | Question], heading: Texts) -> None:
        self.heading = joined(self.heading, heading)
        for node in nodes:
            if isinstance(node, Group):
                self._close()
                self._add_group(node)
            else:
                self._add_question(node)
        self._close()

    def _add_group(self, group: Group) -> None:
        label = group.label
        if group.is_table_list and group.row:
            label = joined(label, group.row.text("hint"))
        waiting = self.heading
        before = len(self.blocks)
        self._add(group.nodes, label)
        if len(self.blocks) == before:
            # Nothing was there to carry the group's own label.
            self.heading = waiting

    def _add_question(self, question: Question) -> None:
        item = question.item
        if not item.is_shown:
            self.unseen.append(item)
        elif question.place == "label":
            self._close()
            self._begin(item.label, item, heading=item.row)
        elif question.place == "list-nolabel":
            self._add_to_grid(item)
        else:
            self._add_plain(item)
        if question.other:
            self._add_plain(question.other)

    def _begin(
        self, label: Texts, item: ItemDraft | None = None, heading: Row | None = None
    ) -> _Open:
        """Opens a block: a grid of this item's options where one is given."""
        block = BlockDraft(joined(self.heading, label), is_grid=item is not None)
        self.heading = {}
        self.open = _Open(block, item.option_set if item else "", heading)
        self.blocks.append(block)
        return self.open

    def _joined(self, item: ItemDraft, *, grid: bool) -> _Open:
        if self.open and self.open.block.is_grid == grid:
            return self.open
        self._close()
        return self._begin({}, item if grid else None)

    def _add_plain(self, item: ItemDraft) -> None:
        self._joined(item, grid=False).block.items.append(item)

    def _add_to_grid(self, item: ItemDraft) -> None:
        grid = self._joined(item, grid=True)
        if item.option_set and item.option_set != grid.option_set:
            reason = (
                f"the rows of a grid share one list of options, here"
                f" {grid.option_set!r}"
            )
            item.row.refuse(self.findings, "type", reason)
        item.rules.pop("appearance", None)
        grid.block.items.append(item)

    def _close(self) -> None:
        if self.open and not self.open.block.items and self.open.heading:
            reason = "no rows with the appearance list-nolabel follow this heading"
            self.open.heading.refuse(self.findings, "appearance", reason)
        self.open = None


def joined(first: Texts, second: Texts) -> Texts:
    """Both texts in each language, the second on its own line."""
    return {
        code: "\n".join(text for text in (first.get(code), second.get(code)) if text)
        for code in [*first, *(code for code in second if code not in first)]
    }


def _without_unseen_pages(pages: list[PageDraft]) -> list[PageDraft]:
    """What nobody sees needs no page of its own: it joins a neighbour."""
    kept: list[PageDraft] = []
    waiting: list[BlockDraft] = []
    for page in pages:
        if any(item.is_shown for item in page.items()):
            page.blocks = waiting + page.blocks
            waiting = []
            kept.append(page)
        elif kept:
            kept[-1].blocks += page.blocks
        else:
            waiting += page.blocks
    return kept


def _name(pages: list[PageDraft]) -> None:
    taken = {page.name for page in pages}
    seen: set[str] = set()
    for position, page in enumerate(pages, start=1):
        base = page.name or f"page_{position}"
        name, number = base, 2
        while name in seen or (name in taken and not page.name):
            name, number = f"{base}_{number}", number + 1
        page.name = name
        seen.add(name)
