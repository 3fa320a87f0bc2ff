"""Errors of changes where the same people answered twice, from people and simulated."""

from __future__ import annotations

import math
from copy import deepcopy

import numpy as np
import pytest

from reports.answers.item_codes import VALUE
from reports.answers.versions import versions_of
from reports.models import ScoreRow
from reports.rates.rollup import roll_up
from reports.releases.rollup import roll_up_results
from reports.scores.returning_people import (
    correlation_of,
    known_share,
)
from reports.scores.scoring import read_answers, score_administration
from reports.scores.visible import measures_in_survey, scores_of_waves
from reports.tests.scores.conftest import ITEMS, TRUST, closed, published, take_part
from reports.tests.scores.test_larger_places import EFFECTS, schools_of
from survey.models import Identity

pytestmark = pytest.mark.django_db
PEOPLE = 40
# Of them, these answered in both rounds; the others left, and others came.
STAYED = 32


def take_twice(staff, survey, names=("fall", "spring"), **fields):
    """Let the people of twelve schools answer twice; return both rounds."""
    random = np.random.default_rng(3)
    schools = schools_of(staff)
    rounds = [closed(survey, name, joins_waves=True, **fields) for name in names]
    for number, school in enumerate(schools):
        people = random.normal(EFFECTS[number], 1.5, 2 * PEOPLE - STAYED)
        for which, administration in enumerate(rounds):
            here = np.arange(PEOPLE) + which * (PEOPLE - STAYED)
            thetas = people[here] + random.normal(0, 0.3, PEOPLE)
            answers = [answers_of(theta, random) for theta in thetas]
            respondents = take_part(administration, school, answers)
            Identity.objects.bulk_create(
                Identity(
                    respondent=respondent,
                    administration=administration,
                    district=school.district,
                    external_id=f"{number} {person}",
                )
                for respondent, person in zip(respondents, here, strict=True)
            )
    for administration in rounds:
        release(administration)
    return rounds


def answers_of(theta, random):
    row = []
    # Who trusts hears less noise.
    for steps, sign in [(each, 1) for each in TRUST.values()] + [
        (each, -1) for each in NOISE
    ]:
        logits = np.arange(len(steps) + 1) * theta * sign - np.append(
            0, np.cumsum(steps)
        )
        chances = np.exp(logits) / np.exp(logits).sum()
        row.append(int(random.choice(len(chances), p=chances)))
    # Item q3 is reversed.
    row[2] = 3 - row[2]
    return [str(value + 1) for value in row]


NOISE = [[-1.0, 0.1, 1.0], [-0.6, 0.0, 0.7], [-1.2, 0.2, 1.4]]


def release(administration):
    roll_up()
    roll_up_results(administration, release=True)
    score_administration(administration)


@pytest.fixture(scope="module")
def shared_rounds(shared_staff):
    return take_twice(shared_staff, published())


@pytest.fixture
def rounds(shared_rounds):
    return deepcopy(shared_rounds)


def changes_of(rounds, place, name):
    scores = scores_of_waves(rounds, [place])
    return [scores[each.pk][place][name] for each in rounds]


def raw_correlation(rounds):
    """Return how the sums of people's answers to Trust go together within schools."""
    sums = []
    for each in rounds:
        [version] = versions_of([each]).values()
        answers = read_answers(each, version, measures_in_survey(each))
        columns = []
        for item in ITEMS[:4]:
            codes, values = answers.answers[item].codes, answers.answers[item].values
            # PostgreSQL gives all options of the item, also those nobody chose.
            of_code = {
                VALUE + n: int(value) for n, value in enumerate(values) if value != "dk"
            }
            columns.append(np.array([of_code[code] for code in codes.tolist()]))
        columns[2] = -columns[2]
        ids = Identity.objects.filter(administration=each)
        person = dict(ids.values_list("respondent", "external_id"))
        names = [person[key] for key in answers.people.ids.tolist()]
        sums.append(
            (dict(zip(names, sum(columns).tolist(), strict=True)), answers.people)
        )
    (first, people), (second, _people) = sums
    school = dict(zip(first, people.schools.tolist(), strict=True))
    distances = []
    for each in (first, second):
        means = {
            key: np.mean([each[n] for n in each if n.split()[0] == key])
            for key in {name.split()[0] for name in each}
        }
        distances.append({n: each[n] - means[n.split()[0]] for n in each})
    both = [name for name in school if name in second]
    assert len(both) == 12 * STAYED
    return np.corrcoef(*([each[name] for name in both] for each in distances))[0, 1]


@pytest.mark.parametrize("name", ["trust", "noise", "safe"])
def test_errors_of_changes_know_the_people_of_both_rounds(staff, rounds, name):
    fall, _spring = rounds
    school = schools_of(staff)[0]
    places = [("state", 0), ("district", school.district_id), ("school", school.pk)]
    for place in places:
        before, now = changes_of(rounds, place, name)
        shared = now.shared_errors[str(fall.pk)]
        # 32 of 40 are three quarters of them, as far as readers may know.
        correlation = shared / 0.75
        assert correlation == pytest.approx(round(20 * correlation) / 20, abs=0.01)
        assert 0.3 < correlation < 0.9
        if name == "trust":
            assert 0 <= raw_correlation(rounds) - correlation < 0.15
        a, b = before.error_of_people, now.error_of_people
        of_people = math.sqrt(a**2 + b**2 - 2 * shared * a * b)
        by_school = now.school_error_of_change(before) or 0.0
        assert now.error_of_change(before) == pytest.approx(
            math.hypot(
                max(of_people, by_school),
                math.sqrt(1 / 6),
                before.linking_error,
                now.linking_error,
            )
        )
        assert of_people < 0.9 * math.hypot(a, b)
        # The first round has nothing before it.
        assert not before.shared_errors


def test_the_error_by_school_of_few_schools_is_smaller_too(staff, rounds):
    fall, spring = rounds
    place = ("district", staff.lakeside.pk)
    before, now = changes_of(rounds, place, "noise")
    paired = now.school_error_of_change(before)
    spring.joins_waves = False
    score_administration(spring, recalculate=True)
    before, now = changes_of(rounds, place, "noise")
    assert paired < now.school_error_of_change(before)


@pytest.mark.parametrize("reason", ["promised", "left", "erased", "other school"])
def test_people_are_joined_only_where_that_is_allowed(staff, rounds, reason):
    fall, spring = rounds
    before_now = spring if reason == "promised" else fall
    if reason == "promised":
        # Its people were promised that nobody joins their answers.
        before_now.joins_waves = False
        before_now.save(update_fields=["joins_waves"])
    elif reason == "left":
        # Of a school, few are in both rounds: the others have other IDs.
        school = schools_of(staff)[0]
        mine = Identity.objects.filter(administration=spring, respondent__school=school)
        for number, identity in enumerate(mine.order_by("pk")[4:]):
            identity.external_id = f"new {number}"
            identity.save(update_fields=["external_id"])
    elif reason == "erased":
        # Names are destroyed at the end of a round.
        Identity.objects.filter(administration=fall).delete()
    else:
        # All people of two schools have changed places.
        first, second, *_others = schools_of(staff)
        for administration, moved in ((fall, 0), (spring, 1)):
            for number, school in enumerate((first, second)):
                mine = Identity.objects.filter(
                    administration=administration, respondent__school=school
                ).order_by("pk")
                for person, identity in enumerate(mine):
                    identity.external_id = f"{(number + moved) % 2} moved {person}"
                    identity.save(update_fields=["external_id"])
    score_administration(spring, recalculate=True)
    school = schools_of(staff)[0]
    _before, now = changes_of(rounds, ("school", school.pk), "trust")
    assert not now.shared_errors
    # The other schools keep theirs unless nobody may be joined.
    _before, state = changes_of(rounds, ("state", 0), "trust")
    assert bool(state.shared_errors) is (reason in ("left", "other school"))


def test_one_person_more_or_less_changes_nothing_that_is_stored(staff, rounds):
    """A reader who knows all others cannot tell if the last one answered before."""
    _fall, spring = rounds
    rows = ScoreRow.objects.filter(administration=spring, attribute="")
    stored = dict(rows.values_list("pk", "school_errors"))
    expected = sorted(map(str, stored.values()))
    people = Identity.objects.filter(administration=spring, external_id="0 20")
    people.update(external_id="somebody else")
    score_administration(spring, recalculate=True)
    assert sorted(map(str, rows.values_list("school_errors", flat=True))) == expected


def test_shares_are_rounded_down_and_need_the_minimum_group():
    assert known_share(32, 40, 40, 10) == 30
    assert known_share(40, 40, 40, 10) == 30
    assert known_share(19, 40, 40, 10) == 10
    assert known_share(9, 16, 16, 10) == 0
    assert known_share(9, 40, 40, 5) == 0
    assert known_share(0, 0, 40, 5) == 0


def test_correlations_are_those_of_many_people_and_never_too_large():
    random = np.random.default_rng(7)
    for correlation in (0.0, 0.3, 0.7):
        estimates = []
        for _ in range(200):
            first = random.normal(size=400)
            noise = random.normal(size=400)
            second = correlation * first + math.sqrt(1 - correlation**2) * noise
            estimates.append(correlation_of(first, second))
        assert np.mean(np.array(estimates) <= correlation + 0.05) > 0.97
        assert np.mean(estimates) > correlation - 0.1
    assert correlation_of(first[:99], second[:99]) == 0
    assert correlation_of(first, -second) == 0
    first[:301] = np.nan
    assert correlation_of(first, second) == 0


@pytest.mark.parametrize("stayed", [12, 24, 40])
@pytest.mark.parametrize("correlation", [0.3, 0.6])
def test_intervals_of_a_school_hold_the_true_change(stayed, correlation):
    """Of 4,000 simulated changes; without pairs, nearly all intervals hold them."""
    random = np.random.default_rng(stayed)
    first = random.normal(size=(4000, 40))
    rest = math.sqrt(1 - correlation**2)
    second = random.normal(size=(4000, 40))
    same = slice(0, stayed)
    second[:, same] *= rest
    second[:, same] += correlation * first[:, same]
    pooled = correlation_of(first[:400, same].ravel(), second[:400, same].ravel())
    shared = pooled * known_share(stayed, 40, 40, 10) / 40
    errors = [each.std(axis=1, ddof=1) / math.sqrt(40) for each in (first, second)]
    change = np.abs(second.mean(axis=1) - first.mean(axis=1))
    independent = np.hypot(*errors)
    paired = np.sqrt(independent**2 - 2 * shared * errors[0] * errors[1])
    covered, covered_alone = (
        float(np.mean(change <= 1.96 * each)) for each in (paired, independent)
    )
    assert 0.935 < covered < 0.985
    assert covered <= covered_alone
    if (stayed, correlation) == (40, 0.6):
        assert covered_alone > 0.99
        assert paired.mean() < 0.8 * independent.mean()
