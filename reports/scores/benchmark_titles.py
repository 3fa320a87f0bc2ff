"""Name what scores are compared with: its title, date and size."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from django.db.models import QuerySet
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from reports.models import Calibration
from reports.scores.imported_measure import ImportedMeasure
from reports.scores.spans import SPAN_NAMES, SpanScale
from survey.models import Administration


def benchmark_title(administration: Administration) -> str:
    """Return its title, with its month, and about how many people answered.

    Rounded, because the exact number would tell those of schools that are hidden.
    """
    scoring = getattr(administration, "scoring", None)
    if scoring is None or not scoring.people:
        return administration.title
    people = scoring.people
    people = round(people, 1 - math.floor(math.log10(people)))
    words = ngettext(
        "%(title)s (about %(people)s person)",
        "%(title)s (about %(people)s people)",
        people,
    )
    return words % {"title": administration.title, "people": f"{people:,}"}


def title_of_benchmark(calibration: Calibration, span: str = "") -> str:
    """Return what the scores of a measure are compared with, when, and its size.

    Its relations to administrations and their scorings are to be fetched.
    """
    if calibration.imported:
        published = ImportedMeasure.from_json(
            calibration.imported.measures[calibration.measure]
        )
        people = published.people
        if span in published.spans:
            people = published.spans[span].people
        words = ngettext(
            "%(source)s, %(date)s (%(people)s person)",
            "%(source)s, %(date)s (%(people)s people)",
            people,
        )
        title = words % {
            "source": published.source,
            "date": published.date,
            "people": f"{people:,}",
        }
    else:
        benchmark = calibration.anchored_to or calibration
        title = benchmark_title(benchmark.administration)
    if not span:
        return title
    words = _("%(title)s, %(span)s")
    return words % {"title": title, "span": SPAN_NAMES[span]}


def published_errors(calibrations: Iterable[Calibration]) -> str:
    """Return what is known of the errors of published benchmarks.

    "known", "unknown", or "" if there is none. Without thresholds, nothing is known of
    the mean either.
    """
    known = [
        ImportedMeasure.from_json(
            calibration.imported.measures[calibration.measure]
        ).has_errors
        for calibration in calibrations
        if calibration.imported
    ]
    if not known:
        return ""
    return "known" if all(known) else "unknown"


def scale_unit(calibration: Calibration, span: str = "") -> str:
    """Return of what 20 points are a deviation."""
    if stored := calibration.span_scales.get(span):
        return SpanScale.from_json(stored).scale.unit
    return calibration.scale_unit


def with_benchmarks(administration: Administration) -> QuerySet[Calibration]:
    """Return the calibrations with scores, and all that their titles need."""
    benchmark = "anchored_to__administration"
    return (
        Calibration.objects.filter(administration=administration)
        .exclude(scale_deviation=None)
        .select_related(
            f"{benchmark}__published__survey",
            f"{benchmark}__wave",
            f"{benchmark}__scoring",
            "administration__published__survey",
            "administration__wave",
            "administration__scoring",
            "imported",
        )
        .defer(
            "items",
            "anchored_to__items",
            "administration__published__definition",
            "administration__published__survey__source",
            f"{benchmark}__published__definition",
            f"{benchmark}__published__survey__source",
        )
    )


@dataclass(frozen=True, slots=True)
class ComparedWith:
    """What the scores of an administration, or of one measure, are compared with."""

    titles: Sequence[str]
    # Whether schools are compared within their grade span.
    by_span: bool
    published_errors: str = ""

    @classmethod
    def of(cls, administration: Administration, measure: str = "") -> ComparedWith:
        """Read the benchmarks. 1 statement."""
        calibrations = with_benchmarks(administration)
        if measure:
            calibrations = calibrations.filter(measure=measure)
        return cls(
            sorted(set(map(title_of_benchmark, calibrations))),
            any(calibration.span_scales for calibration in calibrations),
            published_errors(calibrations),
        )
