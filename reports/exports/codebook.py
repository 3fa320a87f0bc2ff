"""The codebook: what each column is and what its values mean, on one page.

It stands for itself: no style sheet, script or picture from elsewhere, so that
it can be kept beside the data for years, and printed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.template.loader import render_to_string
from django.utils import timezone

from reports.exports.columns import CHOICES, Tally, Variable, Version
from reports.exports.rows import Edition, Plan, Rows
from reports.models.exports import Export
from survey.definitions.comparison import TextChange, compare
from survey.definitions.schema import PageDefinition, Texts

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
    "calculate": "Worked out from other answers",
    "hidden": "Fixed value",
}
ABOUT = {
    "research_id": "One respondent. The same in the whole file, another one in every"
    " other export.",
    "administration": "To which administration the respondent was invited.",
    "survey_version": "Which version of the survey it offered.",
    "district_code": "District, as the roster names it.",
    "district_name": "District.",
    "school_code": "School, as the roster names it.",
    "school_name": "School.",
    "role": "student, teacher or parent.",
    "grade": "Grade, as in the roster.",
    "language": "Language, as in the roster.",
    "started": "Day of the first login.",
    "finished": "Day on which the survey was finished; blank: it was not.",
    "withdrawn": "Day on which the roster took the respondent back; blank: it did not.",
    "external_id": "Number or name by which the school knows the respondent.",
    "given_name": "From the roster.",
    "family_name": "From the roster.",
    "email": "From the roster.",
    "birth_date": "From the roster.",
}
ATTRIBUTE = "A further column of the roster."


@dataclass(frozen=True, slots=True)
class Value:
    """One option; `columns` where each option has one."""

    value: str
    column: str
    # Language -> label.
    labels: Mapping[str, str]
    count: int


@dataclass(frozen=True, slots=True)
class Asked:
    """One item in the versions in which it is the very same."""

    versions: Sequence[str]
    kind: str
    # Language -> text.
    labels: Mapping[str, str]
    stem: Mapping[str, str]
    page: int
    page_title: str
    values: Sequence[Value]
    tally: Tally


@dataclass(frozen=True, slots=True)
class Entry:
    variable: Variable
    asked: Sequence[Asked]

    @property
    def differs(self) -> bool:
        return len(self.asked) > 1


@dataclass(frozen=True, slots=True)
class Correction:
    """Texts that were mended while the survey ran: some people saw the old ones."""

    before: str
    after: str
    texts: Sequence[TextChange]


def write(path: Path, *, export: Export, rows: Rows) -> None:
    path.write_text(render_to_string("reports/codebook.html", context(export, rows)))


def context(export: Export, rows: Rows) -> dict[str, Any]:
    plan = rows.plan
    editions = list(rows.editions.values())
    title = editions[0].version.in_language(
        editions[0].version.definition["title"], export.language
    )
    return {
        "export": export,
        "now": timezone.now(),
        "rows": rows,
        "title": title,
        "language": export.language,
        "languages": _languages(editions, export.language),
        "editions": editions,
        "administrations": sorted(
            plan.administrations.values(), key=lambda one: one.name
        ),
        "about": list(_about(plan)),
        "corrections": list(_corrections(plan)),
        "entries": [_entry(one, editions, plan) for one in plan.columns.variables],
        "missing": plan.missing,
        "is_long": export.format == Export.Format.LONG,
    }


def _corrections(plan: Plan) -> Iterator[Correction]:
    """Of each version that is offered, back to its first."""
    versions = {
        one.published_id: one.published for one in plan.administrations.values()
    }
    for published in versions.values():
        after = published
        while (before := after.survey.corrects) is not None:
            found = compare(json.loads(before.definition), json.loads(after.definition))
            yield Correction(before.survey.version, after.survey.version, found.texts)
            after = before


def _languages(editions: Sequence[Edition], first: str) -> dict[str, str]:
    """Code -> name, the one that was asked for first."""
    names = {
        one["code"]: one["name"]
        for edition in editions
        for one in edition.version.definition["languages"]
    }
    return {code: names[code] for code in sorted(names, key=lambda one: one != first)}


def _about(plan: Plan) -> Iterator[tuple[str, str]]:
    headers = plan.respondent_columns()
    plain = plan.plain_respondent_columns()
    for header, name in zip(headers, plain, strict=True):
        yield header, ABOUT.get(name, ATTRIBUTE)


def _entry(variable: Variable, editions: Sequence[Edition], plan: Plan) -> Entry:
    found: list[tuple[Any, Asked]] = []
    for edition in editions:
        item = variable.items.get(edition.version.digest)
        if item is None:
            continue
        asked = _asked(variable, edition, edition.readers[int(item["id"])].tally)
        told = (asked.kind, asked.labels, asked.stem, _labels_of(asked))
        if found and found[-1][0] == told:
            found[-1] = (told, _together(found[-1][1], asked))
        else:
            found.append((told, asked))
    return Entry(variable, [asked for _, asked in found])


def _labels_of(asked: Asked) -> list[tuple[str, Mapping[str, str]]]:
    return [(one.value, one.labels) for one in asked.values]


def _asked(variable: Variable, edition: Edition, tally: Tally) -> Asked:
    version = edition.version
    item = variable.items[version.digest]
    page, stem = _standing(version, variable.name)
    return Asked(
        versions=[version.name],
        kind=KINDS[item["kind"]],
        labels=_texts(item.get("label", {})),
        stem=_texts(stem),
        page=item["page"],
        page_title=version.in_language(page["title"], ""),
        values=list(_values(variable, version, tally)),
        tally=tally,
    )


def _values(variable: Variable, version: Version, tally: Tally) -> Iterator[Value]:
    item = variable.items[version.digest]
    if item["kind"] not in CHOICES:
        return
    chosen = _chosen(variable, tally)
    for option in version.options(item):
        value = option["value"]
        column = ""
        if variable.multiple:
            column = variable.columns[variable.options.index(value)]
        yield Value(value, column, _texts(option["label"]), chosen.get(value, 0))


def _chosen(variable: Variable, tally: Tally) -> dict[str, int]:
    if not variable.multiple:
        return dict(tally.values)
    counts: dict[str, int] = {}
    for together, count in tally.values.items():
        for value in together.split(" "):
            counts[value] = counts.get(value, 0) + count
    return counts


def _together(one: Asked, other: Asked) -> Asked:
    """Versions that ask the same: counted together."""
    a, b = one.tally, other.tally
    return Asked(
        versions=[*one.versions, *other.versions],
        kind=one.kind,
        labels=one.labels,
        stem=one.stem,
        page=one.page,
        page_title=one.page_title,
        values=[
            Value(x.value, x.column, x.labels, x.count + y.count)
            for x, y in zip(one.values, other.values, strict=True)
        ],
        tally=Tally(
            a.answered + b.answered,
            a.skipped + b.skipped,
            a.not_applicable + b.not_applicable,
            a.not_reached + b.not_reached,
        ),
    )


def _standing(version: Version, name: str) -> tuple[PageDefinition, Texts]:
    """The item's page, and the stem of its grid."""
    for page in version.definition["pages"]:
        for block in page["blocks"]:
            if name in block["items"]:
                return page, block["label"] if block["grid"] else {}
    raise KeyError(name)


def _texts(texts: Texts | str) -> Texts:
    return {"": texts} if isinstance(texts, str) else texts
