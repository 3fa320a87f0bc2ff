"""Read the structure of a survey of LimeSurvey 2 to 6, an .lss file."""

from __future__ import annotations

import io
from collections import defaultdict
from xml.etree.ElementTree import Element as XmlElement
from xml.etree.ElementTree import ParseError

from defusedxml.common import DefusedXmlException
from defusedxml.ElementTree import iterparse
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
from survey.instrument.foreign.texts import Texts

Row = dict[str, str]
# A survey of 1,000 questions in five languages has 150,000.
MOST_ELEMENTS = 1_000_000
DEEPEST = 20
NOT_TAKEN = {
    "assessments": "assessments",
    "quota": "quotas",
    "quota_members": "quota members",
    "surveys_languagesettings": "",
    "survey_url_parameters": "URL parameters",
    "themes": "themes",
    "themes_inherited": "themes",
    "plugin_settings": "plugins",
}


def convert(text: str) -> Converted:
    return limesurvey.convert(read_survey(text))


def read_tables(text: str) -> dict[str, list[Row]]:
    """Return the rows of each table in the file. Raises UnreadableQuestionnaire."""
    tables: dict[str, list[Row]] = defaultdict(list)
    path: list[str] = []
    count = 0
    # The declaration may name the encoding that the file had.
    if text.lstrip().startswith("<?xml"):
        text = text[text.index("?>") + 2 :] if "?>" in text else text
    try:
        events = iterparse(
            io.BytesIO(text.encode()), events=("start", "end"), forbid_dtd=True
        )
        for event, node in events:
            if event == "start":
                path.append(node.tag)
                count += 1
                if count > MOST_ELEMENTS or len(path) > DEEPEST:
                    raise UnreadableQuestionnaire(
                        _("The file has more elements than any survey needs.")
                    )
                continue
            path.pop()
            if node.tag == "row" and len(path) == 3 and path[2] == "rows":
                tables[path[1]].append({child.tag: child.text or "" for child in node})
            if len(path) < 3:
                add_single(tables, path, node)
                node.clear()
            elif len(path) == 3:
                node.clear()
    except DefusedXmlException:
        raise UnreadableQuestionnaire(
            _("The file declares a document type or entities, which no survey does.")
        ) from None
    except ParseError as error:
        line, column = error.position
        raise UnreadableQuestionnaire(
            _(
                "The file is damaged or cut off in line %(line)s, character"
                " %(column)s. Export the survey again."
            )
            % {"line": line, "column": column + 1}
        ) from error
    return tables


def add_single(tables: dict[str, list[Row]], path: list[str], node: XmlElement) -> None:
    """Keep what is no table: the kind of the file, its version and languages."""
    if len(path) == 1 and node.tag in ("LimeSurveyDocType", "DBVersion"):
        tables[node.tag].append({"value": node.text or ""})
    elif len(path) == 2 and node.tag == "language":
        tables["languages"].append({"value": node.text or ""})


def by_language(rows: list[Row], key: str, language: str = "language") -> Texts:
    return {row.get(language, ""): row.get(key, "") for row in rows}


def number(row: Row, key: str) -> int:
    text = row.get(key, "").strip()
    return int(text) if text.isdecimal() else 0


def grouped(rows: list[Row], key: str) -> dict[str, list[Row]]:
    groups: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        groups[row.get(key, "")].append(row)
    return groups


def read_survey(text: str) -> LimeSurvey:
    tables = read_tables(text)
    kind = (
        tables["LimeSurveyDocType"][0]["value"] if tables["LimeSurveyDocType"] else ""
    )
    if kind != "Survey":
        raise UnreadableQuestionnaire(
            _(
                "This file of LimeSurvey has no survey: export the survey structure"
                " (.lss)."
            )
        )
    settings = dict(tables["surveys"][0]) if tables["surveys"] else {}
    first = settings.pop("language", "") or "en"
    named = [row["value"] for row in tables["languages"]]
    extra = settings.pop("additional_languages", "").split()
    languages = list(dict.fromkeys([first, *extra, *named]))
    survey = LimeSurvey(settings.pop("sid", ""), languages, settings=settings)
    for column, key in TEXTS.items():
        rows = tables["surveys_languagesettings"]
        survey.texts[key] = ordered(
            by_language(rows, column, "surveyls_language"), languages
        )
    mails = [
        name
        for row in tables["surveys_languagesettings"][:1]
        for name in row
        if "email" in name and row[name].strip()
    ]
    if mails:
        survey.rest.append((", ".join(mails), "e-mails"))
    for table, what in NOT_TAKEN.items():
        if what and tables[table]:
            rows = tables[table]
            sample = "; ".join(" ".join(filter(None, row.values())) for row in rows[:3])
            survey.rest.append((f"{what}: {len(rows)} ({sample})", table))
    read_sections(survey, tables)
    return survey


def ordered(texts: Texts, languages: list[str]) -> Texts:
    return {code: texts[code] for code in languages if code in texts}


def read_sections(survey: LimeSurvey, tables: dict[str, list[Row]]) -> None:
    languages = survey.languages
    elements = read_elements(tables, languages)
    local = grouped(tables["group_l10ns"], "gid")
    groups = grouped(tables["groups"], "gid")
    for gid, rows in sorted(
        groups.items(), key=lambda entry: number(entry[1][0], "group_order")
    ):
        texts = local.get(gid) or rows
        survey.sections.append(
            Section(
                gid,
                ordered(by_language(texts, "group_name"), languages),
                ordered(by_language(texts, "description"), languages),
                rows[0].get("grelevance", ""),
                elements.pop(gid, []),
                rows[0].get("randomization_group", ""),
            )
        )
    # Questions whose group is missing are asked all the same.
    survey.sections += [
        Section(gid, {}, elements=rest) for gid, rest in elements.items()
    ]


def read_elements(
    tables: dict[str, list[Row]], languages: list[str]
) -> dict[str, list[Element]]:
    """Return the questions of each group, in their order."""
    local = grouped(tables["question_l10ns"], "qid")
    answer_texts = grouped(tables["answer_l10ns"], "aid")
    default_texts = grouped(tables["defaultvalue_l10ns"], "dvid")
    attributes = grouped(tables["question_attributes"], "qid")
    answers = grouped(tables["answers"], "qid")
    defaults = grouped(tables["defaultvalues"], "qid")
    conditions = grouped(tables["conditions"], "qid")
    parts = grouped(tables["subquestions"], "parent_qid")
    elements: dict[str, list[tuple[int, Element]]] = defaultdict(list)
    for qid, rows in grouped(tables["questions"], "qid").items():
        row = rows[0]
        if row.get("parent_qid", "0") not in ("", "0"):
            parts.setdefault(row["parent_qid"], []).extend(rows)
            continue
        texts = local.get(qid) or rows
        element = Element(
            qid,
            row.get("type", ""),
            row.get("title", ""),
            ordered(by_language(texts, "question"), languages),
            ordered(by_language(texts, "help"), languages),
            row.get("preg", ""),
            row.get("other", "") == "Y",
            row.get("mandatory", ""),
            row.get("relevance", ""),
            conditions=conditions.get(qid, []),
        )
        for attribute in attributes.get(qid, []):
            values = element.attributes.setdefault(attribute.get("attribute", ""), {})
            values[attribute.get("language", "")] = attribute.get("value", "")
        subquestions = read_subquestions(parts.get(qid, []), local, languages)
        element.subquestions += subquestions.values()
        codes = {sub: each.code for sub, each in subquestions.items()}
        element.answers = read_answers(answers.get(qid, []), answer_texts, languages)
        for default in defaults.get(qid, []):
            values = (
                by_language(default_texts[default["dvid"]], "defaultvalue")
                if default.get("dvid") in default_texts
                else {default.get("language", ""): default.get("defaultvalue", "")}
            )
            code = codes.get(default.get("sqid", ""), default.get("specialtype", ""))
            element.defaults.setdefault(code, {}).update(values)
        if element.defaults and element.type in "LO!DNSTUGY5*":
            element.defaults.setdefault("", next(iter(element.defaults.values())))
        elements[row.get("gid", "")].append((number(row, "question_order"), element))
    return {
        gid: [element for _order, element in sorted(rows, key=lambda entry: entry[0])]
        for gid, rows in elements.items()
    }


def read_subquestions(
    rows: list[Row], texts: dict[str, list[Row]], languages: list[str]
) -> dict[str, Subquestion]:
    """Return them by their key, in their order."""
    by_order = sorted(
        grouped(rows, "qid").items(),
        key=lambda entry: number(entry[1][0], "question_order"),
    )
    return {
        qid: Subquestion(
            same[0].get("title", ""),
            ordered(by_language(texts.get(qid) or same, "question"), languages),
            same[0].get("scale_id", "0") or "0",
            same[0].get("relevance", ""),
        )
        for qid, same in by_order
    }


def read_answers(
    rows: list[Row], texts: dict[str, list[Row]], languages: list[str]
) -> list[Answer]:
    answers: dict[tuple[str, str], tuple[int, Answer]] = {}
    for row in rows:
        code, scale = row.get("code", ""), row.get("scale_id", "0") or "0"
        order = number(row, "sortorder")
        _order, answer = answers.setdefault(
            (scale, code), (order, Answer(code, {}, scale))
        )
        local = texts.get(row.get("aid", "")) or [row]
        answer.texts.update(by_language(local, "answer"))
    ranked = sorted(answers.values(), key=lambda entry: entry[0])
    for _order, answer in ranked:
        answer.texts = ordered(answer.texts, languages)
    return [answer for _order, answer in ranked]
