"""Read the structure of a survey of LimeSurvey as tab-separated values."""

from __future__ import annotations

import csv
import io

from django.utils.translation import gettext as _

from survey.instrument.foreign import limesurvey
from survey.instrument.foreign.converted import Converted, UnreadableQuestionnaire
from survey.instrument.foreign.limesurvey import (
    TEXTS,
    Answer,
    Element,
    LimeSurvey,
    Section,
    Subquestion,
)
from survey.instrument.foreign.names import set_of_words

Row = dict[str, str]
MOST_ROWS = 100_000
# Columns that are no attribute of a question.
COLUMNS = set_of_words(
    "id related_id class type/scale type name relevance text help language "
    "validation mandatory other default same_default same_script encrypted "
    "assessment_value random_group"
)


def convert(text: str) -> Converted:
    return limesurvey.convert(read_survey(read_rows(text)))


def read_rows(text: str) -> list[Row]:
    reader = csv.reader(io.StringIO(text, newline=""), delimiter="\t")
    rows: list[Row] = []
    try:
        headers = [header.strip().lower() for header in next(reader, [])]
        for cells in reader:
            rows.append(dict(zip(headers, cells, strict=False)))
            if len(rows) > MOST_ROWS:
                raise UnreadableQuestionnaire(
                    _("The file has more than %(most)s rows.")
                    % {"most": f"{MOST_ROWS:,}"}
                )
    except csv.Error as error:
        raise UnreadableQuestionnaire(
            _("The file cannot be read beyond line %(line)s: %(reason)s.")
            % {"line": reader.line_num, "reason": str(error)}
        ) from error
    return rows


def read_survey(rows: list[Row]) -> LimeSurvey:
    settings = {row["name"]: row.get("text", "") for row in of_class(rows, "S")}
    first = settings.pop("language", "") or "en"
    languages = [first, *settings.pop("additional_languages", "").split()]
    for row in rows:
        if (code := row.get("language", "")) and code not in languages:
            languages.append(code)
    survey = LimeSurvey(settings.pop("sid", ""), languages, settings=settings)
    mails = []
    for row in of_class(rows, "SL"):
        name, language = row["name"], row.get("language", "") or first
        if name in TEXTS:
            survey.texts.setdefault(TEXTS[name], {})[language] = row.get("text", "")
        elif row.get("text", "").strip() and "email" in name:
            mails.append(name)
    if mails:
        survey.rest.append((", ".join(dict.fromkeys(mails)), "e-mails"))
    TableReader(survey, first).read(rows)
    return survey


def of_class(rows: list[Row], name: str) -> list[Row]:
    return [row for row in rows if row.get("class") == name and row.get("name")]


class TableReader:
    """Reads groups, questions, subquestions and answers, a row for each language."""

    def __init__(self, survey: LimeSurvey, first: str) -> None:
        self.survey = survey
        self.first = first
        self.sections: dict[str, Section] = {}
        self.elements: dict[str, Element] = {}
        self.section: Section | None = None
        self.element: Element | None = None
        self.rest: dict[str, list[str]] = {}
        # Parts of a question by its code, their kind, scale and code.
        self.subquestions: dict[tuple[str, str, str], Subquestion] = {}
        self.answers: dict[tuple[str, str, str], Answer] = {}

    def read(self, rows: list[Row]) -> None:
        for row in rows:
            language = row.get("language", "") or self.first
            kind = row.get("class", "").strip().upper()
            if kind == "G":
                self.read_group(row, language)
            elif kind == "Q":
                self.read_question(row, language)
            elif kind == "SQ" and self.element:
                self.read_subquestion(self.element, row, language)
            elif kind == "A" and self.element:
                self.read_answer(self.element, row, language)
            elif kind not in ("S", "SL", ""):
                self.rest.setdefault(kind, []).append(row.get("name", ""))
        for kind, names in self.rest.items():
            names = list(dict.fromkeys(names))
            self.survey.rest.append((f"{kind}: {', '.join(names[:20])}", kind))

    def read_group(self, row: Row, language: str) -> None:
        # The first language has all rows before the second begins.
        key = row.get("id") or row.get("type/scale") or row.get("name", "")
        if key not in self.sections:
            relevance = row.get("relevance", "")
            self.sections[key] = Section(key, relevance=relevance)
            self.sections[key].random = row.get("random_group", "")
            self.survey.sections.append(self.sections[key])
        self.section = self.sections[key]
        self.section.texts[language] = row.get("name", "")
        self.section.description[language] = row.get("text", "")

    def read_question(self, row: Row, language: str) -> None:
        key = row.get("name", "") or row.get("id", "")
        if self.section is None:
            self.section = Section("1")
            self.survey.sections.append(self.section)
        if key not in self.elements:
            element = Element(
                row.get("id", "") or key,
                row.get("type/scale", row.get("type", "")),
                key,
                pattern=row.get("validation", ""),
                has_other=row.get("other", "") == "Y",
                mandatory=row.get("mandatory", ""),
                relevance=row.get("relevance", ""),
            )
            self.elements[key] = element
            self.section.elements.append(element)
        self.element = element = self.elements[key]
        element.texts[language] = row.get("text", "")
        element.help[language] = row.get("help", "")
        if row.get("default"):
            element.defaults.setdefault("", {})[language] = row["default"]
        for name, value in row.items():
            if name and name not in COLUMNS and value:
                element.attributes.setdefault(name, {})[language] = value

    def read_subquestion(self, element: Element, row: Row, language: str) -> None:
        code, scale = row.get("name", ""), row.get("type/scale", "") or "0"
        scale = scale if scale.isdecimal() else "0"
        key = (element.code, scale, code)
        if key not in self.subquestions:
            relevance = row.get("relevance", "")
            self.subquestions[key] = Subquestion(code, {}, scale, relevance)
            element.subquestions.append(self.subquestions[key])
        self.subquestions[key].texts[language] = row.get("text", "")
        if row.get("default"):
            element.defaults.setdefault(code, {})[language] = row["default"]

    def read_answer(self, element: Element, row: Row, language: str) -> None:
        code, scale = row.get("name", ""), row.get("type/scale", "") or "0"
        key = (element.code, scale, code)
        if key not in self.answers:
            self.answers[key] = Answer(code, {}, scale)
            element.answers.append(self.answers[key])
        self.answers[key].texts[language] = row.get("text", "")
