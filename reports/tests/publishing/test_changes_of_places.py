"""Errors of changes of districts and the state, calculated again from schools' rows."""

from __future__ import annotations

import math
from copy import deepcopy
from datetime import timedelta
from statistics import fmean

import numpy as np
import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from accounts.models import School
from accounts.tests.logging_in import log_in
from reports.models import Calibration, ScoreRow
from reports.publishing.publications import withdraw
from reports.rates.rollup import roll_up
from reports.releases.rollup import roll_up_results
from reports.scores.scoring import score_administration
from reports.scores.visible import scores_of_waves, visible_scores
from reports.tests.scores.conftest import closed, published, simulated, take_part
from reports.tests.scores.test_larger_places import EFFECTS, PEOPLE, schools_of

pytestmark = pytest.mark.django_db
CHANGES = np.random.default_rng(5).normal(0.2, 0.4, 12).tolist()
# One school took part in fall only, and one in spring only.
ROUNDS = {"fall": set(range(12)) - {11}, "spring": set(range(12)) - {3}}
BY_SCHOOL = "The errors of changes take this into account, too"
OF_PEOPLE = "Not all changes take into account that people of a school are alike"


@pytest.fixture(scope="module")
def shared_rounds(shared_staff):
    survey, schools = published(), schools_of(shared_staff)
    rounds = []
    for name, numbers in ROUNDS.items():
        administration = closed(survey, f"{name}-of-twelve")
        for number in sorted(numbers):
            shift = EFFECTS[number] + CHANGES[number] * (name == "spring")
            seed = 100 * number + (name == "spring")
            # Schools grow, so that their shares change.
            people = PEOPLE + 3 * number * (name == "spring")
            answers = simulated(people, seed, shift=shift)
            take_part(administration, schools[number], answers)
        roll_up()
        roll_up_results(administration, release=True)
        score_administration(administration)
        rounds.append(administration)
    return rounds


@pytest.fixture
def rounds(shared_rounds):
    return deepcopy(shared_rounds)


class Means:
    """The people, and the mean in points, of each school in a round."""

    def __init__(self, administration, measure):
        scale = Calibration.objects.get(administration=administration, measure=measure)
        self.unit = 20 / scale.scale_deviation
        self.between = self.unit * scale.schools_deviation
        self.within = self.unit * scale.people_deviation
        self.people, self.points = {}, {}
        for row in ScoreRow.objects.filter(
            administration=administration, level="school", attribute=""
        ):
            people, logits, _error, _score = row.measures[measure]
            self.people[row.place_id] = people
            self.points[row.place_id] = self.unit * logits

    def residuals(self, schools):
        """Return what each school adds to the distance of the mean, and its share."""
        mine = [school for school in schools if school in self.people]
        total = sum(self.people[school] for school in mine)
        mean = sum(self.people[school] * self.points[school] for school in mine) / total
        shares = {school: self.people[school] / total for school in mine}
        return {
            school: (shares[school] * (self.points[school] - mean), shares[school])
            for school in mine
        }, self.within**2 / total


def variance_of_changes(before, now):
    """Return δ² of the schools that were in both rounds (DerSimonian and Laird)."""
    both = sorted(before.people.keys() & now.people.keys())
    changes = [now.points[school] - before.points[school] for school in both]
    weights = [
        1
        / (
            before.within**2 / before.people[school]
            + now.within**2 / now.people[school]
        )
        for school in both
    ]
    mean = sum(w * x for w, x in zip(weights, changes, strict=True)) / sum(weights)
    scatter = sum(w * (x - mean) ** 2 for w, x in zip(weights, changes, strict=True))
    divisor = sum(weights) - sum(w * w for w in weights) / sum(weights)
    return max(0.0, scatter - (len(both) - 1)) / divisor


def by_hand(before, now, schools):
    """Return the error of a change: the sandwich's, or of the model if that is more."""
    (first, people), (second, people_now) = (
        each.residuals(schools) for each in (before, now)
    )
    true_changes = variance_of_changes(before, now)
    between = max(before.between**2, now.between**2, true_changes / 2)
    everywhere = first.keys() | second.keys()
    sandwich, model = 0.0, people + people_now
    for school in everywhere:
        residual, share = first.get(school, (0.0, 0.0))
        residual_now, share_now = second.get(school, (0.0, 0.0))
        sandwich += (residual_now - residual) ** 2
        model += between * (share_now - share) ** 2 + true_changes * share * share_now
    count = len(everywhere)
    sandwich *= count / (count - 1)
    return math.sqrt(max(sandwich, model) if count >= 10 else model)


def changes_of(rounds, place):
    scores = scores_of_waves(rounds, [place])
    before, now = (scores[each.pk][place]["trust"] for each in rounds)
    return before, now


@pytest.mark.parametrize("level", ["state", "district", "small district"])
def test_the_error_is_that_of_a_calculation_from_schools(staff, rounds, level):
    before, now = (Means(each, "trust") for each in rounds)
    place, district = ("state", 0), None
    if level != "state":
        district = staff.riverside if level == "district" else staff.lakeside
        place = ("district", district.pk)
    schools = [
        school.pk
        for school in School.objects.all()
        if district in (None, school.district)
    ]
    expected = by_hand(before, now, schools)
    earlier, later = changes_of(rounds, place)
    shown = later.school_error_of_change(earlier)
    assert shown == pytest.approx(expected, abs=0.01)
    # Of independent people, it would be far smaller: schools changed differently.
    independent = math.hypot(earlier.error_of_people, later.error_of_people)
    assert shown > 1.3 * independent
    assert later.error_of_change(earlier) == pytest.approx(
        math.hypot(shown, math.sqrt(1 / 6), later.linking_error), abs=0.01
    )
    # As if the schools were others, it would be larger: what they have twice cancels.
    if level == "state":
        apart = math.hypot(earlier.school_error, later.school_error)
        assert shown < 0.8 * apart


def test_an_essential_has_one_too(rounds):
    fall, spring = rounds
    row = ScoreRow.objects.get(administration=spring, level="state", attribute="")
    errors = {
        name: stored[1][str(fall.pk)] for name, stored in row.school_errors.items()
    }
    assert errors.keys() == {"trust", "noise", "safe"}
    assert errors["safe"] < fmean([errors["trust"], errors["noise"]]) * 1.01
    # Nor has the first round an error of a change, or a school.
    for each in ScoreRow.objects.exclude(pk=row.pk):
        changes = [len(stored) for stored in (each.school_errors or {}).values()]
        is_later = each.administration_id == spring.pk
        assert set(changes) <= {2 if is_later and each.level != "school" else 1}


def test_a_round_that_was_released_again_has_no_error(staff, rounds):
    """Its schools do not add up to the people of the place any more."""
    fall, spring = rounds
    row = ScoreRow.objects.filter(administration=fall, level="school").first()
    row.measures["trust"][0] += 1
    row.save(update_fields=["measures"])
    score_administration(spring, recalculate=True)
    earlier, later = changes_of(rounds, ("state", 0))
    assert later.school_error_of_change(earlier) is None
    state = ("state", 0)
    noise = [
        scores[state]["noise"] for scores in scores_of_waves(rounds, [state]).values()
    ]
    assert noise[1].school_error_of_change(noise[0]) is not None


def console_page(client, staff, administration):
    log_in(client, staff.state)
    return client.get(reverse("results_page", args=[administration.pk]))


def test_the_page_of_the_state_says_when_changes_take_people_as_independent(
    client, staff, rounds
):
    _fall, spring = rounds
    page = console_page(client, staff, spring)
    assert "Change since last time" in page.text
    assert OF_PEOPLE not in page.text
    for row in ScoreRow.objects.exclude(school_errors=None):
        # As scores from before had them.
        row.school_errors = {
            name: stored[:1] for name, stored in row.school_errors.items()
        }
        row.save(update_fields=["school_errors"])
    page = console_page(client, staff, spring)
    assert "Change since last time" in page.text
    assert OF_PEOPLE in page.text


@pytest.mark.parametrize("is_public", [True, False])
def test_a_public_page_has_the_errors_of_changes_since_public_results(
    staff, rounds, publish, is_public
):
    fall, spring = rounds
    tomorrow = None if is_public else timezone.now() + timedelta(days=1)
    earlier = publish(fall, tomorrow)
    publication = publish(spring)
    summary = publication.places.get(level="state").summary
    assert ("change_errors" in summary) is is_public
    address = reverse("published_state", args=[spring.pk])
    page = Client().get(address).text
    assert ("Change since last time" in page) is is_public
    assert (BY_SCHOOL in page) is is_public
    assert OF_PEOPLE not in page
    if is_public:
        [before, now] = (visible_scores(each, [("state", 0)]) for each in rounds)
        assert summary["change_errors"]["trust"] == {
            str(fall.pk): round(
                now["state", 0]["trust"].school_error_of_change(
                    before["state", 0]["trust"]
                ),
                1,
            )
        }
        withdraw(earlier, because="An error.", by=staff.state)
        assert BY_SCHOOL not in Client().get(address).text


@pytest.mark.parametrize("change", ["schools", "scores"])
def test_no_error_tells_of_schools_that_were_not_published(rounds, publish, change):
    """Of the errors by school, those of a round that is public as it was released."""
    fall, spring = rounds
    place = publish(fall).places.get(level="state")
    if change == "schools":
        # One school was hidden when fall was published.
        place.summary["schools"] -= 1
    else:
        # Fall was scored again since.
        place.summary["scores"]["trust"][0] += 1
    place.save(update_fields=["summary"])
    errors = publish(spring).places.get(level="state").summary.get("change_errors", {})
    assert "trust" not in errors
    # Of the other scores, nothing has changed since fall was published.
    assert bool(errors) is (change == "scores")
