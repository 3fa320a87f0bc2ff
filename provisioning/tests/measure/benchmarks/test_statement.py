from __future__ import annotations

import os
import re

import pytest
from django.db import connection

from provisioning.commands import Refusal
from provisioning.measure.benchmarks import statement
from provisioning.measure.benchmarks.stack import Application
from survey.management.commands.open_rehearsal import describe
from survey.models import Response
from survey.simulation.load_survey import open_rehearsal


class InTestDatabase(Application):
    """The application of these tests, in their database."""

    def sql(self, statements, **options):
        with connection.cursor() as cursor:
            cursor.execute(statements)
            return cursor.fetchall()


@pytest.fixture
def rehearsal(db):
    """A rehearsal in this database, as open_rehearsal describes it."""
    opened = open_rehearsal(name="rehearsal", respondents=4, pages=3, items=5)
    return describe(opened.administration)


def test_pgbench_runs_the_products_save_statement(rehearsal):
    application = InTestDatabase(environment=os.environ)
    script = statement.save_script(application, rehearsal)
    *settings, text = script.splitlines()
    assert "%s" not in text
    assert "ON CONFLICT (administration_id, respondent_id, item_id)" in text
    assert "FOR SHARE OF r" in text
    if connection.vendor != "postgresql":
        return
    first, last = re.search(r"random\((\d+), (\d+)\)", settings[0]).groups()
    assert int(last) - int(first) == 3
    items = [item["id"] for item in rehearsal["pages"][1]["items"]]
    drawn = {"person": first, "page": 1, "answer": 4, "revision": 7}
    step = int(re.search(r":page \* (\d+)", script)[1])
    drawn["item"] = rehearsal["pages"][0]["items"][0]["id"] + step
    for name, value in drawn.items():
        text = text.replace(f":{name}", str(value))
    with connection.cursor() as cursor:
        cursor.execute(text.rstrip(";"))
        assert cursor.rowcount == 5
    stored = Response.objects.order_by("item_id")
    assert [row.item_id for row in stored] == items
    assert [row.value for row in stored] == ["5", "1", "2", "3", "4"]


def test_irregular_ids_are_refused():
    with pytest.raises(Refusal, match="no regular ids"):
        statement.distance([[1], [7], [20]])


def test_regular_ids_may_have_any_distance():
    assert statement.distance([[3, 4], [10, 11], [17, 18]]) == 7
    assert statement.distance([[3, 4, 5, 6, 7]]) == 5


def test_every_parameter_of_the_statement_has_to_be_known():
    assert statement.fill_in("SELECT %s, %s", ["1", "'a'"]) == "SELECT 1, 'a'"
    with pytest.raises(Refusal, match="has changed its parameters"):
        statement.fill_in("SELECT %s", ["1", "2"])


def test_calculated_answers_become_text():
    filled = statement.fill_in("VALUES (%s)", ["(:answer + 2) % 5 + 1"])
    assert filled == "VALUES (((:answer + 2) % 5 + 1)::text)"
