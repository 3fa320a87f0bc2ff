"""Tell by content which program's questionnaire a file is, and convert it."""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Callable
from typing import Any

from django.utils.translation import gettext as _

from survey.instrument.foreign import (
    limesurvey_lss,
    limesurvey_tsv,
    qualtrics,
    redcap,
    surveyjs,
)
from survey.instrument.foreign.converted import Converted, UnreadableQuestionnaire
from survey.instrument.spreadsheets.workbook_guard import MIB, SURVEY

BOMS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
# Enough for the declarations and the first elements of any of them.
BEGINNING = 4_000
# Containers of workbooks and of pictures are not read as texts.
BINARY = re.compile(
    rb"PK\x03\x04|\xd0\xcf\x11\xe0|%PDF|\x89PNG|\xff\xd8\xff|GIF8|\x1f\x8b"
)
DOCTYPE = re.compile(r"<!(DOCTYPE|ENTITY)")
# Levels of brackets; JSON of surveys has about twenty.
DEEPEST_JSON = 200

TextConverter = Callable[[str], Converted]
JsonConverter = Callable[[dict[str, Any]], Converted]


def program_of(content: bytes) -> str:
    """Return whose questionnaire a file is, or "" for workbooks and others."""
    if BINARY.match(content):
        return ""
    # Half a character at the end of the beginning does not matter.
    text, _encoding = decoded(content[: BEGINNING * 4], errors="ignore")
    start = text[:BEGINNING].lstrip("\ufeff \r\n\t")
    if start.startswith("<"):
        is_lime = "<LimeSurveyDocType" in start
        return "limesurvey_lss" if is_lime else ""
    if start.startswith("{"):
        # The order of keys is anyone's, so the whole file is searched.
        return program_of_json(content)
    first = start.split("\n", 1)[0].rstrip("\r")
    if "\t" in first:
        names = {cell.strip().strip('"').lower() for cell in first.split("\t")}
        if {"class", "type/scale", "name", "text"} <= names or (
            {"class", "name", "relevance", "text"} <= names
        ):
            return "limesurvey_tsv"
    cells = re.split(r"[,;\t]", first)
    columns = [redcap.column_of(cell) for cell in first_cells(first, cells)]
    return (
        "redcap"
        if {"field_name", "form_name", "field_type", "field_label"} <= set(columns)
        else ""
    )


def first_cells(first: str, cells: list[str]) -> list[str]:
    # Headers of REDCap contain commas.
    quoted = re.findall(r'"([^"]*)"', first)
    return [*cells, *quoted]


def program_of_json(content: bytes) -> str:
    if b"SurveyElements" in content or "SurveyElements".encode("utf-16-le") in content:
        return "qualtrics"
    keys = ("pages", "elements", "questions")
    for encoding in ("utf-8", "utf-16-le", "utf-16-be"):
        if any(f'"{key}"'.encode(encoding) in content for key in keys):
            return "surveyjs"
    return ""


def decoded(content: bytes, errors: str = "strict") -> tuple[str, str]:
    """Return the text of a file and its encoding: UTF-8, UTF-16 or Windows-1252."""
    for bom, encoding in BOMS:
        if content.startswith(bom):
            # A cut-off last character is reported where the text ends.
            return content.decode(encoding, "replace"), encoding
    if content[1:2] == b"\0" or content[:1] == b"\0":
        encoding = "utf-16-le" if content[1:2] == b"\0" else "utf-16-be"
        return content.decode(encoding, "replace"), encoding
    try:
        return content.decode("utf-8", errors), "utf-8"
    except UnicodeDecodeError:
        return content.decode("cp1252", "replace"), "cp1252"


def convert(content: bytes) -> Converted:
    """Convert a questionnaire. Raises UnreadableQuestionnaire."""
    program = program_of(content)
    if len(content) > SURVEY.file:
        raise UnreadableQuestionnaire(
            _("The file is larger than %(file)s MB.") % {"file": SURVEY.file // MIB}
        )
    text, encoding = decoded(content)
    texts: dict[str, TextConverter] = {
        "limesurvey_lss": limesurvey_lss.convert,
        "limesurvey_tsv": limesurvey_tsv.convert,
        "redcap": redcap.convert,
    }
    objects: dict[str, JsonConverter] = {
        "qualtrics": qualtrics.convert,
        "surveyjs": surveyjs.convert,
    }
    text = text.lstrip("\ufeff")
    try:
        if program in texts:
            converted = texts[program](text)
        elif program in objects:
            converted = objects[program](parsed_json(text))
        else:
            raise UnreadableQuestionnaire(
                _("This is no questionnaire of a program that can be read.")
            )
    except UnreadableQuestionnaire:
        raise
    # Other programs' files can be wrong in any way, and none may become a traceback.
    except Exception as error:
        raise UnreadableQuestionnaire(
            _("The file is damaged (%(name)s). Export the survey again.")
            % {"name": type(error).__name__}
        ) from error
    if encoding == "cp1252":
        reason = _("the file is not in UTF-8: read as Windows-1252")
        converted.note("", encoding, "changed", reason, "file")
    return converted


def parsed_json(text: str) -> dict[str, Any]:
    depth = deepest = 0
    for match in re.finditer(r'"(?:[^"\\]|\\.)*"|[\[{]|[\]}]', text, re.DOTALL):
        if match[0] in "[{":
            depth += 1
            deepest = max(deepest, depth)
        elif match[0] in "]}":
            depth -= 1
        if deepest > DEEPEST_JSON:
            raise UnreadableQuestionnaire(
                _("The file is nested deeper than any survey.")
            )
    try:
        data = json.loads(text)
    except json.JSONDecodeError as error:
        raise UnreadableQuestionnaire(
            _(
                "The file is damaged or cut off in line %(line)s, character"
                " %(column)s. Export the survey again."
            )
            % {"line": error.lineno, "column": error.colno}
        ) from error
    except (RecursionError, ValueError) as error:
        raise UnreadableQuestionnaire(
            _("The file is nested deeper than any survey.")
        ) from error
    if not isinstance(data, dict):
        raise UnreadableQuestionnaire(_("The file has no survey in it."))
    return data
