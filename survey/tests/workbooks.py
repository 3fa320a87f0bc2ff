"""Build workbooks for tests, like those of a spreadsheet program."""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Callable
from typing import Any

from openpyxl import Workbook

from survey.instrument.xlsform import Reading, read_xlsform
from survey.instrument.xlsform.draft import ItemDraft

Rows = list[list[Any]]

SETTINGS: Rows = [["form_id", "version", "default_language"], ["climate", "1", "en"]]
AGREE: Rows = [
    ["list_name", "name", "label"],
    ["agree", 1, "Disagree"],
    ["agree", 2, "Agree"],
    ["pets", "cat", "Cat"],
    ["pets", "dog", "Dog"],
]


def workbook(sheets: dict[str, Rows]) -> bytes:
    book = Workbook()
    book.remove(book.active)
    for title, rows in sheets.items():
        sheet = book.create_sheet(title)
        for row in rows:
            sheet.append(row)
    return saved(book)


def saved(book: Workbook) -> bytes:
    file = io.BytesIO()
    book.save(file)
    return file.getvalue()


def form(
    survey: Rows, choices: Rows | None = None, settings: Rows | None = None
) -> bytes:
    return workbook(
        {
            "survey": survey,
            "choices": AGREE if choices is None else choices,
            "settings": SETTINGS if settings is None else settings,
        }
    )


def read(
    survey: Rows, choices: Rows | None = None, settings: Rows | None = None
) -> Reading:
    return read_xlsform(form(survey, choices, settings))


def draft_items(reading: Reading) -> dict[str, ItemDraft]:
    assert reading.draft, [str(problem) for problem in reading.problems]
    return {item.name: item for item in reading.draft.items()}


def places(problems: list[Any]) -> list[tuple[str, int | None, str]]:
    return [(problem.sheet, problem.row, problem.column) for problem in problems]


def rezipped(content: bytes, change: Callable[[str, bytes], bytes]) -> bytes:
    """Copy a workbook with changed parts."""
    file = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(content)) as before,
        zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as after,
    ):
        for name in before.namelist():
            after.writestr(name, change(name, before.read(name)))
    return file.getvalue()


INLINE = re.compile(r't="inlineStr"><is><t[^>]*>(.*?)</t></is>', re.DOTALL)


def as_excel_writes_it(content: bytes) -> bytes:
    """Move texts to shared strings, as spreadsheet programs write them."""
    texts: list[str] = []

    def to_shared(match: re.Match[str]) -> str:
        if match[1] not in texts:
            texts.append(match[1])
        return f't="s"><v>{texts.index(match[1])}</v>'

    def change(name: str, data: bytes) -> bytes:
        if name.startswith("xl/worksheets/sheet"):
            return INLINE.sub(to_shared, data.decode()).encode()
        if name == "[Content_Types].xml":
            kind = "application/vnd.openxmlformats-officedocument.spreadsheetml"
            part = f'<Override PartName="/xl/sharedStrings.xml" ContentType="{kind}'
            part += '.sharedStrings+xml"/></Types>'
            return data.replace(b"</Types>", part.encode())
        return data

    file = io.BytesIO(rezipped(content, change))
    with zipfile.ZipFile(file, "a") as whole:
        space = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
        strings = "".join(f"<si><t>{text}</t></si>" for text in texts)
        whole.writestr("xl/sharedStrings.xml", f'<sst xmlns="{space}">{strings}</sst>')
    return file.getvalue()
