"""Write the codebook as a table, for programs: one line for each value of a column.

It is a CSV file, and the second sheet of a workbook.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from reports.exports import codebook
from reports.exports.cells import NUMERIC_CODE, Cell, Number, number_or_text
from reports.exports.codebook import CodebookItem
from reports.exports.columns import Variable
from reports.exports.csv_file import CsvFile
from reports.exports.release_mask import COARSENED
from reports.exports.row_builder import RowBuilder
from reports.models.exports import Export
from survey.instrument.definitions.schema import Texts

ABOUT_RESPONDENTS = "About the respondent"
COLUMNS = (
    "column",
    "item",
    "type",
    "page",
    "versions",
    "question",
    "value",
    "label",
    "count",
    "measure",
    "essential",
    "reversed",
)
# Then the question and the label in each further language.
Line = Sequence[Cell]


def write(path: Path, *, export: Export, rows: RowBuilder) -> None:
    with path.open("wb") as file:
        writer = CsvFile(file, headers(export, rows), bom=export.bom)
        for line in lines(export, rows):
            writer.write([(writer.piece(line),)])
        writer.close()


def headers(export: Export, rows: RowBuilder) -> list[str]:
    _, *translations = codebook.languages_of(export, rows)
    return [
        *COLUMNS,
        *(f"{name}_{code}" for code in translations for name in ("question", "label")),
    ]


def lines(export: Export, rows: RowBuilder) -> Iterator[Line]:
    plan = rows.plan
    languages = list(codebook.languages_of(export, rows))
    width = len(headers(export, rows))
    is_long = export.format == Export.Format.LONG
    if not is_long:
        for header, meaning in codebook.respondent_columns(plan):
            about = (header, None, ABOUT_RESPONDENTS, None, None, meaning)
            yield *about, *[None] * (width - len(about))
    versions = list(rows.versions.values())
    for variable in plan.columns.variables:
        for item in codebook.entry(variable, versions).items:
            yield from _lines_of_item(variable, item, languages, is_long=is_long)
            if not is_long:
                yield from _missing_lines(variable, item, rows, languages)


def _lines_of_item(
    variable: Variable, item: CodebookItem, languages: Sequence[str], *, is_long: bool
) -> Iterator[Line]:
    has_column_of_its_own = variable.multiple and not is_long
    if not has_column_of_its_own:
        answered = item.tally.answered
        yield _line(variable.name, variable, item, None, {}, answered, languages)
    for value in item.values:
        column, code = variable.name, number_or_text(value.value, NUMERIC_CODE)
        if has_column_of_its_own:
            # Whoever chose the option has a 1 in its column.
            column, code = value.column, Number(1)
        yield _line(column, variable, item, code, value.labels, value.count, languages)


def _missing_lines(
    variable: Variable, item: CodebookItem, rows: RowBuilder, languages: Sequence[str]
) -> Iterator[Line]:
    missing, tally = rows.plan.missing, item.tally
    reasons = (
        (missing.not_applicable, "Not applicable", tally.not_applicable),
        (missing.skipped, "Skipped", tally.skipped),
        (missing.not_reached, "Not reached", tally.not_reached),
    )
    columns = variable.columns
    if variable.multiple:
        columns = [value.column for value in item.values]
    for column in columns:
        for number, label, count in reasons:
            code = Number(number) if rows.plan.has_codes(item.value_type) else None
            labels = {"": label}
            yield _line(column, variable, item, code, labels, count, languages)
        if tally.masked:
            labels = {"": "Left out, because few people answered"}
            yield _line(
                *(column, variable, item, COARSENED, labels, tally.masked, languages)
            )


def _line(
    column: str,
    variable: Variable,
    item: CodebookItem,
    value: Cell,
    labels: Texts,
    count: int,
    languages: Sequence[str],
) -> Line:
    first, *translations = languages
    return (
        column,
        variable.name,
        item.kind,
        Number(item.page),
        ", ".join(item.versions),
        _question(item, first),
        value,
        _text(labels, first),
        Number(count),
        item.measure["name"] if item.measure else None,
        (item.measure["essential"] or None) if item.measure else None,
        ("yes" if item.is_reversed else "no") if item.measure else None,
        *(
            text
            for code in translations
            for text in (_question(item, code), _text(labels, code))
        ),
    )


def _question(item: CodebookItem, language: str) -> str:
    texts = (_text(item.stem, language), _text(item.labels, language))
    return " – ".join(filter(None, texts))


def _text(texts: Texts, language: str) -> str:
    return texts.get(language) or texts.get("", "")
