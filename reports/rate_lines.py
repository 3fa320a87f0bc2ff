"""What the board says of a school, a grade or a sum, and in which words.

A line is the only way from a row to a screen, a file or a chart, and never
holds a number that its reader must not see: `reports.rates` makes them.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.utils import timezone

from accounts.models import District, School
from reports.progress_pace import Pace, pace, silence
from reports.suppression import HIDDEN
from reports.thresholds import Standing, State
from survey.models import Administration

HIDDEN_WORDS = "Too few people to show who has finished"


def percent(part: int, whole: int) -> int | None:
    """Finished ÷ eligible, downwards: 49.6 % of a school is not yet half of it.

    Eligible is who was invited and is not withdrawn, in every role; only the
    parents' threshold has another denominator, the number of students.
    """
    return 100 * part // whole if whole else None


def number(value: int | None) -> str:
    return HIDDEN if value is None else f"{value:,}"


@dataclass(frozen=True, slots=True)
class Line:
    """One school, or one grade, as its reader sees it; None is hidden."""

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
        """Eligible, started, finished, rate."""
        shown = map(number, (self.eligible, self.started, self.finished))
        return (*shown, self.rate_words)


@dataclass(frozen=True, slots=True)
class SchoolLine(Line):
    school: School
    administration: Administration
    students: int | None
    # Null as well where it is hidden.
    needed: int | None
    today: int | None
    last_started_at: datetime | None

    @property
    def standing(self) -> Standing | None:
        if self.finished is None:
            return None
        role = self.administration.role
        return Standing(role, self.eligible, self.finished, self.students)

    @property
    def words(self) -> str:
        return self.standing.words if self.standing else HIDDEN_WORDS

    @property
    def badge(self) -> str:
        """Of the components: good, caution or nothing."""
        state = self.standing.state if self.standing else None
        return {State.REACHED: "good", State.NOBODY: "caution"}.get(state, "")  # type: ignore[arg-type]

    @property
    def pace(self) -> Pace | None:
        """Null when there is no threshold to reach, or it is reached."""
        if self.finished is None or self.today is None or self.needed is None:
            return None
        if self.finished >= self.needed:
            return None
        owed = self.needed - (self.finished - self.today)
        return pace_of(self.administration, self.today, owed)

    @property
    def silence(self) -> str:
        """For how long nobody has started, while somebody still could."""
        one = self.administration
        if self.started is None or self.started >= self.eligible or not is_open(one):
            return ""
        last = self.last_started_at
        return silence(last and timezone.localdate(last), timezone.localdate())


@dataclass(frozen=True, slots=True)
class Total:
    """The sums of several schools whose every number may be seen."""

    administration: Administration
    eligible: int
    started: int
    finished: int
    # Over the schools that can have a report.
    needed: int
    # To the thresholds of those that are below; what today began with; and
    # what it brought there.
    missing: int
    owed: int
    today: int
    schools: int
    reporting: int
    reached: int
    nobody: int
    district: District | None = None

    @property
    def rate(self) -> int | None:
        return percent(self.finished, self.eligible)

    @property
    def rate_words(self) -> str:
        return "–" if self.rate is None else f"{self.rate} %"

    @property
    def cells(self) -> tuple[str, ...]:
        shown = map(number, (self.eligible, self.started, self.finished))
        return (*shown, self.rate_words)

    @property
    def words(self) -> str:
        if not self.reporting:
            return "No school has enough people for a report"
        of_all = "1 school" if self.reporting == 1 else "schools"
        if self.reporting > 1:
            of_all = f"{self.reporting:,} schools"
        return f"{self.reached:,} of {of_all} reached the threshold"

    @property
    def is_reached(self) -> bool:
        return bool(self.reporting) and self.reached == self.reporting

    @property
    def pace(self) -> Pace | None:
        if not self.missing:
            return None
        return pace_of(self.administration, self.today, self.owed)


def is_open(administration: Administration, now: datetime | None = None) -> bool:
    return administration.opens_at <= (now or timezone.now()) < administration.closes_at


def pace_of(administration: Administration, today: int, owed: int) -> Pace | None:
    """None while it is closed."""
    if not is_open(administration):
        return None
    last = timezone.localdate(administration.closes_at)
    return pace(today, owed, timezone.localdate(), last)
