"""The console's pages of open codes: create, watch, show, replace and revoke."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.conf import settings
from django.core.cache import cache
from django.utils import timezone

from accounts.models import AuditEntry
from accounts.tests.logging_in import log_in
from survey.fieldwork.open_codes import codes as open_codes
from survey.fieldwork.open_codes.codes import code_of, revoke_open_code
from survey.fieldwork.open_codes.figures import SMALLEST_GROUP, crowded_periods
from survey.fieldwork.open_codes.lookup import forget_open_codes
from survey.models import (
    Administration,
    DeviceLogin,
    OpenCode,
    OpenCodeSeat,
    Respondent,
    SchoolCount,
)
from survey.people.access_codes import format_code
from survey.tests.conftest import FIRST_PAGE, Browser
from survey.tests.open_codes.cast import (
    begin,
    begin_together,
    open_code,
    open_to_parents,
)

pytestmark = pytest.mark.django_db


@pytest.fixture
def parents(staff) -> Administration:
    return open_to_parents()


@pytest.fixture
def code(parents, staff) -> OpenCode:
    return open_code(parents, staff.lincoln)


def url(administration, action=""):
    return f"/console/administrations/{administration.pk}/open-codes/{action}"


def url_of(code, action=""):
    return url(code.administration, f"{code.pk}/{action}")


def text_of(response) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", response.content.decode()))


def create(client, administration, school=None, **fields):
    where = f"?school={school.pk}" if school else ""
    return client.post(url(administration, f"new/{where}"), {"label": "", **fields})


def errors_of(response) -> str:
    assert response.status_code == 200
    errors = response.context["form"].errors
    return " ".join(message for of_field in errors.values() for message in of_field)


def fill(code, *, starts: int, answered: int = 0) -> list[Browser]:
    browsers = [Browser() for _ in range(starts)]
    for number, browser in enumerate(browsers):
        assert begin(browser, code).status_code == 302
        if number < answered:
            base = browser.bootstrap()["revision"]
            assert browser.save(1, FIRST_PAGE, base).status_code == 200
    return browsers


@pytest.mark.sqlite
def test_a_coordinator_creates_a_limited_code_and_watches_it_fill(
    client, staff, parents
):
    log_in(client, staff.chen)
    page = client.get(f"/console/administrations/{parents.pk}/")
    assert url(parents) in page.content.decode()
    response = create(
        client, parents, label="Newsletter", limit="2", hourly_limit="1500"
    )
    assert response.status_code == 302, errors_of(response)
    code = OpenCode.objects.get()
    assert response.url == url_of(code)
    assert (code.school, code.label, code.limit) == (staff.lincoln, "Newsletter", 2)
    page = text_of(client.get(url_of(code)))
    letters = format_code(code_of(code))
    assert letters in page and f"{settings.PUBLIC_ADDRESS}/open/#{letters}" in page
    # Hidden once the page is left.
    page = text_of(client.get(url_of(code)))
    assert letters not in page
    assert "Starts per hour 1,500 at most First" in page

    fill(code, starts=2)
    late = Browser()
    assert begin(late, code).status_code == 422
    shown = text_of(client.get(url_of(code), headers={"HX-Request": "true"}))
    assert "Starts 2" in shown and "Places left 0 of 2" in shown
    assert "All places are taken" in shown
    listed = text_of(client.get(url(parents)))
    assert "Newsletter" in listed and "0 of 2" in listed and "full" in listed


def test_showing_a_code_is_logged_without_the_code(client, staff, code):
    log_in(client, staff.chen)
    page = client.post(url_of(code, "show/"), follow=True)
    letters = format_code(code_of(code))
    assert letters in text_of(page)
    entry = AuditEntry.objects.get(action="show open code")
    assert (entry.by, entry.school_id) == (staff.chen.email, staff.lincoln.pk)
    assert letters not in str(entry.after) and code_of(code) not in str(entry.after)
    # Another code's page does not show it.
    foreign = open_code(code.administration, staff.lincoln)
    client.post(url_of(code, "show/"))
    assert letters not in text_of(client.get(url_of(foreign)))


def test_a_code_is_replaced_after_a_page_that_says_what_happens(client, staff, code):
    log_in(client, staff.chen)
    first = code_of(code)
    fill(code, starts=1)
    page = client.get(url_of(code, "replace/"))
    assert "1 person has begun" in text_of(page)
    assert OpenCode.objects.get().issue == 1
    response = client.post(url_of(code, "replace/"), {"seen": "1"}, follow=True)
    code.refresh_from_db()
    assert code.issue == 2 and format_code(code_of(code)) in text_of(response)
    # Some seconds later.
    forget_open_codes()
    cache.clear()
    assert Browser().post("/open/", {"code": first}).status_code == 422
    # The same form again: the new posters may be printed.
    response = client.post(url_of(code, "replace/"), {"seen": "1"}, follow=True)
    assert "already replaced" in text_of(response)
    assert OpenCode.objects.get().issue == 2


def test_a_code_is_revoked_after_a_page_that_says_what_happens(client, staff, code):
    log_in(client, staff.chen)
    assert "can go on and finish" in text_of(client.get(url_of(code, "revoke/")))
    assert OpenCode.objects.get().revoked_at is None
    client.post(url_of(code, "revoke/"))
    assert OpenCode.objects.get().revoked_at is not None
    assert AuditEntry.objects.filter(action="revoke open code").count() == 1
    for action in ("show/", "replace/"):
        response = client.post(url_of(code, action), {"seen": "1"}, follow=True)
        assert "revoked" in text_of(response)
        assert format_code(code_of(code)) not in text_of(response)


def test_a_coordinator_publishes_a_code_and_removes_it_again(client, staff, code):
    log_in(client, staff.chen)
    page = client.post(url_of(code, "publish/"), {"published": "yes"}, follow=True)
    assert OpenCode.objects.get().published
    assert "Remove link" in text_of(page)
    page = client.post(url_of(code, "publish/"), {"published": "no"}, follow=True)
    assert not OpenCode.objects.get().published
    assert "Publish link" in text_of(page)
    revoke_open_code(code=code, by="a test")
    page = client.post(url_of(code, "publish/"), {"published": "yes"}, follow=True)
    assert "This code was revoked" in text_of(page)


def test_a_coordinator_sees_no_code_of_another_school(client, staff, parents, code):
    foreign = open_code(parents, staff.washington, label="Hidden")
    elsewhere = open_to_parents(name="other", published=parents.published)
    log_in(client, staff.chen)
    assert "Hidden" not in text_of(client.get(url(parents)))
    for action in ("", "show/", "publish/", "revoke/", "replace/"):
        method = client.post if action else client.get
        assert method(url_of(foreign, action)).status_code == 404
        # A code under another administration's address.
        wrong = url(elsewhere, f"{code.pk}/{action}")
        assert method(wrong).status_code == 404
    for school in (staff.washington.pk, staff.roosevelt.pk, "x", "9" * 40, "-1"):
        response = client.post(url(parents, f"new/?school={school}"), {"label": "x"})
        assert response.status_code == 404
    assert OpenCode.objects.count() == 2
    assert OpenCode.objects.filter(revoked_at=None, issue=1).count() == 2
    log_in(client, staff.analyst)
    assert client.get(url(parents)).status_code == 404


def test_a_district_chooses_one_of_its_schools(client, staff, parents):
    log_in(client, staff.dana)
    page = text_of(client.get(url(parents, "new/")))
    assert "Lincoln" in page and "Roosevelt" not in page
    assert create(client, parents).status_code == 200
    assert create(client, parents, staff.washington).status_code == 302
    assert OpenCode.objects.get().school == staff.washington


def test_a_code_that_makes_no_sense_is_refused_with_a_message(client, staff, parents):
    cases = [
        ({"limit": "0"}, "from 1 to 10,000"),
        ({"limit": "-1"}, "from 1 to 10,000"),
        ({"limit": "1000000000"}, "from 1 to 10,000"),
        ({"limit": "9" * 40}, "from 1 to 10,000"),
        ({"limit": "NaN"}, "from 1 to 10,000"),
        ({"hourly_limit": "0"}, "from 1 to 100,000"),
        ({"hourly_limit": "100001"}, "from 1 to 100,000"),
        ({"label": "a\x07b"}, "invisible characters"),
        ({"label": "a\x00b"}, "Null characters"),
        ({"label": "a\u202eb"}, "invisible characters"),
        ({"label": "x" * 101}, "at most 100 characters"),
        ({"language": "xx"}, "one of the survey's languages"),
        ({"opens_at": "yesterday"}, "Enter a date"),
        ({"opens_at": "9999-12-31T23:59"}, "The survey round is open from"),
        ({"closes_at": "0001-01-01T00:00"}, ""),
        ({"opens_at": -10}, "The survey round is open from"),
        ({"closes_at": -10}, "The survey round is open from"),
        ({"closes_at": 90}, "The survey round is open from"),
        ({"opens_at": 5, "closes_at": 4}, "It has to end after it begins"),
        ({"opens_at": 5, "closes_at": 5}, "It has to end after it begins"),
    ]
    log_in(client, staff.chen)
    now = timezone.localtime()
    for fields, message in cases:
        days = {
            name: f"{now + timedelta(days=value):%Y-%m-%dT%H:%M}"
            for name, value in fields.items()
            if isinstance(value, int)
        }
        assert message in errors_of(create(client, parents, **fields | days)), fields
    assert not OpenCode.objects.exists() and not OpenCodeSeat.objects.exists()


def test_a_window_to_the_minute_of_the_administration_is_within(client, staff, parents):
    Administration.objects.update(
        opens_at=timezone.now().replace(second=30) - timedelta(days=1)
    )
    parents.refresh_from_db()
    log_in(client, staff.chen)
    opens_at = f"{timezone.localtime(parents.opens_at):%Y-%m-%dT%H:%M}"
    assert create(client, parents, opens_at=opens_at).status_code == 302


def test_an_administration_by_roster_offers_no_codes(client, staff, administration):
    log_in(client, staff.chen)
    page = client.get(f"/console/administrations/{administration.pk}/")
    assert url(administration) not in page.content.decode()
    assert "people on a roster" in text_of(client.get(url(administration)))
    assert "people on a roster" in errors_of(create(client, administration))
    assert not OpenCode.objects.exists()


def test_a_school_has_not_more_codes_than_can_be_told_apart(
    client, staff, parents, code, monkeypatch
):
    monkeypatch.setattr(open_codes, "MOST_CODES", 1)
    log_in(client, staff.chen)
    assert "Revoke one" in errors_of(create(client, parents))
    revoke_open_code(code=code, by="a test")
    assert create(client, parents).status_code == 302


@pytest.mark.sqlite
def test_small_numbers_are_hidden_from_coordinators(client, staff, parents, code):
    few = open_code(parents, staff.lincoln, label="Few")
    fill(code, starts=SMALLEST_GROUP, answered=SMALLEST_GROUP)
    log_in(client, staff.chen)
    shown = text_of(client.get(url_of(code)))
    assert "With answers 10" in shown and "Finished 0" in shown
    fill(few, starts=1, answered=1)
    # The rest of the school's number would tell what the one person did.
    for counted in (code, few):
        shown = text_of(client.get(url_of(counted)))
        assert "With answers *" in shown and "Finished *" in shown
    listed = text_of(client.get(url(parents)))
    assert listed.count("* *") == 2 and "Empty" not in listed
    log_in(client, staff.dana)
    shown = text_of(client.get(url_of(few)))
    assert "With answers 1" in shown and "Empty starts 0 %" in shown
    Administration.objects.update(coordinators_see_finished=True)
    log_in(client, staff.chen)
    assert "With answers 1" in text_of(client.get(url_of(few)))


@pytest.mark.sqlite
def test_administrators_see_empty_starts_and_bursts(client, staff, code):
    fill(code, starts=3, answered=1)
    log_in(client, staff.dana)
    shown = text_of(client.get(url_of(code)))
    assert "Empty starts 67 %" in shown and "Devices with bursts 0" in shown
    tablet = Browser()
    for _ in range(5):
        assert begin(tablet, code).status_code == 302
    assert "Devices with bursts 0" in text_of(client.get(url_of(code)))
    assert begin(tablet, code).status_code == 302
    assert "Devices with bursts 1" in text_of(client.get(url_of(code)))
    log_in(client, staff.chen)
    shown = text_of(client.get(url_of(code)))
    assert "bursts" not in shown and "Empty starts" not in shown


@pytest.mark.sqlite
def test_administrators_see_unusually_many_starts_at_once(client, staff, parents, code):
    quiet = open_code(parents, staff.washington)
    SchoolCount.objects.create(
        administration=parents, school=staff.lincoln, count=240, by="a test"
    )
    begin_together(code, starts=59, answered=59, finished=58)
    begin_together(quiet, starts=100, finished=100)
    log_in(client, staff.dana)
    assert "59 in ten minutes" not in text_of(client.get(url(parents)))
    assert "began within ten minutes" not in text_of(client.get(url_of(code)))
    # A quarter of 240 students.
    begin_together(code, starts=1, finished=0)
    shown = text_of(client.get(url_of(code)))
    assert "60 people began within ten minutes, from" in shown
    assert "59 of them have answers, and 58 finished." in shown
    assert "For this school, 60 or more are unusual" in shown
    listed = text_of(client.get(url(parents)))
    assert "60 in ten minutes, 59 with answers" in listed
    only = text_of(client.get(url(parents) + "?state=unusual"))
    assert "Lincoln" in only and "Washington" not in only
    # In classes, all can begin at once.
    Administration.objects.update(role="student")
    assert "began within ten minutes" not in text_of(client.get(url_of(code)))
    Administration.objects.update(role="parent")
    # Signs of abuse are for administrators.
    log_in(client, staff.chen)
    assert "began within ten" not in text_of(client.get(url_of(code)))
    assert "Washington" not in text_of(client.get(url(parents) + "?state=unusual"))


def test_as_many_starts_over_an_hour_are_usual(client, staff, code):
    begin_together(code, starts=200, finished=200, minutes=60)
    log_in(client, staff.dana)
    assert "ten minutes, from" not in text_of(client.get(url_of(code)))
    # The twin: within ten minutes.
    begin_together(code, starts=200, finished=200)
    assert "ten minutes, from" in text_of(client.get(url_of(code)))


@pytest.mark.sqlite
def test_a_crowd_without_answers_hides_none_that_has_finished(client, staff, code):
    """A program that begins without answering does not cover one that answers."""
    begin_together(code, starts=700, hours_ago=3)
    begin_together(code, starts=400, answered=390, finished=380)
    # Not unusual, although all of them have finished.
    begin_together(code, starts=149, answered=149, finished=149, hours_ago=4)
    log_in(client, staff.dana)
    shown = text_of(client.get(url_of(code)))
    assert "400 people began within ten minutes" in shown
    assert "390 of them have answers, and 380 finished" in shown
    # The twin: without them, the empty crowd is shown as such.
    Respondent.objects.filter(completed_at__isnull=False).update(
        started_at=timezone.now() - timedelta(days=2), completed_at=None
    )
    Respondent.objects.filter(started_at__lt=timezone.now() - timedelta(days=1)).update(
        open_code=None
    )
    shown = text_of(client.get(url_of(code)))
    assert "700 people began within ten minutes" in shown
    assert "0 of them have answers, and 0 finished" in shown


def test_the_crowds_of_three_codes_take_as_many_statements_as_one(
    staff, parents, code, django_assert_num_queries
):
    counted = {}
    for number in (1, 3):
        for n in range(number - parents.open_codes.count()):
            open_code(parents, staff.lincoln, label=f"Code {n}")
        for each in parents.open_codes.all():
            begin_together(each, starts=150, answered=number)
        with django_assert_num_queries(3):
            counted[number] = crowded_periods(parents.open_codes.all())
    assert {period.answered for period in counted[1].values()} == {1}
    assert [
        (period.starts, period.answered) for _, period in sorted(counted[3].items())
    ] == [(300, 4), (150, 3), (150, 3)]
    # Nothing is unusual, so nothing more is counted.
    Respondent.objects.update(started_at=timezone.now() - timedelta(days=2))
    Respondent.objects.filter(pk__in=Respondent.objects.all()[50:]).update(
        open_code=None
    )
    with django_assert_num_queries(2):
        assert crowded_periods(parents.open_codes.all()) == {}


@pytest.mark.sqlite
def test_bursts_of_finished_surveys_are_told_apart(client, staff, code):
    tablets = Browser(), Browser()
    for tablet in tablets:
        for _ in range(6):
            assert begin(tablet, code).status_code == 302
    # All of the first tablet, and five of the second.
    people = Respondent.objects.order_by("pk")
    for person in people[:11]:
        person.completed_at = timezone.now()
        person.save(update_fields=["completed_at"])
    log_in(client, staff.dana)
    shown = text_of(client.get(url_of(code)))
    assert "Devices with bursts 2 1 with finished surveys" in shown
    last = people.last()
    last.completed_at = timezone.now()
    last.save(update_fields=["completed_at"])
    shown = text_of(client.get(url_of(code)))
    assert "Devices with bursts 2 2 with finished surveys" in shown


@pytest.mark.sqlite
def test_six_starts_in_a_day_are_no_burst(client, staff, code):
    tablet = Browser()
    for hours in range(6):
        assert begin(tablet, code).status_code == 302
        newest = Respondent.objects.latest("pk")
        at = timezone.now() - timedelta(hours=hours)
        Respondent.objects.filter(pk=newest.pk).update(started_at=at)
        moved = DeviceLogin.objects.filter(respondent=newest).update(first_at=at)
        assert moved == 1
    log_in(client, staff.dana)
    assert "Devices with bursts 0" in text_of(client.get(url_of(code)))


@pytest.mark.parametrize("number", [1, 3])
def test_three_codes_take_as_many_statements_as_one(
    client, staff, parents, django_assert_num_queries, number
):
    for n in range(number):
        fill(open_code(parents, staff.lincoln, label=f"Code {n}"), starts=1)
    log_in(client, staff.dana)
    client.get(url(parents))
    # User, memberships, administration, the number of codes, the codes, their
    # figures in two, bursts, crowded periods.
    with django_assert_num_queries(10):
        assert "Code 0" in text_of(client.get(url(parents)))
