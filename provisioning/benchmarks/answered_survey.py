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
