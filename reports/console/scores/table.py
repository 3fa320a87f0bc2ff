"""Make the heat table of schools and measures, with response rates beside them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from html import escape
from typing import cast

from django.db.models import Case, F, QuerySet, Value, When
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts import forms
from accounts.console.listing import Listing
from accounts.http import Cell, StaffRequest
from accounts.language import language_to_read
from reports.console.scores.access import ScoresScope
from reports.models import SchoolRate, Scoring
from reports.rates.rate_lines import SchoolRateLine
from reports.rates.visible_rates import school_line
from reports.releases.levels import LEVELS, STATE, Place
from reports.results.access import is_shared
from reports.scores.benchmark_titles import ComparedWith
from reports.scores.visible import (
    Scores,
    VisibleScore,
    measures_in,
    measures_in_survey,
    score_to_sort_by,
    visible_scores,
)
from reports.scores.words import SCORE_COLUMNS, score_figures, score_tone, score_words
from reports.suppression import HIDDEN
from survey.instrument.definitions.schema import MeasureDefinition, Measures, Texts
from survey.models import Administration
from survey.taking.published import published_survey
from survey.taking.rendering import Localizer

SORTS = {
    "name": ("school__name",),
    "district": ("district__name", "school__name"),
    "rate": ("rate_order", "school__name"),
}
# Prefix of the sort key of a measure or essential.
BY_SCORE = "score-"
# Instead of themes alone, or of one theme with its measures.
ALL = "all"


class ScoresFilter(forms.Form):
    district = forms.ChoiceField(label=gettext_lazy("District"), required=False)


@dataclass(frozen=True, slots=True)
class ScoreColumn:
    """A measure, or an essential."""

    name: str
    label: str
    is_essential: bool
    is_positive: bool
    # Essentials, and measures without one beside them: a rule sets these apart.
    is_theme: bool = False

    @property
    def sort(self) -> str:
        return f"{BY_SCORE}{self.name}"


@dataclass(frozen=True, slots=True)
class ScoreCell:
    column: ScoreColumn
    # None is hidden; without a score, there is none at all.
    text: str
    score: VisibleScore | None = None

    @classmethod
    def of(cls, column: ScoreColumn, scores: Scores) -> ScoreCell:
        if column.name not in scores:
            return cls(column, "–")
        score = scores[column.name]
        return cls(column, str(score.score) if score else HIDDEN, score)

    @property
    def html(self) -> SafeString:
        """Return the cell of a table. A page has a thousand; a template is slower."""
        is_theme = " essential" if self.column.is_theme else ""
        band = title = ""
        if self.score is not None:
            is_positive = self.column.is_positive
            band = f" band-{score_tone(self.score, is_positive=is_positive)}"
            if self.score.band and self.score.is_doubtful:
                band += " doubtful"
            if words := score_words(self.score, is_positive=is_positive):
                title = f' title="{escape(words)}"'
        return SafeString(
            f'<td class="number{band}{is_theme}"{title}>{escape(self.text)}</td>'
        )


@dataclass(frozen=True, slots=True)
class PlaceRow:
    """A district or the state, to compare with."""

    name: str
    cells: Sequence[ScoreCell]


@dataclass(frozen=True, slots=True)
class SchoolRow:
    """A school, and its scores if it has reached the threshold of a report."""

    line: SchoolRateLine
    cells: Sequence[ScoreCell]


@dataclass(frozen=True)
class ScoresTable:
    scope: ScoresScope
    scoring: Scoring | None
    columns: Sequence[ScoreColumn]
    # Values of "show" in addresses, and their labels; none without themes.
    choices: Sequence[tuple[str, str]]
    show: str
    form: ScoresFilter
    listing: Listing[SchoolRate]
    compared_with: ComparedWith

    @classmethod
    def of(cls, request: StaffRequest, pk: int, *, show: str = "") -> ScoresTable:
        """Read what the address asks for; Http404 for places of others.

        `show` is for addresses that ask for no columns. 7 statements, and 1 more where
        a score sorts the schools.
        """
        scope = ScoresScope.of(request, pk)
        administration = scope.administration
        content = measures_in_survey(administration)
        columns = score_columns(administration, content)
        choices = _choices(columns)
        show = request.GET.get("show") or show
        if show not in dict(choices):
            show = ""
        # Bound, so that the fields show what is in the address.
        form = ScoresFilter(request.GET)
        district = cast(forms.ChoiceField, form.fields["district"])
        district.choices = [
            ("", _("All districts")),
            *((option.pk, str(option)) for option in scope.districts),
        ]
        if len(scope.districts) < 2:
            del form.fields["district"]
        return cls(
            scope,
            Scoring.objects.current().filter(pk=administration.pk).first(),
            _columns_to_show(columns, content, show),
            choices,
            show,
            form,
            _listing(request, administration, content, columns, scope.schools),
            ComparedWith.of(administration),
        )

    @property
    def administration(self) -> Administration:
        return self.scope.administration

    def rows(self) -> tuple[list[PlaceRow], list[SchoolRow]]:
        """Return the rows of one page, and those to compare with. 4 statements."""
        around = {}
        scope = self.scope
        if scope.is_whole_state or is_shared(self.administration):
            around[_("All schools")] = STATE
        compared = [scope.district] if scope.district else scope.districts
        if len(compared) == 1 and compared[0]:
            around[str(compared[0])] = (LEVELS.DISTRICT.value, compared[0].pk)
        lines = self._lines(self.listing.page.object_list)
        scores = self._scores(lines, list(around.values()))
        return (
            [
                PlaceRow(name, self._cells(scores[place]))
                for name, place in around.items()
                if place in scores
            ],
            list(self._school_rows(lines, scores)),
        )

    def all_rows(self) -> Iterator[SchoolRow]:
        """Yield the rows of all pages. 5 statements."""
        rows = self.listing.page.paginator.object_list
        lines = self._lines(cast("QuerySet[SchoolRate]", rows))
        yield from self._school_rows(lines, self._scores(lines, []))

    def _lines(self, rows: Iterable[SchoolRate]) -> list[SchoolRateLine]:
        return [school_line(row, self.administration) for row in rows]

    def _scores(
        self, lines: Sequence[SchoolRateLine], around: Sequence[Place]
    ) -> dict[Place, Scores]:
        places = [school_place(line) for line in lines if line.is_reached]
        return visible_scores(self.administration, [*around, *places])

    def _school_rows(
        self, lines: Sequence[SchoolRateLine], scores: dict[Place, Scores]
    ) -> Iterator[SchoolRow]:
        for line in lines:
            yield SchoolRow(line, self._cells(scores.get(school_place(line), {})))

    def _cells(self, scores: Scores) -> list[ScoreCell]:
        return [ScoreCell.of(column, scores) for column in self.columns]


def school_place(line: SchoolRateLine) -> Place:
    return LEVELS.SCHOOL.value, line.school.pk


def score_columns(
    administration: Administration, content: Measures
) -> list[ScoreColumn]:
    """Return each essential with its measures, then measures without one."""
    published = published_survey(administration.published_id)
    localizer = Localizer.of(
        published.definition, language_to_read(published.languages)
    )

    def label(texts: Texts, name: str) -> str:
        return localizer.plain(texts) or name

    def of_measures(measures: Iterable[MeasureDefinition]) -> Iterator[ScoreColumn]:
        for measure in measures:
            name, is_positive = measure["name"], measure["direction"] == "positive"
            yield ScoreColumn(name, label(measure["label"], name), False, is_positive)

    columns: list[ScoreColumn] = []
    for essential in content["essentials"]:
        name = essential["name"]
        theme = label(essential["label"], name)
        columns.append(ScoreColumn(name, theme, True, True, is_theme=True))
        columns += of_measures(measures_in(content, name))
    known = {column.name for column in columns}
    new_measures = (
        measure for measure in content["measures"] if measure["name"] not in known
    )
    has_themes = bool(columns)
    columns += [
        replace(column, is_theme=has_themes) for column in of_measures(new_measures)
    ]
    return columns


def measure_columns(
    administration: Administration, content: Measures
) -> list[ScoreColumn]:
    columns = score_columns(administration, content)
    return [column for column in columns if not column.is_essential]


def _choices(columns: Sequence[ScoreColumn]) -> list[tuple[str, str]]:
    essentials = [column for column in columns if column.is_essential]
    if not essentials:
        return []
    return [
        ("", _("Themes")),
        *((column.name, column.label) for column in essentials),
        (ALL, _("All measures")),
    ]


def _columns_to_show(
    columns: Sequence[ScoreColumn], content: Measures, show: str
) -> list[ScoreColumn]:
    """Return themes and measures without one, or what was chosen."""
    if show == ALL:
        return list(columns)
    names = {measure["name"] for measure in measures_in(content, show)} if show else ()
    if names:
        return [column for column in columns if column.name in {show, *names}]
    themes = {essential["name"] for essential in content["essentials"]}
    in_theme = {
        measure["name"]
        for measure in content["measures"]
        if measure["essential"] in themes
    }
    return [column for column in columns if column.name not in in_theme]


def _listing(
    request: StaffRequest,
    administration: Administration,
    content: Measures,
    columns: Sequence[ScoreColumn],
    rows: QuerySet[SchoolRate],
) -> Listing[SchoolRate]:
    sorts = dict(SORTS)
    sort = request.GET.get("sort", "")
    name = sort.removeprefix("-").removeprefix(BY_SCORE)
    if sort.removeprefix("-").startswith(BY_SCORE) and any(
        column.name == name for column in columns
    ):
        # Schools without a score come last in both orders.
        without = -1 if sort.startswith("-") else 1000
        score = score_to_sort_by(administration, content, name, without=without)
        rows = rows.annotate(
            score_order=Case(
                When(needed__lte=F("shown_finished"), then=score),
                default=Value(without),
            )
        )
        sorts[f"{BY_SCORE}{name}"] = ("score_order", "school__name")
    return Listing(
        request,
        rows.select_related("school__district"),
        search=("school__name", "school__code", "district__name"),
        sorts=sorts,
    )


def csv_rows(table: ScoresTable) -> Iterator[Sequence[Cell]]:
    """Yield the header and a row for each school, of all pages."""
    header = ["district", "school", "code", "eligible", "finished", "rate (%)"]
    for column in table.columns:
        header += [f"{column.name}{suffix}" for suffix in SCORE_COLUMNS]
    yield header
    for row in table.all_rows():
        line = row.line
        cells: list[Cell] = [line.school.district.name, line.name, line.school.code]
        finished = HIDDEN if line.finished is None else line.finished
        cells += [line.eligible, finished, HIDDEN if line.is_hidden else line.rate]
        for cell in row.cells:
            hidden = HIDDEN if cell.text == HIDDEN else None
            cells += score_figures(cell.score) or [hidden] * len(SCORE_COLUMNS)
        yield cells
