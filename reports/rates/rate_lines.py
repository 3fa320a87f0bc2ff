"""The figures of a school, a grade or a total, as one reader may see them.

Every screen, file and chart is made from these lines, never from a database
row. `reports.rates.visible_rates` makes them and leaves out what must be hidden.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from accounts.models import District, School
from reports.rates.progress_pace import LastWeek, Pace, days_without_start, pace
from reports.rates.thresholds import (
    ThresholdProgress,
    ThresholdState,
    thresholds_of_schools,
)
from reports.suppression import HIDDEN
from reports.suppression.rates import SMALLEST_HOUR
from survey.fieldwork.school_calendar import MONDAY_TO_FRIDAY, SchoolCalendar
from survey.models import Administration, Denominator, SchoolCount

HIDDEN_WORDS = gettext_lazy("Too few people to show who has finished")
NO_COUNT = gettext_lazy("No count yet")


def percent(part: int, whole: int) -> int | None:
    """Return the response rate (finished ÷ eligible), rounded down.

    Every rate is rounded down, because it is read beside a threshold: 49.6 % is not yet
    half of a school, and must not be shown as 50 %. Shares of answers, which have no
    threshold, are rounded to the nearest number (`charts.chart_rows.whole_percent`).
    Eligible are all people who are
    invited and neither withdrawn nor opted out nor awaiting consent, in every role;
    without a roster, the number that the school supplied, and then the rate can exceed
    100 %.
    Only the threshold for parents has another denominator: the number of students.
    """
    return 100 * part // whole if whole else None


def number(value: int | None) -> str:
    return HIDDEN if value is None else f"{value:,}"


@dataclass(frozen=True, slots=True)
class RateLine:
    """One school or grade; `started` and `finished` are None where hidden."""

    name: str
    eligible: int
    started: int | None
    finished: int | None

    @property
    def is_hidden(self) -> bool:
        return self.finished is None

    @property
    def rate(self) -> int | None:
        if self.finished is None:
            return None
        return percent(self.finished, self.eligible)

    @property
    def rate_words(self) -> str:
        if self.is_hidden:
            return HIDDEN
        return "–" if self.rate is None else f"{self.rate} %"

    @property
    def cells(self) -> tuple[str, ...]:
        """Eligible, started, finished and rate, as text."""
        shown = map(number, (self.started, self.finished))
        return (self.eligible_words, *shown, self.rate_words)

    @property
    def eligible_words(self) -> str:
        return number(self.eligible)


@dataclass(frozen=True, slots=True)
class SchoolRateLine(RateLine):
    school: School
    administration: Administration
    students: int | None
    # The rest is None as well where the school is hidden.
    needed: int | None
    # None while there are too few to show.
    today: int | None
    last_started_at: datetime | None
    # Whether the user sees every number of this school, and the time of starts.
    is_exact: bool = True
    waiting: int = 0
    opted_out: int = 0
    awaiting_consent: int = 0
    # What the supplied number counts, such as "families".
    unit: str = ""
    # The threshold; None is the usual one.
    percent: int | None = None
    calendar: SchoolCalendar = MONDAY_TO_FRIDAY
    # Only where a page has read the curve of the school.
    last_week: LastWeek | None = None

    @property
    def is_count(self) -> bool:
        return self.administration.denominator == Denominator.COUNT

    @property
    def eligible_words(self) -> str:
        if self.is_count and not self.eligible:
            return str(NO_COUNT)
        if self.is_count:
            families = self.unit == SchoolCount.Unit.FAMILIES
            words = _("%(n)s families") if families else _("%(n)s students")
            return words % {"n": f"{self.eligible:,}"}
        return number(self.eligible)

    @property
    def too_low(self) -> str:
        """A sentence if more people have finished than the supplied number."""
        if not self.is_count or not 0 < self.eligible < (self.finished or 0):
            return ""
        return _("More answers than %(eligible_words)s: the count may be too low") % {
            "eligible_words": self.eligible_words
        }

    @property
    def threshold(self) -> ThresholdProgress | None:
        if self.finished is None:
            return None
        return ThresholdProgress(
            self.administration.role,
            self.eligible,
            self.finished,
            self.students,
            self.is_count,
            self.percent,
        )

    @property
    def is_reached(self) -> bool:
        """Return whether enough people have finished for a report."""
        threshold = self.threshold
        return threshold is not None and threshold.state is ThresholdState.REACHED

    @property
    def drawn_threshold(self) -> int:
        """How many are needed, as a line in a chart of the rate; 0 for no line."""
        return self.needed or 0

    @property
    def words(self) -> str:
        return self.threshold.words if self.threshold else str(HIDDEN_WORDS)

    @property
    def threshold_words(self) -> str:
        """The threshold, where it is reached: else `words` name it."""
        return self.threshold.share_words if self.threshold and self.is_reached else ""

    @property
    def badge(self) -> str:
        """CSS class of the badge: good, caution or none."""
        if self.threshold is None:
            return ""
        badges = {ThresholdState.REACHED: "good", ThresholdState.NOT_INVITED: "caution"}
        return badges.get(self.threshold.state, "")

    @property
    def pace(self) -> Pace | None:
        """None if there is no threshold, it is reached, or it is hidden."""
        if self.finished is None or self.needed is None:
            return None
        if self.finished >= self.needed:
            return None
        # What was missing this morning, so that it stays the same all day. Not
        # where today's number is hidden: it could be calculated from this one.
        shortfall = self.needed - (self.finished - (self.today or 0))
        current_pace = pace_of(
            self.administration, self.today, shortfall, self.calendar, self.last_week
        )
        if current_pace and not self.is_exact and self.finished < SMALLEST_HOUR:
            # "Fewer than 10 came" would say nothing beside the number of all.
            return replace(current_pace, counts_today=False, last_week=None)
        return current_pace

    @property
    def quiet(self) -> str:
        """How long there was no start, while there are people left to start."""
        if self.started is None or not is_open(self.administration):
            return ""
        # With a count nobody knows that everyone has started.
        if self.started >= self.eligible and not self.is_count:
            return ""
        last = self.last_started_at
        return days_without_start(
            last and timezone.localdate(last), timezone.localdate(), self.calendar
        )


@dataclass(frozen=True, slots=True)
class RateTotal:
    """Sums over several schools of which no number is hidden."""

    administration: Administration
    eligible: int
    started: int
    finished: int
    # In schools with people on the roster, or with a count.
    finished_of_eligible: int
    # Over the schools that can get a report.
    needed: int
    # Missing to the thresholds of the schools below: now, and when today
    # began; and how many finished in those schools today.
    missing: int
    shortfall: int
    today: int
    schools: int
    # Schools that can get a report, that reached the threshold, and in which
    # no one is invited (or which have no count yet).
    reporting: int
    reached: int
    not_invited: int
    # How many of those that can get a report have the usual threshold, and the
    # others' lowest and highest, in percent; 0 without others.
    usual: int
    least_percent: int
    most_percent: int
    # Schools with people that have no threshold, because they have too few.
    without_threshold: int
    # People whose change of the roster does not count yet.
    waiting: int
    opted_out: int
    awaiting_consent: int
    district: District | None = None
    calendar: SchoolCalendar = MONDAY_TO_FRIDAY
    # Of all schools; only where a page has read their curve.
    last_week: LastWeek | None = None

    @property
    def name(self) -> str:
        return str(self.district or "")

    @property
    def is_count(self) -> bool:
        return self.administration.denominator == Denominator.COUNT

    @property
    def rate(self) -> int | None:
        return percent(self.finished_of_eligible, self.eligible)

    @property
    def rate_words(self) -> str:
        return "–" if self.rate is None else f"{self.rate} %"

    @property
    def too_low(self) -> str:
        """A sentence if more people have finished than schools counted."""
        if not self.is_count or not 0 < self.eligible < self.finished_of_eligible:
            return ""
        return _("More answers than schools counted: some counts may be too low")

    @property
    def without_count(self) -> int:
        """How many finished in schools that are not in the rate."""
        return self.finished - self.finished_of_eligible

    @property
    def cells(self) -> tuple[str, ...]:
        """Eligible, started, finished and rate, as text."""
        shown = map(number, (self.started, self.finished))
        return (self.eligible_words, *shown, self.rate_words)

    @property
    def eligible_words(self) -> str:
        no_count = self.is_count and not self.eligible
        return str(NO_COUNT) if no_count else number(self.eligible)

    @property
    def words(self) -> str:
        if not self.reporting:
            if self.is_count:
                return _("No school has a known threshold yet")
            return _("No school has enough people for a report")
        words = ngettext(
            "%(reached)s of %(reporting)s school reached the threshold",
            "%(reached)s of %(reporting)s schools reached the threshold",
            self.reporting,
        )
        return words % {
            "reached": f"{self.reached:,}",
            "reporting": f"{self.reporting:,}",
        }

    @property
    def threshold_words(self) -> str:
        """The threshold of schools, or from which to which they are; "" for none."""
        percents = {self.least_percent, self.most_percent} - {0}
        return thresholds_of_schools(
            self.administration.role, percents, has_usual=bool(self.usual)
        )

    @property
    def below(self) -> int:
        """Schools that can get a report, and have not reached the threshold."""
        return self.reporting - self.reached

    @property
    def is_reached(self) -> bool:
        return bool(self.reporting) and self.reached == self.reporting

    @property
    def drawn_threshold(self) -> int:
        """How many are needed, as a line in a chart of the rate; 0 for no line.

        The rate is that of all schools, and cannot be compared with the sum of the
        thresholds if some schools have none.
        """
        return 0 if self.without_threshold else self.needed

    @property
    def pace(self) -> Pace | None:
        """The pace of the schools below their thresholds; None without any.

        In a good week, people may have come to schools that need nobody any more.
        A bad week of all schools is a bad week of those below.
        """
        if not self.missing:
            return None
        current_pace = pace_of(
            self.administration, self.today, self.shortfall, self.calendar
        )
        week = self.last_week
        if current_pace and week and week.per_day < current_pace.per_day:
            return replace(current_pace, last_week=week)
        return current_pace


def is_open(administration: Administration, now: datetime | None = None) -> bool:
    return administration.opens_at <= (now or timezone.now()) < administration.closes_at


def pace_of(
    administration: Administration,
    today: int | None,
    shortfall: int,
    calendar: SchoolCalendar,
    last_week: LastWeek | None = None,
) -> Pace | None:
    """Return the pace until the closing day, or None while it is not open."""
    if not is_open(administration):
        return None
    last = timezone.localdate(administration.closes_at)
    return pace(today, shortfall, timezone.localdate(), last, calendar, last_week)
