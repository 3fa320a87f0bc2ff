"""Say how old the figures of an administration are."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.utils import timezone
from django.utils.formats import date_format
from django.utils.timezone import get_default_timezone, localtime
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from reports.models import RollUp
from reports.suppression.rates import SMALLEST_GRADE
from survey.models import Administration, Denominator

# Figures of open administrations are counted once a minute; older is late.
FRESH_FOR = timedelta(minutes=2)
MINUTE, HOUR, DAY = 60, 3600, 86400


@dataclass(frozen=True, slots=True)
class Freshness:
    """The age of figures. `is_late` means that pages have to warn."""

    as_of: datetime | None
    seconds: int
    is_late: bool
    words: str


def freshness_of(administration: Administration) -> Freshness:
    now = timezone.now()
    try:
        as_of = administration.roll_up.as_of
    except RollUp.DoesNotExist:
        words = _("Not counted yet: the first figures appear within a minute")
        return Freshness(None, 0, True, words)
    # The clock of the database server may be ahead of this one.
    age = max(now - as_of, timedelta())
    ago, is_late = duration(age), age > FRESH_FOR
    words = _("Counted %(ago)s ago") % {"ago": ago}
    # Final figures may be old, and so may those of upcoming administrations,
    # which are counted once an hour.
    if is_late and as_of >= administration.closes_at:
        words, is_late = _("Counted after closing, %(ago)s ago") % {"ago": ago}, False
    elif is_late and now < administration.opens_at and age < timedelta(hours=2):
        words = _("Counted %(ago)s ago; once an hour until it opens") % {"ago": ago}
        is_late = False
    elif is_late:
        words = _("These figures are %(ago)s old: counting is late") % {"ago": ago}
    return Freshness(as_of, int(age.total_seconds()), is_late, words)


def groups_in_words(administration: Administration, waiting: int = 0) -> str:
    """Say which rosters the figures follow; "" where they follow each change."""
    try:
        as_of = administration.roll_up.groups_as_of
    except RollUp.DoesNotExist:
        as_of = None
    if as_of is None or not administration.is_completion_confidential:
        return ""
    if administration.denominator == Denominator.COUNT:
        return ""
    words = _("Schools and grades as of %(as_of)s.") % {
        # The state's midnight, which is still the day before in other zones.
        "as_of": date_format(localtime(as_of, get_default_timezone()), "DATE_FORMAT")
    }
    if not waiting:
        return words
    changes = ngettext(
        "%(changes)s change of the roster not counted yet: changes count from the next"
        " day, once at least %(smallest)s people change in the same way, so that the"
        " figures say nothing about one person.",
        "%(changes)s changes of the roster not counted yet: changes count from the next"
        " day, once at least %(smallest)s people change in the same way, so that the"
        " figures say nothing about one person.",
        waiting,
    )
    values = {"changes": f"{waiting:,}", "smallest": SMALLEST_GRADE}
    return f"{words} {changes % values}"


def duration(age: timedelta) -> str:
    """Return "3 minutes" and the like; `rates.js` does the same in the browser."""
    seconds = int(age.total_seconds())
    if seconds >= 2 * DAY:
        n = seconds // DAY
        return ngettext("%(n)s day", "%(n)s days", n) % {"n": n}
    if seconds >= 2 * HOUR:
        n = seconds // HOUR
        return ngettext("%(n)s hour", "%(n)s hours", n) % {"n": n}
    if seconds >= 2 * MINUTE:
        n = seconds // MINUTE
        return ngettext("%(n)s minute", "%(n)s minutes", n) % {"n": n}
    return ngettext("%(n)s second", "%(n)s seconds", seconds) % {"n": seconds}
