"""Public files: what the public pages show, and what its columns mean."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from accounts.http import Cell
from reports.publishing.freezing import Frame, Summary
from reports.publishing.page import Content, coded_of, labels_of
from reports.scores.words import SCORE_COLUMNS
from reports.suppression import HIDDEN
from reports.suppression.end_coding import coded_cells

PLACE = {
    "level": "state, district or school",
    "district": "Code of the district",
    "code": "Code of the district or school",
    "name": "Name of the district or school",
}
RATE = {
    "eligible": "People who were invited, of all schools with a report",
    "finished": "How many of them finished the survey",
    "rate": "Response rate in percent, rounded down",
}
# Of exact figures near 0 and 100 %.
BOUNDS = (
    "Of an answer that hardly anybody or nearly everybody gave, only a bound is shown,"
    " to protect people: <5 is less than 5, >95 is more than 95"
)
ANSWERS = {
    "item": "Name of the question",
    "answer": "Value of the answer, or the lower end of a range of numbers",
    "people": f"People who gave this answer. {BOUNDS}",
    "percent": f"Percent of the people who answered the question. {BOUNDS}",
    "answered": "People who answered the question",
    "skipped": "People who saw the question and left it blank",
    "not applicable": "People who did not have to answer the question",
    "not reached": "People who did not come to the question",
}
STAR = f"{HIDDEN} in place of a figure: hidden to protect people"


def score_rows(
    frame: Frame,
    places: Iterable[tuple[str, str, str, str, Summary]],
) -> Iterator[list[Cell]]:
    """Yield the header and a row for each place.

    `places` are level, code of the district, code, name and summary.
    """
    content = frame["measures"] or {"essentials": [], "measures": []}
    scored = [part["name"] for part in (*content["essentials"], *content["measures"])]
    header: list[Cell] = [*PLACE, *RATE]
    for name in scored:
        header += [f"{name}{suffix}" for suffix in SCORE_COLUMNS]
    yield header
    for *place, summary in places:
        rate = summary["rate"]
        cells: list[Cell] = [*place, rate["eligible"], rate["finished"], rate["rate"]]
        for name in scored:
            blank = HIDDEN if name in summary["scores"] else None
            if figures := summary["scores"].get(name):
                # Publications from before have the first two, others one more.
                columns = [*figures, *[None] * len(SCORE_COLUMNS)]
                cells += columns[: len(SCORE_COLUMNS)]
            else:
                cells += [blank] * len(SCORE_COLUMNS)
        yield cells


def answer_rows(place: Content) -> Iterator[list[Cell]]:
    """Yield the header and a row for each answer to each item."""
    yield [*ANSWERS]
    answers = place.answers
    for name in sorted({*answers["items"], *answers["hidden_items"]}):
        item = answers["items"].get(name)
        if item is None:
            yield [name, HIDDEN, *[HIDDEN] * (len(ANSWERS) - 2)]
            continue
        states: list[Cell] = [item["answered"], item["skipped"]]
        states += [item["not_applicable"], item["not_reached"]]
        whole, coded = item["answered"], coded_of(item)
        for value in sorted({*item["values"], *coded}):
            if share := coded.get(value):
                yield [name, value, *coded_cells(share, whole), *states]
                continue
            people = item["values"][value]
            percent = round(100 * people / whole, 1) if whole else None
            yield [name, value, people, percent, *states]
        if not item["values"] and not coded:
            yield [name, None, None, None, *states]
        for value in answers["hidden_options"].get(name, []):
            yield [name, value, HIDDEN, HIDDEN, *states]


def dictionary_rows(frame: Frame) -> Iterator[list[Cell]]:
    """Yield what the columns and values of the other files mean."""
    languages = frame["languages"]
    yield ["kind", "name", "description", *(f"label ({code})" for code in languages)]
    for kind, columns in (
        ("column of scores.csv", {**PLACE, **RATE}),
        ("column of answers.csv", ANSWERS),
    ):
        for name, description in columns.items():
            yield [kind, name, f"{description}. {STAR}.", *[""] * len(languages)]
    for suffix, description in SCORE_COLUMNS.items():
        name = f"MEASURE{suffix}"
        cells = ["column of scores.csv", name, f"{description}. {STAR}."]
        yield [*cells, *[""] * len(languages)]
    descriptions = {
        "essential": "Mean of the scores of its measures, from 1 to 99",
        "measure": "Score from 1 to 99; 50 is the mean of the benchmark",
        "item": "Question",
        "answer": "Value of an answer",
    }
    for kind, name, labels in labels_of(frame):
        yield [kind, name, descriptions[kind], *(labels[code] for code in languages)]
