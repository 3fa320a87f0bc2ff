"""Make valid and unique names by a stable rule."""

from __future__ import annotations

import re

from survey.instrument.xlsform.names import why_not_a_name

LONGEST = 60
LONGEST_VALUE = 60


def set_of_words(text: str) -> frozenset[str]:
    """Return the words of a text as a set."""
    return frozenset(text.split())


class Taken:
    """Names that are taken, each with the number to try next."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}

    def unique(self, name: str, key: str) -> str:
        """Return the name, or `name_2`; `key` is what it may share with no other."""
        suffix = ""
        # Trying all numbers again would take quadratic time.
        number = self.numbers.get(key, 1)
        while key + suffix in self.numbers:
            number += 1
            suffix = f"_{number}"
        self.numbers[key] = number
        self.numbers.setdefault(key + suffix, 1)
        return name + suffix


class Names:
    """Gives each code of the original a name that no other has."""

    def __init__(self) -> None:
        self.used = Taken()

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
        # Exports and XML know names that differ in case only, but people do not.
        return self.used.unique(name, name.casefold())


def option_value(code: str, used: Taken) -> str:
    """Return a value without spaces that no other option of the list has."""
    value = re.sub(r"\s+", "_", code.strip())[:LONGEST_VALUE] or "blank"
    value = re.sub(r"[\x00-\x1f\x7f'\"]", "", value) or "blank"
    return used.unique(value, value)
