"""Every page and form on a Citus cluster, as the database role of its process."""

from __future__ import annotations

import pytest

from settings.tests.matrix.roles import failed_requests
from settings.tests.matrix.scenario import Scenario
from settings.tests.test_access_matrix import (  # noqa: F401 - fixtures
    disable_logging,
    show_reports_as_html,
)
from survey.tests.database.conftest import nodes, product_on_cluster  # noqa: F401

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("product_on_cluster"),
    pytest.mark.slow,
]


def test_every_page_and_form_is_answered():
    assert failed_requests(Scenario()) == set()
