"""Put schools into grade spans, and give each span the scale of its own schools.

A school is of the span in which three quarters of its students or more are, by the
roster. Others, and those whose grades are unknown, have none: they are compared with
all schools, as districts and the state are.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from django.utils.translation import gettext_lazy

from reports.models import GradeRate
from reports.rates.rollup import student_rounds
from reports.scores.scale import Scale, Sums, benchmark_scale, has_few_schools
from reports.scores.shrinkage import SchoolDifferences, estimate_differences
from reports.suppression.tables import Mask
from survey.models import Administration, Role

ELEMENTARY, MIDDLE, HIGH = "elementary", "middle", "high"
# The CEDS codes of grades.
SPANS = {
    ELEMENTARY: ("PR", "PK", "TK", "KG", "01", "02", "03", "04", "05"),
    MIDDLE: ("06", "07", "08"),
    HIGH: ("09", "10", "11", "12", "13"),
}
SPAN_NAMES = {
    ELEMENTARY: gettext_lazy("elementary schools"),
    MIDDLE: gettext_lazy("middle schools"),
    HIGH: gettext_lazy("high schools"),
}
SPAN_OF = {grade: span for span, grades in SPANS.items() for grade in grades}
LEAST_SHARE = 0.75


@dataclass(frozen=True, slots=True)
class SpanScale:
    """A benchmark's scale of the schools of one span, and how far these differ now.

    `people` are those of the benchmark who are on the scale.
    """

    scale: Scale
    people: int
    differences: SchoolDifferences = SchoolDifferences()

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> SpanScale:
        return cls(
            Scale(**stored["scale"]),
            stored["people"],
            SchoolDifferences(**stored["differences"]),
        )

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def spans_of_schools(administration: Administration) -> dict[int, str]:
    """Return the span of each school that has one. 1 statement.

    By the grades of the students' roster of the same wave, so that no answer and no
    refusal to answer decides.
    """
    rounds = [administration.pk]
    if administration.role != Role.STUDENT:
        rounds = list(student_rounds(administration).values_list("pk", flat=True))
    counts: defaultdict[int, Counter[str]] = defaultdict(Counter)
    rates = GradeRate.objects.filter(administration__in=rounds)
    for school, grade, eligible in rates.values_list("school", "grade", "eligible"):
        counts[school][SPAN_OF.get(grade, "")] += eligible
    spans = {}
    for school, of_span in counts.items():
        [(span, people)] = of_span.most_common(1)
        if span and people >= LEAST_SHARE * of_span.total():
            spans[school] = span
    return spans


def benchmark_spans(
    schools: Sums, spans: list[str], shown: Mask
) -> dict[str, SpanScale]:
    """Return the scale of each span in which enough schools can be compared.

    `spans` is that of each school; those in `shown` count.
    """
    scales = {}
    for span in SPANS:
        of_span = _of_span(schools, spans, shown, span)
        if has_few_schools(of_span):
            continue
        differences = estimate_differences(of_span)
        if scale := benchmark_scale(of_span, differences.between):
            scales[span] = SpanScale(scale, int(of_span.people.sum()), differences)
    return scales


def span_differences(
    benchmark: Mapping[str, SpanScale], schools: Sums, spans: list[str], shown: Mask
) -> dict[str, SpanScale]:
    """Return a benchmark's scales with the differences of the schools of a wave."""
    return {
        span: SpanScale(
            of_span.scale,
            of_span.people,
            estimate_differences(_of_span(schools, spans, shown, span)),
        )
        for span, of_span in benchmark.items()
    }


def _of_span(schools: Sums, spans: list[str], shown: Mask, span: str) -> Sums:
    chosen = shown & (np.array(spans, dtype=object) == span)
    return Sums(schools.people[chosen], schools.sums[chosen], schools.squares[chosen])
