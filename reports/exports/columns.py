"""What the columns of a file are: made from the definitions of its surveys.

Several versions of a survey line up by the names of their items. Every format
and the codebook are written from this one description.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from survey.definitions.rules import is_computed
from survey.definitions.schema import (
    ItemDefinition,
    OptionDefinition,
    SurveyDefinition,
    Texts,
)

CONTROL = re.compile(r"[\x00-\x1f\x7f]")
# Whose values are words of somebody's own, and come as JSON (see `reading`).
OPEN = frozenset(("text", "calculate", "hidden"))
NUMBERS = frozenset(("integer", "decimal", "range"))
CHOICES = frozenset(("select_one", "select_multiple", "acknowledge"))


@dataclass(frozen=True, slots=True)
class Version:
    """One published survey, and how its answers are read."""

    digest: str
    definition: SurveyDefinition

    @property
    def name(self) -> str:
        return self.definition["version"]

    @property
    def items(self) -> Mapping[str, ItemDefinition]:
        return self.definition["items"]

    def exported(self) -> list[str]:
        """Names of the items that have a value, in the order of the pages."""
        return [
            name
            for page in self.definition["pages"]
            for block in page["blocks"]
            for name in block["items"]
            if self.items[name]["kind"] != "note"
        ]

    def options(self, item: ItemDefinition) -> Sequence[OptionDefinition]:
        if item["kind"] == "acknowledge":
            return ({"value": "OK", "label": {}, "attributes": {}},)
        return self.definition["option_sets"].get(item.get("option_set", ""), [])

    def comes_as_json(self, item: ItemDefinition) -> bool:
        """Whether a value may hold the signs that part values in the stream."""
        return item["kind"] in OPEN or any(
            CONTROL.search(option["value"]) for option in self.options(item)
        )

    def is_computed(self, name: str) -> bool:
        item = self.items[name]
        return item["kind"] == "hidden" or is_computed(item)

    def in_language(self, texts: Texts | str, language: str) -> str:
        if isinstance(texts, str):
            return texts
        first = self.definition["languages"][0]["code"]
        return texts.get(language) or texts.get(first, "")


@dataclass(slots=True)
class Variable:
    """What is asked under one name, in whichever versions have it."""

    name: str
    multiple: bool
    # Digest -> the item there.
    items: dict[str, ItemDefinition] = field(default_factory=dict)
    # The values of a multiple choice, in all versions.
    options: list[str] = field(default_factory=list)
    # Headers: one for each option, or one.
    columns: list[str] = field(default_factory=list)

    @property
    def width(self) -> int:
        return len(self.columns)


@dataclass(frozen=True)
class Columns:
    """Of the items in one file."""

    versions: Mapping[str, Version]
    variables: Sequence[Variable]

    @property
    def headers(self) -> list[str]:
        return [name for variable in self.variables for name in variable.columns]

    def of(self, digest: str) -> dict[str, Variable]:
        """The names of one version's items, and what they are in the file."""
        return {one.name: one for one in self.variables if digest in one.items}

    def beside(self, respondent: Iterable[str]) -> list[str]:
        """Headers about the respondent: an item keeps its name, they give way."""
        taken = {name.casefold() for name in self.headers}
        return [_unused(name, taken, "roster_") for name in respondent]


def columns_of(versions: Iterable[Version]) -> Columns:
    """The order is that of the first version; name the newest first."""
    known = {version.digest: version for version in versions}
    variables: dict[tuple[str, bool], Variable] = {}
    order: list[tuple[str, bool]] = []
    for version in known.values():
        place = 0
        for name in version.exported():
            item = version.items[name]
            key = (name, item["kind"] == "select_multiple")
            if key not in variables:
                variables[key] = Variable(*key)
                # After the one that it follows in its own version.
                order.insert(place, key)
            place = order.index(key) + 1
            _add(variables[key], version, item)
    found = [variables[key] for key in order]
    _name_columns(found)
    return Columns(known, found)


def _add(variable: Variable, version: Version, item: ItemDefinition) -> None:
    variable.items[version.digest] = item
    if variable.multiple:
        offered = (option["value"] for option in version.options(item))
        variable.options += [one for one in offered if one not in variable.options]


def _name_columns(variables: Sequence[Variable]) -> None:
    taken = {one.name.casefold() for one in variables if not one.multiple}
    for variable in variables:
        if variable.multiple:
            variable.columns = [
                _unused(f"{variable.name}_{option}", taken)
                for option in variable.options
            ]
        else:
            variable.columns = [variable.name]


def _unused(name: str, taken: set[str], prefix: str = "") -> str:
    """The name, or one like it that no other column has, in any case."""
    if prefix and name.casefold() in taken:
        name = prefix + name
    found, number = name, 2
    while found.casefold() in taken:
        found, number = f"{name}_{number}", number + 1
    taken.add(found.casefold())
    return found


@dataclass
class Tally:
    """How often what was answered, of one item in one version."""

    answered: int = 0
    skipped: int = 0
    not_applicable: int = 0
    not_reached: int = 0
    # Value -> how often, of choices.
    values: Counter[str] = field(default_factory=Counter)
