"""Make the rows of the tables about measures, items and groups.

Numbers are in logits unless a column says otherwise. `*` is hidden, and a blank does
not exist.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import combinations

from django.conf import settings

from accounts.http import Cell
from reports.models import Calibration
from reports.rasch.dependence import MOST_Q3
from reports.results.visible import VisibleGroup
from reports.suppression import HIDDEN
from reports.suppression.end_coding import coded_cells
from reports.technical.diagnostics import MeasureDiagnostics
from reports.technical.source import TechnicalSource

Row = Sequence[Cell]


def tables_of_items(source: TechnicalSource) -> Mapping[str, Iterator[Row]]:
    """Return the rows of each file, with a header first."""
    makers: Sequence[Callable[[TechnicalSource], Iterator[Row]]] = (
        *(provenance, measures, items, thresholds, categories),
        *(dif, groups, dependence),
    )
    return {maker.__name__: maker(source) for maker in makers}


def provenance(source: TechnicalSource) -> Iterator[Row]:
    administration, roll_up = source.administration, source.roll_up
    survey = administration.published.survey
    yield "fact", "value"
    yield "survey round", administration.name
    yield "title", administration.title
    yield "survey", survey.name
    yield "version of the survey", survey.version
    yield "digest of the survey", administration.published_id
    yield "results as of", roll_up.as_of.isoformat(timespec="seconds")
    if roll_up.released_at:
        yield "first release", roll_up.released_at.isoformat(timespec="seconds")
    yield "digest of the survey in the release", roll_up.survey_digest
    yield "software of the release", roll_up.software
    yield "scores as of", source.scoring.as_of.isoformat(timespec="seconds")
    yield "software", f"Groundswell {settings.VERSION} {settings.COMMIT}".strip()
    yield "people who answered", source.everyone.people
    yield "people who finished", source.everyone.finished
    yield "fewest people of a shown group", administration.minimum_group
    yield "shares coded below, in percent", roll_up.coding_threshold
    yield "hidden questions", len(source.everyone.hidden_items)


def measures(source: TechnicalSource) -> Iterator[Row]:
    header = (
        *("measure", "label", "essential", "direction", "items", "people"),
        *("reliability", "separation", "scale mean", "scale deviation", "scale of"),
        *("anchored to", "mean Q3", "largest corrected Q3"),
        *("first contrast", "first contrast share", "findings", "software"),
        "calculated at",
    )
    yield header
    for definition in source.measures:
        name = definition["name"]
        if name not in source.calibrations:
            continue
        calibration = source.calibrations[name]
        about = [
            *(name, next(iter(definition["label"].values()), "")),
            *(definition["essential"], definition["direction"]),
        ]
        if calibration is None:
            yield [*about, *[HIDDEN] * (len(header) - len(about))]
            continue
        anchor = calibration.anchored_to
        yield [
            *about,
            len(calibration.items),
            calibration.people,
            *map(rounded, (calibration.reliability, calibration.separation)),
            *map(rounded, (calibration.scale_mean, calibration.scale_deviation)),
            calibration.scale_unit,
            anchor.administration.name if anchor else "",
            *_dimension(source.diagnostics.get(name)),
            " ".join(sorted({problem["kind"] for problem in calibration.problems})),
            calibration.software,
            calibration.calculated_at.isoformat(timespec="seconds"),
        ]


def _dimension(diagnostics: MeasureDiagnostics | None) -> list[Cell]:
    if diagnostics is None:
        return [None] * 4
    corrected = diagnostics.dependence.corrected
    pairs = [
        corrected[pair]
        for pair in combinations(range(len(corrected)), 2)
        if math.isfinite(corrected[pair])
    ]
    contrast = diagnostics.contrast
    return [
        rounded(diagnostics.dependence.mean),
        rounded(max(pairs, default=None)),
        rounded(contrast.eigenvalue if contrast else None),
        rounded(contrast.share if contrast else None),
    ]


def items(source: TechnicalSource) -> Iterator[Row]:
    header = (
        *("measure", "item", "question", "reversed", "state", "people"),
        *("infit", "outfit", "displacement", "standard error of displacement"),
        "loading on first contrast",
    )
    yield header
    for definition in source.measures:
        calibration = source.calibrations.get(definition["name"])
        if calibration is None:
            continue
        shown = source.shown_items(calibration)
        stored = {item["name"]: item for item in calibration.items}
        loadings = _loadings(source.diagnostics.get(definition["name"]))
        for item in definition["items"]:
            name = item["name"]
            about = [
                *(definition["name"], name, source.labels.get(name, "")),
                "yes" if item["reversed"] else "no",
            ]
            if name not in stored:
                yield [*about, "left out", *[None] * 6]
            elif name not in shown:
                yield [*about, *[HIDDEN] * 7]
            else:
                figures = stored[name]
                yield [
                    *about,
                    "anchored" if figures["is_anchored"] else "free",
                    figures["people"],
                    *map(rounded, map(figures.get, ("infit", "outfit"))),
                    rounded(figures["displacement"]),
                    rounded(figures.get("displacement_error")),
                    rounded(loadings.get(name)),
                ]


def _loadings(diagnostics: MeasureDiagnostics | None) -> dict[str, float]:
    if diagnostics is None or diagnostics.contrast is None:
        return {}
    names = [item["name"] for item in diagnostics.items]
    return dict(zip(names, diagnostics.contrast.loadings.tolist(), strict=True))


def thresholds(source: TechnicalSource) -> Iterator[Row]:
    yield (
        *("measure", "item", "threshold", "from answer", "to answer"),
        *("logits", "standard error", "reversed"),
    )
    for measure, calibration in shown_calibrations(source):
        shown = source.shown_items(calibration)
        for item in calibration.items:
            if item["name"] not in shown:
                continue
            of_option = item["option_categories"]
            answers = [
                " ".join(
                    option
                    for option, place in zip(item["options"], of_option, strict=True)
                    if place == category
                )
                for category in range(len(item["thresholds"]) + 1)
            ]
            before = -math.inf
            for number, (value, error) in enumerate(
                zip(item["thresholds"], item["standard_errors"], strict=True)
            ):
                yield [
                    *(measure, item["name"], number + 1),
                    *(answers[number], answers[number + 1]),
                    # The benchmark's thresholds are taken as they are.
                    rounded(value),
                    None if item["is_anchored"] else rounded(error),
                    "yes" if value < before else "no",
                ]
                before = value


def categories(source: TechnicalSource) -> Iterator[Row]:
    """People and percentages are those that the results of the state show."""
    yield (
        *("measure", "item", "answer", "category", "people", "percent"),
        *("mean measure", "falls", "outfit"),
    )
    for measure, diagnostics, shown in diagnosed(source):
        for item, of_item in zip(
            diagnostics.items, diagnostics.categories, strict=True
        ):
            if item["name"] not in shown:
                continue
            # The mean of few people could be calculated from the others.
            minimum = source.administration.minimum_group
            is_hidden = ((of_item.counts > 0) & (of_item.counts < minimum)).any()
            of_option = item["option_categories"]
            for value, place in zip(item["options"], of_option, strict=True):
                figures: list[Cell] = [HIDDEN] * 3
                if not is_hidden:
                    figures = [
                        rounded(float(of_item.mean_measures[place]), 2),
                        "yes" if of_item.falls[place] else "no",
                        rounded(float(of_item.outfit[place]), 2),
                    ]
                yield [
                    *(measure, item["name"], value, place),
                    *_visible_answers(source.everyone, item["name"], value),
                    *figures,
                ]


def _visible_answers(group: VisibleGroup, item: str, value: str) -> list[Cell]:
    """Return people and percentage, or their bounds, as the results show them."""
    distribution = group.items.get(item)
    if distribution is None:
        return [HIDDEN] * 2
    if value in distribution.coded:
        return [*coded_cells(distribution.coded[value], distribution.answered)]
    people = distribution.values.get(value)
    if people is None or not distribution.answered:
        return [people, None]
    return [people, round(100 * people / distribution.answered, 1)]


def dif(source: TechnicalSource) -> Iterator[Row]:
    yield (
        *("measure", "item", "attribute", "reference group", "focal group"),
        *("difference", "standard error", "p", "adjusted p", "class", "in the mean"),
    )
    for measure, diagnostics, shown in diagnosed(source):
        for comparison in diagnostics.comparisons:
            hidden = _hidden_in(source, comparison.attribute, comparison.reference)
            hidden |= _hidden_in(source, comparison.attribute, comparison.focal)
            of_items = comparison.items
            for place, item in enumerate(diagnostics.items):
                if item["name"] not in shown:
                    continue
                about = [
                    *(measure, item["name"], comparison.attribute),
                    *(comparison.reference, comparison.focal),
                ]
                if item["name"] in hidden:
                    yield [*about, *[HIDDEN] * 6]
                    continue
                yield [
                    *about,
                    rounded(float(of_items.differences[place])),
                    rounded(float(of_items.standard_errors[place])),
                    rounded(float(of_items.p_values[place])),
                    rounded(float(of_items.adjusted[place])),
                    of_items.sizes[place],
                    "yes" if of_items.anchors[place] else "no",
                ]


def _hidden_in(source: TechnicalSource, attribute: str, value: str) -> set[str]:
    group = source.groups.get((attribute, value))
    return set(group.hidden_items) if group else set()


def groups(source: TechnicalSource) -> Iterator[Row]:
    """The groups that the results of the state show."""
    yield "attribute", "value", "people who answered", "people who finished"
    for (attribute, value), group in source.groups.items():
        yield attribute, value, group.people, group.finished


def dependence(source: TechnicalSource) -> Iterator[Row]:
    yield "measure", "item", "other item", "Q3", "corrected Q3", "dependent"
    for measure, diagnostics, shown in diagnosed(source):
        q3, corrected = diagnostics.dependence.q3, diagnostics.dependence.corrected
        names = [item["name"] for item in diagnostics.items]
        for pair in combinations(range(len(names)), 2):
            first, second = (names[place] for place in pair)
            if not {first, second} <= shown:
                continue
            yield [
                *(measure, first, second),
                *(rounded(float(q3[pair])), rounded(float(corrected[pair]))),
                "yes" if corrected[pair] > MOST_Q3 else "no",
            ]


def shown_calibrations(source: TechnicalSource) -> Iterator[tuple[str, Calibration]]:
    for definition in source.measures:
        calibration = source.calibrations.get(definition["name"])
        if calibration is not None:
            yield definition["name"], calibration


def diagnosed(
    source: TechnicalSource,
) -> Iterator[tuple[str, MeasureDiagnostics, set[str]]]:
    """Yield each measure that is shown, and its items that are."""
    for name, calibration in shown_calibrations(source):
        if name in source.diagnostics:
            yield name, source.diagnostics[name], source.shown_items(calibration)


def rounded(value: float | None, digits: int = 4) -> float | None:
    if value is None or not math.isfinite(value):
        return None
    # Without a minus sign before 0.
    return round(value, digits) + 0.0
