"""Which roles may count the starts of an open code that have an answer."""

from __future__ import annotations

import pytest
from django.db import connection

from survey.tests.conftest import FIRST_PAGE, Browser
from survey.tests.database.test_partitions import (  # noqa: F401 - a fixture
    granted,
    refused,
    session,
)
from survey.tests.open_codes.cast import begin, open_code, open_to_parents

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(connection.vendor != "postgresql", reason="SQLite has no roles"),
]
COUNT = "SELECT survey_answered_starts(%s)"


@pytest.fixture
def code(granted, lincoln):  # noqa: F811
    code = open_code(open_to_parents(), lincoln)
    for answers in (True, False):
        browser = Browser()
        begin(browser, code)
        if answers:
            base = browser.bootstrap()["revision"]
            assert browser.save(1, FIRST_PAGE, base).status_code == 200
    return code


def test_the_console_role_counts_and_reads_no_response(code):
    with session("console") as console:
        console.execute(COUNT, [code.pk])
        assert console.fetchone() == (1,)
        reading = "SELECT respondent_id FROM survey_response"
        assert refused(console, reading) == "InsufficientPrivilege"


@pytest.mark.parametrize("role", ["taking", "worker", "reports"])
def test_no_other_role_may_call_the_function(code, role):
    with session(role) as cursor:
        assert refused(cursor, COUNT, code.pk) == "InsufficientPrivilege"


def test_people_on_rosters_are_counted_nowhere(code):
    with session("console") as console:
        for key in (None, 0, -1, 2**62):
            console.execute(COUNT, [key])
            assert console.fetchone() == (0,)
