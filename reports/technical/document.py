"""Make the technical report as one tagged PDF: the tables, as people read them.

In English, as the tables are. What is long in the tables is shortened here: items
that groups answer alike, and pairs of items that are independent, are only counted.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from django.conf import settings
from django.template.loader import render_to_string

from accounts.http import Cell
from reports.models import Calibration
from reports.school_report.pdf import pdf_files
from reports.scores.benchmark_titles import title_of_benchmark
from reports.technical.source import TechnicalSource
from reports.technical.tables import Row, shown_calibrations

Tables = Mapping[str, Sequence[Row]]
# A state with hundreds of items has hundreds of pages.
SECONDS = 600
# The headings of `about.txt`, and its entries: a name, which may go on below, and text.
FORMULAS, HIDING = "HOW IT IS CALCULATED", "WHAT IS HIDDEN"
TEXT_COLUMN = 17
# Hidden, or coded at an end.
BOUND = re.compile(r"[*]|[<>≤≥][0-9.]+|")


@dataclass(frozen=True, slots=True)
class Table:
    """A table of the document, with what it shows as its caption.

    Each cell comes with whether it belongs to the right edge, as numbers do.
    """

    caption: str
    header: Sequence[tuple[str, bool]]
    rows: Sequence[Sequence[tuple[str, bool]]]

    @classmethod
    def of(cls, caption: str, header: Sequence[Cell], rows: Sequence[Row]) -> Table:
        columns = [_column(cells) for cells in zip(*rows, strict=True)]
        names = [str(name) for name in header]
        are_numbers = [is_number for _texts, is_number in columns]
        return cls(
            caption,
            list(zip(names, are_numbers or [False] * len(names), strict=True)),
            [
                list(zip(row, are_numbers, strict=True))
                for row in zip(*(texts for texts, _is_number in columns), strict=True)
            ],
        )


@dataclass(frozen=True, slots=True)
class Section:
    title: str
    tables: Sequence[Table]
    sentences: Sequence[str] = ()


def document_of(source: TechnicalSource, tables: Tables, about: str) -> bytes:
    """Return the PDF file of the rows of all tables. Raises NoPdf."""
    administration = source.administration
    context = {
        "title": f"Technical report: {administration.title}",
        "version": settings.VERSION,
        "sections": [
            _provenance(source, tables),
            _measures(source, tables),
            *(
                _measure(source, tables, name, calibration)
                for name, calibration in shown_calibrations(source)
            ),
            _people(tables),
        ],
        "formulas": _formulas(about),
        "hiding": about.split(HIDING)[1].strip(),
    }
    html = render_to_string("reports/technical_report.html", context)
    return pdf_files({"technical-report": html}, SECONDS)["technical-report"]


def _provenance(source: TechnicalSource, tables: Tables) -> Section:
    header, *rows = tables["provenance"]
    benchmarks = {
        title_of_benchmark(calibration)
        for _name, calibration in shown_calibrations(source)
        if calibration.scale_deviation is not None
    }
    rows += [["benchmark", title] for title in sorted(benchmarks)]
    caption = "The release that all figures are made of"
    return Section("Release", [Table.of(caption, header, rows)])


def _measures(source: TechnicalSource, tables: Tables) -> Section:
    shown = (
        *("measure", "items", "people", "reliability", "separation"),
        *("scale mean", "scale deviation", "scale of", "mean Q3"),
        *("first contrast", "largest corrected Q3"),
    )
    caption = "Measures: reliability, scale and dimension"
    return Section(
        "Measures",
        [_chosen(tables["measures"], caption, shown)],
        [
            "Scores have the mean 50 at the scale's mean; 20 points are its deviation,"
            " in logits.",
        ],
    )


def _measure(
    source: TechnicalSource, tables: Tables, name: str, calibration: Calibration
) -> Section:
    definition = next(each for each in source.measures if each["name"] == name)
    label = next(iter(definition["label"].values()), "") or name
    of_measure = {
        key: [table[0], *(row for row in table[1:] if row[0] == name)]
        for key, table in tables.items()
    }
    dif, pairs = of_measure["dif"], of_measure["dependence"]
    notable = [dif[0], *(row for row in dif[1:] if row[-2] != "A")]
    dependent = [pairs[0], *(row for row in pairs[1:] if row[-1] == "yes")]
    item = (
        *("item", "question", "state", "people", "infit", "outfit"),
        *("displacement", "standard error of displacement"),
    )
    threshold = ("item", "threshold", "from answer", "to answer", "logits")
    category = ("item", "answer", "category", "people", "percent", "mean measure")
    group = ("item", "attribute", "reference group", "focal group", "difference")
    return Section(
        f"{label} ({name})",
        [
            _chosen(of_measure["items"], f"{label}: fit and drift of items", item),
            _chosen(
                of_measure["thresholds"],
                f"{label}: thresholds",
                (*threshold, "standard error", "reversed"),
            ),
            _chosen(
                of_measure["categories"],
                f"{label}: category map",
                (*category, "falls", "outfit"),
            ),
            _chosen(
                notable,
                f"{label}: items that groups answer differently (DIF)",
                (*group, "standard error", "adjusted p", "class"),
            ),
            _chosen(
                dependent,
                f"{label}: dependent items",
                ("item", "other item", "Q3", "corrected Q3"),
            ),
        ],
        [
            f"{calibration.people:,} people have this measure.",
            f"DIF: {len(dif) - len(notable)} of {len(dif) - 1} differences are of class"
            " A or not tested, and are in dif.csv only.",
            f"Q3: {len(dependent) - 1} of {len(pairs) - 1} pairs are dependent.",
        ],
    )


def _people(tables: Tables) -> Section:
    captions = {
        "groups": "Groups that the results show",
        "response": "The roster, and who answered",
        "careless": "People who seem not to have read the questions",
        "errors": "Standard errors of the mean of everyone",
    }
    shown = [
        Table.of(caption, tables[name][0], tables[name][1:])
        for name, caption in captions.items()
    ]
    effects = (
        *("measure", "people", "change of the mean", "change in points"),
        *("standard error of people in schools", "reliability", "design effect"),
    )
    caption = "What changes without careless answers, and with weights to the roster"
    return Section("People", [*shown, _chosen(tables["effects"], caption, effects)])


def _chosen(table: Sequence[Row], caption: str, names: Sequence[str]) -> Table:
    """Return some columns of a table, by their headers."""
    places = [list(table[0]).index(name) for name in names]
    return Table.of(caption, names, [[row[at] for at in places] for row in table[1:]])


def _column(cells: Sequence[Cell]) -> tuple[list[str], bool]:
    """Return the texts of a column with as many digits, and whether they are numbers.

    Hidden ones and bounds are among the numbers.
    """
    floats = [str(cell) for cell in cells if isinstance(cell, float)]
    digits = max((len(text.partition(".")[2]) for text in floats), default=0)
    texts = []
    for cell in cells:
        if isinstance(cell, float):
            texts.append(f"{cell:.{digits}f}")
        elif isinstance(cell, int):
            texts.append(f"{cell:,}")
        else:
            texts.append("" if cell is None else str(cell))
    is_number = all(
        not isinstance(cell, str) or BOUND.fullmatch(cell) for cell in cells
    ) and any(isinstance(cell, (int, float)) for cell in cells)
    return texts, is_number


def _formulas(about: str) -> list[tuple[str, str]]:
    """Return the entries of the part of `about.txt` about formulas."""
    part = about.split(FORMULAS)[1].split(HIDING)[0]
    entries: list[tuple[str, str]] = []
    for block in part.strip("\n").splitlines():
        name, text = block[:TEXT_COLUMN].strip(), block[TEXT_COLUMN:].strip()
        is_further = entries and (not name or _goes_on(entries[-1][0], name))
        if is_further:
            before, texts = entries.pop()
            entries.append((f"{before} {name}".strip(), f"{texts} {text}"))
        else:
            entries.append((name, text))
    return entries


def _goes_on(before: str, name: str) -> bool:
    """Test that a name is the second line of the one before it."""
    return before.endswith((" of a", " of people")) or name[0].islower()
