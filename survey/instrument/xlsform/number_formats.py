"""Write a number as its cell shows it: 0.1 in the format 0% is 10%."""

from __future__ import annotations

import re
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation

# What stands before and after the digits: quoted texts, escaped characters,
# currencies such as [$€-2], blanks as wide as a character, and signs.
AROUND = r"""(?:"[^"]*"|\\.|\[\$[^\]]*\]|_.|[-$€£¥%+() ])*"""
FORMAT = re.compile(
    rf"(?P<before>{AROUND})(?P<thousands>#,##)?(?P<whole>[0#]*0)"
    rf"(?:\.(?P<decimals>0+))?(?P<after>{AROUND})",
    re.DOTALL,
)
PIECE = re.compile(
    r'"(?P<quoted>[^"]*)"|\\(?P<escaped>.)|\[\$(?P<currency>[^-\]]*)[^\]]*\]'
    r"|(?P<blank>_.)|(?P<sign>.)",
    re.DOTALL,
)


def shown_number(text: str, code: str) -> str | None:
    """Return what a cell with this format shows; None if that is not certain."""
    first, *rest = code.split(";")
    match = FORMAT.fullmatch(first)
    if match is None:
        return None
    places = len(match["decimals"] or "")
    percents = (match["before"] + match["after"]).count("%")
    try:
        number = Decimal(text)
        rounded = number.scaleb(2 * percents).quantize(
            Decimal(1).scaleb(-places), rounding=ROUND_HALF_UP
        )
    # No number, or one of more digits than a spreadsheet shows.
    except InvalidOperation:
        return None
    if number < 0 and rest:
        return None
    comma = "," if match["thousands"] else ""
    whole, point, decimals = f"{abs(rounded):{comma}.{places}f}".partition(".")
    whole = whole.zfill(match["whole"].count("0"))
    sign = "-" if rounded < 0 else ""
    before, after = around(match["before"]), around(match["after"])
    return f"{sign}{before}{whole}{point}{decimals}{after}".strip()


def around(code: str) -> str:
    return "".join(
        " " if piece["blank"] else piece[piece.lastgroup or 0]
        for piece in PIECE.finditer(code)
    )
