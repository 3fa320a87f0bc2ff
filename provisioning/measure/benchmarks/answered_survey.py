"""Answer a survey with measures by SQL, for measurements of results."""

from __future__ import annotations

from typing import Any

from provisioning.commands import step
from provisioning.measure.benchmarks.stack import Application, sql_file

REPLICA_PORT = "5433"
ITEMS_ON_A_PAGE = 5
CLOSE = (
    "UPDATE survey_administration SET closes_at = now() - interval '2 hours'"
    " WHERE name = 'measured'"
)


def answer_items(
    application: Application, *shape: str, people: int, schools: int
) -> tuple[dict[str, Any], list[str]]:
    """Let people of each school answer all items of a rehearsal; return what it is."""
    with step(f"Inviting {people:,} people in {schools:,} schools"):
        details, codes = application.open_rehearsal(*shape)
        each = people // schools
        application.sql(sql_file("invite_people", schools=schools, each=each))
    keys = [item["id"] for page in details["pages"] for item in page["items"]]
    with step(f"Answering {len(keys)} items"):
        listed = ",".join(map(str, keys))
        application.sql(sql_file("answer_items", items=listed, half=len(keys) // 2))
    return details, codes


def answer_survey(
    application: Application, *, people: int, schools: int, items: int, measures: int
) -> dict[str, Any]:
    """Let people of each school answer all items of the administration 'measured'.

    It is open until `CLOSE`. Returns the description of its rehearsal.
    """
    shape = (f"--pages={items // ITEMS_ON_A_PAGE}", f"--items={ITEMS_ON_A_PAGE}")
    details, _ = answer_items(
        application, "--respondents=1", *shape, people=people, schools=schools
    )
    # Measures are frozen when a survey is published.
    application.sql("ALTER TABLE survey_surveymeasures DISABLE TRIGGER USER")
    application.call(
        "measure.benchmarks.measured_survey.add_measures", size=items // measures
    )
    return details


def measured_ids(application: Application) -> list[str]:
    """Return the keys of a district, of its school and of 'measured'."""
    [ids] = application.sql(
        "SELECT s.district_id, s.id, a.id FROM accounts_school s"
        " CROSS JOIN survey_administration a"
        " WHERE s.code = 's1' AND a.name = 'measured'"
    )
    return ids


def add_earlier_wave(application: Application) -> int:
    """Give 'measured', which has scores and rates, a wave before it; return its key.

    Nobody answers it: pages about schools read the same number of rows as of a wave
    with as many people, and it takes seconds.
    """
    with step("Adding an earlier wave"):
        return int(
            application.call("measure.benchmarks.measured_survey.add_earlier_wave")
        )
