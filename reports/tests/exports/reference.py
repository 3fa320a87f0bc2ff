"""A slow reference implementation of the exports, written with the models."""

from __future__ import annotations

import csv
import hmac
import io
import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from django.utils import timezone

from accounts.csv_injection import escape_formula
from reports.models import Export
from reports.releases.frozen_people import released_people
from survey.instrument.definitions.rules import RuleState, state_of
from survey.models import Administration, Respondent, Response

KEY = b"k" * 32
RESPONDENT = "research_id administration survey_version district_code district_name"
RESPONDENT += " school_code school_name role grade language response_language"
MOMENTS = ["started", "finished"]
CODES = {"h": "-97", "s": "-98", None: "-99"}
NUMERIC = ("integer", "decimal", "range", "calculate")


def research_id(respondent: Respondent) -> str:
    return "r" + hmac.digest(KEY, str(respondent.pk).encode(), "sha256")[:10].hex()


def people_of(export: Export) -> list[Respondent]:
    released = [
        key
        for administration in export.administrations.all()
        for key in released_people(administration).ids.tolist()
    ]
    respondents = Respondent.objects.filter(pk__in=released).select_related(
        "school__district", "administration__published"
    )
    return sorted(respondents, key=research_id)


def definition_of(administration: Administration) -> Mapping[str, Any]:
    return parsed(administration.published.definition)


@lru_cache
def parsed(definition: str) -> Mapping[str, Any]:
    return json.loads(definition)


def exported(respondent: Respondent) -> dict[str, tuple[str | None, str | None]]:
    """Return state and value by item name, after all rules of the survey."""
    definition = definition_of(respondent.administration)
    items = definition["items"]
    name_of = {item["id"]: name for name, item in items.items()}
    rows = {
        name_of[row.item_id]: row
        for row in Response.objects.filter(respondent_id=respondent.pk)
    }
    ruled = ruled_by(respondent, definition, rows)
    last = max((items[name]["page"] for name in rows), default=0)
    cells: dict[str, tuple[str | None, str | None]] = {}
    for name, item in items.items():
        row = rows.get(name)
        computed = item["kind"] == "calculate"
        seen = row or respondent.completed_at or item["page"] <= last
        masked = "relevant" in item and "relevant" not in item.get("local", ())
        if (masked or computed) and not ruled.relevant[name]:
            cells[name] = ("h" if seen else None, None)
            continue
        if computed:
            value = ruled.values[name]
            cells[name] = (("a" if value else "s") if seen else None, value)
        else:
            cells[name] = (row.state, row.value) if row else (None, None)
    return cells


def ruled_by(
    respondent: Respondent, definition: Mapping[str, Any], rows: Mapping[str, Response]
) -> RuleState:
    moment = timezone.localtime(respondent.completed_at or respondent.started_at)
    return state_of(
        definition,
        {name: row.value for name, row in rows.items() if row.value},
        today=moment.date().isoformat(),
        now=moment.isoformat(),
        language=respondent.language or "en",
    )


def label_of(
    definition: Mapping[str, Any], item: Any, value: str, language: str
) -> str:
    for option in definition["option_sets"][item["option_set"]]:
        if option["value"] == value:
            return option["label"][language]
    return value


def cell(kind: str, value: str) -> str:
    number = kind in NUMERIC or kind == "select_one" and value.lstrip("-").isdigit()
    return value if number and value else escape_formula(value)


def wide(export: Export, columns: list[tuple[str, str | None]]) -> list[list[str]]:
    """`columns` are names of items, with an option for multiple choices."""
    attributes = sorted(
        {key for person in people_of(export) for key in person.attributes}
    )
    header = [*RESPONDENT.split(), *attributes, *MOMENTS]
    header += [f"{name}_{option}" if option else name for name, option in columns]
    rows = [[escape_formula(name) for name in header]]
    for person in people_of(export):
        definition = definition_of(person.administration)
        answers = exported(person)
        row = [escape_formula(text) for text in about(person, definition)]
        row += [escape_formula(person.attributes.get(key, "")) for key in attributes]
        row += [
            moment and timezone.localtime(moment).date().isoformat() or ""
            for moment in (person.started_at, person.completed_at)
        ]
        for name, option in columns:
            row.append(item_cell(export, definition, answers, name, option))
        rows.append(row)
    return rows


def about(respondent: Respondent, definition: Mapping[str, Any]) -> list[str]:
    return [
        research_id(respondent),
        respondent.administration.name,
        definition["version"],
        respondent.school.district.code,
        respondent.school.district.name,
        respondent.school.code,
        respondent.school.name,
        respondent.administration.role,
        respondent.grade,
        respondent.language,
        respondent.response_language if respondent.completed_at else "",
    ]


def item_cell(export, definition, answers, name: str, option: str | None) -> str:
    item = definition["items"].get(name)
    if item is None:
        return ""
    state, value = answers[name]
    if state != "a":
        return CODES[state]
    if option is not None:
        return "1" if option in value.split(" ") else "0"
    if export.labels and item["kind"] == "select_one":
        return escape_formula(label_of(definition, item, value, export.language))
    return cell(item["kind"], value)


def long(export: Export) -> list[list[str]]:
    rows = [["research_id", "item", "value", "label", "state", "saved"]]
    words = {"a": "answered", "s": "skipped", "h": "not applicable"}
    for person in people_of(export):
        definition = definition_of(person.administration)
        answers = exported(person)
        name_of = {item["id"]: name for name, item in definition["items"].items()}
        stored = Response.objects.filter(respondent_id=person.pk).order_by("item_id")
        for row in stored:
            name = name_of[row.item_id]
            item = definition["items"][name]
            state, value = answers[name]
            labels = []
            if state == "a" and item["kind"].startswith("select"):
                labels = [
                    label_of(definition, item, part, export.language)
                    for part in value.split(" ")
                ]
            day = timezone.localtime(row.saved_at).date().isoformat()
            rows.append(
                [
                    research_id(person),
                    name,
                    cell(item["kind"], value) if state == "a" else "",
                    escape_formula("; ".join(labels)),
                    words[state],
                    day,
                ]
            )
    return rows


def as_csv(rows: list[list[str]], *, bom: bool = False) -> bytes:
    file = io.StringIO()
    csv.writer(file).writerows(rows)
    return file.getvalue().encode("utf-8-sig" if bom else "utf-8")
