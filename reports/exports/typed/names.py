"""Give columns the names that SPSS and Stata allow, each once."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

LONGEST_SPSS_NAME, LONGEST_STATA_NAME = 64, 32


@dataclass(frozen=True)
class NameRule:
    """What the names of a program's columns may be."""

    # Characters that a name may not have, and what it may not begin with.
    forbidden: re.Pattern[str]
    wrong_start: re.Pattern[str]
    # What no name may be, in lower case.
    reserved: re.Pattern[str]
    # Returns the beginning of a text that leaves room for so many further characters.
    cut: Callable[[str, int], str]


def cut_bytes(text: str, longest: int) -> str:
    """Cut a text to so many bytes of UTF-8, before a character."""
    return text.encode()[: max(longest, 0)].decode(errors="ignore")


SPSS = NameRule(
    # Letters of all scripts, digits, and four signs.
    forbidden=re.compile(r"[^\w.$#@]"),
    wrong_start=re.compile(r"[^A-Za-z]"),
    reserved=re.compile("all|and|by|eq|ge|gt|le|lt|ne|not|or|to|with"),
    cut=lambda text, room: cut_bytes(text, LONGEST_SPSS_NAME - room).rstrip("."),
)
STATA = NameRule(
    forbidden=re.compile(r"[^A-Za-z0-9_]"),
    wrong_start=re.compile(r"[^A-Za-z]"),
    reserved=re.compile(
        "_.*|byte|double|float|if|in|int|long|str[0-9]+|strl|using|with"
    ),
    cut=lambda text, room: text[: LONGEST_STATA_NAME - room],
)
# The same, for the codebook.
RULE_IN_WORDS = (
    "A character that the program does not allow becomes _. A name that does not begin"
    " with a letter gets v_ in front, and a word of the program _ behind. Then the name"
    " is cut to the longest that the program allows. If an earlier column has that name"
    " already, in any case, the name is cut further and ends in _2, _3 and so on."
)


def unique_names(headers: Iterable[str], rule: NameRule) -> list[str]:
    """Return a name for each header; see RULE_IN_WORDS."""
    taken: set[str] = set()
    return [_unused(_allowed(header, rule), rule, taken) for header in headers]


def _allowed(header: str, rule: NameRule) -> str:
    name = rule.forbidden.sub("_", header)
    if not name or rule.wrong_start.match(name):
        name = f"v_{name}"
    if rule.reserved.fullmatch(name.casefold()):
        name += "_"
    return rule.cut(name, 0)


def _unused(name: str, rule: NameRule, taken: set[str]) -> str:
    unused, number = name, 2
    while unused.casefold() in taken:
        suffix = f"_{number}"
        unused, number = rule.cut(name, len(suffix)) + suffix, number + 1
    taken.add(unused.casefold())
    return unused
