"""Answer a survey with measures by SQL, for measurements of results."""

from __future__ import annotations

from typing import Any

from provisioning.benchmarks.stack import Application, sql_file
from provisioning.commands import step

REPLICA_PORT = "5433"
ITEMS_ON_A_PAGE = 5
# Takes the items of a measure in the order of the survey, and reverses the last.
ADD_MEASURES = """
import sys
import django; django.setup()
from survey.administrations import get_administration
from survey.models import SurveyMeasures
survey = get_administration("measured").published.survey
names = list(survey.items.filter(kind="select_one").order_by("position")
             .values_list("name", flat=True))
size = int(sys.argv[1])
measures = [
    {"name": f"m{n}", "label": {}, "description": {}, "essential": f"e{n // 3}",
     "direction": "positive", "missing": [],
     "items": [{"name": name, "reversed": name == names[n * size + size - 1]}
               for name in names[n * size:][:size]]}
    for n in range(len(names) // size)
]
essentials = [{"name": name, "label": {}, "description": {}}
              for name in sorted({measure["essential"] for measure in measures})]
content = {"essentials": essentials, "measures": measures}
SurveyMeasures.objects.create(survey=survey, content=content)
"""
# Copies what pages show of everyone at each place, and moves the scores of schools.
ADD_EARLIER_WAVE = """
import random
from datetime import timedelta
import django; django.setup()
from reports.models import (
    Calibration, GroupResults, ResultsRollUp, SchoolRate, ScoreRow, Scoring)
from survey.administrations import get_administration
measured = get_administration("measured")
earlier = get_administration("measured")
earlier.pk, earlier.name, earlier._state.adding = None, "earlier", True
earlier.opens_at -= timedelta(days=365)
earlier.closes_at -= timedelta(days=365)
earlier.save()
random.seed(1)
for model in (ResultsRollUp, Scoring, Calibration, SchoolRate, GroupResults, ScoreRow):
    rows = model.objects.filter(administration=measured)
    if model in (GroupResults, ScoreRow):
        rows = rows.filter(attribute="")
    copies = []
    for row in rows:
        if model is Calibration:
            row.anchored_to_id = row.pk
        if model is ScoreRow:
            for figures in row.measures.values():
                if figures[3] is not None:
                    moved = figures[3] + round(random.gauss(0, 8))
                    figures[3] = min(max(moved, 1), 99)
        if model not in (ResultsRollUp, Scoring):
            row.pk = None
        row.administration = earlier
        copies.append(row)
    model.objects.bulk_create(copies, batch_size=1000)
print(earlier.pk)
"""
CLOSE = (
    "UPDATE survey_administration SET closes_at = now() - interval '2 hours'"
    " WHERE name = 'measured'"
)


def answer_survey(
    application: Application, *, people: int, schools: int, items: int, measures: int
) -> dict[str, Any]:
    """Let people of each school answer all items of the administration 'measured'.

    It is open until `CLOSE`. Returns the description of its rehearsal.
    """
    with step(f"Inviting {people:,} people in {schools:,} schools"):
        pages = items // ITEMS_ON_A_PAGE
        details, _ = application.open_rehearsal(
            "--respondents=1", f"--pages={pages}", f"--items={ITEMS_ON_A_PAGE}"
        )
        each = people // schools
        application.sql(sql_file("invite_people", schools=schools, each=each))
    with step(f"Answering {items} items"):
        keys = [item["id"] for page in details["pages"] for item in page["items"]]
        listed = ",".join(map(str, keys))
        application.sql(sql_file("answer_items", items=listed, half=items // 2))
    # Measures are frozen when a survey is published.
    application.sql("ALTER TABLE survey_surveymeasures DISABLE TRIGGER USER")
    application.run_python(
        *("-c", ADD_MEASURES, str(items // measures)),
        failing="The measures were not added",
    )
    return details


def add_earlier_wave(application: Application) -> int:
    """Give 'measured', which has scores and rates, a wave before it; return its key.

    Nobody answers it: pages about schools read the same number of rows as of a wave
    with as many people, and it takes seconds.
    """
    with step("Adding an earlier wave"):
        return int(
            application.run_python(
                "-c", ADD_EARLIER_WAVE, failing="The earlier wave was not added"
            )
        )
