"""Fill `${name}` in texts with answers, like `fillPipes` in `static/js/rules.js`."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

from survey.instrument.definitions.schema import OptionDefinition

PIPE = re.compile(r"\$\{\s*([^\s{}]+)\s*\}")


def fill_pipes(text: str, values: Mapping[str, str]) -> str:
    if "${" not in text:
        return text
    return PIPE.sub(lambda place: values.get(place[1], ""), text)


def piped_in_labels(
    option_sets: Mapping[str, Collection[OptionDefinition]],
) -> dict[str, set[str]]:
    """Return the names of the items that the labels of each option set quote."""
    return {
        name: {
            item
            for option in options
            for text in option["label"].values()
            for item in PIPE.findall(text)
        }
        for name, options in option_sets.items()
    }
