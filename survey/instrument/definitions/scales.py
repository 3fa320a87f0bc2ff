"""Find the items that are answered on an agreement scale.

Labels decide nothing: they can be in any language. What decides is how the survey
uses a list of options:

- A measure declares that its list goes from low to high, and which options are not
  on the scale. This holds for all items with the list.
- The appearance `likert` asks for a scale. In a grid, several statements are rated by
  one list; there, whole numbers one apart must say that the options have an order,
  because a grid can also ask for things, such as the device for each subject.

Of lists without a measure, options beside the numbers one apart are not on the scale:
of 1, 2, 3, 4 and 9, the last one. A list that is shuffled for any item has no order.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from survey.instrument.definitions.schema import (
    ItemDefinition,
    Measures,
    OptionDefinition,
    SurveyDefinition,
)

# A grid with two answers, such as yes and no, is no scale.
FEWEST_IN_GRID = 3
WHOLE_NUMBER = re.compile(r"-?[0-9]{1,9}", re.ASCII)


def agreement_scales(
    definition: SurveyDefinition, measures: Measures | None
) -> Mapping[str, Sequence[str]]:
    """Return the items on a scale, and their options that are not on it.

    The others are in the order of the scale.
    """
    items = {
        name: item
        for name, item in definition["items"].items()
        if item["kind"] == "select_one"
    }
    scales: dict[str, Sequence[str]] = {}
    for measure in measures["measures"] if measures else ():
        for scored in measure["items"]:
            if scored["name"] in items:
                scales[scored["name"]] = measure["missing"]
    beside = dict(_declared(definition, items))
    for name, missing in scales.items():
        beside[items[name].get("option_set", "")] = missing
    shuffled = {
        item.get("option_set", "") for item in items.values() if item.get("randomize")
    }
    for name, item in items.items():
        option_set = item.get("option_set", "")
        if option_set in beside and option_set not in shuffled:
            scales.setdefault(name, beside[option_set])
    return scales


def _declared(
    definition: SurveyDefinition, items: Mapping[str, ItemDefinition]
) -> Iterator[tuple[str, Sequence[str]]]:
    """Yield lists of options that an appearance or a grid makes a scale."""
    in_grids = {
        name
        for page in definition["pages"]
        for block in page["blocks"]
        if block["grid"]
        for name in block["items"]
    }
    for name, item in items.items():
        option_set = item.get("option_set", "")
        options = definition["option_sets"].get(option_set, [])
        numbers = _numbers_one_apart(options)
        is_likert = "likert" in item.get("appearance", ())
        if is_likert and not numbers:
            yield option_set, []
        elif is_likert or (name in in_grids and len(numbers) >= FEWEST_IN_GRID):
            yield (
                option_set,
                [row["value"] for row in options if row["value"] not in numbers],
            )


def _numbers_one_apart(options: Sequence[OptionDefinition]) -> list[str]:
    """Return the longest series of values that count up or down by one."""
    longest: list[str] = []
    series: list[str] = []
    step = 0
    for value in (option["value"] for option in options):
        is_number = bool(WHOLE_NUMBER.fullmatch(value))
        difference = int(value) - int(series[-1]) if is_number and series else 0
        if abs(difference) == 1 and (len(series) == 1 or difference == step):
            series.append(value)
            step = difference
        else:
            series = [value] if is_number else []
        longest = max(longest, series, key=len)
    return longest if len(longest) > 1 else []
