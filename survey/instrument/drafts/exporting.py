"""Write a survey as an XLSForm workbook.

The rows of a draft are written as they are. A survey that has none, because its texts
were corrected here, is written from its definition.
"""

from __future__ import annotations

import hashlib
import io
import re
from collections.abc import Iterator, Sequence

from openpyxl import Workbook
from openpyxl.cell import WriteOnlyCell
from openpyxl.styles import Font
from openpyxl.utils import get_column_letter
from openpyxl.worksheet._write_only import WriteOnlyWorksheet
from openpyxl.worksheet.worksheet import Worksheet

from survey.instrument.definitions.measures import sheet_rows
from survey.instrument.definitions.publishing import canonical_json
from survey.instrument.definitions.schema import (
    RULES,
    VISIBLE,
    BlockDefinition,
    ItemDefinition,
    LanguageDefinition,
    Measures,
    OptionDefinition,
    PageDefinition,
    SurveyDefinition,
    Texts,
)
from survey.instrument.drafts.names import free_name
from survey.instrument.drafts.workbook import (
    FIRST_ROW,
    DraftBook,
    Row,
    Sheet,
    first_key,
)
from survey.instrument.xlsform.items import (
    OTHER,
    OTHER_VALUE,
    SPECIFY_OTHER,
    in_languages,
)
from survey.instrument.xlsform.rules import FUNCTION_CALL
from survey.instrument.xlsform.workbook import ESCAPED
from survey.instrument.xlsform.writing import as_text

XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
# Excel allows these in no title of a sheet, and no title of more characters.
NOT_IN_TITLES = re.compile(r"[\\*?:/\[\]]")
LONGEST_SHEET_TITLE = 31
WIDEST = 60
OR_OTHER = " or_other"
# The headers of texts that have a language.
TEXT_HEADERS = {
    "label": "label",
    "hint": "hint",
    "guidance": "guidance_hint",
    "required_message": "required_message",
    "constraint_message": "constraint_message",
}

# Cells of a row by header.
Cells = dict[str, str]


def workbook_of(book: DraftBook) -> bytes:
    """Write sheets, columns and rows in their order, each cell as text."""
    workbook = Workbook(write_only=True)
    for sheet in book.sheets.values():
        write_plain_sheet(workbook.create_sheet(sheet_title(sheet)), sheet)
    if not book.sheets:
        workbook.create_sheet("survey")
    file = io.BytesIO()
    workbook.save(file)
    return file.getvalue()


def sheet_title(sheet: Sheet) -> str:
    return NOT_IN_TITLES.sub(" ", sheet.name)[:LONGEST_SHEET_TITLE]


def write_plain_sheet(worksheet: Worksheet | WriteOnlyWorksheet, sheet: Sheet) -> None:
    worksheet.freeze_panes = "A2"
    last = max([len(sheet.columns), *(n for row in sheet.rows for n in row.cells)])
    rows = [dict(enumerate(sheet.columns, 1)), *(row.cells for row in sheet.rows)]
    for number in range(1, last + 1):
        longest = max(len(cells.get(number, "")) for cells in rows)
        column = worksheet.column_dimensions[get_column_letter(number)]
        column.width = min(longest + 2, WIDEST)
    for place, cells in enumerate(rows):
        worksheet.append(
            [
                _cell(worksheet, cells.get(number, ""), is_header=not place)
                for number in range(1, last + 1)
            ]
        )


def _cell(worksheet: object, text: str, *, is_header: bool) -> WriteOnlyCell | None:
    if not text:
        return None
    cell = WriteOnlyCell(worksheet, escaped(text))
    # No text runs as a formula.
    cell.data_type = "s"
    cell.number_format = "@"
    if is_header:
        cell.font = Font(bold=True)
    return cell


def escaped(text: str) -> str:
    """Return a text for a cell: a spreadsheet program reads `_x0041_` as A."""
    return ESCAPED.sub(lambda match: f"_x005F{match[0]}", text)


def digest_of_content(definition: SurveyDefinition) -> str:
    """Return the digest of all but the ids of items, which each copy has anew.

    `(a and b) and c` is `a and b and c`: the first is what groups within groups make.
    """
    items = {
        name: {
            key: as_text(part) if key in RULES else part  # type: ignore[arg-type]
            for key, part in item.items()
            if key != "id"
        }
        for name, item in definition["items"].items()
    }
    content = {key: part for key, part in definition.items() if key != "corrects"}
    text = canonical_json({**content, "items": items})  # type: ignore[typeddict-item]
    return hashlib.sha256(text.encode()).hexdigest()


# From a definition -------------------------------------------------------------------


def book_of_definition(
    definition: SurveyDefinition, measures: Measures | None = None
) -> DraftBook:
    """Write a compiled definition as the sheets that it is compiled from."""
    sheets = [
        _sheet("settings", [_settings(definition)]),
        _sheet("survey", SurveyWriter(definition).rows(), definition),
        _sheet("choices", [*_options(definition)], definition),
    ]
    if measures:
        sheets.append(measures_sheet(measures, definition["languages"]))
    return DraftBook({sheet.name: sheet for sheet in sheets})


def measures_sheet(
    measures: Measures, languages: Sequence[LanguageDefinition]
) -> Sheet:
    columns, *rows = sheet_cells(measures, languages)
    return _sheet("measures", [dict(zip(columns, row, strict=True)) for row in rows])


def _sheet(
    name: str, rows: Sequence[Cells], definition: SurveyDefinition | None = None
) -> Sheet:
    """Make a sheet of the columns that any row has, and of labels in all languages."""
    headers = dict.fromkeys(key for row in rows for key, text in row.items() if text)
    if definition is not None:
        # In this order the languages stay in theirs.
        labels = [*_texts("label", dict.fromkeys(_codes(definition), ""), definition)]
        first = [header for header in headers if "::" not in header][:2]
        headers = dict.fromkeys([*first, *labels, *headers])
    numbers = {header: number for number, header in enumerate(headers, 1)}
    return Sheet(
        name,
        [*numbers],
        [
            Row(
                first_key(name, place),
                {numbers[key]: text for key, text in row.items() if text},
            )
            for place, row in enumerate(rows, FIRST_ROW)
        ],
    )


def _codes(definition: SurveyDefinition) -> list[str]:
    return [language["code"] for language in definition["languages"]]


def _texts(header: str, texts: Texts, definition: SurveyDefinition) -> Cells:
    return {
        f"{header}::{language['name']} ({language['code']})": texts[language["code"]]
        for language in definition["languages"]
        if language["code"] in texts
    }


def _settings(definition: SurveyDefinition) -> Cells:
    first = definition["languages"][0]
    return {
        **_texts("form_title", definition["title"], definition),
        "form_id": definition["name"],
        "version": definition["version"],
        "default_language": f"{first['name']} ({first['code']})",
        "style": "pages",
    }


def _options(definition: SurveyDefinition) -> Iterator[Cells]:
    lists = definition["option_sets"]
    for name, options in lists.items():
        listed = list_name_of(definition, name)
        if listed != name and listed in lists:
            continue
        is_brought = name.endswith(OR_OTHER) and name == f"{listed}{OR_OTHER}"
        for option in options[:-1] if is_brought else options:
            yield {
                "list_name": listed,
                "name": option["value"],
                **_texts("label", option["label"], definition),
                **option["attributes"],
            }


def list_name_of(definition: SurveyDefinition, option_set: str) -> str:
    """Return the name of a set's list, which the reader extends by `or_other`."""
    if not option_set.endswith(OR_OTHER):
        return option_set
    if _is_written_as_other(definition, option_set):
        return option_set.removesuffix(OR_OTHER)
    return free_name(option_set.replace(" ", "_"), definition["option_sets"])


def _is_written_as_other(definition: SurveyDefinition, option_set: str) -> bool:
    """Return whether `or_other` gives all items of this set, with its words."""
    codes = _codes(definition)
    last = definition["option_sets"][option_set][-1]
    generated: OptionDefinition = {
        "value": OTHER_VALUE,
        "label": in_languages(OTHER, codes),
        "attributes": {},
    }
    if last != generated:
        return False
    items = definition["items"]
    for name, item in items.items():
        details = items.get(f"{name}_other")
        if item.get("option_set") == option_set and (
            details is None
            or details.get("label") != in_languages(SPECIFY_OTHER, codes)
        ):
            return False
    return True


class SurveyWriter:
    """Write pages and items as rows of the survey sheet."""

    def __init__(self, definition: SurveyDefinition) -> None:
        self.definition = definition
        self.items = definition["items"]
        self.taken = {*self.items, *(page["name"] for page in definition["pages"])}
        # Texts for *Other*, which a select with `or_other` brings along.
        self.brought: set[str] = set()

    def rows(self) -> list[Cells]:
        rows = [row for page in self.definition["pages"] for row in self._page(page)]
        # As the first two, also where there is no question.
        return rows or [{"type": "", "name": ""}]

    def _page(self, page: PageDefinition) -> Iterator[Cells]:
        unseen = [not self._is_seen(block) for block in page["blocks"]]
        before = unseen.index(False) if False in unseen else 0
        # What is only computed joins the page that follows, or that before.
        last = len(unseen) - unseen[::-1].index(False) if False in unseen else 0
        for block in page["blocks"][:before]:
            yield from self._group(block, "calculations")
        yield {
            "type": "begin_group",
            "name": page["name"],
            "appearance": "field-list",
            **_texts("label", page["title"], self.definition),
        }
        is_open = False
        for block in page["blocks"][before : last + 1]:
            name = f"{page['name']}_part"
            if block["grid"]:
                yield from self._group(block, f"{page['name']}_grid", "table-list")
                is_open = False
            elif block["label"] or (is_open and self._is_seen(block)):
                yield from self._group(block, name)
                is_open = False
            else:
                yield from self._items(block)
                is_open = True
        yield {"type": "end_group"}
        for block in page["blocks"][last + 1 :]:
            yield from self._group(block, "calculations")

    def _is_seen(self, block: BlockDefinition) -> bool:
        return any(self.items[name]["kind"] in VISIBLE for name in block["items"])

    def _group(
        self, block: BlockDefinition, name: str, appearance: str = ""
    ) -> Iterator[Cells]:
        name = free_name(name, self.taken)
        self.taken.add(name)
        yield {
            "type": "begin_group",
            "name": name,
            "appearance": appearance,
            **_texts("label", block["label"], self.definition),
        }
        yield from self._items(block)
        yield {"type": "end_group"}

    def _items(self, block: BlockDefinition) -> Iterator[Cells]:
        for name in block["items"]:
            if name not in self.brought:
                yield self._item(name, self.items[name])

    def _item(self, name: str, item: ItemDefinition) -> Cells:
        cells = {"type": self._type(name, item), "name": name}
        for key, header in TEXT_HEADERS.items():
            cells |= _texts(header, item.get(key, {}), self.definition)  # type: ignore[arg-type]
        required = item.get("required")
        if required is not None:
            cells["required"] = "yes" if required is True else as_text(required)
        for rule in ("relevant", "constraint", "calculation", "choice_filter"):
            if rule in item:
                cells[rule] = as_text(item[rule])
        if "default" in item:
            cells["default"] = item["default"]
        if "default_expression" in item:
            text = as_text(item["default_expression"])
            is_read = "${" in text or FUNCTION_CALL.match(text)
            cells["default" if is_read else "calculation"] = text
        if item.get("read_only"):
            cells["read_only"] = "yes"
        cells["appearance"] = " ".join(item.get("appearance", ()))
        cells["parameters"] = _parameters(item)
        return cells

    def _type(self, name: str, item: ItemDefinition) -> str:
        kind, option_set = item["kind"], item.get("option_set", "")
        if not option_set:
            return "dateTime" if kind == "datetime" else kind
        listed = list_name_of(self.definition, option_set)
        if option_set == f"{listed}{OR_OTHER}":
            self.brought.add(f"{name}_other")
            listed = option_set
        return f"{kind} {listed}"


def _parameters(item: ItemDefinition) -> str:
    parameters: dict[str, object] = {}
    if item.get("randomize"):
        parameters["randomize"] = "true"
        if "seed" in item:
            parameters["seed"] = item["seed"]
    if scale := item.get("range"):
        parameters |= scale
    return " ".join(f"{key}={value}" for key, value in parameters.items())


def sheet_cells(
    content: Measures, languages: Sequence[LanguageDefinition]
) -> list[list[str]]:
    """Return a measures sheet with its headers, to be copied into a workbook."""
    names = [(row["code"], f"{row['name']} ({row['code']})") for row in languages]
    plain = ("essential", "direction", "items", "missing")
    texts = ("label", "description")
    headers = [f"{key}::{name}" for key in texts for _code, name in names]
    return [
        ["type", "name", *headers, *plain],
        *(
            [
                row.get("type"),
                row.get("name"),
                *(row.texts[key].get(code, "") for key in texts for code, _n in names),
                *map(row.get, plain),
            ]
            for row in sheet_rows(content)
        ),
    ]
