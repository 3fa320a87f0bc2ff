"""Show which schools changed most since an earlier wave, and which bands they left."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django import forms
from django.http import Http404
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from accounts.console.listing import ComputedListing
from accounts.http import Cell, StaffRequest
from accounts.permissions import Permissions
from reports.console.scores.access import (
    ReachedSchool,
    ScoresScope,
    reached_schools,
    schools_with_scores,
)
from reports.console.scores.measure_choice import MeasureFilter, chosen_measure
from reports.console.scores.rates import no_scores
from reports.console.scores.table import ScoreColumn, measure_columns
from reports.rates.visible_rates import in_state
from reports.results.access import results_for
from reports.scores.benchmark_titles import ComparedWith
from reports.scores.comparisons import likely_changes
from reports.scores.scale import BANDS, CERTAIN
from reports.scores.visible import (
    VisibleScore,
    benchmarks_of,
    earlier_waves,
    measures_in_survey,
    scores_of_waves,
)
from reports.scores.words import band_words, signed
from survey.models import Administration

# One in so many schools changes "more than chance" without a change.
BY_CHANCE = 0.05
NUMBERS = range(1, len(BANDS) + 1)


class ChangesFilter(MeasureFilter):
    compare = forms.ChoiceField(label=gettext_lazy("Compare with"), required=False)
    show = forms.ChoiceField(label=gettext_lazy("Show"), required=False)


@dataclass(frozen=True, slots=True)
class ChangedSchool:
    """A school that shows a score of the same measure in both waves."""

    line: ReachedSchool
    column: ScoreColumn
    before: VisibleScore
    now: VisibleScore
    error: float
    # The change without the part that its error explains best.
    likely: float

    @property
    def change(self) -> int:
        return self.now.change_since(self.before)

    @property
    def change_words(self) -> str:
        return signed(self.change)

    @property
    def error_words(self) -> str:
        return f"±{CERTAIN * self.error:.1f}"

    @property
    def likely_words(self) -> str:
        return signed(round(self.likely))

    @property
    def is_certain(self) -> bool:
        return abs(self.change) > CERTAIN * self.error

    @property
    def means(self) -> tuple[int, int]:
        """Return the scores of the answers alone, of which the change is made."""
        return self.before.of_answers[0], self.now.of_answers[0]

    @property
    def bands(self) -> tuple[int, int]:
        return self.before.band, self.now.band

    @property
    def moved(self) -> int:
        """1 for a higher band than before, -1 for a lower one."""
        before, now = self.bands
        return (now > before) - (now < before)

    @property
    def search_text(self) -> str:
        school = self.line
        return f"{school.name} {school.code} {school.district}"


# Values of the filter "Show": label and condition. The keys are in addresses.
SHOW: Mapping[str, tuple[Promise, Callable[[ChangedSchool], bool]]] = {
    "certain": (gettext_lazy("More than chance"), lambda place: place.is_certain),
    "higher": (gettext_lazy("Higher scores"), lambda place: place.change > 0),
    "lower": (gettext_lazy("Lower scores"), lambda place: place.change < 0),
    "moved": (gettext_lazy("Another band"), lambda place: place.moved != 0),
}

SORTS: Mapping[str, Callable[[ChangedSchool], Any]] = {
    "largest": lambda place: -abs(place.likely),
    "name": lambda place: place.line.name,
    "district": lambda place: place.line.district,
    "before": lambda place: place.means[0],
    "now": lambda place: place.means[1],
    "change": lambda place: place.change,
    "likely": lambda place: place.likely,
}


@dataclass(frozen=True)
class ChangesPage:
    scope: ScoresScope
    # Why there are no changes; "" if there are some.
    reason: str
    form: ChangesFilter
    column: ScoreColumn | None
    compared: Administration | None
    # Of all schools of the place.
    changed: Sequence[ChangedSchool]
    # The bands that the listed schools came from and are in, if these are chosen.
    crossing: tuple[int, int] | None
    listing: ComputedListing[ChangedSchool]
    compared_with: ComparedWith | None

    @classmethod
    def of(cls, request: StaffRequest, pk: int) -> ChangesPage:
        """Read what the address asks for; Http404 for places of others.

        13 statements.
        """
        scope = ScoresScope.of(request, pk)
        administration = scope.administration
        # An essential is compared by its measures.
        content = measures_in_survey(administration)
        columns = measure_columns(administration, content)
        column = chosen_measure(request, columns)
        earlier = [wave.pk for wave in earlier_waves(administration)]
        administrations = results_for(request.permissions).filter(pk__in=earlier)
        waves = list(
            administrations.select_related(
                "published__survey", "wave", "results_roll_up"
            )
            .defer("published__definition", "published__survey__source")
            .order_by("closes_at", "pk")
        )
        compared = _compared(request, administration, waves, column)
        changed: list[ChangedSchool] = []
        if column and compared:
            changed = _changed(request.permissions, scope, compared, column)
        data = request.GET.copy()
        if compared:
            data["compare"] = str(compared.pk)
        crossing = _crossing(request)
        show = request.GET.get("show", "")
        return cls(
            scope,
            no_scores(administration, column)
            or _no_changes(column, waves, compared, changed),
            ChangesFilter.of(
                data,
                scope,
                columns,
                compare=[(str(wave.pk), wave.title) for wave in reversed(waves)],
                show=[
                    ("", _("All changes")),
                    *((key, str(label)) for key, (label, _test) in SHOW.items()),
                ],
            ),
            column,
            compared,
            changed,
            crossing,
            ComputedListing(
                request,
                [
                    place
                    for place in changed
                    if (show not in SHOW or SHOW[show][1](place))
                    and crossing in (None, place.bands)
                ],
                text=lambda place: place.search_text,
                sorts=SORTS,
            ),
            ComparedWith.of(administration, column.name) if column else None,
        )

    @property
    def administration(self) -> Administration:
        return self.scope.administration

    @property
    def sentence(self) -> str:
        schools = len(self.changed)
        certain = sum(place.is_certain for place in self.changed)
        words = ngettext(
            "%(certain)s of %(n)s school changed more than chance alone explains;"
            " chance alone would do that to about %(expected)s.",
            "%(certain)s of %(n)s schools changed more than chance alone explains;"
            " chance alone would do that to about %(expected)s.",
            schools,
        )
        return words % {
            "certain": f"{certain:,}",
            "n": f"{schools:,}",
            "expected": f"{round(BY_CHANCE * schools):,}",
        }

    @property
    def has_bands(self) -> bool:
        return all(all(place.bands) for place in self.changed)

    @property
    def bands_sentence(self) -> str:
        moves = Counter((place.moved, place.is_certain) for place in self.changed)
        return _(
            "By more than chance explains, %(up)s moved to a higher band and %(down)s"
            " to a lower one. %(by_chance)s are in another band, which chance alone can"
            " explain; %(stayed)s stayed in their band."
        ) % {
            "up": f"{moves[1, True]:,}",
            "down": f"{moves[-1, True]:,}",
            "by_chance": f"{moves[1, False] + moves[-1, False]:,}",
            "stayed": f"{moves[0, True] + moves[0, False]:,}",
        }

    @property
    def crossing_words(self) -> str:
        if self.crossing is None:
            return ""
        before, now = map(self._words, self.crossing)
        return _("From “%(before)s” to “%(now)s”") % {"before": before, "now": now}

    @property
    def band_names(self) -> list[str]:
        return [self._words(number) for number in NUMBERS]

    @property
    def crossings(self) -> list[tuple[str, list[tuple[int, int, str]], str]]:
        """Return how many schools came from each band, and to which.

        From the lowest band to the highest: its words; for each band the number of
        schools, this band and its words; and the sum. Only schools that show both
        scores count, so that no sum tells the band of another one.
        """
        counts = Counter(place.bands for place in self.changed)
        return [
            (
                self._words(before),
                [(counts[before, now], now, self._words(now)) for now in NUMBERS],
                f"{sum(counts[before, now] for now in NUMBERS):,}",
            )
            for before in NUMBERS
        ]

    @property
    def sums(self) -> list[str]:
        """Return how many schools are in each band now, and the sum."""
        counts = Counter(place.now.band for place in self.changed)
        return [*(f"{counts[now]:,}" for now in NUMBERS), f"{len(self.changed):,}"]

    def _words(self, band: int) -> str:
        is_positive = self.column is None or self.column.is_positive
        return band_words(band, is_positive=is_positive)


def _compared(
    request: StaffRequest,
    administration: Administration,
    waves: Sequence[Administration],
    column: ScoreColumn | None,
) -> Administration | None:
    """Return the wave that the address names, or the last with the same benchmark.

    None without a wave that has it. Http404 for waves that the user may not see.
    """
    comparable: list[Administration] = []
    if column and waves:
        benchmarks = benchmarks_of([*waves, administration], column.name)
        benchmark = benchmarks.get(administration.pk)
        comparable = [
            wave for wave in waves if benchmark and benchmarks.get(wave.pk) == benchmark
        ]
    asked = request.GET.get("compare", "")
    if not asked:
        return comparable[-1] if comparable else None
    if not any(str(wave.pk) == asked for wave in waves):
        raise Http404
    return next((wave for wave in comparable if str(wave.pk) == asked), None)


def _changed(
    permissions: Permissions,
    scope: ScoresScope,
    compared: Administration,
    column: ScoreColumn,
) -> list[ChangedSchool]:
    """Return the schools that show comparable scores in both waves, by name.

    In each wave they have reached their threshold and are among the user's own.
    6 statements.
    """
    administration = scope.administration
    lines = reached_schools(scope.schools.order_by("school__name"))
    earlier = in_state(schools_with_scores(permissions, compared), "reached")
    reached = set(earlier.values_list("school_id", flat=True))
    places = {line.place: line for line in lines if line.key in reached}
    scores = scores_of_waves([compared, administration], places, column.name)
    pairs = []
    for place, line in places.items():
        before = scores[compared.pk].get(place, {}).get(column.name)
        now = scores[administration.pk].get(place, {}).get(column.name)
        if before and now and before.benchmarks == now.benchmarks:
            error = now.error_of_change(before)
            if error is not None:
                pairs.append((line, before, now, error))
    likely = likely_changes(
        [now.change_since(before) for _line, before, now, _error in pairs],
        [error for *_others, error in pairs],
    )
    return [
        ChangedSchool(line, column, before, now, error, change)
        for (line, before, now, error), change in zip(pairs, likely, strict=True)
    ]


def _crossing(request: StaffRequest) -> tuple[int, int] | None:
    bands = {str(number): number for number in NUMBERS}
    before, now = (bands.get(request.GET.get(name, "")) for name in ("from", "to"))
    return (before, now) if before and now else None


def _no_changes(
    column: ScoreColumn | None,
    waves: Sequence[Administration],
    compared: Administration | None,
    changed: Sequence[ChangedSchool],
) -> str:
    label = column.label if column else ""
    if not waves:
        return _("You see no earlier survey round of this survey with scores.")
    if compared is None:
        words = _(
            "“%(measure)s” cannot be compared: its questions or their answers are"
            " others than before, so the scores are on another scale."
        )
        return words % {"measure": label}
    if not changed:
        words = _("No school shows a score of “%(measure)s” in both survey rounds.")
        return words % {"measure": label}
    return ""


def csv_rows(page: ChangesPage) -> Iterator[Sequence[Cell]]:
    """Yield the header and a row for each school, of all pages."""
    yield (
        *("district", "school", "code", "measure", "before", "now", "change"),
        *("standard error", "likely change", "more than chance"),
        *("band before", "band now"),
    )
    for row in page.listing.rows:
        school = row.line
        yield (
            *(school.district, school.name, school.code, row.column.name),
            *(*row.means, row.change),
            *(round(row.error, 1), round(row.likely, 1)),
            "yes" if row.is_certain else "no",
            *row.bands,
        )
