"""Read numbers and dates as people type them, where no script does.

What can be read in two ways is not read: the person is asked.
`static/js/typed_values.js` does the same in the browser; the vectors in
`survey/tests/taking/typed_vectors.json` run through both.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field

from survey.instrument.definitions.schema import MOMENTS, NUMBERS
from survey.taking.messages import base_of

# Languages in which a point is no separator of thousands. Elsewhere 1.200 may be
# 1200: Spanish is written with both.
WITH_POINT = frozenset(
    ("en", "zh", "ja", "ko", "th", "he", "hi", "bn", "ur", "ta", "te", "pa", "gu", "ne")
    + ("so", "sw", "am", "ti", "fil", "tl", "my", "ms")
)
# Of numbers: those that only group, and those of Arabic.
SEPARATORS = str.maketrans(
    {"'": " ", "’": " ", "\u066c": " ", "\u060c": ",", "\u066b": ";"}
)
GROUPED = re.compile(r"[1-9][0-9]{0,2}([., ])[0-9]{3}(?:\1[0-9]{3})*")
DECIMAL = re.compile(r"(.*?)(?:([.,;])([0-9]*))?", re.DOTALL)
YEAR_FIRST = re.compile(r"([0-9]{4})[-./ ]([0-9]{1,2})[-./ ]([0-9]{1,2})")
YEAR_LAST = re.compile(r"([0-9]{1,2})[-./ ]([0-9]{1,2})[-./ ]([0-9]{4})")
THREE_PARTS = re.compile(r"[0-9]{1,4}[-./ ][0-9]{1,2}[-./ ][0-9]{1,4}")
CLOCK = re.compile(r"(.*?)(?:[T ]([0-9]{1,2}:.*))?", re.DOTALL)
FRACTION_OF_SECOND = re.compile(r"(:[0-9]{2})\.[0-9]+$")


READ_KINDS = NUMBERS | MOMENTS


@dataclass(frozen=True, slots=True)
class Typed:
    """`text` in the form in which it is stored, or unchanged if it has another one.

    With `problem`, the key of a message, it can mean several things. `values` fill
    the message.
    """

    text: str
    problem: str = ""
    values: Mapping[str, str] = field(default_factory=dict)


def read_typed(kind: str, typed: str, language: str) -> Typed:
    plain = _with_ascii_digits(typed).strip()
    if kind in NUMBERS:
        return _read_number(kind, plain, language)
    text = FRACTION_OF_SECOND.sub(r"\1", plain)
    if kind == "time":
        return Typed(text)
    parts = CLOCK.fullmatch(text)
    day, clock = (parts[1], parts[2]) if parts else (text, None)
    read = _read_day(day)
    return read if read.problem or not clock else Typed(f"{read.text}T{clock}")


def _with_ascii_digits(typed: str) -> str:
    """Replace digits of other scripts, and full-width forms of East Asian keyboards."""
    return "".join(
        chr(ord(character) - 0xFEE0)
        if "\uff01" <= character <= "\uff5e"
        else str(unicodedata.decimal(character, character))
        for character in typed
    )


def _read_number(kind: str, plain: str, language: str) -> Typed:
    is_signed = plain[:1] in ("-", "+", "\u2212")
    minus = "-" if is_signed and plain[0] != "+" else ""
    body = plain[1:] if is_signed else plain
    marked = re.sub(r"\s", " ", body).translate(SEPARATORS)
    grouped = minus + re.sub("[., ]", "", marked) if GROUPED.fullmatch(marked) else None
    decimal = _decimal_parts(marked)
    has_point = base_of(language) in WITH_POINT
    is_certain = kind != "integer" and has_point and "." in marked
    if grouped is not None and decimal is not None and not is_certain:
        problem = "ambiguous_whole" if kind == "integer" else "ambiguous_number"
        suggested = minus + _certain(*decimal, has_point=has_point)
        values = {"typed": plain, "grouped": grouped, "decimal": suggested}
        return Typed(plain, problem, values)
    if decimal is not None:
        whole, fraction = decimal
        return Typed(f"{minus}{whole or '0'}{'.' + fraction if fraction else ''}")
    return Typed(grouped or (minus + body if minus else plain))


def _decimal_parts(marked: str) -> tuple[str, str] | None:
    """Split a text that has at most one decimal separator."""
    parts = DECIMAL.fullmatch(marked)
    if parts is None:
        return None
    before, separator, fraction = parts[1], parts[2], parts[3] or ""
    grouping = GROUPED.fullmatch(before)
    is_plain = re.fullmatch("[0-9]*", before) is not None
    is_grouped = grouping is not None and separator not in (None, grouping[1])
    if not (is_plain or is_grouped) or not (before or fraction):
        return None
    return re.sub("[., ]", "", before), fraction


def _certain(whole: str, fraction: str, *, has_point: bool) -> str:
    """Write a number so that it is not taken for thousands: never with 3 decimals."""
    fraction = fraction.rstrip("0")
    if len(fraction) == 3:
        fraction += "0"
    return f"{whole}{'.' if has_point else ','}{fraction}" if fraction else whole


def _read_day(day: str) -> Typed:
    if ordered := YEAR_FIRST.fullmatch(day):
        return Typed(_iso_day(*ordered.groups()))
    if parts := YEAR_LAST.fullmatch(day):
        first, second, year = parts.groups()
        is_day = int(first) > 12
        if is_day != (int(second) > 12) or int(first) == int(second):
            month, date = (second, first) if is_day else (first, second)
            return Typed(_iso_day(year, month, date))
    if THREE_PARTS.fullmatch(day):
        return Typed(day, "ambiguous_date", {"typed": day})
    return Typed(day)


def _iso_day(year: str, month: str, day: str) -> str:
    return f"{year}-{month:0>2}-{day:0>2}"
