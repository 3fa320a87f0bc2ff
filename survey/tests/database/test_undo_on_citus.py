"""Undoing a roster, which locks many people, on a Citus cluster."""

from __future__ import annotations

import pytest

from survey.tests.rosters import test_undo as contract
from survey.tests.rosters.conftest import console_of  # noqa: F401
from survey.tests.rosters.test_undo import (  # noqa: F401
    back,
    completion_is_visible,
    dana,
    withdrawn,
)

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.usefixtures("product_on_cluster"),
]
for name in (
    "test_undoing_restores_everybody",
    "test_people_who_came_back_are_withdrawn_again",
    "test_whoever_starts_while_it_is_undone_stays",
    "test_without_the_second_check_an_answer_would_lose_its_person",
    "test_a_start_at_the_same_moment_loses_no_answer",
    "test_a_start_at_the_same_moment_loses_no_answer_of_somebody_who_came_back",
):
    globals()[name] = getattr(contract, name)
