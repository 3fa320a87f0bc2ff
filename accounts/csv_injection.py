"""Cells that a spreadsheet must not run, whoever wrote them."""

from __future__ import annotations

import re
import unicodedata

_FORMULA_SIGNS = frozenset("=+-@")
# Where the list separator is a semicolon, as in most of Europe, Excel begins
# a new cell after one, and takes none of the quotes around the old one.
_NEW_CELL = re.compile(r'([;\t\r\n][ "]*)(?=(.))', re.DOTALL)
_DEFUSED_CELL = re.compile(r'([;\t\r\n][ "]*)\'(?=(.))', re.DOTALL)


def escape_formula(cell: str) -> str:
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


def undefused(cell: str) -> str:
    """What `escape_formula` made this cell of; any other cell as it is."""
    if "'" not in cell:
        return cell
    whole = cell[1:] if cell.startswith("'") else cell
    whole = _DEFUSED_CELL.sub(
        lambda found: (
            found[1] if _plain(found[2]) in _FORMULA_SIGNS else f"{found[1]}'"
        ),
        whole,
    )
    return whole if escape_formula(whole) == cell else cell


def _plain(sign: str) -> str:
    return unicodedata.normalize("NFKC", sign)[:1]
