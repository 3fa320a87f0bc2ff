"""Read the `type` column, in all spellings that pyxform knows."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from django.utils.translation import gettext_noop
from pyxform import aliases
from pyxform.question_type_dictionary import QUESTION_TYPE_DICT
from pyxform.xls2json import RE_BEGIN_CONTROL, RE_END_CONTROL, RE_SELECT

KINDS = {
    "text": "text string",
    "integer": "integer int",
    "decimal": "decimal",
    "range": "range",
    "date": "date",
    "time": "time",
    "datetime": "datetime date_time",
    "note": "note",
    "calculate": "calculate",
    "hidden": "hidden",
    "acknowledge": "acknowledge trigger",
}
# Other names of pyxform's types (`phone number`, `percentage`) are read by the
# data that they collect.
KIND_OF_DATA = {
    "string": "text",
    "int": "integer",
    "decimal": "decimal",
    "date": "date",
    "time": "time",
    "datetime": "datetime",
}
NO_FILES = gettext_noop("respondents cannot send files or pictures")
NO_PLACES = gettext_noop("a survey on the web does not ask where people are")
NO_CODES = gettext_noop("a browser does not scan codes")
NO_LISTS = gettext_noop("options come from the choices sheet, not from another file")
NO_CASCADES = gettext_noop("write a select_one for each level, with a choice_filter")
REFUSED = {
    word: reason
    for reason, words in (
        (NO_FILES, "image photo audio video file picture background-audio"),
        (NO_FILES, "signature draw annotate"),
        (NO_PLACES, "geopoint geoshape geotrace location gps osm"),
        (NO_PLACES, "start-geopoint background-geopoint"),
        (NO_CODES, "barcode"),
        (NO_LISTS, "csv-external xml-external"),
        (NO_CASCADES, "cascading cascading_select"),
    )
    for word in words.split()
}


@dataclass(frozen=True)
class RowType:
    """`kind` is an item's, or `begin`, `end`, `metadata` or `refused`."""

    kind: str
    option_set: str = ""
    or_other: bool = False
    # For begin and end: group or repeat.
    control: str = ""
    reason: str = ""
    # As pyxform's reference spells it.
    canonical: str = ""
    # What the type itself asks of an answer, such as 0 to 100 for percentage.
    constraint: str = ""


def known_types() -> Iterator[tuple[str, RowType]]:
    """List every type that names neither options nor a group, in lower case."""
    for name, entry in QUESTION_TYPE_DICT.items():
        bind = entry.get("bind", {})
        data = bind.get("type", "").lower()
        if "jr:preload" in bind or name == "audit":
            yield name.lower(), RowType("metadata", canonical=name.lower())
        elif entry.get("control", {}).get("tag") == "input" and data in KIND_OF_DATA:
            kind = "note" if "readonly" in bind else KIND_OF_DATA[data]
            canonical = "dateTime" if kind == "datetime" else kind
            constraint = bind.get("constraint", "")
            yield (
                name.lower(),
                RowType(kind, canonical=canonical, constraint=constraint),
            )
    for kind, words in KINDS.items():
        for word in words.split():
            # Older forms say `q string` or `add string prompt`.
            for spelling in ("{}", "q {}", "add {} prompt"):
                canonical = "dateTime" if kind == "datetime" else kind
                name = spelling.format(word.replace("_", " "))
                yield name, RowType(kind, canonical=canonical)


KNOWN_TYPES = {
    # The name of a select is followed by the name of its list.
    name: type_
    for name, type_ in known_types()
    if "select" not in name
}
COMMAND = re.compile(
    "|".join(sorted(map(re.escape, aliases.select), key=len, reverse=True)),
    re.IGNORECASE,
)
OTHER = re.compile(r" or[ _](specify[ _])?other$", re.IGNORECASE)


# The editor asks for the types of all rows several times for each change.
@lru_cache(maxsize=4096)
def parse_type(text: str) -> RowType:
    words = " ".join(text.split())
    # Lists' names keep their case; the words before them do not matter.
    lower = words.lower()
    if lower in KNOWN_TYPES:
        return KNOWN_TYPES[lower]
    for kind, pattern in (("begin", RE_BEGIN_CONTROL), ("end", RE_END_CONTROL)):
        if match := pattern.fullmatch(lower):
            control = aliases.control[match["type"]]
            return RowType(kind, control=control, canonical=f"{kind} {control}")
    command = COMMAND.sub(lambda keyword: keyword[0].lower(), words, count=1)
    if match := RE_SELECT.fullmatch(OTHER.sub(" or_other", command)):
        return select_type(**match.groupdict())
    bare = lower.removeprefix("q ").removeprefix("add ").removesuffix(" prompt")
    if reason := REFUSED.get(bare.split()[0] if bare else ""):
        return RowType("refused", reason=reason)
    if lower in aliases.select or lower in ("select_one", "select_multiple"):
        return RowType("refused", reason=gettext_noop("names no list of options"))
    return RowType("refused", reason=gettext_noop("unknown type"))


def select_type(
    *, select_command: str, list_name: str, specify_other: str | None, **rest: object
) -> RowType:
    meaning = aliases.select[select_command]
    if meaning == "rank":
        return RowType("refused", reason=gettext_noop("ranking cannot be imported yet"))
    if "file" in select_command or meaning == "select one external":
        return RowType("refused", reason=NO_LISTS)
    if "${" in list_name:
        return RowType(
            "refused", reason=gettext_noop("options cannot come from other answers")
        )
    kind = "select_one" if meaning == "select one" else "select_multiple"
    suffix = " or_other" if specify_other else ""
    return RowType(
        kind,
        option_set=list_name,
        or_other=bool(specify_other),
        canonical=f"{kind} {list_name}{suffix}",
    )
