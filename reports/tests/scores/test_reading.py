"""Reading answers for scores leaves a processor to the page saves."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from reports.results.rollup import roll_up_results
from reports.scores.scoring import score_administration
from reports.tests.scores.conftest import closed, published, simulated, take_part

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.skipif(
        connection.vendor != "postgresql", reason="SQLite has one process"
    ),
]


def test_scores_are_read_by_one_process_and_counts_by_several(staff):
    administration = closed(published(), "fall-2026")
    take_part(administration, staff.lincoln, simulated(60, 1))
    with CaptureQueriesContext(connection) as counting:
        roll_up_results(administration)
    with CaptureQueriesContext(connection) as scoring:
        assert score_administration(administration).people == 60
    one_process = "SET LOCAL max_parallel_workers_per_gather = 0"
    assert one_process not in [query["sql"] for query in counting]
    assert one_process in [query["sql"] for query in scoring]
