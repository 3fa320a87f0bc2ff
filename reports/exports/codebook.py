"""Write the codebook: each column of an export and its values, on one page.

It needs no style sheet, script or picture from elsewhere, so it can be kept
with the data for years, and printed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from operator import attrgetter
from pathlib import Path

from django.conf import settings
from django.template.loader import render_to_string
from django.utils import timezone, translation

from reports.answers.versions import SurveyVersion
from reports.consent_texts import ConsentText, texts_of_versions
from reports.exports.columns import AnswerTally, Variable, value_type
from reports.exports.minimum_group import SAVED_STEPS
from reports.exports.row_builder import ExportPlan, RowBuilder, VersionEncoder
from reports.exports.typed.names import RULE_IN_WORDS
from reports.exports.typed.typed_file import TypedFile
from reports.models.exports import Export, ValueType
from survey.instrument.definitions.comparison import TextChange, compare
from survey.instrument.definitions.schema import (
    CHOICES,
    BlockDefinition,
    MeasureDefinition,
    PageDefinition,
    Texts,
    load_definition,
)

KINDS = {
    "text": "Text",
    "integer": "Whole number",
    "decimal": "Number",
    "range": "Number on a scale",
    "date": "Date (year-month-day)",
    "time": "Time of day",
    "datetime": "Date and time",
    "select_one": "One choice",
    "select_multiple": "Several choices, one column each: 1 chosen, 0 not",
    "acknowledge": "Acknowledged",
    "calculate": "Calculated from other answers",
    "hidden": "Fixed value",
}
RESPONDENT_COLUMNS = {
    "research_id": "Random ID of one person in one administration, a new one in every"
    " export. Somebody who took part in two administrations has two.",
    "panel_id": "Random ID of the person. Rows with the same ID are of one person, in"
    " several administrations. Whoever could be singled out by that has a new one in"
    " each row.",
    "wave": "Name of the wave; blank if the administration is in none.",
    "administration": "Short name of the administration the respondent was invited to.",
    "survey_version": "Version of the survey that was offered when the respondent"
    " started. A correction of texts makes a new version.",
    "district_code": "District code.",
    "district_name": "District.",
    "school_code": "School code.",
    "school_name": "School.",
    "role": "student, teacher or parent.",
    "grade": "Grade, from the roster.",
    "language": "Language, from the roster; with an open code, the language that was"
    " chosen at the start.",
    "response_language": "Language of the survey when the respondent finished; blank if"
    " it was not finished. Earlier pages may have been answered in another language.",
    "started": "Day of the first login.",
    "finished": "Day the survey was finished; blank if it was not.",
    "withdrawn": "Day the respondent was withdrawn; blank if not.",
    "external_id": "The school's ID for the respondent, from the roster.",
    "given_name": "From the roster.",
    "family_name": "From the roster.",
    "email": "From the roster.",
    "birth_date": "From the roster.",
    "class": "From the roster. Only in files with names, because a class is a small"
    " group.",
}
ATTRIBUTE = "A further column of the roster."
# The step with which a column is left out, if it has another name.
STEP_OF_COLUMN = {
    **dict.fromkeys(("district_code", "district_name"), "district"),
    **dict.fromkeys(("school_code", "school_name"), "school"),
    "response_language": "response language",
    **dict.fromkeys(("started", "finished"), "week"),
}
MASKED = (
    "Left out (*) in {share} % of the rows, where too few people would share what the"
    " row shows about them."
)


@dataclass(frozen=True, slots=True)
class CodebookValue:
    """One option; `column` is blank where the options share a column."""

    value: str
    column: str
    labels: Texts
    count: int


@dataclass(frozen=True, slots=True)
class CodebookItem:
    """An item, with all versions in which it is exactly the same."""

    versions: Sequence[str]
    kind: str
    value_type: str
    labels: Texts
    stem: Texts
    page: int
    page_title: str
    values: Sequence[CodebookValue]
    tally: AnswerTally
    # That of the newest version, if the versions differ.
    measure: MeasureDefinition | None
    is_reversed: bool

    def is_same_as(self, codebook_item: CodebookItem) -> bool:
        return (self.kind, self.labels, self.stem) == (
            codebook_item.kind,
            codebook_item.labels,
            codebook_item.stem,
        ) and [(value.value, value.labels) for value in self.values] == [
            (value.value, value.labels) for value in codebook_item.values
        ]

    def merged_with(self, codebook_item: CodebookItem) -> CodebookItem:
        """Return the same item for both versions, with the sums of their counts."""
        return replace(
            self,
            versions=[*self.versions, *codebook_item.versions],
            values=[
                CodebookValue(a.value, a.column, a.labels, a.count + b.count)
                for a, b in zip(self.values, codebook_item.values, strict=True)
            ],
            tally=AnswerTally(
                self.tally.answered + codebook_item.tally.answered,
                self.tally.skipped + codebook_item.tally.skipped,
                self.tally.not_applicable + codebook_item.tally.not_applicable,
                self.tally.not_reached + codebook_item.tally.not_reached,
                self.tally.masked + codebook_item.tally.masked,
            ),
        )


@dataclass(frozen=True, slots=True)
class CodebookEntry:
    """A variable: one item, or several if versions differ."""

    variable: Variable
    items: Sequence[CodebookItem]

    @property
    def differs(self) -> bool:
        return len(self.items) > 1


@dataclass(frozen=True, slots=True)
class CodebookMeasure:
    """A measure, with all versions in which it is exactly the same."""

    versions: list[str]
    definition: MeasureDefinition
    essential: Texts


@dataclass(frozen=True, slots=True)
class CodebookCorrection:
    """Texts that changed during the survey, so that some people saw the old ones."""

    before: str
    after: str
    texts: Sequence[TextChange]


def write(path: Path, *, export: Export, rows: RowBuilder) -> None:
    # In English, like the names of the columns, whatever language the user reads.
    with translation.override(settings.LANGUAGE_CODE):
        page = render_to_string("reports/codebook.html", context(export, rows))
    path.write_text(page)


def languages_of(export: Export, rows: RowBuilder) -> dict[str, str]:
    """Return the names of the languages by code, the one of the export first."""
    names = {
        language["code"]: language["name"]
        for encoder in rows.versions.values()
        for language in encoder.version.definition["languages"]
    }
    codes = sorted(names, key=lambda code: code != export.language)
    return {code: names[code] for code in codes}


def respondent_columns(plan: ExportPlan) -> list[tuple[str, str]]:
    """Return the header and the meaning of each column about the respondent."""
    names = zip(plan.respondent_columns(), plan.plain_respondent_columns(), strict=True)
    notes = masked_columns(plan)
    return [
        (
            header,
            " ".join(
                filter(
                    None, (RESPONDENT_COLUMNS.get(name, ATTRIBUTE), notes.get(header))
                )
            ),
        )
        for header, name in names
    ]


def masked_columns(plan: ExportPlan) -> dict[str, str]:
    """Return a note for each column that is left out for most people, by header."""
    shares = masked_shares(plan)
    notes = {}
    names = zip(plan.respondent_columns(), plan.plain_respondent_columns(), strict=True)
    for header, name in names:
        share = shares[STEP_OF_COLUMN.get(name, name)]
        if name in plan.attributes:
            share = max(share, shares["subgroups"])
        if share > 50:
            notes[header] = MASKED.format(share=int(share))
    return notes


def masked_shares(plan: ExportPlan) -> Counter[str]:
    """Return in what percentage of the rows each step is left out."""
    masked: Counter[str] = Counter()
    for release in plan.releases.values():
        masked.update(dict(release.coarsened()))
    rows = sum(len(release.keys_in_file()) for release in plan.releases.values())
    shares = Counter({step: 100 * count // rows for step, count in masked.items()})
    if plan.panel:
        joint: Counter[str] = Counter()
        for steps, people in plan.panel.summary():
            joint.update(dict.fromkeys(steps, people))
        everyone = plan.panel.people.total()
        shares |= Counter(
            {step: 100 * people // everyone for step, people in joint.items()}
        )
    return shares


def context(export: Export, rows: RowBuilder) -> dict[str, object]:
    plan = rows.plan
    versions = list(rows.versions.values())
    is_long = export.format == Export.Format.LONG
    return {
        "export": export,
        "now": timezone.now(),
        "software": f"Groundswell {settings.VERSION}",
        "rows": rows,
        "title": title_of(plan),
        "languages": languages_of(export, rows),
        "versions": [encoder.version.name for encoder in versions],
        "administrations": sorted(
            plan.administrations.values(), key=attrgetter("name")
        ),
        "respondent_columns": respondent_columns(plan),
        "corrections": list(corrections(plan)),
        "consent_texts": consent_texts(plan),
        "entries": [entry(variable, versions) for variable in plan.columns.variables],
        "measures": measures_in(versions),
        "missing": plan.missing,
        "coded": [
            coded_type.label for coded_type in ValueType if plan.has_codes(coded_type)
        ],
        "blank": [
            blank_type.label
            for blank_type in ValueType
            if not plan.has_codes(blank_type)
        ],
        "releases": list(plan.releases.values()),
        "coarsened": [
            (release.administration, step, people)
            for release in plan.releases.values()
            for step, people in release.coarsened()
            if not is_long or step in SAVED_STEPS
        ],
        "panel": plan.panel,
        "panel_coarsened": list(plan.panel.summary()) if plan.panel else (),
        "joined_people": plan.joined_people,
        "people": plan.people,
        "is_long": is_long,
        "renamed_columns": renamed_columns(rows),
        "name_rule": RULE_IN_WORDS,
    }


def title_of(plan: ExportPlan) -> str:
    """Return the title of the newest version."""
    newest = next(iter(plan.columns.versions.values()))
    return newest.in_language(newest.definition["title"], plan.language)


def renamed_columns(rows: RowBuilder) -> list[tuple[str, str]]:
    """Return columns that the program of the file allows under another name only."""
    writer = rows.writer
    if not isinstance(writer, TypedFile):
        return []
    return [
        (column.about.header, column.name)
        for column in writer.columns
        if column.name != column.about.header
    ]


def measures_in(versions: Sequence[VersionEncoder]) -> list[CodebookMeasure]:
    """Return the measures of all versions, those that differ once for each kind."""
    measures: list[CodebookMeasure] = []
    for encoder in versions:
        content = encoder.version.measures or {"essentials": [], "measures": []}
        essentials = {part["name"]: part["label"] for part in content["essentials"]}
        for definition in content["measures"]:
            same = next(
                (measure for measure in measures if measure.definition == definition),
                None,
            )
            if same is None:
                essential = essentials.get(definition["essential"], {})
                same = CodebookMeasure([], definition, essential)
                measures.append(same)
            same.versions.append(encoder.version.name)
    return measures


def corrections(plan: ExportPlan) -> Iterator[CodebookCorrection]:
    """Return each change of an administration to another version of its survey."""
    changes = dict.fromkeys(
        pair for offered in plan.offered.values() for pair in pairwise(offered.versions)
    )
    for before, after in changes:
        comparison = compare(
            load_definition(before.definition), load_definition(after.definition)
        )
        yield CodebookCorrection(
            before.survey.version, after.survey.version, comparison.texts
        )


def consent_texts(plan: ExportPlan) -> list[tuple[str, ConsentText]]:
    """Return what people acknowledged: item and text, by version and language."""
    versions = dict.fromkeys(
        version for offered in plan.offered.values() for version in offered.versions
    )
    return list(texts_of_versions(versions))


def entry(variable: Variable, versions: Sequence[VersionEncoder]) -> CodebookEntry:
    items: list[CodebookItem] = []
    for encoder in versions:
        if encoder.version.digest not in variable.items:
            continue
        item = describe(variable, encoder)
        if items and items[-1].is_same_as(item):
            items[-1] = items[-1].merged_with(item)
        else:
            items.append(item)
    return CodebookEntry(variable, items)


def describe(variable: Variable, encoder: VersionEncoder) -> CodebookItem:
    """Describe the item of a variable in one version."""
    version = encoder.version
    item = variable.items[version.digest]
    tally = encoder.items[int(item["id"])].tally
    page, block = block_of(version, variable.name)
    # Answers to multiple choices are counted together: split them.
    counts: Counter[str] = Counter()
    for answer, count in tally.values.items():
        for value in answer.split(" ") if variable.multiple else (answer,):
            counts[value] += count
    values = []
    if item["kind"] in CHOICES:
        for option in version.options(item):
            value, column = option["value"], ""
            if variable.multiple:
                column = variable.columns[variable.options.index(value)]
            labels = _by_language(option["label"])
            values.append(CodebookValue(value, column, labels, counts[value]))
    measure, is_reversed = next(
        (
            (measure, part["reversed"])
            for measure in (version.measures["measures"] if version.measures else ())
            for part in measure["items"]
            if part["name"] == variable.name
        ),
        (None, False),
    )
    return CodebookItem(
        versions=[version.name],
        kind=KINDS[item["kind"]],
        value_type=value_type(item["kind"]),
        labels=_by_language(item.get("label", {})),
        stem=_by_language(block["label"] if block["grid"] else {}),
        page=item["page"],
        page_title=version.in_language(page["title"], ""),
        values=values,
        tally=tally,
        measure=measure,
        is_reversed=is_reversed,
    )


def block_of(
    version: SurveyVersion, name: str
) -> tuple[PageDefinition, BlockDefinition]:
    """Return the page and the block of an item."""
    return next(
        (page, block)
        for page in version.definition["pages"]
        for block in page["blocks"]
        if name in block["items"]
    )


def _by_language(texts: Texts | str) -> Texts:
    return {"": texts} if isinstance(texts, str) else texts
