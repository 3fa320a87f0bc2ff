"""The `type` column: what a row is, in any of the spellings pyxform knows."""

from __future__ import annotations

import re
from dataclasses import dataclass

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
# Older forms say `q string` or `add string prompt`.
KIND_OF = {
    spelling.format(word.replace("_", " ")): kind
    for kind, words in KINDS.items()
    for word in words.split()
    for spelling in ("{}", "q {}", "add {} prompt")
}
METADATA = frozenset(
    name.lower()
    for name, entry in QUESTION_TYPE_DICT.items()
    if "jr:preload" in entry.get("bind", {})
) | {"audit"}

NO_FILES = "respondents cannot send files or pictures"
NO_PLACES = "a survey on the web does not ask where people are"
NO_CODES = "a browser does not scan codes"
NO_LISTS = "options come from the choices sheet, not from another file"
REFUSED = {
    word: reason
    for reason, words in (
        (NO_FILES, "image photo audio video file picture background-audio"),
        (NO_FILES, "signature draw annotate"),
        (NO_PLACES, "geopoint geoshape geotrace location gps osm"),
        (NO_PLACES, "start-geopoint background-geopoint"),
        (NO_CODES, "barcode"),
        (NO_LISTS, "csv-external xml-external"),
    )
    for word in words.split()
}
NOT_YET = "cannot be imported yet"


@dataclass(frozen=True)
class Type:
    """What a row is. `kind` is an item's, `begin`, `end`, `metadata` or `refused`."""

    kind: str
    option_set: str = ""
    or_other: bool = False
    # For begin and end: group or repeat.
    control: str = ""
    reason: str = ""
    # As pyxform's reference spells it.
    canonical: str = ""


def parse_type(text: str) -> Type:
    words = " ".join(text.split())
    # Lists' names keep their case; the words before them do not matter.
    lower = words.lower()
    if lower in METADATA:
        return Type("metadata", canonical=lower)
    if kind := KIND_OF.get(lower):
        return Type(kind, canonical="dateTime" if kind == "datetime" else kind)
    if control := _control(lower):
        return control
    if match := RE_SELECT.fullmatch(_with_command_lowered(words)):
        return _select(**match.groupdict())
    bare = lower.removeprefix("q ").removeprefix("add ").removesuffix(" prompt")
    if reason := REFUSED.get(bare.split()[0] if bare else ""):
        return Type("refused", reason=reason)
    if lower in aliases.select or lower in ("select_one", "select_multiple"):
        return Type("refused", reason="names no list of options")
    return Type("refused", reason="unknown type")


def _control(lower: str) -> Type | None:
    if match := RE_BEGIN_CONTROL.fullmatch(lower):
        control = aliases.control[match["type"]]
        return Type("begin", control=control, canonical=f"begin {control}")
    if match := RE_END_CONTROL.fullmatch(lower):
        control = aliases.control[match["type"]]
        return Type("end", control=control, canonical=f"end {control}")
    return None


COMMAND = re.compile(
    "|".join(sorted(map(re.escape, aliases.select), key=len, reverse=True)),
    re.IGNORECASE,
)
OTHER = re.compile(r" or[ _](specify[ _])?other$", re.IGNORECASE)


def _with_command_lowered(words: str) -> str:
    words = COMMAND.sub(lambda command: command[0].lower(), words, count=1)
    return OTHER.sub(" or_other", words)


def _select(
    *, select_command: str, list_name: str, specify_other: str | None, **rest: object
) -> Type:
    meaning = aliases.select[select_command]
    if meaning == "rank":
        return Type("refused", reason=f"ranking {NOT_YET}")
    if "file" in select_command or meaning == "select one external":
        return Type("refused", reason=NO_LISTS)
    if "${" in list_name:
        return Type("refused", reason="options cannot come from other answers")
    kind = "select_one" if meaning == "select one" else "select_multiple"
    suffix = " or_other" if specify_other else ""
    return Type(
        kind,
        option_set=list_name,
        or_other=bool(specify_other),
        canonical=f"{kind} {list_name}{suffix}",
    )
