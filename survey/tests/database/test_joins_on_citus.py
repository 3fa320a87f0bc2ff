"""Joins of two records, which lock several people, on a Citus cluster."""

from __future__ import annotations

import pytest

from survey.tests.merging import test_joins as contract
from survey.tests.merging.conftest import jobs_run_by_hand  # noqa: F401
from survey.tests.merging.test_joins import (  # noqa: F401
    administration,
    join,
    roster,
    twice,
)

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.usefixtures("product_on_cluster"),
]
for name in (
    "test_two_records_become_one_and_rosters_find_it_by_either_id",
    "test_answers_of_both_records_are_not_mixed",
    "test_answers_count_even_if_the_start_was_lost",
    "test_a_start_at_the_same_moment_loses_no_answer",
    "test_without_the_lock_a_join_would_hide_answers",
    "test_a_join_waits_for_a_page_save",
):
    globals()[name] = getattr(contract, name)
