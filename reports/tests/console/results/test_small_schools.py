"""Schools below the minimum are shown together, beside their district."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta

import pytest
from django.urls import reverse
from django.utils import timezone

from accounts.tests.logging_in import log_in
from reports.models import ResultsRollUp
from reports.releases.rollup import roll_up_results
from reports.results.distributions import ItemDistribution
from reports.results.visible import visible_groups
from reports.tests.exports.conftest import enrol_and_answer
from reports.tests.releases.stored_figures import distributions
from survey.models import Response

pytestmark = pytest.mark.django_db
ANSWERS = ("1", "2", "-1")
NAME = "Smaller schools of the district (%s schools)"


@pytest.fixture
def released(staff, fall):
    def released(*sizes, lincoln=24, with_bus=0):
        """Count Lincoln, and schools of these sizes in its district."""
        schools = [
            staff.riverside.schools.create(code=f"small-{n}", name=f"Small {n}")
            for n in range(len(sizes))
        ]
        people = [(staff.lincoln, lincoln), *zip(schools, sizes, strict=True)]
        enrol_and_answer(
            fall,
            (
                (
                    school,
                    "07",
                    {"safe": ANSWERS[(n + n // 5) % 3], "age": "9"}
                    | ({"bus": "5"} if school in schools or n < with_bus else {}),
                )
                for school, size in people
                for n in range(size)
            ),
        )
        fall.minimum_group = 10
        fall.closes_at = timezone.now() - timedelta(hours=1)
        fall.save()
        Response.objects.update(saved_at=fall.closes_at - timedelta(days=1))
        roll_up_results(fall, release=True)
        ResultsRollUp.objects.update(shared_at=timezone.now())
        return schools

    return released


def page(client, user, fall, district, **query):
    log_in(client, user)
    address = reverse("results_page", args=[fall.pk])
    return client.get(address, {"district": district.pk, **query})


def chart_of(response, item):
    charts = [
        chart
        for chart_page in response.context["page"].charts
        for _stem, charts in chart_page.blocks
        for chart in charts
    ]
    return next(chart for chart in charts if chart.name == item)


def counts(group, item="safe"):
    return Counter(group.items[item].values)


def test_figures_are_those_of_the_district_minus_the_schools_that_are_shown(
    client, staff, fall, released
):
    schools = released(6, 5, 4)
    district, lincoln = ("district", staff.riverside.pk), ("school", staff.lincoln.pk)
    groups = visible_groups(
        fall, [district, lincoln, *(("school", each.pk) for each in schools)]
    )
    assert [groups["school", each.pk] for each in schools] == [None] * 3
    response = page(client, staff.state, fall, staff.riverside)
    together = response.context["page"].small_schools
    assert (together.number, together.group.people) == (3, 15)
    rest = counts(groups[district])
    rest.subtract(counts(groups[lincoln]))
    assert counts(together.group) == rest
    # It is the truth about the three, and about each of them there is nothing.
    truth = Counter()
    for each in schools:
        truth += Counter(distributions(fall, "school", each.pk).items["safe"].values)
    assert +counts(together.group) == truth
    names = [row.place for row in chart_of(response, "safe").rows]
    assert names == ["Riverside", NAME % 3, "All schools"]
    assert "In 3 schools too few people answered to show them alone." in response.text
    file = client.get(
        reverse("results_csv", args=[fall.pk]), {"district": staff.riverside.pk}
    )
    rows = [line for line in file.text.splitlines() if NAME % 3 in line]
    assert any(",safe," in row for row in rows)


def test_a_district_of_small_schools_alone_has_no_such_row(
    client, staff, fall, released
):
    released(6, 5, lincoln=4)
    shown = page(client, staff.dana, fall, staff.riverside).context["page"]
    assert shown.figures.people == 15
    assert shown.small_schools is None


@pytest.mark.parametrize("sizes", [(6,), (4, 5), ()])
def test_schools_that_the_district_leaves_out_are_not_shown(
    client, staff, fall, released, sizes
):
    released(*sizes)
    shown = page(client, staff.dana, fall, staff.riverside).context["page"]
    assert shown.small_schools is None
    # Otherwise it could be subtracted.
    assert shown.figures.people == 24


def test_an_item_that_a_larger_school_hides_is_hidden(client, staff, fall, released):
    released(6, 5, 4, with_bus=4)
    figures = page(client, staff.dana, fall, staff.riverside).context["page"]
    # The district has the item of all schools: minus nothing that is shown.
    assert figures.figures.items["bus"].answered == 19
    assert "bus" in figures.small_schools.group.hidden_items
    assert "bus" not in figures.small_schools.group.items
    assert "safe" in figures.small_schools.group.items


def test_users_who_do_not_see_all_schools_or_choose_a_group_have_no_such_row(
    client, staff, fall, released
):
    released(6, 5, 4)
    for user, query, is_shown in (
        (staff.state, {}, True),
        (staff.analyst, {}, True),
        (staff.state, {"group": "grade:07"}, False),
        (staff.state, {"school": staff.lincoln.pk}, False),
    ):
        response = page(client, user, fall, staff.riverside, **query)
        assert (NAME % 3 in response.text) == is_shown
    for user, status in ((staff.chen, 404), (staff.sam, 404)):
        assert page(client, user, fall, staff.riverside).status_code == status


def test_answers_that_a_school_codes_are_not_told_by_the_small_schools(
    client, staff, fall, released, monkeypatch
):
    # Everybody at Lincoln is nine years old: only a bound is shown of it.
    released(6, 5, 4)
    [lincoln] = visible_groups(fall, [("school", staff.lincoln.pk)]).values()
    assert lincoln.items["age"].coded
    together = page(client, staff.state, fall, staff.riverside)
    assert "age" in together.context["page"].small_schools.group.hidden_items
    # The twin: with the difference, exact numbers of the district tell Lincoln's.
    monkeypatch.setattr(ItemDistribution, "code_ends", lambda self, threshold: True)
    together = page(client, staff.state, fall, staff.riverside)
    group = together.context["page"].small_schools.group
    assert group.items["age"].values == {"9": 15}
