"""Errors of public changes, where the same people answered two rounds."""

from __future__ import annotations

from copy import deepcopy
from datetime import timedelta

import pytest
from django.utils import timezone

from reports.publishing.page import frozen_score
from reports.scores.visible import visible_scores
from reports.tests.scores.conftest import published
from reports.tests.scores.test_returning_people import take_twice

pytestmark = pytest.mark.django_db


@pytest.fixture(scope="module")
def shared_rounds(shared_staff):
    return take_twice(shared_staff, published())


@pytest.fixture
def rounds(shared_rounds):
    return deepcopy(shared_rounds)


def shared_of(publication):
    return {
        (place.level, place.place_id): place.summary.get("shared_errors", {})
        for place in publication.places.all()
    }


def test_all_places_have_it_of_rounds_that_are_public(rounds, publish):
    fall, spring = rounds
    publish(fall)
    publication = publish(spring)
    shared = shared_of(publication)
    assert len(shared) == 12 + 2 + 1
    released = visible_scores(spring, shared)
    for place, by_name in shared.items():
        assert by_name.keys() == {"trust", "noise", "safe"}
        for name, by_round in by_name.items():
            known = released[place][name].shared_errors
            assert by_round == {str(fall.pk): round(known[str(fall.pk)], 2)}
            assert 0.1 < by_round[str(fall.pk)] < 0.75


@pytest.mark.parametrize("change", ["embargo", "schools", "scores"])
def test_no_place_tells_of_a_round_that_is_not_public_as_released(
    rounds, publish, change
):
    fall, spring = rounds
    tomorrow = timezone.now() + timedelta(days=1) if change == "embargo" else None
    state = publish(fall, tomorrow).places.get(level="state")
    if change == "schools":
        state.summary["schools"] -= 1
    elif change == "scores":
        state.summary["scores"]["trust"][0] += 1
    state.save(update_fields=["summary"])
    shared = shared_of(publish(spring))
    schools = {
        name for place in shared if place[0] == "school" for name in shared[place]
    }
    assert schools == ({"noise", "safe"} if change == "scores" else set())


def test_the_public_page_of_a_school_calls_more_changes_certain(rounds, publish):
    fall, spring = rounds
    before = publish(fall).places.filter(level="school").first()
    now = publish(spring).places.get(level="school", place_id=before.place_id)
    old, new = (
        frozen_score(place.summary["scores"]["trust"]) for place in (before, now)
    )
    alone = new.error_of_change(old)
    old = old._replace(administration=fall.pk)
    new = new._replace(shared_errors=now.summary["shared_errors"]["trust"])
    assert new.error_of_change(old) < 0.9 * alone
