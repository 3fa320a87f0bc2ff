"""Scores of groups that are shown isolate nobody, whatever is added and subtracted."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

from reports.suppression import scores
from reports.suppression.scores import MeasuredPeople, ScoreTables, decide_scores

MINIMUM = 10
# A school's people by district and values: each a number of people and their columns.
RACE, LUNCH = (1, 2, 3), (4, 5)
ATTRIBUTES = (RACE, LUNCH)
COLUMNS = 6


def tables(schools, districts=None, *, summed=(), in_state=(), **fields):
    """Return the tables of schools; each has (people, race, lunch) of its patterns.

    `summed` and `in_state` are attributes that are undivided, by number.
    """
    starts, members, measured = [], [], []
    for patterns in schools:
        starts.append(len(members))
        for people, race, lunch in patterns:
            members.append([column in (0, race, lunch) for column in range(COLUMNS)])
            measured.append([people])
    people = MeasuredPeople(
        ATTRIBUTES, np.array(starts), np.array(members), np.array(measured)
    )
    count = len(schools)
    of_school = np.zeros(count, int) if districts is None else np.array(districts)
    undivided = np.zeros((2, count, 2), dtype=bool)
    undivided[0][:, list(summed)] = True
    undivided[1][:, list(in_state)] = True
    released = np.ones((count, COLUMNS, 1), dtype=bool)
    for number in {*summed, *in_state}:
        # Results show no groups below an undivided place.
        released[:, list(ATTRIBUTES[number])] = False
    everywhere = (of_school.max() + 1, COLUMNS, 1)
    values = {
        "people": people,
        # As if nobody had the same measure as somebody else.
        "differing": people.people,
        "released": released,
        "unseen": np.ones_like(released),
        "everyone": np.ones((count, 1), dtype=bool),
        "districts": of_school,
        "released_districts": np.ones(everywhere, dtype=bool),
        "released_state": np.ones((1, COLUMNS, 1), dtype=bool),
        "summed": undivided[0],
        "summed_in_state": undivided[1],
        "minimum": MINIMUM,
    }
    return ScoreTables(**(values | fields))


def shown_sets(data, shown):
    """Return the people of each score that is shown: [score, pattern]."""
    members = data.people.members.astype(float)
    starts = data.people.starts
    school_of = np.searchsorted(starts, np.arange(len(members)), side="right") - 1
    sets = [
        members[:, column] * (school_of == school)
        for school, column, _measure in np.argwhere(shown.schools)
    ]
    for number, columns in enumerate(ATTRIBUTES):
        for decided, place_of in (
            (shown.districts[number], data.districts),
            (shown.state[number], np.zeros_like(data.districts)),
        ):
            for _measure, place in np.argwhere(decided.shown):
                schools = decided.counted[0] & (place_of == place)
                sets += [members[:, column] * schools[school_of] for column in columns]
    return np.array(sets)


def isolated(data, shown):
    """Return the sets of fewer people than the minimum that are sums of shown ones.

    Groups, and what two groups have in common, in each school; any factors.
    """
    members = data.people.members.astype(float)
    weights = data.people.measured[:, 0]
    starts = data.people.starts
    school_of = np.searchsorted(starts, np.arange(len(members)), side="right") - 1
    rows = shown_sets(data, shown)[:, weights > 0]
    _, sizes, basis = np.linalg.svd(rows, full_matrices=False)
    basis = basis[sizes > 1e-9]
    wanted = {}
    for school in range(len(starts)):
        here = members * (school_of == school)[:, None]
        for column in range(COLUMNS):
            wanted[school, column] = here[:, column]
        for first, second in combinations(range(COLUMNS), 2):
            wanted[school, first, second] = here[:, first] * members[:, second]
            wanted[school, first, -second] = here[:, first] * (1 - members[:, second])
    for place in set(data.districts.tolist()):
        inside = (data.districts == place)[school_of]
        for column in range(COLUMNS):
            wanted[f"district {place}", column] = members[:, column] * inside
    return {
        name
        for name, people in wanted.items()
        if 0 < people @ weights < MINIMUM
        and np.allclose(
            people[weights > 0] @ basis.T @ basis, people[weights > 0], atol=1e-6
        )
    }


LARGE = [(20, 1, 4), (20, 1, 5), (20, 2, 4), (20, 2, 5), (20, 3, 4), (20, 3, 5)]
HOSTILE = {
    "one pupil in a group": [[(30, 1, 4), (30, 2, 5), (1, 3, 5)]],
    "a group that is everyone but one": [[(60, 1, 4), (1, 2, 4), (30, 3, 5)]],
    "two groupings that overlap": [[(40, 1, 4), (1, 1, 5), (40, 2, 5), (15, 3, 4)]],
    "differences of two groupings": [[(40, 1, 4), (12, 2, 5), (12, 3, 5), (3, 3, 4)]],
    "a small school beside a large one": [LARGE, [(8, 1, 4), (7, 2, 5), (9, 3, 5)]],
    "one group of one school only": [
        [(40, 1, 4), (40, 1, 5)],
        [(40, 2, 4), (40, 2, 5), (1, 3, 4)],
    ],
}


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("undivided", [(), (0,), (1,), (0, 1)])
@pytest.mark.parametrize("level", ["summed", "in_state"])
def test_hostile_populations(name, undivided, level):
    data = tables(HOSTILE[name], **{level: undivided})
    assert not isolated(data, decide_scores(data))


@pytest.mark.parametrize("name", list(HOSTILE)[:4])
def test_without_the_rule_they_are_isolated(name, monkeypatch):
    monkeypatch.setattr(scores, "group_to_hide", lambda *_arguments: None)
    data = tables(HOSTILE[name])
    assert isolated(data, decide_scores(data))


def test_sums_of_undivided_places_are_hidden_if_they_isolate_a_few(monkeypatch):
    """All but one pupil of a group are in one school, which is nothing else."""
    schools = [[(40, 1, 4)], [(40, 2, 4), (1, 1, 4)], [(40, 2, 5), (40, 3, 5)]]
    data = tables(schools, summed=(0,))
    shown = decide_scores(data)
    assert not shown.districts[0].shown.any()
    assert not isolated(data, shown)
    monkeypatch.setattr(scores._LargerPlaces, "_isolate", lambda *_arguments: False)
    shown = decide_scores(data)
    assert shown.districts[0].shown.all()
    assert (1, 1) in isolated(data, shown)


def test_random_populations():
    generator = np.random.default_rng(7)
    shown_cells = 0
    for _turn in range(60):
        schools = [
            [
                (int(people), race, lunch)
                for race in RACE
                for lunch in LUNCH
                if (people := generator.choice([0, 0, 1, 3, 8, 14, 30]))
            ]
            or [(12, 1, 4)]
            for _school in range(generator.integers(1, 5))
        ]
        districts = np.sort(generator.integers(0, 2, len(schools)))
        districts -= districts.min()
        level = ("summed", "in_state")[int(generator.integers(2))]
        undivided = tuple(np.flatnonzero(generator.integers(0, 2, 2)))
        data = tables(schools, districts, **{level: undivided})
        everyone = data.people.people[:, 0] >= MINIMUM
        data = replace(data, everyone=everyone)
        shown = decide_scores(data)
        if everyone.any():
            assert not isolated(data, shown), schools
        shown_cells += int(shown.schools[:, 1:].sum())
    assert shown_cells > 100


def test_groups_of_enough_people_are_shown_at_each_level():
    data = tables([LARGE, LARGE], [0, 1])
    shown = decide_scores(data)
    assert shown.schools.all()
    for number in range(2):
        assert shown.districts[number].shown.all()
        assert shown.state[number].counted.all() and shown.state[number].shown.all()


def test_a_school_that_hides_a_group_is_in_no_larger_score_by_it():
    few = [(30, 1, 4), (30, 2, 5), (4, 3, 5)]
    data = tables([LARGE, few])
    shown = decide_scores(data)
    assert shown.districts[0].counted[0].tolist() == [True, False]
    assert shown.districts[1].counted[0].tolist() == [True, True]


def test_people_who_are_alike_are_hidden_and_cannot_be_calculated():
    data = tables([LARGE])
    differing = data.people.people.copy()
    # All but two of a group have the same measure.
    differing[0, 3] = 2
    shown = decide_scores(replace(data, differing=differing))
    assert not shown.schools[0, 3, 0]
    # Everyone less the other two groups would be this group.
    assert shown.schools[0, [1, 2], 0].sum() == 1


def test_what_was_hidden_before_is_hidden_first():
    data = tables([[(30, 1, 4), (12, 2, 5), (13, 3, 5), (1, 3, 4)]])
    hidden = ~decide_scores(data).schools[0, :, 0]
    unseen = np.ones_like(data.unseen)
    unseen[0, hidden] = False
    otherwise = ~decide_scores(replace(data, unseen=unseen)).schools[0, :, 0]
    assert hidden.any() and otherwise.any() and (hidden != otherwise).any()
