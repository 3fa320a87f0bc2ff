"""Open codes, and access codes issued anew, on a Citus cluster."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection
from django.utils import timezone

from survey.fieldwork.open_codes.seats import return_unused_seats
from survey.models import OpenCodeSeat, Respondent
from survey.people.access_codes import code_of
from survey.people.new_codes import reissue_all
from survey.taking.login import LoginRefused, log_in_respondent
from survey.tests.conftest import FIRST_PAGE, SECOND_PAGE, Browser
from survey.tests.open_codes import test_races, test_seats, test_starts
from survey.tests.open_codes.cast import begin, open_code
from survey.tests.open_codes.conftest import code, parents  # noqa: F401
from survey.tests.rosters.roster_imports import run_import

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.usefixtures("product_on_cluster"),
]
CONTRACTS = {
    test_starts: (
        "test_a_parent_begins_answers_and_finishes",
        "test_sending_the_form_twice_makes_one_respondent",
        "test_a_form_that_was_used_before_shows_the_page_again",
        "test_a_revoked_code_begins_nothing_at_once",
        "test_a_form_that_is_sent_twice_takes_one_seat",
    ),
    test_seats: (
        "test_a_seat_that_nobody_used_within_a_day_is_free_again",
        "test_a_start_without_a_seat_is_never_returned",
    ),
}
for contract, names in CONTRACTS.items():
    for name in names:
        globals()[name] = getattr(contract, name)
for name in (
    "test_300_starts_on_100_seats_admit_exactly_100",
    "test_a_form_that_is_sent_many_times_at_once_makes_one_respondent",
):
    on_connections = pytest.mark.django_db(transaction=True)
    globals()[name] = on_connections(getattr(test_races, name))


def test_all_codes_of_a_school_are_issued_anew(administration, staff):
    people = [f"riverside,lincoln,{number},Maya,Lopez,7" for number in range(40)]
    header = "district,school,student ID,given name,family name,grade"
    assert run_import(administration, header, *people).imported
    person = Respondent.objects.order_by("pk")[7]
    before = code_of(person)
    assert reissue_all(Respondent.objects.filter(school=staff.lincoln)) == 40
    with pytest.raises(LoginRefused, match="code_wrong"):
        log_in_respondent(before)
    person.refresh_from_db()
    assert log_in_respondent(code_of(person)).respondent_id == person.pk


def test_finishing_keeps_a_start_by_a_clock_that_is_ahead(browser, code):  # noqa: F811
    begin(browser, code)
    ahead = timezone.now() + timedelta(hours=1)
    Respondent.objects.update(started_at=ahead)
    base = browser.bootstrap()["revision"]
    for n, answers in enumerate((FIRST_PAGE, SECOND_PAGE, {"last": None}), start=1):
        assert browser.save(n, answers, base + n).status_code == 200
    review = browser.get("/take/complete/")
    browser.post("/take/complete/", {"reviewed": review.context["reviewed"]})
    person = Respondent.objects.get()
    assert person.completed_at is not None
    assert person.started_at == ahead


def test_starts_without_an_answer_are_deleted_after_the_closing(parents, lincoln):  # noqa: F811
    limited = open_code(parents, lincoln, limit=2)
    answering = Browser()
    begin(answering, limited)
    base = answering.bootstrap()["revision"]
    assert answering.save(1, FIRST_PAGE, base).status_code == 200
    begin(Browser(), limited)
    long_ago = timezone.now() - timedelta(days=8)
    parents.opens_at, parents.closes_at = long_ago - timedelta(days=9), long_ago
    parents.save(update_fields=["opens_at", "closes_at"])
    last = max(Respondent.objects.values_list("pk", flat=True))
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT * FROM survey_delete_empty_starts(%s, now(), 0, 100)", [parents.pk]
        )
        assert cursor.fetchall() == [(1, last)]
    [stays] = Respondent.objects.all()
    assert stays.pk == answering.session["taking"]["respondent_id"]
    assert return_unused_seats() == 0
    assert OpenCodeSeat.objects.get(respondent__isnull=False).respondent == stays
    limited.refresh_from_db()
    assert limited.empty_starts_deleted == 1
