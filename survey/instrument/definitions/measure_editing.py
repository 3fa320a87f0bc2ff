"""Change the measures of a draft in the console, without its workbook.

A measure is checked as a row of a measures sheet, by the reader of workbooks.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import cast

from django.core.exceptions import ValidationError
from django.db import transaction
from django.http import HttpRequest
from django.utils.translation import gettext as _

from accounts import audit
from accounts.models import User
from survey.instrument.definitions.measures import measures_of
from survey.instrument.definitions.publishing import lock_survey
from survey.instrument.definitions.schema import (
    EssentialDefinition,
    LanguageDefinition,
    MeasureDefinition,
    Measures,
)
from survey.instrument.xlsform.columns import SheetColumns, SurveyRow
from survey.instrument.xlsform.draft import ItemDraft, OptionDraft
from survey.instrument.xlsform.measures import (
    ESSENTIAL,
    MEASURE,
    REVERSED,
    MeasureReader,
)
from survey.instrument.xlsform.problems import Findings
from survey.models import Survey, SurveyMeasures

SHEET = "measures"
# Row 1 of a sheet has the headers.
FIRST_ROW = 2


class MeasuresChanged(ValidationError):
    """Somebody else has changed these measures, or published them."""


def may_change_measures(survey: Survey) -> bool:
    """Return whether it is a draft; a correction keeps the measures it corrects."""
    return survey.published_at is None and survey.corrects_id is None


def editable_measures(survey: Survey) -> Measures:
    """Return the measures of a survey, or none. 1 statement."""
    return measures_of(survey) or {"essentials": [], "measures": []}


def digest_of(measures: Measures) -> str:
    return hashlib.sha256(json.dumps(measures).encode()).hexdigest()[:16]


@transaction.atomic
def save_essential(
    *,
    survey: Survey,
    place: int | None,
    essential: EssentialDefinition | None,
    seen: str,
    by: User,
    request: HttpRequest | None = None,
) -> None:
    """Replace the essential at `place`, remove it (None), or add one (no place).

    Its measures follow a new name, or belong to no essential. `seen` is the digest
    of the measures that were edited. Raises MeasuresChanged, and ValidationError
    with messages by column.
    """
    survey, content = _locked(survey, seen)
    essentials, measures = [*content["essentials"]], [*content["measures"]]
    if place is not None:
        old = essentials.pop(place)["name"]
        name = essential["name"] if essential else ""
        measures = [
            {**measure, "essential": name} if measure["essential"] == old else measure
            for measure in measures
        ]
    if essential:
        place = len(essentials) if place is None else place
        essentials.insert(place, essential)
    changed: Measures = {"essentials": essentials, "measures": measures}
    if essential:
        _check(survey, changed, essentials.index(essential))
    _store(survey, changed, by, request)


@transaction.atomic
def save_measure(
    *,
    survey: Survey,
    place: int | None,
    measure: MeasureDefinition | None,
    seen: str,
    by: User,
    request: HttpRequest | None = None,
) -> None:
    """Replace the measure at `place`, remove it (None), or add one (no place).

    Raises MeasuresChanged, and ValidationError with messages by column.
    """
    survey, content = _locked(survey, seen)
    measures = [*content["measures"]]
    if place is not None:
        measures.pop(place)
    if measure:
        place = len(measures) if place is None else place
        measures.insert(place, measure)
    changed: Measures = {"essentials": content["essentials"], "measures": measures}
    if measure:
        _check(survey, changed, len(content["essentials"]) + measures.index(measure))
    _store(survey, changed, by, request)


def _locked(survey: Survey, seen: str) -> tuple[Survey, Measures]:
    survey = lock_survey(survey)
    if not may_change_measures(survey):
        raise MeasuresChanged(
            _("This survey was published meanwhile. Its measures stay as they are.")
        )
    content = editable_measures(survey)
    if digest_of(content) != seen:
        raise MeasuresChanged(
            _(
                "Somebody else has changed the measures meanwhile. Check them,"
                " then make your change again."
            )
        )
    return survey, content


def _store(
    survey: Survey, content: Measures, by: User, request: HttpRequest | None
) -> None:
    content["changed_here"] = True
    SurveyMeasures.objects.update_or_create(
        survey=survey, defaults={"content": content}
    )
    audit.record(
        "change measures of draft",
        by=by,
        request=request,
        subject=survey,
        district=survey.district,
        after={"measures": [measure["name"] for measure in content["measures"]]},
    )


def _check(survey: Survey, content: Measures, changed: int) -> None:
    """Raise what a sheet with these rows would be refused for, at the changed one."""
    rows = sheet_rows(content)
    row = rows.pop(changed)
    if row.get("name") in {earlier.get("name") for earlier in rows}:
        reason = _("another measure or theme has this name already")
        raise ValidationError({"name": [reason]})
    sets = survey.option_sets.prefetch_related("options")
    option_sets = {
        choices.name: [
            OptionDraft(option.value, option.label) for option in choices.options.all()
        ]
        for choices in sets
    }
    items = {
        name: ItemDraft(name, kind, cast(SurveyRow, None), option_set=option_set or "")
        for name, kind, option_set in survey.items.values_list(
            "name", "kind", "option_set__name"
        )
    }
    findings = Findings()
    # Last, so that the reader blames it, and not another measure with its items.
    MeasureReader(items, option_sets, findings).read([*rows, row])
    errors: dict[str, list[str]] = {}
    for problem in findings.problems:
        if problem.row == row.number:
            errors.setdefault(problem.column, []).append(problem.reason)
    if errors:
        raise ValidationError(errors)


def sheet_rows(content: Measures) -> list[SurveyRow]:
    """Return the rows of a measures sheet, the essentials first."""
    values = [
        {"type": ESSENTIAL, "name": essential["name"]}
        for essential in content["essentials"]
    ] + [
        {
            "type": MEASURE,
            "name": measure["name"],
            "essential": measure["essential"],
            "direction": measure["direction"],
            "items": " ".join(
                REVERSED * item["reversed"] + item["name"] for item in measure["items"]
            ),
            "missing": " ".join(measure["missing"]),
        }
        for measure in content["measures"]
    ]
    entries = [*content["essentials"], *content["measures"]]
    return [
        SurveyRow(
            SHEET,
            number,
            SheetColumns(),
            values=cells,
            texts={"label": entry["label"], "description": entry["description"]},
        )
        for number, (cells, entry) in enumerate(
            zip(values, entries, strict=True), FIRST_ROW
        )
    ]


def sheet_cells(
    content: Measures, languages: Sequence[LanguageDefinition]
) -> list[list[str]]:
    """Return a measures sheet with its headers, to be copied into a workbook."""
    names = [(row["code"], f"{row['name']} ({row['code']})") for row in languages]
    plain = ("essential", "direction", "items", "missing")
    texts = ("label", "description")
    headers = [f"{key}::{name}" for key in texts for _code, name in names]
    return [
        ["type", "name", *headers, *plain],
        *(
            [
                row.get("type"),
                row.get("name"),
                *(row.texts[key].get(code, "") for key in texts for code, _n in names),
                *map(row.get, plain),
            ]
            for row in sheet_rows(content)
        ),
    ]
