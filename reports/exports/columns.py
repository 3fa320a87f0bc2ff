"""Make the columns of an export from the definitions of its surveys.

Several versions of a survey line up by the names of their items. Every format
and the codebook are written from this description.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from reports.answers.versions import SurveyVersion
from reports.models.exports import ValueType
from survey.instrument.definitions.schema import (
    CHOICES,
    MOMENTS,
    NUMBERS,
    ItemDefinition,
)


def value_type(kind: str) -> ValueType:
    """Return what the answers to items of a kind are."""
    if kind in CHOICES:
        return ValueType.CHOICE
    if kind in MOMENTS:
        return ValueType.DATE
    is_number = kind in NUMBERS or kind == "calculate"
    return ValueType.NUMBER if is_number else ValueType.TEXT


@dataclass(slots=True)
class Variable:
    """The items of one name, in all versions that have them."""

    name: str
    multiple: bool
    # Digest of the version -> its item.
    items: dict[str, ItemDefinition] = field(default_factory=dict)
    # The values of a multiple choice, in all versions.
    options: list[str] = field(default_factory=list)
    # Headers: one for each option of a multiple choice, otherwise one.
    columns: list[str] = field(default_factory=list)

    @property
    def width(self) -> int:
        return len(self.columns)


@dataclass(frozen=True)
class ItemColumns:
    """The columns for the items of all versions in a file."""

    versions: Mapping[str, SurveyVersion]
    variables: Sequence[Variable]

    @property
    def headers(self) -> list[str]:
        return [name for variable in self.variables for name in variable.columns]

    def variables_of(self, digest: str) -> dict[str, Variable]:
        """Return the variables of one version, by name."""
        return {
            variable.name: variable
            for variable in self.variables
            if digest in variable.items
        }

    def distinct_from_items(self, names: Iterable[str]) -> list[str]:
        """Return column names about the respondent, changed if an item has one."""
        taken = {name.casefold() for name in self.headers}
        return [_unused(name, taken, "roster_") for name in names]


def columns_of(versions: Iterable[SurveyVersion]) -> ItemColumns:
    """Make the columns, in the order of the first version given.

    An item that only a later version has follows its predecessor there.
    """
    known = {version.digest: version for version in versions}
    variables: dict[tuple[str, bool], Variable] = {}
    order: list[tuple[str, bool]] = []
    for version in known.values():
        place = 0
        for name in version.exported():
            item = version.items[name]
            # A question that became a multiple choice has other columns.
            key = (name, item["kind"] == "select_multiple")
            if key not in variables:
                variables[key] = Variable(*key)
                order.insert(place, key)
            place = order.index(key) + 1
            variable = variables[key]
            variable.items[version.digest] = item
            if variable.multiple:
                offered = (option["value"] for option in version.options(item))
                variable.options += [
                    value for value in offered if value not in variable.options
                ]

    # An item keeps its name; columns of options give way to it.
    taken = {name.casefold() for name, multiple in order if not multiple}
    for key in order:
        variable = variables[key]
        variable.columns = [variable.name]
        if variable.multiple:
            variable.columns = [
                _unused(f"{variable.name}_{option}", taken)
                for option in variable.options
            ]
    return ItemColumns(known, [variables[key] for key in order])


def _unused(name: str, taken: set[str], prefix: str = "") -> str:
    """Return the name, or a similar one that no other column has in any case."""
    if prefix and name.casefold() in taken:
        name = prefix + name
    unused, number = name, 2
    while unused.casefold() in taken:
        unused, number = f"{name}_{number}", number + 1
    taken.add(unused.casefold())
    return unused


@dataclass
class AnswerTally:
    """Counts of the answers to one item in one version."""

    answered: int = 0
    skipped: int = 0
    not_applicable: int = 0
    not_reached: int = 0
    # Left out because few people answered, whether or not these ones did.
    masked: int = 0
    # Value -> how often it was chosen.
    values: Counter[str] = field(default_factory=Counter)
