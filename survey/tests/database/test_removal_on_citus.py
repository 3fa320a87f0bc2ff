"""Removing an administration, and its partition, from a Citus cluster."""

from __future__ import annotations

import pytest

from survey.tests.administrations import test_remove_administration as contract
from survey.tests.administrations.test_remove_administration import (  # noqa: F401
    code,
    parents,
)

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.usefixtures("product_on_cluster"),
]
for name in (
    "test_it_is_removed_with_all_that_is_about_it_alone",
    "test_an_open_code_of_a_removed_administration_is_unknown",
    "test_it_stays_once_somebody_has_begun_with_an_open_code",
    "test_answers_without_a_start_keep_it",
):
    globals()[name] = getattr(contract, name)
