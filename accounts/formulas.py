"""Cells that a spreadsheet must not run, whoever wrote them."""

from __future__ import annotations

import re
import unicodedata

_FORMULA_SIGNS = frozenset("=+-@")
# Where the list separator is a semicolon, as in most of Europe, Excel begins
# a new cell after one, and takes none of the quotes around the old one.
_NEW_CELL = re.compile(r'([;\t\r\n][ "]*)(?=(.))', re.DOTALL)


def defused(cell: str) -> str:
    """The cell with an apostrophe wherever Excel would begin to run it.

    Full-width signs count too: some versions of Excel read them as the plain
    ones.
    """
    start = _plain(cell.lstrip(" ")[:1])
    runs = start in _FORMULA_SIGNS or (start and unicodedata.category(start) == "Cc")
    cell = _NEW_CELL.sub(
        lambda found: found[1] + "'" * (_plain(found[2]) in _FORMULA_SIGNS), cell
    )
    return f"'{cell}" if runs else cell


def _plain(sign: str) -> str:
    return unicodedata.normalize("NFKC", sign)[:1]
