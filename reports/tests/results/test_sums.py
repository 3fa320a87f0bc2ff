"""Answers of schools with a report, added up and kept in the cache."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import numpy as np
import pytest
from django.core.cache import cache
from django.utils import timezone

from reports.models import GroupResults, ResultsRollUp, RollUp, SchoolRate
from reports.releases.apply_suppression import hide_small_groups
from reports.releases.layout import STATES, Column, CountedItem, Layout
from reports.releases.rollup import roll_up_results
from reports.results.sums import SchoolAnswers, SchoolSum, sums_of_reports
from reports.results.visible import visible_groups
from reports.tests.exports.conftest import enrol_and_answer
from survey.models import Administration

AS_OF = datetime(2026, 11, 1, tzinfo=UTC)
ITEMS = ("q1", "q2")
LAYOUT = Layout(
    [CountedItem(item, "choice", ("1", "2")) for item in ITEMS],
    columns=[
        column
        for item in ITEMS
        for column in (
            *(Column(item, kind) for kind in STATES),
            *(Column(item, "value", option) for option in ("1", "2")),
        )
    ],
)
COUNTED = SimpleNamespace(
    results_roll_up=SimpleNamespace(
        as_of=AS_OF, layout=LAYOUT.as_json(), coding_threshold=5
    )
)


def school(people, *, shows=(True, True)):
    """Two of the people skipped each item, and a third of the others chose 1."""
    ones = (people - 2) // 3
    return people, [2, 0, people - 2, ones, people - 2 - ones] * 2, [*shows, True]


def added_up(*schools):
    people, counts, shown = zip(*schools, strict=True)
    answers = SchoolAnswers(
        range(len(schools)),
        np.array(people),
        np.array(people) - 1,
        np.array(counts),
        np.array(shown),
        [0] * 5 + [1] * 5,
    )
    return answers.total(range(len(schools)))


def test_answers_are_added_up():
    group = added_up(school(20), school(32)).group(COUNTED)
    assert (group.people, group.finished, group.as_of) == (52, 50, AS_OF)
    item = group.items["q1"]
    assert (item.answered, item.skipped, item.not_reached) == (48, 4, 0)
    assert item.values == {"1": 16, "2": 32}


def test_an_item_that_a_school_does_not_show_in_full_is_of_the_other_schools():
    hiding, shown_school = school(20, shows=(False, True)), school(32)
    group = added_up(hiding, shown_school).group(COUNTED)
    assert group.items["q1"].values == {"1": 10, "2": 20}
    assert group.items["q1"].not_reached == 0
    assert group.hidden_items == []
    # The twin: with its answers, they are what is left without the other school.
    group = added_up(school(20), shown_school).group(COUNTED)
    assert group.items["q1"].values == {"1": 10 + 6, "2": 20 + 12}


def test_an_item_that_every_school_hides_is_hidden():
    hiding = school(20, shows=(False, True))
    group = added_up(hiding, hiding).group(COUNTED)
    assert list(group.items) == ["q2"]
    assert group.hidden_items == ["q1"]


def test_an_item_that_is_not_allowed_is_hidden():
    allowed = np.array([True, False, True])
    group = added_up(school(20), school(32)).group(COUNTED, allowed)
    assert (list(group.items), group.hidden_items) == (["q1"], ["q2"])


@pytest.fixture
def counted(staff, fall):
    """Count two schools of Riverside, and one elsewhere; all have a report."""
    fall.minimum_group = 3
    fall.save()
    for place, people in (
        (staff.lincoln, 12),
        (staff.washington, 9),
        (staff.roosevelt, 15),
    ):
        enrol_and_answer(
            fall,
            (
                (place, "07", {"safe": ("1", "2")[number % 2]})
                for number in range(people)
            ),
        )
        SchoolRate.objects.create(
            administration=fall,
            school=place,
            district=place.district,
            eligible=20,
            finished=people,
            needed=9,
        )
    RollUp.objects.create(
        administration=fall, as_of=timezone.now(), written_at=timezone.now()
    )
    roll_up_results(fall)
    hide_small_groups(fall)
    return fall


def sums_of(administration, staff):
    current = Administration.objects.select_related("results_roll_up", "roll_up")
    _districts, sums = sums_of_reports(
        current.get(pk=administration.pk), [staff.lincoln.pk], []
    )
    return sums


def people_of(administration, staff):
    sums = sums_of(administration, staff)
    places = ("state", 0), ("district", staff.riverside.pk)
    return [int(sums[place].people[-1]) for place in places]


@pytest.mark.django_db
class TestCache:
    def test_sums_are_added_up_once(self, staff, counted, django_assert_num_queries):
        with django_assert_num_queries(1 + 2):
            first = sums_of(counted, staff)
        with django_assert_num_queries(1):
            cached = sums_of(counted, staff)
        # The state, and the district around the school.
        assert set(cached) == {("state", 0), ("district", staff.riverside.pk)}
        for place, school_sum in cached.items():
            assert school_sum.as_json() == first[place].as_json()
        district = cached["district", staff.riverside.pk]
        assert set(district.shown) == {staff.lincoln.pk, staff.washington.pk}
        # As they are shown where the user may see all schools, who all have a report.
        everybody = visible_groups(counted, [("state", 0)])["state", 0]
        assert cached["state", 0].group(counted).items == everybody.items

    def test_an_item_that_a_school_hides_is_kept_as_hidden(self, staff, counted):
        rows = GroupResults.objects.filter(attribute="", level="school")
        rows.filter(place_id=staff.lincoln.pk).update(hidden_items=["pets cat"])
        for _time in range(2):
            district = sums_of(counted, staff)["district", staff.riverside.pk]
            layout = ResultsRollUp.objects.get(pk=counted.pk).layout
            names = [name for name, *_others in layout["items"]]
            shown = district.shown[staff.lincoln.pk].tolist()
            assert [
                name
                for name, is_shown in zip(names, shown, strict=False)
                if not is_shown
            ] == ["pets"]
            assert district.shown[staff.washington.pk].all()

    def test_without_one_of_the_entries_they_are_added_up_again(
        self, staff, counted, monkeypatch, django_assert_num_queries
    ):
        assert people_of(counted, staff) == [36, 21]
        get_many = cache.get_many

        def without_the_last(keys):
            return get_many(list(keys)[:-1])

        monkeypatch.setattr(cache, "get_many", without_the_last)
        with django_assert_num_queries(1 + 2):
            assert people_of(counted, staff) == [36, 21]

    def test_answers_that_are_counted_again_are_added_up_again(self, staff, counted):
        assert people_of(counted, staff) == [36, 21]
        rows = GroupResults.objects.filter(level="school", place_id=staff.lincoln.pk)
        rows.update(is_hidden=True)
        # Kept for as long as the same count is shown.
        assert people_of(counted, staff) == [36, 21]
        now = timezone.now()
        ResultsRollUp.objects.filter(pk=counted.pk).update(as_of=now, hidden_as_of=now)
        assert people_of(counted, staff) == [24, 9]

    def test_a_school_that_loses_its_report_leaves_the_sums(self, staff, counted):
        assert people_of(counted, staff) == [36, 21]
        SchoolRate.objects.filter(school=staff.washington).update(finished=8)
        later = timezone.now() + timedelta(minutes=1)
        RollUp.objects.filter(pk=counted.pk).update(as_of=later)
        assert people_of(counted, staff) == [27, 12]

    def test_undecided_figures_are_neither_read_nor_kept(self, staff, counted):
        roll_up_results(counted, all_schools=True)
        assert people_of(counted, staff) == [0, 0]
        hide_small_groups(counted)
        assert people_of(counted, staff) == [36, 21]


def test_sums_are_the_same_after_the_cache():
    hiding = school(20, shows=(False, True))
    total = added_up(hiding, school(32))
    restored = SchoolSum.from_json(total.as_json())
    assert restored.as_json() == total.as_json()
