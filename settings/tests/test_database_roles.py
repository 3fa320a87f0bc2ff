"""Every page and form, as the database role of its process in the stack."""

from __future__ import annotations

import pytest
from django.db import connection

from settings.tests.matrix.roles import failed_requests
from settings.tests.matrix.scenario import Scenario
from settings.tests.test_access_matrix import (  # noqa: F401 - fixtures
    disable_logging,
    show_reports_as_html,
)
from survey.tests.database.test_partitions import granted, session  # noqa: F401

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(connection.vendor != "postgresql", reason="SQLite has no roles"),
    pytest.mark.usefixtures("granted"),
    pytest.mark.slow,
]


def test_every_page_and_form_is_answered():
    assert failed_requests(Scenario()) == set()


def test_a_right_that_is_missing_would_be_seen():
    with session("groundswell") as owner:
        owner.execute("REVOKE SELECT ON survey_wave FROM console")
    failed = failed_requests(Scenario(), "administration_detail")
    assert failed == {
        "console: GET of administration_detail: permission denied for table survey_wave"
    }
