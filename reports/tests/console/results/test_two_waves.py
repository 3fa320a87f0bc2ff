"""What is hidden in one wave is in no figure of a page that compares two."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.urls import reverse
from django.utils import timezone

from accounts.tests.logging_in import log_in
from reports.models import GroupResults
from reports.releases.apply_suppression import hide_small_groups
from reports.releases.counting import lengthened, packed, unpacked
from reports.releases.layout import Column, Layout
from reports.releases.rollup import roll_up_results
from reports.tests.exports.conftest import enrol_and_answer, opened

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("is_measured")]


@pytest.fixture
def waves(staff, fall):
    """Count two waves, in which other shares of Lincoln's grades agreed."""
    winter = opened(fall.published, "winter")
    now = timezone.now()
    for administration, agreed, days in ((fall, 3, 100), (winter, 6, 1)):
        enrol_and_answer(
            administration,
            (
                (staff.lincoln, grade, {"safe": "1" if number < agreed else "2"})
                for grade in ("07", "08")
                for number in range(12)
            ),
        )
        administration.opens_at = now - timedelta(days=days + 10)
        administration.closes_at = now - timedelta(days=days)
        administration.save()
        roll_up_results(administration)
        hide_small_groups(administration)
    return fall, winter


def row_of(administration, school):
    return GroupResults.objects.filter(
        administration=administration,
        level="school",
        place_id=school.pk,
        attribute="grade",
        value="08",
    )


def answer_differently(administration, school):
    """Let eleven of the twelve people of grade 08 disagree."""
    layout = Layout.from_json(administration.results_roll_up.layout).columns
    row = row_of(administration, school).get()
    counts = lengthened(unpacked(row.counts), len(layout)).copy()
    for value, people in (("1", 1), ("2", 11)):
        counts[layout.index(Column("safe", "value", value))] = people
    row_of(administration, school).update(counts=packed(counts))


def shown(client, user, waves, school):
    """Return the page, the file and the page that compares by itself.

    Without what differs from request to request.
    """
    fall, winter = waves
    log_in(client, user)
    query = {"school": school.pk, "group": "grade:08", "compare": fall.pk}
    pages = []
    for name in ("results_page", "results_csv", "overview"):
        if name == "overview":
            name, query = "results_page", query | {"compare": ""}
        text = client.get(reverse(name, args=[winter.pk]), query).content.decode()
        pages.append(re.sub(r'nonce="[^"]*"|value="\w{64}"', "", text))
    return pages


HIDDEN = ({"is_hidden": True}, {"hidden_items": ["safe"]})


@pytest.mark.parametrize("wave", [0, 1])
@pytest.mark.parametrize("hidden", HIDDEN)
def test_nothing_shown_of_two_waves_depends_on_hidden_answers(
    client, staff, waves, wave, hidden
):
    row_of(waves[wave], staff.lincoln).update(**hidden)
    before = shown(client, staff.analyst, waves, staff.lincoln)
    assert "*" in before[1]
    answer_differently(waves[wave], staff.lincoln)
    assert shown(client, staff.analyst, waves, staff.lincoln) == before


@pytest.mark.usefixtures("exact_shares")
@pytest.mark.parametrize("wave", [0, 1])
def test_what_is_shown_of_two_waves_depends_on_both(client, staff, waves, wave):
    page, file, overview = shown(client, staff.analyst, waves, staff.lincoln)
    assert "+25" in page and ",25," in file
    answer_differently(waves[wave], staff.lincoln)
    changed = shown(client, staff.analyst, waves, staff.lincoln)
    assert "no question has changed" in overview
    assert all(a != b for a, b in zip(changed, (page, file, overview), strict=True))
