"""A survey with measures, and people who answer it as the Rasch model says."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

import numpy as np
import pytest
from django.utils import timezone

from accounts.models import District, School
from accounts.tests.conftest import Staff, create_staff
from reports.tests.rasch.simulated import simulate
from survey.fieldwork.administrations import open_administration
from survey.instrument.definitions.publishing import publish_survey
from survey.instrument.xlsform import import_survey, read_xlsform
from survey.models import (
    Administration,
    Job,
    PublishedSurvey,
    Respondent,
    Response,
    Role,
    Survey,
)
from survey.tests.conftest import empty_caches  # noqa: F401
from survey.tests.database_flush import quick_flush  # noqa: F401
from survey.tests.workbooks import workbook
from survey.work import jobs

CHOICES = [
    ["list_name", "name", "label"],
    *(["agree", value, f"Level {value}"] for value in range(1, 5)),
    ["agree", "dk", "I don't know"],
]
MEASURES = [
    ["type", "name", "label", "essential", "direction", "items", "missing"],
    ["essential", "safe", "Safe school", "", "", "", ""],
    ["measure", "trust", "Trust", "safe", "", "q1 q2 -q3 q4", "dk"],
    ["measure", "noise", "Noise", "safe", "negative", "q5 q6 q7", "dk"],
]
ITEMS = [f"q{n}" for n in range(1, 8)]
TRUST = {
    "q1": [-1.5, -0.3, 0.9],
    "q2": [-0.8, 0.2, 1.0],
    "q3": [-1.1, 0.3, 1.3],
    "q4": [-0.9, -0.1, 1.0],
}
_numbers = count(1)


@pytest.fixture(scope="module")
def shared_staff(module_data: None) -> Staff:
    return create_staff()


@pytest.fixture
def staff(shared_staff: Staff) -> Staff:
    return deepcopy(shared_staff)


@pytest.fixture(scope="module")
def survey(module_data: None) -> PublishedSurvey:
    return published()


def published(
    *,
    items: Sequence[str] = ITEMS,
    measures: list[list[str]] | None = None,
    version: str = "1",
    relevant: dict[str, str] | None = None,
) -> PublishedSurvey:
    """Publish a survey with one page for each half of the items."""
    rows: list[list[Any]] = [["type", "name", "label", "relevant", "appearance"]]
    for page in (items[:4], items[4:]):
        rows.append(["begin group", f"page_{page[0]}", "", "", "field-list"])
        rows += [
            ["select_one agree", name, name, (relevant or {}).get(name, ""), ""]
            for name in page
        ]
        rows.append(["end group", "", "", "", ""])
    sheets = {
        "survey": rows,
        "choices": CHOICES,
        "settings": [["form_title", "form_id", "version"], ["S", "climate", version]],
    }
    measures = MEASURES if measures is None else measures
    if measures:
        sheets["measures"] = measures
    content = workbook(sheets)
    reading = read_xlsform(content)
    assert reading.draft, [str(problem) for problem in reading.problems]
    survey: Survey = import_survey(draft=reading.draft, source=content, district=None)
    return publish_survey(survey=survey)


def closed(
    survey: PublishedSurvey,
    name: str = "fall",
    *,
    district: District | None = None,
    **fields: Any,
) -> Administration:
    """Create an administration that has closed an hour ago."""
    now = timezone.now()
    administration = open_administration(
        name=name,
        published=survey,
        role=fields.pop("role", Role.STUDENT),
        district=district,
        opens_at=now - timedelta(days=3),
        closes_at=now + timedelta(days=3),
        subgroups={"sex": ()},
        **fields,
    )
    administration.closes_at = now - timedelta(hours=1)
    administration.save(update_fields=["closes_at"])
    return administration


def take_part(
    administration: Administration,
    school: School,
    answers: Sequence[Sequence[str | None]],
    items: Sequence[str] = ITEMS,
    **fields: Any,
) -> list[Respondent]:
    """Enrol a person for each row of values; None is skipped, "" not reached.

    They have finished.
    """
    at = datetime(2027, 3, 1, 14, tzinfo=UTC)
    fields.setdefault("completed_at", at)
    people = Respondent.objects.bulk_create(
        Respondent(
            administration=administration,
            school=school,
            code_digest=f"scored {next(_numbers)}".encode(),
            code_key_version=1,
            started_at=at,
            **fields,
        )
        for _ in answers
    )
    survey = administration.published.survey
    keys = dict(survey.items.values_list("name", "pk"))
    Response.objects.bulk_create(
        Response(
            administration_id=administration.pk,
            respondent_id=person.pk,
            item_id=keys[item],
            state="s" if value is None else "a",
            value=value,
            revision=1,
            saved_at=at,
        )
        for person, row in zip(people, answers, strict=True)
        for item, value in zip(items, row, strict=True)
        if value != ""
    )
    return people


def simulated(
    people: int,
    seed: int,
    *,
    shift: float = 0.0,
    skipped: float = 0.1,
    moved: dict[str, float] | None = None,
) -> list[list[str | None]]:
    """Return values of people whose measures are `shift` higher."""
    moved = moved or {}
    steps = [
        [step - shift + moved.get(name, 0) for step in item_steps]
        for name, item_steps in TRUST.items()
    ]
    noise = [[-1.0, 0.1, 1.0], [-0.6, 0.0, 0.7], [-1.2, 0.2, 1.4]]
    answers = np.hstack(
        [
            simulate(steps, people=people, seed=seed),
            simulate(noise, people=people, seed=seed + 1000),
        ]
    )
    # Item q3 is reversed.
    answers[:, 2] = 3 - answers[:, 2]
    random = np.random.default_rng(seed).random(answers.shape)
    values = (answers + 1).astype(str).tolist()
    return [
        [
            None if chance < skipped / 2 else "dk" if chance < skipped else value
            for value, chance in zip(row, chances, strict=True)
        ]
        for row, chances in zip(values, random.tolist(), strict=True)
    ]


def run_jobs():
    while job := Job.objects.filter(state=Job.State.WAITING).order_by("pk").first():
        jobs.run(job.pk)
