from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest
from django.db import connection

from provisioning.benchmarks import statement
from provisioning.commands import ROOT, Refusal
from survey.models import Response
from survey.simulation.load_survey import open_rehearsal
from survey.taking.published import build_published


@pytest.fixture
def pages(db):
    """Ids of a rehearsal in this database, as the benchmark reads them."""
    opened = open_rehearsal(name="rehearsal", respondents=4, pages=3, items=5)
    published = build_published(
        "", json.loads(opened.administration.published.definition)
    )
    ids = opened.administration.respondents.values_list("pk", flat=True)
    return statement.SavedPages(
        administration=opened.administration.pk,
        first_respondent=min(ids),
        last_respondent=max(ids),
        first_items=[next(iter(page.values()))["id"] for page in published.answerable],
        items=5,
    )


def test_pgbench_runs_the_products_save_statement(pages):
    script = statement.save_script(Path(sys.executable), ROOT, pages)
    *settings, text = script.splitlines()
    assert "%s" not in text
    assert "ON CONFLICT (administration_id, respondent_id, item_id)" in text
    assert "FOR SHARE OF r" in text
    if connection.vendor != "postgresql":
        return
    drawn = {"person": pages.first_respondent, "page": 1, "answer": 4, "revision": 7}
    step = int(re.search(r":page \* (\d+)", script)[1])
    drawn["item"] = pages.first_items[0] + step
    for name, value in drawn.items():
        text = text.replace(f":{name}", str(value))
    with connection.cursor() as cursor:
        cursor.execute(text.rstrip(";"))
        assert cursor.rowcount == 5
    stored = Response.objects.order_by("item_id")
    assert [row.item_id for row in stored] == list(
        range(pages.first_items[1], pages.first_items[1] + 5)
    )
    assert [row.value for row in stored] == ["5", "1", "2", "3", "4"]


def test_irregular_ids_are_refused():
    scattered = statement.SavedPages(1, 1, 2, first_items=(1, 7, 20), items=5)
    with pytest.raises(Refusal, match="no regular ids"):
        statement.distance(scattered)


def test_regular_ids_may_have_any_distance():
    pages = statement.SavedPages(1, 1, 2, first_items=(3, 10, 17), items=5)
    assert statement.distance(pages) == 7
    only_page = statement.SavedPages(1, 1, 2, first_items=(3,), items=5)
    assert statement.distance(only_page) == 5


def test_every_parameter_of_the_statement_has_to_be_known():
    assert statement.fill_in("SELECT %s, %s", ["1", "'a'"]) == "SELECT 1, 'a'"
    with pytest.raises(Refusal, match="has changed its parameters"):
        statement.fill_in("SELECT %s", ["1", "2"])


def test_calculated_answers_become_text():
    filled = statement.fill_in("VALUES (%s)", ["(:answer + 2) % 5 + 1"])
    assert filled == "VALUES (((:answer + 2) % 5 + 1)::text)"


def test_the_percentile_is_read_from_pgbenchs_logs(tmp_path):
    assert statement.p95_of_logs(tmp_path) is None
    lines = [f"0 {n} {n * 1000} 0 1700000000 0" for n in range(1, 101)]
    for name, part in (("pgbench.1", lines[:50]), ("pgbench.1.1", lines[50:])):
        (tmp_path / name).write_text("\n".join(part) + "\n")
    assert statement.p95_of_logs(tmp_path) == pytest.approx(95.95)
    assert list(tmp_path.iterdir()) == []
