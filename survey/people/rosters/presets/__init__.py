"""Known layouts of files from student information systems, as data files.

Each TOML file of this folder is one preset:

- `title`, and `source`: the document that the column names come from
- `role`: whose rows the file has, if it has no column for that
- `recognised_by`: sets of headers; a file with all of one set has this layout
- `month_first`: true where the system writes 3/4/2015 for March
- `lists`: fields with comma-separated values in one cell, of which the first counts
- `fields`: field -> headers, of which the first that the file has is used
- `values`: field -> value of the file -> ours
"""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from survey.people.rosters.columns import bare_key, squeeze, without_remarks

FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class Preset:
    name: str
    title: str
    source: str
    recognised_by: Sequence[Sequence[str]]
    fields: Mapping[str, Sequence[str]]
    role: str = ""
    month_first: bool = False
    lists: Collection[str] = ()
    values: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    def fields_in(self, header: Iterable[str]) -> dict[str, str]:
        """Return field -> header for the columns that a file has."""
        texts = [text for text in reversed(list(header)) if text]
        text_of = {key(text): text for key in (bare_key, squeeze) for text in texts}
        chosen = {}
        for name, known in self.fields.items():
            for text in known:
                if squeeze(text) in text_of:
                    chosen[name] = text_of[squeeze(text)]
                    break
        return chosen

    def recognises(self, header: Collection[str]) -> bool:
        """Tell whether a header has the system's own spelling, in any case."""
        present = {without_remarks(text).casefold() for text in header}
        present |= {text.casefold() for text in header}
        return any(
            {text.casefold() for text in some} <= present for some in self.recognised_by
        )


@cache
def all_presets() -> dict[str, Preset]:
    """Return the presets by name."""
    presets = {}
    for path in sorted(FOLDER.glob("*.toml")):
        presets[path.stem] = Preset(name=path.stem, **tomllib.loads(path.read_text()))
    return presets


@cache
def preset_headers() -> frozenset[str]:
    """Return every header that a preset names, without spaces and punctuation."""
    return frozenset(
        squeeze(text)
        for preset in all_presets().values()
        for texts in preset.fields.values()
        for text in texts
    )


def recognise_preset(header: Sequence[str], role: str = "") -> Preset | None:
    """Return the preset that fits a header best, preferably one for `role`."""
    fitting = [preset for preset in all_presets().values() if preset.recognises(header)]
    fitting.sort(
        key=lambda preset: (preset.role in ("", role), len(preset.fields_in(header))),
        reverse=True,
    )
    return fitting[0] if fitting else None
