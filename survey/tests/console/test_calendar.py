"""The console's pages of the school calendar."""

from __future__ import annotations

from datetime import date, timedelta

import pytest
from django.test import Client
from django.utils import timezone

from accounts.models import AuditEntry
from accounts.tests.logging_in import log_in
from survey.fieldwork.us_holidays import school_year
from survey.models import DayOff

pytestmark = pytest.mark.django_db
CALENDAR = "/console/settings/calendar/"
SPRING = {"name": "Spring break", "first": "2027-03-15", "last": "2027-03-19"}


def page(user) -> str:
    return log_in(Client(), user).get(CALENDAR).content.decode()


def test_the_state_and_a_district_keep_a_calendar(staff):
    state, dana = (log_in(Client(), user) for user in (staff.state, staff.dana))
    assert "There are no holidays ahead" in page(staff.state)
    assert state.post(f"{CALENDAR}new/", SPRING)["Location"] == CALENDAR
    single = {"name": "Harvest day", "first": "2026-11-09", "last": ""}
    assert dana.post(f"{CALENDAR}new/", single)["Location"] == CALENDAR
    holidays = DayOff.objects.order_by("pk").values_list(
        "name", "first", "last", "district"
    )
    harvest = date(2026, 11, 9)
    assert [*holidays] == [
        ("Spring break", date(2027, 3, 15), date(2027, 3, 19), None),
        ("Harvest day", harvest, harvest, staff.riverside.pk),
    ]
    # Dana sees both, and changes her own; the state sees and changes both.
    for user, removable in ((staff.dana, 1), (staff.state, 2)):
        text = page(user)
        assert "Spring break" in text and "March 15, 2027" in text
        assert "Harvest day" in text
        assert text.count(">Remove</button>") == removable
    spring, holiday = DayOff.objects.order_by("pk")
    assert dana.post(f"{CALENDAR}{spring.pk}/remove/").status_code == 404
    assert dana.post(f"{CALENDAR}{holiday.pk}/remove/").status_code == 302
    assert DayOff.objects.get() == spring
    entries = AuditEntry.objects.order_by("pk").values_list("action", "district_id")
    riverside = staff.riverside.pk
    assert [*entries] == [
        ("add holiday", None),
        ("add holiday", riverside),
        ("remove holiday", riverside),
    ]


def test_holidays_ahead_come_first_and_past_ones_are_folded(staff):
    today = timezone.localdate()
    for name, days in (("Winter", 40), ("Autumn", 3), ("Spring", -90), ("Today", 0)):
        day = today + timedelta(days=days)
        DayOff.objects.create(name=name, first=day, last=day)
    ahead, _details, past = page(staff.state).partition('<details class="past">')
    places = [ahead.index(f">{name}</th>") for name in ("Today", "Autumn", "Winter")]
    assert places == sorted(places)
    assert "1 past holiday" in past and ">Spring</th>" in past
    # A search finds past ones too, and opens them.
    html = log_in(Client(), staff.state).get(f"{CALENDAR}?q=Spring").content.decode()
    assert '<details class="past" open>' in html and ">Today</th>" not in html


@pytest.mark.parametrize("login", ["chen", "analyst", "sam"])
def test_coordinators_and_analysts_have_no_calendar(staff, login):
    assert log_in(Client(), getattr(staff, login)).get(CALENDAR).status_code == 404


@pytest.mark.parametrize(
    ("typed", "reason"),
    [
        ({"name": ""}, "Enter a name"),
        ({"first": ""}, "Enter the first day"),
        ({"first": "tomorrow"}, "Enter a date"),
        ({"first": "99999-01-01"}, "Enter a date"),
        ({"last": "2027-03-14"}, "The last day is before the first"),
        ({"last": "2028-03-19"}, "Check the year"),
    ],
)
def test_wrong_holidays_are_refused_and_stay_in_the_form(staff, typed, reason):
    client = log_in(Client(), staff.state)
    reply = client.post(f"{CALENDAR}new/", {**SPRING, **typed})
    text = reply.content.decode()
    assert reply.status_code == 200 and reason in text
    assert "There is a problem" in text
    [(name, value)] = typed.items()
    assert reply.context["form"][name].value() == value
    assert not DayOff.objects.exists()


def test_the_usual_holidays_are_shown_before_they_are_added(staff):
    client, year = log_in(Client(), staff.state), school_year(timezone.localdate())
    text = page(staff.state)
    assert "Thanksgiving" in text and f"{year}–{year + 1}" in text
    add = f"{CALENDAR}us-holidays/"
    for wrong in ("", "1900", "x", str(year + 2)):
        assert client.post(add, {"year": wrong}).status_code == 404
    assert client.post(add, {"year": year}).status_code == 302
    assert DayOff.objects.filter(district=None).count() == 10
    # The next year is offered then.
    assert f"{year + 1}–{year + 2}" in page(staff.state)
    client.post(add, {"year": year + 1})
    assert "usual holiday" not in page(staff.state)


def test_only_the_state_changes_the_weekend(staff):
    address = f"{CALENDAR}weekend/"
    assert log_in(Client(), staff.dana).get(address).status_code == 404
    client = log_in(Client(), staff.state)
    form = client.get(address).context["form"]
    assert form["weekdays"].value() == [5, 6]
    for wrong in ([], [7], ["x"], [0, 1, 2, 3, 4, 5, 6]):
        assert client.post(address, {"weekdays": wrong}).status_code == 200
    assert client.post(address, {"weekdays": [4, 5]}).status_code == 302
    assert "no school on Friday and Saturday, in the whole state" in page(staff.dana)


@pytest.mark.parametrize("rows", [1, 3])
def test_a_calendar_of_one_and_of_three_costs_the_same(
    staff, rows, django_assert_num_queries
):
    for n in range(rows):
        DayOff.objects.create(name=f"Day {n}", first=date(2026, 9, 9 + n),
            last=date(2026, 9, 9 + n), district=staff.riverside)  # fmt: skip
    client = log_in(Client(), staff.dana)
    with django_assert_num_queries(9):
        client.get(CALENDAR)
