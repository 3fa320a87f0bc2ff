"""Write programs for R, Python, SPSS and Stata that read a file with its labels."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence

from reports.exports.documents.described_file import DescribedFile
from reports.exports.typed.columns import Column, Storage
from reports.exports.typed.names import SPSS, STATA, cut_bytes, unique_names
from reports.models.exports import Export

Format = Export.Format
LINE = "\n"
READ_IN_R = {
    Format.WIDE.value: 'read.csv(file, colClasses = "character", na.strings = "",'
    ' fileEncoding = "UTF-8-BOM", check.names = FALSE)',
    Format.XLSX.value: 'as.data.frame(readxl::read_excel(file, sheet = "Responses"))',
    Format.SAV.value: "haven::read_sav(file, user_na = TRUE)",
    Format.DTA.value: "haven::read_dta(file)",
    Format.PARQUET.value: "as.data.frame(arrow::read_parquet(file))",
}
READ_IN_PYTHON = {
    Format.WIDE.value: 'pandas.read_csv(FILE, dtype=str, encoding="utf-8-sig",'
    ' keep_default_na=False, na_values=[""])',
    Format.XLSX.value: 'pandas.read_excel(FILE, sheet_name="Responses")',
    Format.SAV.value: "pyreadstat.read_sav(FILE, user_missing=True)[0]",
    Format.DTA.value: "pandas.read_stata(FILE, convert_categoricals=False)",
    Format.PARQUET.value: "pandas.read_parquet(FILE)",
}
READ_IN_SPSS = {
    Format.XLSX.value: "GET DATA /TYPE=XLSX /FILE={file} /SHEET=NAME 'Responses'.",
    Format.SAV.value: "GET FILE={file}.",
    Format.DTA.value: "GET STATA FILE={file}.",
}
READ_IN_STATA = {
    Format.WIDE.value: "import delimited using {file}, varnames(1) stringcols(_all)"
    ' encoding("UTF-8") bindquotes(strict) maxquotedrows(unlimited) clear',
    Format.XLSX.value: 'import excel using {file}, sheet("Responses") firstrow clear',
    Format.SAV.value: "import spss using {file}, clear",
    Format.DTA.value: "use {file}, clear",
}
for _same, _as in ((Format.LONG, Format.WIDE), (Format.ZSAV, Format.SAV)):
    for _programs in (READ_IN_R, READ_IN_PYTHON, READ_IN_SPSS, READ_IN_STATA):
        if _as.value in _programs:
            _programs[_same.value] = _programs[_as.value]
# Formats whose files have labels of their own.
LABELLED = (Format.SAV, Format.ZSAV, Format.DTA)
SPSS_FORMATS = {
    Storage.NUMBER: "F40",
    Storage.DAY: "SDATE10",
    Storage.TIME: "TIME8",
    Storage.MOMENT: "YMDHMS19",
    Storage.TEXT: "A20000",
}


def programs(file: DescribedFile) -> Iterator[tuple[str, str]]:
    """Yield the name and the text of each program that can read the file."""
    yield "read.R", LINE.join(_r(file)) + LINE
    yield "read.py", LINE.join(_python(file)) + LINE
    if spss := LINE.join(_spss(file)):
        yield "read.sps", spss + LINE
    if stata := LINE.join(_stata(file)):
        yield "read.do", stata + LINE


def numeric_labels(column: Column) -> Mapping[str, str]:
    """Return labels of the codes, and of the reasons for missing answers."""
    if column.storage is not Storage.NUMBER:
        return {}
    missing = {str(code): reason for code, reason in column.about.missing.items()}
    return {**column.about.values, **missing}


def _r(file: DescribedFile) -> Iterator[str]:
    yield "# Reads the responses into the data frame `responses`."
    yield f"file <- {_json(file.name)}"
    yield f"responses <- {READ_IN_R[file.export.format]}"
    moments = [
        _json(column.name)
        for column in file.columns
        if column.storage not in (Storage.NUMBER, Storage.TEXT)
    ]
    if moments and file.export.format in (Format.SAV, Format.ZSAV):
        yield "# Beside reasons for missing answers, haven has dates as numbers."
        yield f"moments <- c({', '.join(moments)})"
        yield "responses[moments] <- haven::read_sav(file)[moments]"
    if file.export.format in LABELLED or file.is_long:
        return
    yield "number <- function(x) suppressWarnings(as.numeric(x))"
    for column in file.columns:
        place = f"responses[[{_json(column.name)}]]"
        if column.storage is Storage.NUMBER:
            # What is left out is "*", which becomes NA.
            yield f"{place} <- number({place})"
        yield f'attr({place}, "label") <- {_json(column.about.label)}'
        if labels := numeric_labels(column):
            pairs = ", ".join(
                f"{_json(text)} = {code}" for code, text in labels.items()
            )
            yield f'attr({place}, "labels") <- c({pairs})'


def _python(file: DescribedFile) -> Iterator[str]:
    yield '"""Reads the responses, their labels, and the texts of their codes."""'
    yield ""
    needs_pyreadstat = file.export.format in (Format.SAV, Format.ZSAV)
    yield "import pyreadstat" if needs_pyreadstat else "import pandas"
    yield ""
    yield f"FILE = {_json(file.name)}"
    yield f"responses = {READ_IN_PYTHON[file.export.format]}"
    yield "labels = {"
    for column in file.columns:
        yield f"    {_json(column.name)}: {_json(column.about.label)},"
    yield "}"
    yield "values = {"
    for column in file.columns:
        if labels := numeric_labels(column):
            yield f"    {_json(column.name)}: {_json(labels)},"
    yield "}"
    if file.export.format in (Format.WIDE, Format.XLSX):
        yield "for column in values:"
        # What is left out is "*", which becomes NaN.
        yield "    numbers = pandas.to_numeric(responses[column], errors='coerce')"
        yield "    responses[column] = numbers"


def _spss(file: DescribedFile) -> Iterator[str]:
    name, columns = _spss_text(file.name), file.columns
    names = unique_names([column.name for column in columns], SPSS)
    if file.export.format in (Format.WIDE, Format.LONG):
        yield "* SPSS ends a row at a line break within a text: .sav files keep it."
        yield f"GET DATA /TYPE=TXT /FILE={name} /ENCODING='UTF8'"
        yield "  /ARRANGEMENT=DELIMITED /DELIMITERS=',' /QUALIFIER='\"' /FIRSTCASE=2"
        # No line begins with a name: "comment" at the beginning is a command.
        yield f"  /VARIABLES={names[0]}"
        for column, following in zip(columns, (*names[1:], "."), strict=True):
            yield f"    {SPSS_FORMATS[column.storage]} {following}"
    elif file.export.format in READ_IN_SPSS:
        yield READ_IN_SPSS[file.export.format].format(file=name)
    else:
        return
    if file.export.format in LABELLED:
        yield "EXECUTE."
        return
    for variable, column in zip(names, columns, strict=True):
        label = cut_bytes(column.about.label, 255)
        yield f"VARIABLE LABELS {variable} {_spss_text(label)}."
        if labels := numeric_labels(column):
            pairs = " ".join(
                f"{code} {_spss_text(cut_bytes(text, 120))}"
                for code, text in labels.items()
            )
            yield f"VALUE LABELS {variable} {pairs}."
        codes = sorted(column.about.missing)
        if column.storage is Storage.NUMBER and codes:
            listed = ", ".join(map(str, codes))
            shown = listed if len(codes) < 4 else f"{codes[0]} THRU {codes[-1]}"
            yield f"MISSING VALUES {variable} ({shown})."
        if column.storage is Storage.NUMBER:
            yield f"VARIABLE LEVEL {variable} ({column.about.level.upper()})."
    yield from _sets(names, columns)
    yield "EXECUTE."


def _sets(names: Sequence[str], columns: Sequence[Column]) -> Iterator[str]:
    sets: dict[str, list[str]] = {}
    questions: dict[str, str] = {}
    for variable, column in zip(names, columns, strict=True):
        if choice := column.about.choice:
            sets.setdefault(choice, []).append(variable)
            questions[choice] = cut_bytes(column.about.question, 255)
    for choice, set_name in zip(sets, unique_names(sets, SPSS), strict=True):
        yield f"MRSETS /MDGROUP NAME=${cut_bytes(set_name, 63)}"
        label = _spss_text(questions[choice])
        yield f"  LABEL={label} VARIABLES={' '.join(sets[choice])} VALUE=1."


def _stata(file: DescribedFile) -> Iterator[str]:
    if file.export.format not in READ_IN_STATA:
        return
    command = READ_IN_STATA[file.export.format]
    yield "version 14"
    yield command.format(file=_stata_text(file.name))
    if file.export.format in LABELLED or file.is_long:
        return
    # By its place: Stata makes names of headers by a rule of its own.
    names = unique_names([column.name for column in file.columns], STATA)
    yield "unab columns : _all"
    for number, (variable, column) in enumerate(
        zip(names, file.columns, strict=True), start=1
    ):
        yield f"local column : word {number} of `columns'"
        yield f"capture rename `column' {variable}"
        if column.storage is Storage.NUMBER:
            yield f"destring {variable}, replace force"
        label = _stata_text(column.about.label[:80])
        yield f"label variable {variable} {label}"
        pairs = " ".join(
            f"{code} {_stata_text(text)}"
            for code, text in numeric_labels(column).items()
            if code.lstrip("-").isdigit()
        )
        if pairs:
            yield f"label define labels{number} {pairs}"
            yield f"label values {variable} labels{number}"


def _json(value: object) -> str:
    """Return a text, or a dictionary of texts, as R and Python read it.

    Escapes of characters above 65,535 are pairs in JSON, so these stay as they are.
    """
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _spss_text(text: str) -> str:
    return "'" + " ".join(text.split()).replace("'", "''") + "'"


def _stata_text(text: str) -> str:
    """Return a text in compound quotes, without what would end them or be a macro."""
    flat = " ".join(text.split()).replace("`", "'").replace("$", "\uff04")
    return '`"' + flat.replace("\"'", "\" '") + "\"'"
