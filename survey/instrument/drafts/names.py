"""Make names of variables from the texts of questions."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Mapping

from survey.instrument.drafts.workbook import MADE_NAME, DraftBook, Sheet

LONGEST = 32
# Words that tell nothing about a question.
EMPTY_WORDS = frozenset(
    re.findall(
        r"\w+",
        "a an and are at be can do does for from have how i in is it my of on or our"
        " that the their there they this to was we what when where which who with you"
        " your al como con cual de del el en es la las lo los me mi mis o para por que"
        " se su sus tu tus un una y",
    )
)


def name_from_text(text: str) -> str:
    """Return a name such as `feel_safe_school`; "" if the text has no Latin letter."""
    plain = unicodedata.normalize("NFKD", re.sub(r"\$\{[^{}]*\}", " ", text))
    ascii_text = plain.encode("ascii", "ignore").decode().lower()
    words = re.findall(r"[a-z0-9]+", ascii_text)
    telling = [word for word in words if word not in EMPTY_WORDS] or words
    name = ""
    for word in telling:
        longer = f"{name}_{word}" if name else word
        if len(longer) > LONGEST:
            break
        name = longer
    name = name or (telling[0][:LONGEST] if telling else "")
    return f"q_{name}" if name and not name[0].isalpha() else name


def free_name(name: str, taken: Collection[str]) -> str:
    """Return the name, or with a number if it is taken in any case of letters."""
    folded = {known.casefold() for known in taken}
    if name.casefold() not in folded:
        return name
    base = re.sub(r"_\d+$", "", name)
    number = 2
    while f"{base}_{number}".casefold() in folded:
        number += 1
    return f"{base}_{number}"


def made_name(sheet: Sheet, name: str) -> dict[int, str]:
    """Return the cells of a name that no author has typed."""
    return {sheet.column("name"): name, MADE_NAME: name}


def fix_names(book: DraftBook) -> DraftBook:
    """Let all rows keep their names, as the answers to an earlier version have."""
    for row in book.sheet("survey").rows:
        row.cells.pop(MADE_NAME, None)
    return book


def with_names(text: str, renamed: Mapping[str, str]) -> str:
    """Return a text whose `${name}` references have other names."""

    def replaced(match: re.Match[str]) -> str:
        name = match[1].strip()
        return f"${{{renamed[name]}}}" if name in renamed else match[0]

    return re.sub(r"\$\{([^{}]*)\}", replaced, text) if "${" in text else text
