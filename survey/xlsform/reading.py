"""An .xlsx file to a draft, or to everything that is wrong with it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import BinaryIO

from survey.definitions.schema import Expr
from survey.spreadsheets.workbook_guard import SURVEY
from survey.xlsform.checking import check_whole
from survey.xlsform.choices import read_choices
from survey.xlsform.columns import (
    TRANSLATED,
    Columns,
    Row,
    read_columns,
    read_rows,
)
from survey.xlsform.draft import Draft, OptionDraft, Texts
from survey.xlsform.items import OptionSets
from survey.xlsform.languages import ENGLISH, Language, language_of
from survey.xlsform.outline import Outline
from survey.xlsform.pages import paginate
from survey.xlsform.problems import (
    FileRefused,
    Findings,
    Problem,
    in_reading_order,
    quoted,
)
from survey.xlsform.pyxform_check import ask_pyxform
from survey.xlsform.workbook import SurveySheet, read_workbook

MAX_LANGUAGES = 50
LONGEST_SETTING = 64
LONGEST_TITLE = 500


@dataclass(frozen=True)
class Reading:
    """What a file says. There is a draft exactly where there is no problem."""

    draft: Draft | None
    problems: list[Problem]
    warnings: list[Problem]
    source: bytes


def read_xlsform(
    file: str | PathLike[str] | bytes | BinaryIO, *, name: str = ""
) -> Reading:
    """Read a survey. Raises nothing but OSError, and touches no database.

    `name` is the survey's where the file's settings have no form_id: the
    file's own name, as a rule.
    """
    content = _content(file)
    findings = Findings()
    draft = None
    try:
        draft = _read(read_workbook(content, findings), name, findings)
    except FileRefused as refusal:
        findings.refuse("", None, "", str(refusal))
    problems = in_reading_order(findings.problems)
    warnings = in_reading_order(findings.warnings)
    return Reading(None if problems else draft, problems, warnings, content)


def _content(file: str | PathLike[str] | bytes | BinaryIO) -> bytes:
    # One byte over the limit is enough for the reader to refuse it.
    if isinstance(file, bytes):
        return file
    if isinstance(file, str | PathLike):
        with Path(file).open("rb") as opened:
            return opened.read(SURVEY.file + 1)
    return file.read(SURVEY.file + 1)


def _read(sheets: dict[str, SurveySheet], name: str, findings: Findings) -> Draft:
    if "survey" not in sheets:
        raise FileRefused("There is no sheet named survey.")
    columns = {
        title: read_columns(sheets.get(title, SurveySheet(title)), findings)
        for title in ("survey", "choices", "settings")
    }
    _require_columns(sheets, columns, findings)
    languages = _languages(sheets, columns, findings)
    rows = {
        title: read_rows(sheets[title], columns[title], languages[0])
        if title in sheets
        else []
        for title in columns
    }
    for title in ("survey", "choices"):
        _complete_texts(rows[title], languages, findings)
    codes = [language.code for language in languages]
    option_sets = OptionSets(read_choices(rows["choices"], findings), codes)
    outline = Outline(option_sets, findings)
    outline.read(rows["survey"])
    settings = _settings(rows["settings"], name, findings)
    draft = Draft(
        name=settings.get("name"),
        version=settings.get("version"),
        title=_title(settings, codes[0]),
        languages=[language.as_json() for language in languages],
        option_sets={},
        pages=paginate(outline.root, findings),
    )
    draft.option_sets = _used_sets(draft, option_sets, columns["choices"], findings)
    check_whole(draft, outline, findings)
    if not findings.problems:
        cells = _settings_for_pyxform(settings, languages[0])
        ask_pyxform(rows["survey"], rows["choices"], cells, languages, findings)
    return draft


def _require_columns(
    sheets: dict[str, SurveySheet], columns: dict[str, Columns], findings: Findings
) -> None:
    for title, needed in (
        ("survey", ("type", "name")),
        ("choices", ("list", "name")),
    ):
        if title not in sheets or not (sheets[title].rows or title == "survey"):
            continue
        present = {column.key for column in columns[title].known.values()}
        for key in needed:
            if key not in present:
                header = "list_name" if key == "list" else key
                reason = f"there is no column {header} in the first row"
                findings.refuse(title, 1, header, reason)


def _languages(
    sheets: dict[str, SurveySheet], columns: dict[str, Columns], findings: Findings
) -> list[Language]:
    """The default language first, then as the columns come."""
    found: dict[str, Language] = {}
    for title in ("survey", "choices", "settings"):
        for language in columns[title].languages():
            found.setdefault(language.code, language)
    default = _default_language(sheets, columns, found, findings)
    languages = {default.code: found.get(default.code, default), **found}
    if len(languages) > MAX_LANGUAGES:
        reason = f"more than {MAX_LANGUAGES} languages"
        findings.refuse("survey", 1, "label", reason)
    return list(languages.values())


def _default_language(
    sheets: dict[str, SurveySheet],
    columns: dict[str, Columns],
    found: dict[str, Language],
    findings: Findings,
) -> Language:
    asked = _raw_setting(sheets, columns, "default_language")
    unnamed = any(
        column.key in TRANSLATED - {"media", "title"} and column.language is None
        for title in ("survey", "choices")
        for column in columns[title].known.values()
    )
    if asked:
        language = language_of(asked)
        if language and (unnamed or language.code in found):
            return language
        reason = (
            "no column is in this language"
            if language
            else "no such language is known: write its code in parentheses"
        )
        header = columns["settings"].header("default_language")
        findings.refuse("settings", 2, header, reason, asked)
    # Most files name one language in some columns and mean it in all.
    default = ENGLISH
    if found and (not unnamed or len(found) == 1):
        default = next(iter(found.values()))
    if unnamed and not asked:
        findings.warn(
            "settings",
            None,
            "default_language",
            "not given: columns that name no language are taken as"
            f" {default.name} ({default.code})",
        )
    return default


def _raw_setting(
    sheets: dict[str, SurveySheet], columns: dict[str, Columns], key: str
) -> str:
    for number, column in columns["settings"].known.items():
        if column.key == key:
            rows = sheets["settings"].rows
            return rows[min(rows)].get(number, "") if rows else ""
    return ""


def _complete_texts(
    rows: list[Row], languages: list[Language], findings: Findings
) -> None:
    """Every text gets the default language; what else is missing is told, once
    for each column and language."""
    missing: dict[tuple[str, str], list[int]] = {}
    columns = {}
    default = languages[0].code
    for row in rows:
        for key, texts in row.texts.items():
            for language in languages:
                if language.code not in texts:
                    missing.setdefault((key, language.code), []).append(row.number)
            texts.setdefault(default, next(iter(texts.values())))
            columns[key] = row.columns.header(key)
    for (key, code), numbers in missing.items():
        shown = ", ".join(map(str, numbers[:8])) + (", …" if len(numbers) > 8 else "")
        findings.warn(
            rows[0].sheet,
            numbers[0],
            columns[key],
            f"{len(numbers)} without a translation into {code}: rows {shown}",
        )


def _settings(rows: list[Row], name: str, findings: Findings) -> Row:
    row = rows[0] if rows else Row("settings", 2, Columns())
    for extra in rows[1:]:
        findings.warn("settings", extra.number, "", "only the first row is read")
    if not row.get("name"):
        row.values["name"] = quoted(name)
    if not row.get("name"):
        row.refuse(findings, "name", "the survey has no form_id")
    if not row.get("version"):
        row.values["version"] = "1"
        row.warn(findings, "version", "not given: taken as 1", "")
    for key in ("name", "version"):
        if len(row.get(key)) > LONGEST_SETTING or "\n" in row.get(key):
            reason = f"at most {LONGEST_SETTING} characters on one line"
            row.refuse(findings, key, reason)
    for text in row.text("title").values():
        if len(text) > LONGEST_TITLE:
            reason = f"at most {LONGEST_TITLE} characters"
            row.refuse(findings, "title", reason, text)
    style = row.get("style")
    if style and style != "pages":
        row.warn(findings, "style", "ignored: every survey is shown in pages")
    return row


def _title(settings: Row, default: str) -> Texts:
    title = settings.text("title") or {default: settings.get("name")}
    title.setdefault(default, next(iter(title.values())))
    return title


def _settings_for_pyxform(settings: Row, default: Language) -> dict[str, str]:
    return {
        "form_id": settings.get("name"),
        "version": settings.get("version"),
        "default_language": f"{default.name} ({default.code})",
    }


def _used_sets(
    draft: Draft, option_sets: OptionSets, columns: Columns, findings: Findings
) -> dict[str, list[OptionDraft]]:
    """The sets that items use, with the columns that a choice filter reads.

    The other columns are the author's own notes: they would be sent to every
    browser.
    """
    read = {
        name
        for item in draft.items()
        for name in _columns_read(item.rules.get("choice_filter"))
    }
    for header in columns.free.values():
        if header not in read:
            reason = "no choice_filter reads this column: ignored"
            findings.warn("choices", 1, header, reason)
    used = {item.option_set for item in draft.items() if item.option_set}
    return {
        name: [_with_columns(option, read) for option in options]
        for name, options in option_sets.sets.items()
        if name in used
    }


def _with_columns(option: OptionDraft, read: Iterable[str]) -> OptionDraft:
    kept = {key: text for key, text in option.attributes.items() if key in read}
    return OptionDraft(option.value, option.label, kept)


def _columns_read(expression: Expr | None) -> set[str]:
    if not isinstance(expression, list):
        return set()
    if expression[0] == "col":
        return {expression[1]}
    return {name for part in expression[1:] for name in _columns_read(part)}
