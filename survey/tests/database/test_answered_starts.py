"""Which roles may count the starts of an open code that have an answer."""

from __future__ import annotations

import pytest
from django.db import connection

from survey.fieldwork.open_codes.limits import LEAST_UNUSUAL
from survey.models import Respondent
from survey.tests.conftest import FIRST_PAGE, Browser
from survey.tests.database.test_partitions import (  # noqa: F401 - a fixture
    granted,
    refused,
    session,
)
from survey.tests.open_codes.cast import (
    begin,
    begin_together,
    open_code,
    open_to_parents,
)

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


CROWD = "SELECT survey_answered_in_crowd(%s, %s)"


@pytest.fixture
def period(code) -> int:
    """Return ten minutes of the clock in which 50 people began, 30 with answers."""
    begin_together(code, starts=LEAST_UNUSUAL, answered=30)
    first = Respondent.objects.earliest("started_at").started_at
    return int(first.timestamp()) // 600


def test_the_console_role_counts_a_crowd_and_no_smaller_group(code, period):
    with session("console") as console:
        for at, number in ((period - 1, None), (period, 30), (period + 1, None)):
            console.execute(CROWD, [code.pk, at])
            assert console.fetchone() == (number,)
    # With 49 people, it would say more about each of them.
    Respondent.objects.order_by("started_at").first().delete()
    with session("console") as console:
        console.execute(CROWD, [code.pk, period])
        assert console.fetchone() == (None,)


@pytest.mark.parametrize("role", ["taking", "worker", "reports"])
def test_no_other_role_may_count_a_crowd(code, role):
    with session(role) as cursor:
        assert refused(cursor, CROWD, code.pk, 0) == "InsufficientPrivilege"


def test_people_on_rosters_are_counted_nowhere(code):
    with session("console") as console:
        for key in (None, 0, -1, 2**62):
            console.execute(COUNT, [key])
            assert console.fetchone() == (0,)
