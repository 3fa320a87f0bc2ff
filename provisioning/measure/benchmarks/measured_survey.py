"""Give the administration 'measured' measures, and a wave before it."""

from __future__ import annotations

import random
from datetime import timedelta
from typing import Any

from reports.models import (
    Calibration,
    GroupResults,
    ResultsRollUp,
    SchoolRate,
    ScoreRow,
    Scoring,
)
from survey.fieldwork.administrations import get_administration
from survey.models import SurveyMeasures

COPIED: tuple[Any, ...] = (
    ResultsRollUp,
    Scoring,
    Calibration,
    SchoolRate,
    GroupResults,
    ScoreRow,
)


def add_measures(*, size: int) -> None:
    """Make measures of `size` items in the survey's order, the last one reversed."""
    survey = get_administration("measured").published.survey
    items = survey.items.filter(kind="select_one").order_by("position")
    names = list(items.values_list("name", flat=True))
    measures = [
        {
            **{"name": f"m{n}", "essential": f"e{n // 3}", "direction": "positive"},
            **{"label": {}, "description": {}, "missing": []},
            "items": [
                {"name": name, "reversed": place == size - 1}
                for place, name in enumerate(names[n * size :][:size])
            ],
        }
        for n in range(len(names) // size)
    ]
    essentials = [
        {"name": name, "label": {}, "description": {}}
        for name in sorted({f"e{n // 3}" for n in range(len(measures))})
    ]
    content = {"essentials": essentials, "measures": measures}
    SurveyMeasures.objects.create(survey=survey, content=content)


def add_earlier_wave() -> int:
    """Copy what pages show of everyone at each place; move the scores of schools."""
    measured, earlier = (get_administration("measured") for _ in range(2))
    earlier.pk, earlier.name, earlier._state.adding = None, "earlier", True
    earlier.opens_at -= timedelta(days=365)
    earlier.closes_at -= timedelta(days=365)
    earlier.save()
    chance = random.Random(1)  # noqa: S311
    for model in COPIED:
        rows = model.objects.filter(administration=measured)
        if model in (GroupResults, ScoreRow):
            rows = rows.filter(attribute="")
        copies = []
        for row in rows:
            if isinstance(row, Calibration):
                row.anchored_to_id = row.pk
            if isinstance(row, ScoreRow):
                for figures in row.measures.values():
                    if figures[3] is not None:
                        step = round(chance.gauss(0, 8))
                        figures[1] += step / 50
                        figures[3] = min(max(figures[3] + step, 1), 99)
            if model not in (ResultsRollUp, Scoring):
                row.pk = None
            row.administration = earlier
            copies.append(row)
        model.objects.bulk_create(copies, batch_size=1000)
    return int(earlier.pk)
