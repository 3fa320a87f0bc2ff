from __future__ import annotations

import csv
import io
from copy import deepcopy
from datetime import timedelta

import pytest
from django.urls import reverse
from django.utils import timezone

from accounts.models import AuditEntry
from accounts.tests.logging_in import log_in
from reports.models import (
    Calibration,
    GroupResults,
    ResultsRollUp,
    SchoolRate,
    ScoreRow,
)
from reports.scores.visible import visible_scores
from reports.tests.console.scores.conftest import answered, scored
from reports.tests.scores.conftest import closed

pytestmark = pytest.mark.django_db


@pytest.fixture(scope="module")
def shared_spring(shared_staff, shared_fall):
    """Lincoln has a higher score than in fall, and Washington a report."""
    administration = closed(shared_fall.published, "spring-2027")
    answered(administration, shared_staff.lincoln, 60, 7, shift=1.5)
    answered(administration, shared_staff.washington, 40, 8)
    answered(administration, shared_staff.roosevelt, 40, 3, shift=-0.5)
    return scored(administration)


@pytest.fixture
def spring(shared_spring):
    return deepcopy(shared_spring)


def changes(client, administration, **query):
    query = {"measure": "trust", **query}
    return client.get(reverse("scores_changes", args=[administration.pk]), query)


def names(response):
    return [row.line.name for row in response.context["page"].listing.rows]


def csv_of(client, administration, **query):
    address = reverse("scores_changes_csv", args=[administration.pk])
    text = client.get(address, query).content.decode("utf-8-sig")
    return list(csv.DictReader(io.StringIO(text)))


def crossings(response):
    """Return the numbers of schools by their bands before and now, without zeros."""
    return {
        (before, now): schools
        for before, (_words, cells, _sum) in enumerate(
            response.context["page"].crossings, 1
        )
        for schools, now, _label in cells
        if schools
    }


def set_score(administration, school, points):
    row = ScoreRow.objects.get(
        administration=administration, level="school", place_id=school.pk, attribute=""
    )
    scale = Calibration.objects.get(measure="trust", anchored_to=None)
    mean = scale.scale_mean + (points - 50) * scale.scale_deviation / 20
    row.measures["trust"][1::2] = mean, points
    row.save()


def test_the_largest_change_comes_first_with_its_error(client, staff, fall, spring):
    log_in(client, staff.state)
    page = changes(client, spring)
    # Washington had no report in fall, although it had scores.
    assert names(page) == ["Lincoln", "Roosevelt"]
    place = ("school", staff.lincoln.pk)
    before = visible_scores(fall, [place])[place]["trust"]
    now = visible_scores(spring, [place])[place]["trust"]
    first = page.context["page"].listing.rows[0]
    assert first.change == now.mean - before.mean > 0
    assert first.error == now.error_of_change(before)
    assert first.is_certain
    assert "1 of 2 schools changed more than chance alone explains" in page.text
    assert f"Changes since {fall.title}." in page.text
    report = reverse("school_report", args=[spring.pk, staff.lincoln.pk])
    assert f'<a href="{report}">Lincoln</a>' in page.text


def test_schools_are_counted_by_the_bands_they_left(client, staff, fall, spring):
    for administration, lincoln, roosevelt in ((fall, 39, 55), (spring, 40, 45)):
        set_score(administration, staff.lincoln, lincoln)
        set_score(administration, staff.roosevelt, roosevelt)
    log_in(client, staff.state)
    page = changes(client, spring)
    assert crossings(page) == {(2, 3): 1, (3, 3): 1}
    assert page.context["page"].sums == ["0", "0", "2", "0", "0", "2"]
    # By one point: it is in another band, and has not moved more than chance explains.
    assert "0 moved to a higher band and 0 to a lower one. 1 are in" in page.text
    set_score(spring, staff.lincoln, 90)
    moved = changes(client, spring)
    assert "1 moved to a higher band and 0 to a lower one. 0 are in" in moved.text
    set_score(spring, staff.lincoln, 40)
    # The table leads to the schools.
    query = {"from": 2, "to": 3}
    page = changes(client, spring, **query)
    assert names(page) == ["Lincoln"]
    assert "From “weak” to “neutral”" in page.text
    assert crossings(page) == {(2, 3): 1, (3, 3): 1}
    for nonsense in ({"from": 2}, {"from": "x", "to": 9}, {"from": 0, "to": 6}):
        assert len(names(changes(client, spring, **nonsense))) == 2


def test_a_hidden_score_is_in_no_list_count_or_file(client, staff, fall, spring):
    log_in(client, staff.state)
    assert sum(crossings(changes(client, spring)).values()) == 2
    for administration in (fall, spring):
        hidden = GroupResults.objects.filter(
            administration=administration, level="school", place_id=staff.lincoln.pk
        )
        hidden.update(hidden_items=["q1"])
        page = changes(client, spring)
        assert names(page) == ["Roosevelt"]
        assert sum(crossings(page).values()) == 1
        assert page.context["page"].sums[-1] == "1"
        assert "Lincoln" not in str(csv_of(client, spring, measure="trust"))
        hidden.update(hidden_items=[])


def test_changes_are_filtered_sorted_and_downloaded(client, staff, fall, spring):
    for administration, lincoln, roosevelt in ((fall, 30, 55), (spring, 60, 54)):
        set_score(administration, staff.lincoln, lincoln)
        set_score(administration, staff.roosevelt, roosevelt)
    log_in(client, staff.state)
    for show, expected in (
        ("certain", ["Lincoln"]),
        ("higher", ["Lincoln"]),
        ("lower", ["Roosevelt"]),
        ("moved", ["Lincoln"]),
        ("x", ["Lincoln", "Roosevelt"]),
    ):
        assert names(changes(client, spring, show=show)) == expected
    assert names(changes(client, spring, sort="change")) == ["Roosevelt", "Lincoln"]
    assert names(changes(client, spring, sort="-before")) == ["Roosevelt", "Lincoln"]
    assert "No school matches" in changes(client, spring, q="zzz").text
    [row] = csv_of(client, spring, measure="trust", show="certain")
    assert (row["before"], row["now"], row["change"]) == ("30", "60", "30")
    assert (row["more than chance"], row["band before"]) == ("yes", "2")
    assert AuditEntry.objects.get(action="download scores").user_id == staff.state.pk


def test_waves_that_the_user_does_not_see_are_not_compared(client, staff, fall, spring):
    ResultsRollUp.objects.filter(pk=spring.pk).update(shared_at=timezone.now())
    log_in(client, staff.chen)
    page = changes(client, spring)
    assert "You see no earlier survey round" in page.text
    assert changes(client, spring, compare=fall.pk).status_code == 404
    address = reverse("scores_changes_csv", args=[spring.pk])
    assert client.get(address, {"compare": fall.pk}).status_code == 404
    ResultsRollUp.objects.update(shared_at=timezone.now())
    assert names(changes(client, spring)) == ["Lincoln"]
    # One that was opened again is running.
    ResultsRollUp.objects.update(shared_at=None)
    fall.closes_at = timezone.now() + timedelta(days=1)
    fall.save()
    log_in(client, staff.state)
    assert "You see no earlier survey round" in changes(client, spring).text


def test_a_school_below_its_threshold_in_one_wave_is_left_out(
    client, staff, fall, spring
):
    ResultsRollUp.objects.update(shared_at=timezone.now())
    log_in(client, staff.chen)
    assert names(changes(client, spring)) == ["Lincoln"]
    rate = SchoolRate.objects.filter(administration=fall, school=staff.lincoln)
    rate.update(finished=10)
    page = changes(client, spring)
    assert "No school shows a score of “Trust” in both" in page.text


def test_many_measures_take_as_many_statements(
    client, staff, fall, spring, django_assert_num_queries
):
    log_in(client, staff.state)
    changes(client, spring)
    with django_assert_num_queries(16):
        changes(client, spring)
    with django_assert_num_queries(16):
        changes(client, spring, measure="noise", compare=fall.pk, sort="likely")
