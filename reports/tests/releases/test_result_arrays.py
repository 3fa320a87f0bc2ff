"""Pages read one row for each group, and the suppression all of them as arrays."""

from __future__ import annotations

import numpy as np
import pytest

from accounts.models import School
from reports.models import GroupResults
from reports.releases.counting import packed, unpacked
from reports.releases.result_arrays import result_arrays
from reports.releases.rollup import roll_up_results
from reports.tests.exports.conftest import HIDE, SKIP, answer
from reports.tests.releases.stored_figures import distributions

pytestmark = pytest.mark.django_db


@pytest.fixture
def counted(staff, fall, enrol):
    answers = [
        (staff.lincoln, "07", {"safe": "1", "pets": "cat dog", "age": "12"}),
        (staff.lincoln, "08", {"safe": "2", "pets": "dog", "age": SKIP}),
        (staff.roosevelt, "07", {"safe": SKIP, "teen": HIDE, "age": "9"}),
    ]
    for school, grade, given in answers:
        answer(enrol(fall, school, grade=grade), given)
    roll_up_results(fall)
    return fall


def test_a_distribution_is_read_in_one_statement(
    staff, counted, django_assert_num_queries
):
    with django_assert_num_queries(1):
        distribution = distributions(counted, "school", staff.lincoln.pk)
    assert (distribution.people, distribution.finished) == (2, 0)
    pets, age = distribution.items["pets"], distribution.items["age"]
    # Two people chose three pets.
    assert (pets.answered, pets.values) == (2, {"cat": 1, "dog": 2})
    assert (age.answered, age.skipped, age.values) == (1, 1, {"9": 0, "12": 1})
    assert distribution.items["last"].not_reached == 2
    assert distributions(counted, "school", staff.lincoln.pk, "grade", "09") is None


def test_all_figures_are_read_as_arrays(staff, counted, django_assert_num_queries):
    districts = dict(School.objects.values_list("pk", "district"))
    with django_assert_num_queries(2):
        arrays = result_arrays(counted, districts)
    assert arrays.places[0] == ("state", 0)
    lincoln = arrays.places.index(("school", staff.lincoln.pk))
    district = arrays.parents[lincoln]
    assert arrays.places[district] == ("district", staff.riverside.pk)
    assert (arrays.parents[district], arrays.parents[0]) == (0, -1)
    columns = arrays.columns_of("safe")
    names = [arrays.layout.columns[column].value for column in columns[3:]]
    assert names == ["1", "2", "-1"]
    everyone = arrays.groups.index(("", ""))
    assert arrays.counts[0, everyone, columns].tolist() == [1, 0, 2, 1, 1, 0]
    # Schools add up to districts, and values of an attribute to everyone.
    schools = [n for n, (level, _) in enumerate(arrays.places) if level == "school"]
    assert np.array_equal(arrays.counts[schools].sum(axis=0), arrays.counts[0])
    grades = [n for n, (name, _) in enumerate(arrays.groups) if name == "grade"]
    assert np.array_equal(
        arrays.counts[:, grades].sum(axis=1), arrays.counts[:, everyone]
    )
    assert arrays.people[:, grades].sum(axis=1).tolist() == (
        arrays.people[:, everyone].tolist()
    )


def test_results_that_were_never_counted_are_missing(fall):
    assert result_arrays(fall, {}) is None


@pytest.mark.parametrize(("most", "size"), [(255, 1), (256, 2), (65_536, 4)])
def test_numbers_are_stored_as_small_as_they_fit(most, size):
    counts = np.array([0, 3, most], dtype=np.int32)
    stored = packed(counts)
    assert len(stored) == 1 + 3 * size
    assert unpacked(stored).tolist() == counts.tolist()


def test_a_place_has_one_row_for_a_group(counted, django_assert_num_queries):
    row = GroupResults.objects.get(level="state", attribute="")
    assert str(row) == "state 0: 3 people"
