"""A score that is hidden in one wave is in no figure that compares two."""

from __future__ import annotations

import re
from copy import deepcopy

import pytest
from django.urls import reverse

from accounts.tests.logging_in import log_in
from reports.models import GroupResults, ScoreRow
from reports.tests.console.scores.conftest import answered, scored
from reports.tests.scores.conftest import closed

pytestmark = pytest.mark.django_db


@pytest.fixture(scope="module")
def shared_spring(shared_staff, shared_fall):
    administration = closed(shared_fall.published, "spring-2027")
    answered(administration, shared_staff.lincoln, 60, 7, shift=1.5)
    answered(administration, shared_staff.roosevelt, 40, 3, shift=-0.5)
    return scored(administration)


@pytest.fixture
def spring(shared_spring):
    return deepcopy(shared_spring)


def score_differently(administration, school):
    """Store other scores of a school, with other errors."""
    row = ScoreRow.objects.get(
        administration=administration, level="school", place_id=school.pk, attribute=""
    )
    people, mean, error, _score = row.measures["trust"]
    row.measures["trust"] = [people - 1, mean / 2, error * 2, 11]
    row.essentials["safe"] = 12
    row.essential_errors["safe"] = 3.5
    row.save()


def shown(client, user, administration, school):
    """Return the largest changes, their file and the report with its trend."""
    log_in(client, user)
    addresses = [
        reverse("scores_changes", args=[administration.pk]) + "?measure=trust",
        reverse("scores_changes_csv", args=[administration.pk]) + "?measure=trust",
        reverse("school_report", args=[administration.pk, school.pk]),
    ]
    return [
        re.sub(
            r'nonce="[^"]*"|value="\w{64}"', "", client.get(address).content.decode()
        )
        for address in addresses
    ]


@pytest.mark.parametrize("wave", ["fall", "spring"])
@pytest.mark.parametrize("hidden", [{"is_hidden": True}, {"hidden_items": ["q1"]}])
def test_no_change_or_trend_depends_on_a_hidden_score(
    client, staff, fall, spring, wave, hidden
):
    administration = {"fall": fall, "spring": spring}[wave]
    GroupResults.objects.filter(
        administration=administration, level="school", place_id=staff.lincoln.pk
    ).update(**hidden)
    before = shown(client, staff.state, spring, staff.lincoln)
    score_differently(administration, staff.lincoln)
    assert shown(client, staff.state, spring, staff.lincoln) == before


@pytest.mark.parametrize("wave", ["fall", "spring"])
def test_changes_and_trends_depend_on_shown_scores(client, staff, fall, spring, wave):
    before = shown(client, staff.state, spring, staff.lincoln)
    score_differently({"fall": fall, "spring": spring}[wave], staff.lincoln)
    after = shown(client, staff.state, spring, staff.lincoln)
    assert all(earlier != later for earlier, later in zip(before, after, strict=True))
