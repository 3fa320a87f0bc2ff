"""The calendar of school days: weekends, holidays of the state and of districts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from functools import cached_property

from django.core.exceptions import PermissionDenied, ValidationError
from django.db import IntegrityError, transaction
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from accounts.audit import record, record_owned
from accounts.models import District, User
from accounts.permissions import Capability, Permissions
from survey.fieldwork.us_holidays import Holiday, us_school_holidays
from survey.models import DayOff

WEEKEND = frozenset((5, 6))
WEEKDAYS = (
    gettext_noop("Monday"),
    gettext_noop("Tuesday"),
    gettext_noop("Wednesday"),
    gettext_noop("Thursday"),
    gettext_noop("Friday"),
    gettext_noop("Saturday"),
    gettext_noop("Sunday"),
)
MAX_NAME_LENGTH = 100
# A summer of three months; more is a typing error in the year.
MOST_DAYS = 120
# Of one owner, in all years.
MOST_HOLIDAYS = 500


@dataclass(frozen=True, slots=True)
class SchoolCalendar:
    """The school days of one place."""

    weekend: frozenset[int] = WEEKEND
    holidays: tuple[tuple[date, date], ...] = ()

    def is_school_day(self, day: date) -> bool:
        return day.weekday() not in self.weekend and not any(
            first <= day <= last for first, last in self.holidays
        )


# Where no holidays are known.
MONDAY_TO_FRIDAY = SchoolCalendar()


class SchoolCalendars:
    """The calendars of districts for a span of time. 1 statement, on first use."""

    def __init__(self, first: date, last: date) -> None:
        self.span = first, last
        self._made: dict[int | None, SchoolCalendar] = {}

    def of(self, district_id: int | None) -> SchoolCalendar:
        """Return a district's calendar, or with None that of the state alone."""
        if district_id not in self._made:
            weekend, by_owner = self._days_off
            holidays = by_owner.get(None, [])
            if district_id is not None:
                holidays = holidays + by_owner.get(district_id, [])
            self._made[district_id] = SchoolCalendar(weekend, tuple(holidays))
        return self._made[district_id]

    @cached_property
    def _days_off(
        self,
    ) -> tuple[frozenset[int], Mapping[int | None, list[tuple[date, date]]]]:
        first, last = self.span
        rows = DayOff.objects.filter(
            Q(weekday__isnull=False) | Q(first__lte=last, last__gte=first)
        )
        weekdays: set[int] = set()
        by_owner: dict[int | None, list[tuple[date, date]]] = {}
        for owner, weekday, begins, ends in rows.values_list(
            "district_id", "weekday", "first", "last"
        ):
            if weekday is not None:
                weekdays.add(weekday)
            elif begins is not None and ends is not None:
                by_owner.setdefault(owner, []).append((begins, ends))
        return frozenset(weekdays) or WEEKEND, by_owner


def holidays_for(permissions: Permissions) -> QuerySet[DayOff]:
    """Return the holidays that hold in the user's places."""
    holidays = DayOff.objects.filter(weekday=None)
    places = permissions.places(Capability.MANAGE_SURVEYS)
    if places.state:
        return holidays
    return holidays.filter(Q(district=None) | Q(district__in=places.districts))


def weekend() -> frozenset[int]:
    """Return the weekdays without school. 1 statement."""
    return _weekdays(DayOff.objects.all()) or WEEKEND


def _weekdays(rows: QuerySet[DayOff]) -> frozenset[int]:
    weekdays = rows.filter(weekday__isnull=False).values_list("weekday", flat=True)
    return frozenset(day for day in weekdays if day is not None)


def add_holiday(
    *,
    name: str,
    first: date,
    last: date,
    district: District | None,
    by: User,
    request: HttpRequest | None = None,
) -> DayOff:
    """Add a range of days without school.

    Raises PermissionDenied, and ValidationError with the reason for each field.
    """
    _check_may_change(by, district)
    name = " ".join(name.split())
    errors: dict[str, str] = {}
    if not name or len(name) > MAX_NAME_LENGTH or not name.isprintable():
        errors["name"] = _("Use a name of at most %(max_name_length)s characters.") % {
            "max_name_length": MAX_NAME_LENGTH
        }
    if last < first:
        errors["last"] = _("The last day is before the first. Choose a later one.")
    elif (last - first).days >= MOST_DAYS:
        errors["last"] = _(
            "These are more than %(most_days)s days. Check the year, or"
            " add them in parts."
        ) % {"most_days": MOST_DAYS}
    if errors:
        raise ValidationError(errors)
    if DayOff.objects.filter(district=district).count() >= MOST_HOLIDAYS:
        raise ValidationError(
            _(
                "There are %(most_holidays)s holidays already. Remove those"
                " of past years."
            )
            % {"most_holidays": MOST_HOLIDAYS}
        )
    holiday = DayOff(district=district, name=name, first=first, last=last)
    with transaction.atomic():
        try:
            with transaction.atomic():
                holiday.save()
        except IntegrityError as error:
            raise ValidationError(
                {
                    "name": _("%(name)s is in the calendar on this day already.")
                    % {"name": name}
                }
            ) from error
        record_owned("add holiday", holiday, by, request, after=_values(holiday))
    return holiday


@transaction.atomic
def remove_holiday(
    *, holiday: DayOff, by: User, request: HttpRequest | None = None
) -> None:
    """Remove a holiday; a second call changes nothing. Raises PermissionDenied."""
    _check_may_change(by, holiday.district)
    if DayOff.objects.filter(pk=holiday.pk).delete()[0]:
        record_owned("remove holiday", holiday, by, request, before=_values(holiday))


@transaction.atomic
def add_us_holidays(
    *,
    year: int,
    district: District | None,
    by: User,
    request: HttpRequest | None = None,
) -> int:
    """Add the holidays of a school year that are missing; return how many.

    Raises PermissionDenied.
    """
    _check_may_change(by, district)
    added = 0
    for name, first, last in missing_us_holidays(year, district):
        holiday, is_new = DayOff.objects.get_or_create(
            district=district,
            name__iexact=name,
            first=first,
            defaults={"name": name, "last": last},
        )
        if is_new:
            added += 1
            record_owned("add holiday", holiday, by, request, after=_values(holiday))
    return added


def missing_us_holidays(year: int, district: District | None) -> list[Holiday]:
    """Return those on which the calendar has a school day. 1 statement."""
    holidays = us_school_holidays(year)
    calendars = SchoolCalendars(holidays[0].first, holidays[-1].last)
    # Of the holidays alone: one of them may fall on a weekend.
    known = calendars.of(district.pk if district else None).holidays
    return [
        holiday
        for holiday in holidays
        if not any(first <= holiday.first <= last for first, last in known)
    ]


@transaction.atomic
def set_weekend(
    *, weekdays: Iterable[int], by: User, request: HttpRequest | None = None
) -> None:
    """Replace the weekdays without school, for the whole state.

    Raises PermissionDenied, and ValidationError unless one to six are chosen.
    """
    _check_may_change(by, None)
    new = frozenset(weekdays)
    if not 0 < len(new) < len(WEEKDAYS):
        raise ValidationError(_("Choose at least one weekday, and leave at least one."))
    # Locked, so that the entry names the days before.
    stored = _weekdays(DayOff.objects.select_for_update())
    before = stored or WEEKEND
    if new == stored:
        return
    DayOff.objects.filter(weekday__in=stored - new).delete()
    DayOff.objects.bulk_create(
        [DayOff(weekday=day, name=WEEKDAYS[day]) for day in sorted(new - stored)],
        ignore_conflicts=True,
    )
    if new != before:
        record(
            "change weekend",
            by=by,
            request=request,
            before={"weekend": _names(before)},
            after={"weekend": _names(new)},
        )


def _names(weekdays: Iterable[int]) -> list[str]:
    return [WEEKDAYS[day] for day in sorted(weekdays)]


def _check_may_change(by: User, district: District | None) -> None:
    if not Permissions(by).may_own(district.pk if district else None):
        raise PermissionDenied


def _values(holiday: DayOff) -> dict[str, object]:
    return {
        "name": holiday.name,
        "first": str(holiday.first),
        "last": str(holiday.last),
    }
