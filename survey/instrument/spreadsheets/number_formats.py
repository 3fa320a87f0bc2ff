"""Show a whole number as its cell does: 12346 in the format 00-0000 is 01-2346.

IDs are typed as numbers, and made readable by a format. What people see on the sheet
is the ID that they know.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from dataclasses import dataclass

_PIECES = re.compile(
    r"""(?P<general>General)|"(?P<quoted>[^"]*)"?|\\(?P<escaped>.)|_(?P<space>.)
    |\*(?P<fill>.)|\[(?P<bracket>[^\]]*)\]|(?P<exponent>E[+-])|(?P<digit>[0#?])
    |(?P<end>;)|(?P<comma>,)|(?P<point>\.)|(?P<unknown>[%@/])|(?P<literal>.)""",
    re.IGNORECASE | re.DOTALL | re.VERBOSE,
)
_CONDITION = re.compile(r"(<=|>=|<>|<|>|=)(-?\d+(?:\.\d+)?)")
_OPERATORS: dict[str, Callable[[float, float], bool]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
    "=": operator.eq, "<>": operator.ne,
}  # fmt: skip


@dataclass
class _Section:
    """The part of a format for some numbers, between semicolons."""

    # Texts, and None for a digit; both with the sign of the digit (0, # or ?).
    pieces: list[tuple[str, str]]
    condition: Callable[[float], bool] | None = None
    has_thousands: bool = False
    is_scientific: bool = False
    # Shows the number in a way that says nothing else: General, 0, 0.00, 50 %, ½.
    is_plain: bool = False


def number_format(code: str) -> Callable[[int], str] | None:
    """Return a function that shows a number in a format, or None for a plain one.

    Decimals are left out: a whole number has only zeros there.
    """
    sections = _sections(code)
    if all(section.is_plain for section in sections):
        return None

    def show(number: int) -> str:
        section, is_signed = _choose(sections, number)
        if section.is_plain:
            return str(number)
        sign = "-" if is_signed and number < 0 else ""
        return sign + _show(section, abs(number))

    return show


def _sections(code: str) -> list[_Section]:
    sections = []
    for part in _parts(code):
        section = _Section([])
        has_point = False
        for piece in part:
            kind, text = piece.lastgroup, piece[piece.lastgroup or 0]
            if kind in ("general", "unknown"):
                section.is_plain = True
            elif kind == "exponent":
                section.is_scientific = True
            elif kind == "point" and not has_point:
                has_point = True
            elif kind == "digit":
                if not has_point:
                    section.pieces.append(("", text))
            elif kind == "comma":
                section.has_thousands |= not has_point
            elif kind == "bracket":
                _read_bracket(section, text)
            elif kind != "fill":
                section.pieces.append((" " if kind == "space" else text, ""))
        digits = "".join(digit for _text, digit in section.pieces)
        texts = "".join(text for text, _digit in section.pieces)
        is_longer = digits.count("0") > 1 or texts.strip() or section.has_thousands
        if not digits or not (is_longer or section.is_scientific):
            section.is_plain = True
        sections.append(section)
    return sections


def _parts(code: str) -> list[list[re.Match[str]]]:
    parts: list[list[re.Match[str]]] = [[]]
    for piece in _PIECES.finditer(code):
        if piece.lastgroup == "end":
            parts.append([])
        else:
            parts[-1].append(piece)
    return parts


def _read_bracket(section: _Section, text: str) -> None:
    if condition := _CONDITION.fullmatch(text):
        compare, limit = _OPERATORS[condition[1]], float(condition[2])
        section.condition = lambda number: compare(number, limit)
    elif text.startswith("$"):
        # A currency, and the language of its country.
        section.pieces.append((text[1:].partition("-")[0], ""))


def _choose(sections: list[_Section], number: int) -> tuple[_Section, bool]:
    """Return the section for a number, and whether it needs a minus sign."""
    if any(section.condition for section in sections):
        for section in sections:
            if section.condition is None or section.condition(number):
                return section, True
        return sections[-1], True
    if number < 0 and len(sections) > 1:
        return sections[1], False
    if number == 0 and len(sections) > 2:
        return sections[2], False
    return sections[0], True


def _show(section: _Section, number: int) -> str:
    if section.is_scientific:
        return f"{number:.2E}"
    digits = list(f"{number:,}" if section.has_thousands else str(number))
    left = sum(1 for _text, digit in section.pieces if digit)
    shown: list[str] = []
    for text, digit in reversed(section.pieces):
        if not digit:
            shown.append(text)
            continue
        left -= 1
        while digits and digits[-1] == ",":
            shown.append(digits.pop())
        if digits:
            shown.append(digits.pop())
        else:
            shown.append({"0": "0", "?": " "}.get(digit, ""))
        if not left:
            shown += reversed(digits)
    return "".join(reversed(shown)).strip()
