"""Say how long the data of administrations are kept, and when they are destroyed.

A round has the days that it was given itself, else those of its owner's settings, else
the state's, within the limits of the state. Without any, its data are kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.utils import timezone

from accounts.models import PlaceSettings
from accounts.place_settings import levels_of
from survey.models import Administration, DataKind, Destruction, Retention

KINDS = (DataKind.IDENTITIES, DataKind.ANSWERS)
# Nothing is destroyed earlier after its warning.
WARNING = timedelta(days=30)
# After the closing; pages, figures and jobs can still be under way.
SETTLED = timedelta(days=1)
MAX_DAYS = 36_500


@dataclass(frozen=True, slots=True)
class Limits:
    """The shortest and the longest period that the state allows."""

    least: int | None = None
    most: int | None = None

    def within(self, days: int) -> int:
        days = max(days, self.least or days)
        return min(days, self.most or days)


@dataclass(frozen=True, slots=True)
class Term:
    """One kind of data of one administration."""

    kind: DataKind
    # Days after the closing; None: they are kept.
    days: int | None
    # "own", "district", "state" or "default", as of other settings.
    source: str
    closes_at: datetime
    # Since the closing: a warning of an earlier one is of other data.
    warned_at: datetime | None
    destroyed_at: datetime | None

    @property
    def ends_at(self) -> datetime | None:
        """Return when the period ends, whether somebody was warned or not."""
        if self.days is None:
            return None
        return self.closes_at + timedelta(days=self.days)

    def due_at(self, now: datetime) -> datetime | None:
        """Return the moment from which the data are destroyed; None: never.

        A month after the warning at the earliest, so it moves with it.
        """
        if self.ends_at is None:
            return None
        return max(self.ends_at, (self.warned_at or now) + WARNING)

    def is_due(self, now: datetime) -> bool:
        due_at = self.due_at(now)
        return self.warned_at is not None and due_at is not None and due_at <= now

    def was_warned_long_ago(self, now: datetime) -> bool:
        """Return whether the month after the warning is over."""
        return self.warned_at is not None and self.warned_at + WARNING <= now


def limits_of(kind: str, levels: Sequence[PlaceSettings]) -> Limits:
    """Return the limits of the state among some settings."""
    for level in levels:
        if level.district_id is None and level.school_id is None:
            least = getattr(level, f"{kind}_least_days")
            return Limits(least, getattr(level, f"{kind}_most_days"))
    return Limits()


def terms_of(
    administration: Administration, levels: Sequence[PlaceSettings] | None = None
) -> list[Term]:
    """Return the terms of both kinds.

    2 statements, or none with the settings of the owner and the state, and `retention`
    selected.
    """
    if levels is None:
        levels = levels_of(administration.district)
    periods: Retention | None = getattr(administration, "retention", None)
    return [_term(kind, administration, periods, levels) for kind in KINDS]


def current_term(administration: int, kind: str) -> Term:
    """Return a term as it is stored at this moment. 2 statements."""
    rows = Administration.objects.select_related("district", "retention")
    terms = terms_of(rows.get(pk=administration))
    return next(term for term in terms if term.kind == kind)


def _term(
    kind: DataKind,
    administration: Administration,
    periods: Retention | None,
    levels: Sequence[PlaceSettings],
) -> Term:
    days, source = periods.days(kind) if periods else None, "own"
    for level in levels:
        if days is None:
            days = getattr(level, f"{kind}_days")
            source = "state" if level.district_id is None else "district"
    if days is not None:
        days = limits_of(kind, levels).within(days)
    warned_at = periods.warned_at(kind) if periods else None
    if warned_at is not None and warned_at <= administration.closes_at:
        warned_at = None
    return Term(
        kind,
        days,
        source if days is not None else "default",
        administration.closes_at,
        warned_at,
        getattr(administration, f"{kind}_destroyed_at"),
    )


@dataclass(frozen=True, slots=True)
class TermLine:
    """A kind of data as pages show it."""

    term: Term
    due_at: datetime | None
    # What was ordered, if it was.
    destruction: Destruction | None

    @property
    def is_endless(self) -> bool:
        """Test that there is no period, and nothing was ordered."""
        return not self.destruction and not self.term.days


def term_lines(administration: Administration) -> list[TermLine]:
    """Return both kinds. 2 statements, and 1 more where something was destroyed."""
    terms, now = terms_of(administration), timezone.now()
    ordered = {}
    if any(term.destroyed_at for term in terms):
        ordered = {
            row.kind: row for row in administration.destructions.without_counts()
        }
    return [TermLine(term, term.due_at(now), ordered.get(term.kind)) for term in terms]


class Settings:
    """The settings of the state and all districts. 1 statement."""

    def __init__(self) -> None:
        rows = PlaceSettings.objects.filter(school=None)
        self.rows = {row.district_id: row for row in rows}

    def levels_of(self, administration: Administration) -> list[PlaceSettings]:
        keys = dict.fromkeys((administration.district_id, None))
        return [self.rows[key] for key in keys if key in self.rows]


def is_settled(administration: Administration, now: datetime | None = None) -> bool:
    """Return whether it is closed, and nobody's answers are under way."""
    return administration.closes_at <= (now or timezone.now()) - SETTLED
