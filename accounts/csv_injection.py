"""Escape cells that a spreadsheet program would run as formulas."""

from __future__ import annotations

import re
import unicodedata

_FORMULA_SIGNS = frozenset("=+-@")
# Where the list separator is a semicolon, as in most of Europe, Excel starts a
# new cell after each semicolon, even inside quotes.
_NEW_CELL = re.compile(r'([;\t\r\n][ "]*)(?=(.))', re.DOTALL)
_ESCAPED_CELL = re.compile(r'([;\t\r\n][ "]*)\'(?=(.))', re.DOTALL)


def escape_formula(cell: str) -> str:
    """Put an apostrophe wherever Excel would start to run a formula.

    Full-width signs count too, because some versions of Excel accept them.
    """
    start = _plain(cell.lstrip(" ")[:1])
    runs = start in _FORMULA_SIGNS or (start and unicodedata.category(start) == "Cc")
    cell = _NEW_CELL.sub(
        lambda match: match[1] + "'" * (_plain(match[2]) in _FORMULA_SIGNS), cell
    )
    return f"'{cell}" if runs else cell


def unescape_formula(cell: str) -> str:
    """Undo `escape_formula`, and return any other cell unchanged."""
    if "'" not in cell:
        return cell
    original = cell[1:] if cell.startswith("'") else cell
    original = _ESCAPED_CELL.sub(
        lambda match: (
            match[1] if _plain(match[2]) in _FORMULA_SIGNS else f"{match[1]}'"
        ),
        original,
    )
    return original if escape_formula(original) == cell else cell


def _plain(sign: str) -> str:
    return unicodedata.normalize("NFKC", sign)[:1]
