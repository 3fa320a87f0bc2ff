"""Compare response rates with scores: a point for each school that shows both."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import fmean

from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext as _

from accounts.console.listing import ComputedListing
from accounts.http import Cell, StaffRequest
from reports.console.scores.access import (
    ReachedSchool,
    ScoresScope,
    reached_schools,
)
from reports.console.scores.measure_choice import MeasureFilter, chosen_measure
from reports.console.scores.table import ScoreCell, ScoreColumn, score_columns
from reports.scores.comparisons import correlation, is_more_than_chance
from reports.scores.visible import (
    VisibleScore,
    has_scores,
    measures_in_survey,
    scores_of_waves,
)
from survey.models import Administration

# More points have no names: they would be most of the page's size.
MOST_NAMED = 500
# Rates in the chart and its table are in groups of so many percent.
STEP = 10


@dataclass(frozen=True, slots=True)
class RatedSchool:
    """A school that shows its response rate and a score."""

    line: ReachedSchool
    column: ScoreColumn
    score: VisibleScore

    @property
    def rate(self) -> float:
        """Not rounded, so that fewer points of a chart lie upon each other."""
        line = self.line
        return 100 * (line.finished or 0) / line.eligible if line.eligible else 0.0

    @property
    def cell(self) -> ScoreCell:
        return ScoreCell(self.column, str(self.score.score), self.score)

    @property
    def name(self) -> str:
        return f"{self.line.name}, {self.line.district}"

    @property
    def search_text(self) -> str:
        return f"{self.name} {self.line.code}"


@dataclass(frozen=True)
class RatesPage:
    scope: ScoresScope
    # Why there is no list at all; "" if there is one.
    reason: str
    form: MeasureFilter
    column: ScoreColumn | None
    listing: ComputedListing[RatedSchool]
    # Schools without a rate or score to show.
    left_out: int

    @classmethod
    def of(cls, request: StaffRequest, pk: int) -> RatesPage:
        """Read what the address asks for; Http404 for places of others.

        9 statements.
        """
        scope = ScoresScope.of(request, pk)
        administration = scope.administration
        columns = score_columns(administration, measures_in_survey(administration))
        column = chosen_measure(request, columns)
        schools: list[RatedSchool] = []
        left_out = 0
        reason = no_scores(administration, column)
        if column and not reason:
            schools = _rated(scope, column)
            left_out = scope.schools.count() - len(schools)
        listing = ComputedListing(
            request,
            sorted(schools, key=lambda row: row.name),
            text=lambda row: row.search_text,
            sorts={
                "name": lambda school: school.line.name,
                "district": lambda school: school.line.district,
                "rate": lambda school: school.rate,
                "score": lambda school: school.score.score,
            },
        )
        form = MeasureFilter.of(request.GET, scope, columns)
        return cls(scope, reason, form, column, listing, left_out)

    @property
    def administration(self) -> Administration:
        return self.scope.administration

    @property
    def sentence(self) -> str:
        schools = self.listing.rows
        rates = [school.rate for school in schools]
        coefficient = correlation(rates, [school.score.score for school in schools])
        if coefficient is None:
            return _(
                "Too few schools with different numbers to say whether response rates"
                " and scores go together."
            )
        numbers = {
            "r": f"{coefficient:+.2f}".replace("-", "−"),
            "n": f"{len(schools):,}",
        }
        if not is_more_than_chance(coefficient, len(schools)):
            words = _(
                "Response rates and scores go together no more than by chance"
                " (correlation %(r)s, schools: %(n)s)."
            )
        elif coefficient > 0:
            words = _(
                "Where more people answered, scores tend to be higher (correlation"
                " %(r)s, schools: %(n)s). That does not say that one is the cause of"
                " the other."
            )
        else:
            words = _(
                "Where more people answered, scores tend to be lower (correlation"
                " %(r)s, schools: %(n)s). That does not say that one is the cause of"
                " the other."
            )
        return words % numbers

    @property
    def chart(self) -> Scatter:
        return Scatter(self.listing.rows)

    @property
    def groups(self) -> list[tuple[str, str, str]]:
        """Return ranges of rates, with the number of schools and their mean score."""
        by_start: dict[int, list[int]] = {}
        for row in self.listing.rows:
            start = min(int(row.rate // STEP) * STEP, 100 - STEP)
            by_start.setdefault(start, []).append(row.score.score)
        return [
            (
                _("%(start)s %% or more") % {"start": start}
                if start == 100 - STEP
                else f"{start}–{start + STEP - 1} %",
                f"{len(scores):,}",
                f"{fmean(scores):.0f}",
            )
            for start, scores in sorted(by_start.items())
        ]


def no_scores(administration: Administration, column: ScoreColumn | None) -> str:
    """Say why an administration has no scores, or return ""."""
    if column is None:
        return _("The survey has no measures, so it has no scores.")
    if not has_scores(administration):
        return _("No scores yet. They are calculated after a survey round has closed.")
    return ""


def _rated(scope: ScoresScope, column: ScoreColumn) -> list[RatedSchool]:
    """Return the schools that have reached their threshold and show this score."""
    administration = scope.administration
    reached = reached_schools(scope.schools)
    places = [school.place for school in reached]
    scores = scores_of_waves([administration], places, column.name)[administration.pk]
    return [
        RatedSchool(school, column, score)
        for school, place in zip(reached, places, strict=True)
        if (score := scores.get(place, {}).get(column.name))
    ]


@dataclass(frozen=True)
class Scatter:
    """A chart of rates (from `low` to 100 %) and scores (from 0 to 100)."""

    schools: Sequence[RatedSchool]

    @cached_property
    def low(self) -> int:
        lowest = min((school.rate for school in self.schools), default=0)
        return min(math.floor(lowest / STEP) * STEP, 100 - 2 * STEP)

    @property
    def width(self) -> int:
        return 100 - self.low

    @property
    def rates(self) -> list[int]:
        return list(range(self.low, 101, STEP if self.width <= 50 else 2 * STEP))

    @property
    def grid(self) -> str:
        """Return the lines between the bands and at the rates, as a path."""
        across = (f"M{self.low} {y}H100" for y in range(0, 101, 20))
        down = (f"M{x} 0V100" for x in self.rates)
        return "".join((*across, *down))

    @property
    def has_names(self) -> bool:
        return len(self.schools) <= MOST_NAMED

    @property
    def has_high_rates(self) -> bool:
        return any(school.rate > 100 for school in self.schools)

    @property
    def points(self) -> SafeString:
        """Render a link to the report of each school.

        Points are lines without length: with round ends they stay round however the
        chart is stretched. Not in the order of the keyboard, which has the table.
        """

        def point(school: RatedSchool) -> str:
            x = f"{min(school.rate, 100):.1f}".removesuffix(".0")
            y = 100 - school.score.score
            title = ""
            if self.has_names:
                line = school.line
                words = f"{line.name}: {line.rate_words}, {school.score.score}"
                title = format_html("<title>{}</title>", words)
            return (
                f'<a href="../../schools/{school.line.key}/" tabindex="-1">'
                f'<path d="M{x} {y}h0"/>{title}</a>'
            )

        # Numbers but for the title; escaping them took a third of the page's time.
        return mark_safe("".join(map(point, self.schools)))  # noqa: S308


def csv_rows(page: RatesPage) -> Iterator[Sequence[Cell]]:
    """Yield the header and a row for each school, of all pages."""
    yield (
        *("district", "school", "code", "eligible", "finished", "rate (%)"),
        *("measure", "score", "standard error"),
    )
    for row in page.listing.rows:
        line, error = row.line, row.score.error
        yield (
            *(line.district, line.name, line.code),
            *(line.eligible, line.finished, line.rate),
            *(row.column.name, row.score.score),
            None if error is None else round(error, 1),
        )
