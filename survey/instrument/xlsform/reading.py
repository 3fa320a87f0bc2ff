"""Read an XLSForm to a draft, or to everything that is wrong with it."""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import BinaryIO

from django.utils.translation import gettext as _

from survey.instrument.definitions.schema import Expr
from survey.instrument.spreadsheets.workbook_guard import SURVEY
from survey.instrument.xlsform.checking import check_survey
from survey.instrument.xlsform.choices import read_choices
from survey.instrument.xlsform.columns import (
    TRANSLATED,
    SheetColumns,
    SurveyRow,
    read_columns,
    read_rows,
)
from survey.instrument.xlsform.draft import Draft, OptionDraft
from survey.instrument.xlsform.items import OptionSets
from survey.instrument.xlsform.languages import (
    ENGLISH,
    Language,
    english_name,
    language_of,
)
from survey.instrument.xlsform.measures import MeasureReader
from survey.instrument.xlsform.outline import Outline
from survey.instrument.xlsform.pages import paginate
from survey.instrument.xlsform.problems import (
    FileRefused,
    Findings,
    Problem,
    in_reading_order,
    quoted,
)
from survey.instrument.xlsform.pyxform_check import check_with_pyxform
from survey.instrument.xlsform.rules import yes_or_no
from survey.instrument.xlsform.types import parse_type
from survey.instrument.xlsform.workbook import SurveySheet, read_workbook

MAX_LANGUAGES = 50
LONGEST_SETTING = 64
LONGEST_TITLE = 500


@dataclass(frozen=True)
class Reading:
    """The result of reading a file; `draft` is None if there is any problem."""

    draft: Draft | None
    problems: list[Problem]
    warnings: list[Problem]
    source: bytes


def read_xlsform(
    file: str | PathLike[str] | bytes | BinaryIO, *, name: str = ""
) -> Reading:
    """Read a survey. Raises nothing but OSError, and uses no database.

    `name` is the survey's if the file's settings have no form_id: the file's
    own name, as a rule.
    """
    # One byte over the limit is enough for the reader to refuse it.
    if isinstance(file, bytes):
        content = file
    elif isinstance(file, str | PathLike):
        with Path(file).open("rb") as opened:
            content = opened.read(SURVEY.file + 1)
    else:
        content = file.read(SURVEY.file + 1)
    findings = Findings()
    draft = None
    try:
        draft = read_draft(read_workbook(content, findings), name, findings)
    except FileRefused as refusal:
        findings.refuse("", None, "", str(refusal))
    problems = in_reading_order(findings.problems)
    warnings = in_reading_order(findings.warnings)
    return Reading(None if problems else draft, problems, warnings, content)


def read_draft(
    sheets: dict[str, SurveySheet],
    name: str,
    findings: Findings,
    *,
    with_pyxform: bool = True,
) -> Draft:
    """Read the sheets of a survey. Raises FileRefused.

    Without pyxform it takes two thirds of the time, and misses what only pyxform finds.
    """
    if "survey" not in sheets:
        raise FileRefused(_("There is no sheet named survey."))
    columns = {
        title: read_columns(sheets.get(title, SurveySheet(title)), findings)
        for title in ("survey", "choices", "settings", "measures")
    }
    require_columns(sheets, columns, findings)
    languages = list_languages(sheets, columns, findings)
    rows = {
        title: read_rows(sheets[title], columns[title], languages[0], findings)
        if title in sheets
        else []
        for title in columns
    }
    complete_sheets(rows, languages, findings)
    codes = [language.code for language in languages]
    settings = read_settings(rows["settings"], name, findings)
    may_repeat = yes_or_no(settings.get("allow_choice_duplicates")) or False
    choices = read_choices(rows["choices"], findings, may_repeat=may_repeat)
    option_sets = OptionSets(choices, codes)
    outline = Outline(option_sets, findings)
    outline.read(rows["survey"], [settings.get("name"), settings.get("root")])
    texts = settings.text("title") or {codes[0]: settings.get("name")}
    # Every text has the default language, which fills the gaps of the others.
    texts.setdefault(codes[0], next(iter(texts.values())))
    draft = Draft(
        name=settings.get("name"),
        version=settings.get("version"),
        title=texts,
        languages=[language.as_json() for language in languages],
        option_sets={},
        pages=paginate(outline.root, findings),
    )
    draft.option_sets = used_sets(draft, option_sets, columns["choices"], findings)
    check_survey(draft, outline, rows["choices"], findings)
    if rows["measures"]:
        items = {item.name: item for item in draft.items()}
        reader = MeasureReader(items, draft.option_sets, findings)
        draft.measures = reader.read(rows["measures"])
    # Otherwise pyxform repeats the first problem, without its column.
    if with_pyxform and not findings.problems:
        cells = {
            "form_id": draft.name,
            "version": draft.version,
            "default_language": f"{languages[0].name} ({languages[0].code})",
            "allow_choice_duplicates": "yes" if may_repeat else "no",
        }
        check_with_pyxform(rows["survey"], rows["choices"], cells, languages, findings)
    return draft


def require_columns(
    sheets: dict[str, SurveySheet],
    columns: dict[str, SheetColumns],
    findings: Findings,
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
                reason = _("there is no column %(header)s in the first row") % {
                    "header": header
                }
                findings.refuse(title, 1, header, reason)


def list_languages(
    sheets: dict[str, SurveySheet],
    columns: dict[str, SheetColumns],
    findings: Findings,
) -> list[Language]:
    """List the default language first, the others in the order of the columns."""
    by_code: dict[str, Language] = {}
    for title in ("survey", "choices", "settings", "measures"):
        for language in columns[title].languages():
            by_code.setdefault(language.code, language)
    setting = ""
    for number, column in columns["settings"].known.items():
        if column.key == "default_language" and (rows := sheets["settings"].rows):
            setting = rows[min(rows)].get(number, "")
            break
    header = columns["settings"].header("default_language")
    is_unnamed = any(
        column.key in TRANSLATED - {"media", "title"} and column.language is None
        for title in ("survey", "choices")
        for column in columns[title].known.values()
    )
    # Most files name one language in some columns and mean it in all.
    default = ENGLISH
    if by_code and (not is_unnamed or len(by_code) == 1):
        default = next(iter(by_code.values()))
    chosen = language_of(setting) if setting else None
    if chosen and (is_unnamed or chosen.code in by_code):
        default = chosen
    elif chosen:
        reason = _("no column is in this language")
        findings.refuse("settings", 2, header, reason, setting)
    elif is_unnamed:
        problem = _("the language is unknown") if setting else _("not given")
        reason = _(
            "%(problem)s: columns that name no language are taken as"
            " %(name)s (%(code)s)"
        ) % {"problem": problem, "name": default.name, "code": default.code}
        findings.warn("settings", 2 if setting else None, header, reason, setting)
    elif setting:
        reason = _("the language is unknown: %(name)s (%(code)s) is used") % {
            "name": default.name,
            "code": default.code,
        }
        findings.warn("settings", 2, header, reason, setting)
    languages = {default.code: by_code.get(default.code, default), **by_code}
    if len(languages) > MAX_LANGUAGES:
        reason = _("more than %(max_languages)s languages") % {
            "max_languages": MAX_LANGUAGES
        }
        findings.refuse("survey", 1, "label", reason)
    return list(languages.values())


def complete_sheets(
    rows: dict[str, list[SurveyRow]], languages: list[Language], findings: Findings
) -> None:
    """Complete the texts of all sheets; warn of lists only where they are used."""
    lists = {parse_type(row.get("type")).option_set for row in rows["survey"]}
    used = [row for row in rows["choices"] if row.get("list") in lists]
    for translated in (rows["survey"], used, rows["measures"]):
        complete_texts(translated, languages, findings)
    # Nobody translates the others.
    unused = [row for row in rows["choices"] if row.get("list") not in lists]
    complete_texts(unused, languages, Findings())


def complete_texts(
    rows: list[SurveyRow], languages: list[Language], findings: Findings
) -> None:
    """Give every text the default language, and report missing translations.

    One warning for each column and language.
    """
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
        language_name = english_name(code)
        if len(numbers) == 1:
            reason = _("row %(shown)s has no %(language_name)s translation") % {
                "shown": shown,
                "language_name": language_name,
            }
        else:
            count = len(numbers)
            reason = _(
                "%(count)s rows have no %(language_name)s translation: %(shown)s"
            ) % {"count": count, "language_name": language_name, "shown": shown}
        findings.warn(rows[0].sheet, numbers[0], columns[key], reason)


def read_settings(rows: list[SurveyRow], name: str, findings: Findings) -> SurveyRow:
    row = rows[0] if rows else SurveyRow("settings", 2, SheetColumns())
    for extra in rows[1:]:
        findings.warn("settings", extra.number, "", _("only the first row is read"))
    if not row.get("name"):
        row.values["name"] = quoted(name)
    if not row.get("name"):
        row.refuse(findings, "name", _("the survey has no form_id"))
    if not row.get("version"):
        row.values["version"] = "1"
        row.warn(findings, "version", _("not given: taken as 1"), "")
    for key in ("name", "version"):
        if len(row.get(key)) > LONGEST_SETTING or "\n" in row.get(key):
            reason = _("at most %(longest_setting)s characters on one line") % {
                "longest_setting": LONGEST_SETTING
            }
            row.refuse(findings, key, reason)
    for text in row.text("title").values():
        if len(text) > LONGEST_TITLE:
            reason = _("at most %(longest_title)s characters") % {
                "longest_title": LONGEST_TITLE
            }
            row.refuse(findings, "title", reason, text)
    style = row.get("style")
    if style and style != "pages":
        row.warn(findings, "style", _("ignored: every survey is shown in pages"))
    return row


def used_sets(
    draft: Draft, option_sets: OptionSets, columns: SheetColumns, findings: Findings
) -> dict[str, list[OptionDraft]]:
    """Return the sets that items use, with the columns that a choice filter reads.

    The other columns are the author's own notes: they would be sent to every
    browser.
    """
    filters = [item.rules.get("choice_filter") for item in draft.items()]
    read = {name for expression in filters for name in columns_read(expression)}
    for header in columns.free.values():
        if header not in read:
            reason = _("no choice_filter reads this column: ignored")
            findings.warn("choices", 1, header, reason)
    used = {item.option_set for item in draft.items() if item.option_set}
    sets: dict[str, list[OptionDraft]] = {}
    for name, options in option_sets.sets.items():
        if name in used:
            sets[name] = [
                OptionDraft(
                    option.value,
                    option.label,
                    {
                        key: text
                        for key, text in option.attributes.items()
                        if key in read
                    },
                )
                for option in options
            ]
    return sets


def columns_read(expression: Expr | None) -> set[str]:
    if not isinstance(expression, list):
        return set()
    if expression[0] == "col":
        return {expression[1]}
    return {name for part in expression[1:] for name in columns_read(part)}
