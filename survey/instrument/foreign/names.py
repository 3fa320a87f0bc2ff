"""Make valid and unique names by a stable rule."""

from __future__ import annotations

import re

from survey.instrument.xlsform.names import why_not_a_name

LONGEST = 60
LONGEST_VALUE = 60


def set_of_words(text: str) -> frozenset[str]:
    """Return the words of a text as a set."""
    return frozenset(text.split())


class Names:
    """Gives each code of the original a name that no other has."""

    def __init__(self) -> None:
        self.used: set[str] = set()

    def name_for(self, code: str, fallback: str = "q") -> str:
        name = re.sub(r"[^\w.-]+", "_", code.strip(), flags=re.ASCII).strip("_.-")
        if not name:
            name = fallback
        if not re.match(r"[A-Za-z_]", name):
            name = f"{fallback}{name}"
        name = name[:LONGEST]
        if why_not_a_name(name):
            name = f"{fallback}_{name}"[:LONGEST]
        return self.unique(name)

    def unique(self, name: str) -> str:
        chosen, number = name, 2
        # Exports and XML know names that differ in case only, but people do not.
        while chosen.casefold() in self.used:
            chosen, number = f"{name}_{number}", number + 1
        self.used.add(chosen.casefold())
        return chosen


def option_value(code: str, used: set[str]) -> str:
    """Return a value without spaces that no other option of the list has."""
    value = re.sub(r"\s+", "_", code.strip())[:LONGEST_VALUE] or "blank"
    value = re.sub(r"[\x00-\x1f\x7f'\"]", "", value) or "blank"
    chosen, number = value, 2
    while chosen in used:
        chosen, number = f"{value}_{number}", number + 1
    used.add(chosen)
    return chosen
