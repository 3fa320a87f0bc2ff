"""What a reader can calculate from figures, export rows and two releases."""

from __future__ import annotations

import numpy as np
import pytest

from provisioning.prove.suppression_attack.bounds import in_span, shortest_combination
from provisioning.prove.suppression_attack.knowledge import Attack, World
from provisioning.prove.suppression_attack.outputs import (
    EVERYONE,
    ExportFile,
    ExportRow,
    Outputs,
    Table,
    categories_of,
    figure_of,
    item_rows,
)
from provisioning.prove.suppression_attack.states import NOT_REACHED, Person, State

BOTH, LARGE, SMALL = frozenset([0, 1]), frozenset([0]), frozenset([1])


def person(number, school):
    answers = {"safe": str(number % 4 + 1), "kind": "1", "bullied": "no"}
    return Person(school, {"grade": "07"}, answers, finished=True)


@pytest.fixture
def world():
    """Twenty people of one school, and five of another one in its district."""
    people = [person(n, 0) for n in range(20)] + [person(n, 1) for n in range(5)]
    return World(State([0, 0], people, []), [dict(enumerate(people))])


def table(world, schools, source=0):
    people = world.indicator(source, schools, EVERYONE)
    rows = tuple(
        (frozenset([name]), *[float(people @ world.count("safe", [name]))] * 2)
        for name in categories_of("safe")
    )
    return Table(source, schools, EVERYONE, "safe", rows, f"schools {sorted(schools)}")


def outcome(world, *tables, files=()):
    outputs = Outputs(set(tables), list(files), {})
    attack = Attack(world, outputs, [0, 1])
    return attack.run(np.random.default_rng(1), items=["safe"], explained=1)


def export(world, schools, *, shows_school):
    rows = []
    for respondent in world.state.people:
        if respondent.school in schools:
            about = (
                {("school_code", f"s{respondent.school}")} if shows_school else set()
            )
            full = dict.fromkeys(("who", "hours", "clubs", "fair"), NOT_REACHED)
            rows.append(
                ExportRow(
                    frozenset(about), frozenset({**full, **respondent.answers}.items())
                )
            )
    return ExportFile(0, schools, False, tuple(rows), "export")


def test_one_total_tells_nothing_about_a_small_school(world):
    assert outcome(world, table(world, BOTH)).recovered == 0


def test_a_total_minus_the_large_school_is_the_small_one(world):
    result = outcome(world, table(world, BOTH), table(world, LARGE))
    assert result.recovered >= 4
    assert "-1 [schools [0]]" in result.leaks[0]


def test_a_total_of_the_large_school_alone_is_known_as_such(world):
    # The same people would count in both figures, whatever a page calls the second.
    of_large = table(world, LARGE)
    total = Table(0, BOTH, EVERYONE, "safe", of_large.rows, "sum of reports")
    assert outcome(world, total, of_large).recovered == 0


def test_rounded_figures_narrow_without_recovering(world):
    exact = table(world, BOTH)
    rows = tuple((names, low - 1, high + 1) for names, low, high in exact.rows)
    rounded = Table(0, BOTH, EVERYONE, "safe", rows, "rounded")
    assert outcome(world, rounded, table(world, LARGE)).recovered == 0


def test_rows_of_exports_under_two_filters_tell_the_rest(world):
    files = [export(world, BOTH, shows_school=False)]
    assert outcome(world, files=files).recovered == 0
    files.append(export(world, LARGE, shows_school=False))
    assert outcome(world, files=files).recovered >= 4


def test_one_export_minus_a_page_is_the_small_school(world):
    files = [export(world, BOTH, shows_school=False)]
    assert outcome(world, table(world, LARGE), files=files).recovered >= 4


def test_two_releases_tell_about_who_left(world):
    before = dict(enumerate(world.state.people))
    after = {number: row for number, row in before.items() if number}
    both = World(world.state, [before, after])
    tables = [table(both, LARGE, source) for source in (0, 1)]
    assert outcome(both, *tables).recovered >= 1
    # A page that keeps its earlier figures shows the same people again.
    kept_people = Table(1, LARGE, EVERYONE, "safe", tables[0].rows, "kept")
    assert outcome(both, tables[0], kept_people).recovered == 0


def test_combinations_are_found_and_explained():
    shown = [np.array([1.0, 1, 1]), np.array([1.0, 1, 0]), np.array([0, 1.0, 0])]
    wanted = np.array([[0, 0, 1.0], [1.0, 0, 1.0], [2.0, 0, 0]])
    assert in_span(shown, wanted).tolist() == [True, True, True]
    assert in_span(shown[:2], wanted).tolist() == [True, False, False]
    named = list(zip("abc", shown, strict=True))
    assert shortest_combination(named, wanted[0]) == "+1 [a] -1 [b]"


@pytest.mark.parametrize(
    ("people", "percent", "ends"),
    [
        ("7", "35", (7, 7)),
        ("*", "*", None),
        # Fewer than 1 of 20 people is nobody.
        ("", "under 5 %", (0, 0)),
        ("", "over 95 %", (20, 20)),
        ("<3", "<15", (0, 2)),
        (">17", ">85", (18, 20)),
        ("*", "50", (9.898, 10.102)),
    ],
)
def test_cells_are_numbers_or_ranges(people, percent, ends):
    figure = figure_of(people, percent, (20, 20))
    assert figure == (ends and pytest.approx(ends))


def test_a_hidden_option_leaves_the_sum_of_all():
    line = {"skipped": "1", "not applicable": "0", "not reached": "0"}
    lines = [
        {**line, "answer": answer, "people": cell, "percent": cell, "answered": "20"}
        for answer, cell in (("yes", "*"), ("no", "15"))
    ]
    [(item, rows)] = item_rows("bullied", lines)
    assert item == "bullied"
    assert (frozenset(["yes", "no"]), 20, 20) in rows
    assert (frozenset(["no"]), 15, 15) in rows
    assert not any(names == frozenset(["yes"]) for names, *_ in rows)
