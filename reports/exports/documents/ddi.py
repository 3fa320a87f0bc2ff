"""Write DDI-Codebook 2.5 as XML: the study, the file, and each column.

https://ddialliance.org/Specification/DDI-Codebook/2.5/: the order of the elements is
that of its schema.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement

from django.conf import settings
from django.utils import timezone, translation

from reports.answers.versions import SurveyVersion
from reports.exports import codebook
from reports.exports.codebook import CodebookItem, block_of
from reports.exports.columns import Variable
from reports.exports.documents.described_file import DescribedFile
from reports.exports.typed.columns import Column, Storage
from survey.instrument.definitions.expressions import references
from survey.instrument.definitions.schema import Expr
from survey.instrument.drafts.conditions import THIS, Subject, group_of
from survey.instrument.drafts.rule_sentences import sentence_of
from survey.instrument.xlsform.writing import as_text

NAMESPACE = "ddi:codebook:2_5"
FILE_ID = "F1"
# XML 1.0 can't hold these, in any encoding.
NOT_IN_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff\ud800-\udfff]")
FILE_TYPES = {
    ".csv": "CSV, UTF-8",
    ".xlsx": "Excel",
    ".sav": "SPSS system file",
    ".zsav": "SPSS system file, compressed by zlib",
    ".dta": "Stata 14 and newer",
    ".parquet": "Apache Parquet",
}
NATURES = {"nominal": "nominal", "ordinal": "ordinal", "scale": "interval"}
NO_WEIGHTS = "The file has no weights: everybody was invited, and nobody was sampled."


def document(file: DescribedFile) -> bytes:
    root = Element("codeBook", {"xmlns": NAMESPACE, "version": "2.5"})
    root.set("xml:lang", file.export.language or "en")
    # In English, as the codebook.
    with translation.override(settings.LANGUAGE_CODE):
        _add_document(root, file)
        _add_study(root, file)
        _add_file(root, file)
        data = SubElement(root, "dataDscr")
        items = _items_by_column(file)
        for number, column in enumerate(file.columns, start=1):
            _add_variable(data, number, column, items.get(column.about.header), file)
    ElementTree.indent(root)
    content: bytes = ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)
    return content


def _add(parent: Element, name: str, text: object, **attributes: str) -> Element:
    element = SubElement(parent, name, attributes)
    element.text = NOT_IN_XML.sub("\ufffd", str(text))
    return element


def _add_document(root: Element, file: DescribedFile) -> None:
    citation = SubElement(SubElement(root, "docDscr"), "citation")
    _add(SubElement(citation, "titlStmt"), "titl", f"Codebook: {file.title}")
    produced = SubElement(citation, "prodStmt")
    today = timezone.localdate().isoformat()
    _add(produced, "prodDate", today, date=today)
    _add(produced, "software", "Groundswell", version=settings.VERSION)


def _add_study(root: Element, file: DescribedFile) -> None:
    export, plan = file.export, file.rows.plan
    study = SubElement(root, "stdyDscr")
    titles = SubElement(SubElement(study, "citation"), "titlStmt")
    _add(titles, "titl", file.title)
    for administration in plan.administrations.values():
        _add(titles, "IDNo", administration.name)
    summary = SubElement(SubElement(study, "stdyInfo"), "sumDscr")
    for administration in plan.administrations.values():
        for event, moment in (
            ("start", administration.opens_at),
            ("end", administration.closes_at),
        ):
            day = timezone.localdate(moment).isoformat()
            _add(summary, "collDate", day, event=event, date=day)
    _add(summary, "anlyUnit", "Answer" if file.is_long else "Person")
    place = export.school or export.district or "All schools of the export"
    _add(summary, "universe", f"{export.people_in_words}. {place}.")
    collection = SubElement(SubElement(study, "method"), "dataColl")
    _add(collection, "collMode", "Self-administered questionnaire, on the web")
    _add(collection, "weight", NO_WEIGHTS)
    for name, consent in file.consent_texts:
        subject = f"{name}, {consent.version} ({consent.digest}), {consent.language}"
        _add(study, "notes", consent.text, type="consent", subject=subject)


def _add_file(root: Element, file: DescribedFile) -> None:
    described = SubElement(root, "fileDscr", ID=FILE_ID)
    text = SubElement(described, "fileTxt")
    _add(text, "fileName", file.name)
    sizes = SubElement(text, "dimensns")
    _add(sizes, "caseQnty", file.rows.rows)
    _add(sizes, "varQnty", len(file.columns))
    _add(text, "fileType", FILE_TYPES[file.export.suffix])
    _add(described, "notes", file.sha256, type="digest", subject="SHA-256")


Described = tuple[Variable, CodebookItem, SurveyVersion]


def _items_by_column(file: DescribedFile) -> Mapping[str, Described]:
    """Return the newest item of each column, with its counts."""
    versions = list(file.rows.versions.values())
    items = {}
    for variable in file.rows.plan.columns.variables:
        item = codebook.entry(variable, versions).items[0]
        newest = next(
            encoder.version
            for encoder in versions
            if encoder.version.digest in variable.items
        )
        for header in variable.columns:
            items[header] = (variable, item, newest)
    return items if not file.is_long else {}


def _add_variable(
    data: Element,
    number: int,
    column: Column,
    described: Described | None,
    file: DescribedFile,
) -> None:
    about = column.about
    is_number = column.storage is Storage.NUMBER
    variable = SubElement(
        data,
        "var",
        ID=f"V{number}",
        name=column.name,
        files=FILE_ID,
        intrvl="contin" if about.level == "scale" else "discrete",
        nature=NATURES[about.level],
    )
    _add(variable, "labl", about.label)
    if described:
        _add_question(variable, described, file.export.language)
    codes = _codes_in_file(column, file)
    if codes:
        invalid = SubElement(variable, "invalrng")
        for code in codes:
            SubElement(invalid, "item", VALUE=code)
    if described:
        _add_routing(variable, described, file.export.language)
    counts = _counts(column, described)
    for value, label in about.values.items():
        _add_category(variable, value, label, counts.get(value))
    for code, label in codes.items():
        _add_category(variable, code, label, None, missing="Y")
    if about.choice:
        _add(variable, "concept", f"Multiple choice {about.choice}")
    format_type = "numeric" if is_number else "character"
    _add(variable, "varFormat", column.storage.value, type=format_type)


def _add_question(variable: Element, described: Described, language: str) -> None:
    of_item, _item, version = described
    _page, block = block_of(version, of_item.name)
    item = of_item.items[version.digest]
    question = SubElement(variable, "qstn")
    stem = version.in_language(block["label"], language) if block["grid"] else ""
    if stem:
        _add(question, "preQTxt", stem)
    _add(question, "qstnLit", version.in_language(item.get("label", {}), language))
    if hint := version.in_language(item.get("hint", {}), language):
        _add(question, "ivuInstr", hint)


def _add_routing(variable: Element, described: Described, language: str) -> None:
    of_item, _item, version = described
    rule = of_item.items[version.digest].get("relevant")
    if rule is not None:
        condition = in_words(rule, of_item.name, version, language)
        _add(variable, "universe", f"Shown only if {condition}.")


def in_words(expr: Expr, of_item: str, version: SurveyVersion, language: str) -> str:
    """Say a rule with the names of the columns that it reads."""
    subjects = {
        THIS if name == of_item else name: Subject(
            name,
            version.items[name]["kind"],
            options=tuple(
                (option["value"], version.in_language(option["label"], language))
                for option in version.options(version.items[name])
            ),
            phrase=name,
        )
        for name in references(expr)
        if name in version.items
    }
    group = group_of(expr, subjects)
    return as_text(expr) if group is None else sentence_of(group, subjects)


def _codes_in_file(column: Column, file: DescribedFile) -> dict[str, str]:
    """Return the reasons for missing answers as they are in this format."""
    about, masked = column.about, str(column.about.masked)
    codes = {str(code): reason for code, reason in about.missing.items()}
    if masked in codes and (column.is_text or not file.export.is_typed):
        codes["*"] = codes.pop(masked)
    return codes


def _counts(column: Column, described: Described | None) -> Mapping[str, int]:
    if described is None:
        return {}
    variable, item, _version = described
    if not variable.multiple:
        return {value.value: value.count for value in item.values}
    chosen = {value.column: value.count for value in item.values}
    header = column.about.header
    if header not in chosen:
        return {}
    return {"1": chosen[header], "0": item.tally.answered - chosen[header]}


def _add_category(
    variable: Element, value: str, label: str, count: int | None, **attributes: str
) -> None:
    category = SubElement(variable, "catgry", attributes)
    _add(category, "catValu", value)
    _add(category, "labl", label)
    if count is not None:
        _add(category, "catStat", count, type="freq")
