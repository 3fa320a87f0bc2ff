"""Answer a survey with measures by SQL, for measurements of results."""

from __future__ import annotations

from typing import Any

from provisioning.benchmarks.stack import Application, sql_file
from provisioning.commands import step

REPLICA_PORT = "5433"
ITEMS_ON_A_PAGE = 5
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
    application.call("benchmarks.measured_survey.add_measures", size=items // measures)
    return details


def add_earlier_wave(application: Application) -> int:
    """Give 'measured', which has scores and rates, a wave before it; return its key.

    Nobody answers it: pages about schools read the same number of rows as of a wave
    with as many people, and it takes seconds.
    """
    with step("Adding an earlier wave"):
        return int(application.call("benchmarks.measured_survey.add_earlier_wave"))
