"""School days: the weekend, the state's holidays and those of districts."""

from __future__ import annotations

from datetime import date

import pytest
from django.core.exceptions import PermissionDenied, ValidationError
from django.db import IntegrityError, transaction

from accounts.models import AuditEntry
from survey.fieldwork.school_calendar import (
    MONDAY_TO_FRIDAY,
    WEEKEND,
    SchoolCalendars,
    add_holiday,
    add_us_holidays,
    missing_us_holidays,
    remove_holiday,
    set_weekend,
    weekend,
)
from survey.fieldwork.us_holidays import school_year, us_school_holidays
from survey.models import DayOff

NOVEMBER = date(2026, 11, 1), date(2026, 11, 30)


def november(day: int) -> date:
    return date(2026, 11, day)


def school_days(district_id: int | None = None) -> list[int]:
    calendar = SchoolCalendars(*NOVEMBER).of(district_id)
    return [n for n in range(1, 31) if calendar.is_school_day(november(n))]


def test_without_holidays_mondays_to_fridays_are_school_days():
    days = [n for n in range(1, 31) if MONDAY_TO_FRIDAY.is_school_day(november(n))]
    assert days[:7] == [2, 3, 4, 5, 6, 9, 10]
    assert len(days) == 21


@pytest.mark.django_db
def test_districts_have_the_states_holidays_and_their_own(
    staff, django_assert_num_queries
):
    add_holiday(
        name="Thanksgiving", first=november(26), last=november(27), district=None,
        by=staff.state,
    )  # fmt: skip
    add_holiday(
        name="Harvest day", first=november(9), last=november(9),
        district=staff.riverside, by=staff.dana,
    )  # fmt: skip
    # Of another year.
    add_holiday(
        name="Thanksgiving", first=date(2025, 11, 27), last=date(2025, 11, 28),
        district=None, by=staff.state,
    )  # fmt: skip
    calendars = SchoolCalendars(*NOVEMBER)
    with django_assert_num_queries(1):
        of_state = calendars.of(None)
        of_riverside = calendars.of(staff.riverside.pk)
        of_lakeside = calendars.of(staff.lakeside.pk)
    for calendar in (of_state, of_riverside, of_lakeside):
        assert not calendar.is_school_day(november(26))
        assert not calendar.is_school_day(november(27))
        assert calendar.is_school_day(november(25))
    assert of_state == of_lakeside
    assert of_lakeside.is_school_day(november(9))
    assert not of_riverside.is_school_day(november(9))


@pytest.mark.django_db
def test_the_weekend_is_the_states_choice(staff):
    assert weekend() == WEEKEND
    set_weekend(weekdays=[4, 5], by=staff.state)
    assert school_days()[:6] == [1, 2, 3, 4, 5, 8]
    set_weekend(weekdays=[6, 5], by=staff.state)
    assert weekend() == WEEKEND
    changes = AuditEntry.objects.filter(action="change weekend").order_by("pk")
    assert [entry.after["weekend"] for entry in changes] == [
        ["Friday", "Saturday"],
        ["Saturday", "Sunday"],
    ]
    for weekdays in ([], range(7)):
        with pytest.raises(ValidationError, match="at least one"):
            set_weekend(weekdays=weekdays, by=staff.state)
    with pytest.raises(PermissionDenied):
        set_weekend(weekdays=[6], by=staff.dana)


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"last": november(25)}, "before the first"),
        ({"last": date(2027, 11, 27)}, "more than 120 days"),
        ({"name": " "}, "Use a name"),
        ({"name": "x" * 101}, "Use a name"),
        ({"name": "thanksgiving"}, "in the calendar on this day already"),
    ],
)
def test_wrong_holidays_are_refused_with_the_reason(staff, fields, reason):
    right = {"name": "Thanksgiving", "first": november(26), "last": november(27)}
    add_holiday(**right, district=None, by=staff.state)
    with pytest.raises(ValidationError, match=reason):
        add_holiday(**{**right, **fields}, district=None, by=staff.state)
    assert DayOff.objects.count() == AuditEntry.objects.count() == 1
    # The name is free in a district.
    add_holiday(**right, district=staff.riverside, by=staff.dana)


@pytest.mark.django_db
def test_only_the_owner_and_the_state_change_a_calendar(staff):
    day = {"name": "Day", "first": november(2), "last": november(2)}
    for user, district in (
        (staff.dana, None),
        (staff.dana, staff.lakeside),
        (staff.chen, staff.riverside),
        (staff.analyst, staff.riverside),
    ):
        with pytest.raises(PermissionDenied):
            add_holiday(**day, district=district, by=user)
        with pytest.raises(PermissionDenied):
            add_us_holidays(year=2026, district=district, by=user)
    of_state = add_holiday(**day, district=None, by=staff.state)
    with pytest.raises(PermissionDenied):
        remove_holiday(holiday=of_state, by=staff.dana)
    for _ in range(2):
        remove_holiday(holiday=of_state, by=staff.state)
    actions = [entry.action for entry in AuditEntry.objects.order_by("pk")]
    assert actions == ["add holiday", "remove holiday"]


@pytest.mark.django_db
@pytest.mark.parametrize(
    "wrong",
    [
        {"first": november(2)},
        {"first": november(3), "last": november(2)},
        {"weekday": 7},
        {"weekday": 5, "first": november(2), "last": november(2)},
        {},
    ],
)
def test_a_day_off_is_a_range_of_dates_or_a_weekday(wrong):
    reason = "a_day_off_is_a_range_of_dates_or_a_weekday"
    with pytest.raises(IntegrityError, match=reason), transaction.atomic():
        DayOff.objects.create(name="Wrong", **wrong)


@pytest.mark.django_db
def test_a_weekday_is_of_the_whole_state_and_listed_once(staff):
    DayOff.objects.create(weekday=5)
    for wrong in ({"weekday": 5}, {"weekday": 6, "district": staff.riverside}):
        with pytest.raises(IntegrityError), transaction.atomic():
            DayOff.objects.create(**wrong)


def test_holidays_of_the_united_states_are_computed():
    holidays = {name: (first, last) for name, first, last in us_school_holidays(2026)}
    assert holidays["Thanksgiving"] == (november(26), november(27))
    assert holidays["Labor Day"][0] == date(2026, 9, 7)
    assert holidays["Columbus Day / Indigenous Peoples’ Day"][0] == date(2026, 10, 12)
    assert holidays["Veterans Day"][0] == november(11)
    assert holidays["Winter break"] == (date(2026, 12, 24), date(2027, 1, 1))
    assert holidays["Martin Luther King Jr. Day"][0] == date(2027, 1, 18)
    assert holidays["Presidents’ Day"][0] == date(2027, 2, 15)
    assert holidays["Memorial Day"][0] == date(2027, 5, 31)
    # Saturdays, kept on Friday.
    assert holidays["Juneteenth"][0] == date(2027, 6, 18)
    assert holidays["Independence Day"][0] == date(2026, 7, 3)
    # A Sunday, kept on Monday.
    of_2027 = {name: first for name, first, _ in us_school_holidays(2027)}
    assert of_2027["Independence Day"] == date(2027, 7, 5)
    assert [*holidays.values()] == sorted(holidays.values())


@pytest.mark.parametrize("day", [date(2026, 7, 1), date(2027, 6, 30)])
def test_a_school_year_begins_in_july(day):
    assert school_year(day) == 2026


@pytest.mark.django_db
def test_usual_holidays_are_added_once_and_not_on_days_that_are_off(staff):
    add_holiday(
        name="Fall break", first=november(23), last=november(27), district=None,
        by=staff.state,
    )  # fmt: skip
    missing = missing_us_holidays(2026, None)
    assert "Thanksgiving" not in [holiday.name for holiday in missing]
    assert len(missing) == 9
    assert add_us_holidays(year=2026, district=None, by=staff.state) == 9
    assert add_us_holidays(year=2026, district=None, by=staff.state) == 0
    # A district has those of the state already.
    assert missing_us_holidays(2026, staff.riverside) == []
    assert missing_us_holidays(2027, None) != []
    assert AuditEntry.objects.filter(action="add holiday").count() == 10
