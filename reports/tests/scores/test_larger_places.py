"""Errors of districts, the state and gaps in them equal a calculation from people."""

from __future__ import annotations

import csv
import io
import math
from copy import deepcopy

import numpy as np
import pytest
from django.urls import reverse

from accounts.models import School
from accounts.tests.logging_in import log_in
from reports.models import Calibration, ScoreRow
from reports.rates.rollup import roll_up
from reports.releases.rollup import roll_up_results
from reports.scores.clusters import Clusters
from reports.scores.groups import Grouping, GroupSums, ScoredMeasure
from reports.scores.scale import SCHOOLS, Scale
from reports.scores.school_errors import errors_of_groups
from reports.scores.scoring import score_administration
from reports.scores.shrinkage import Shrinkage
from reports.scores.visible import visible_scores
from reports.tests.scores.conftest import closed, published, simulated, take_part
from reports.tests.scores.test_scoring import points_of, slow_measures, slow_noise

pytestmark = pytest.mark.django_db
EFFECTS = np.random.default_rng(8).normal(0, 0.6, 12).tolist()
# How much higher the measures of girls are in each school.
GAPS = np.random.default_rng(9).normal(0.5, 0.3, 12).tolist()
PEOPLE = 22


def schools_of(staff):
    """Return ten schools of Riverside and two of Lakeside."""
    return [
        School.objects.get_or_create(
            district=staff.riverside if number < 10 else staff.lakeside,
            code=f"s{number}",
            defaults={"name": f"School {number}"},
        )[0]
        for number in range(len(EFFECTS))
    ]


def answers_of(school, sex):
    shift = EFFECTS[school] + (GAPS[school] if sex == "f" else 0.0)
    return simulated(PEOPLE, 10 * school + (sex == "f"), shift=shift)


@pytest.fixture(scope="module")
def shared_fall(shared_staff):
    fall = closed(published(), "fall-of-twelve")
    for number, school in enumerate(schools_of(shared_staff)):
        for sex in "fm":
            answers = answers_of(number, sex)
            take_part(fall, school, answers, attributes={"sex": sex})
    roll_up()
    roll_up_results(fall, release=True)
    score_administration(fall)
    return fall


@pytest.fixture
def fall(shared_fall):
    return deepcopy(shared_fall)


class People:
    """Everybody's points, with the school and the sex of each."""

    def __init__(self, fall):
        cells = [(school, sex) for school in range(12) for sex in "fm"]
        answers = [row for cell in cells for row in answers_of(*cell)]
        noise = slow_noise([[value or "" for value in row] for row in answers])
        given = [sum(value not in (None, "dk") for value in row[4:]) for row in answers]
        # Of a single answer there is none.
        noise = np.where(np.array(given) > 1, noise, np.nan)
        self.points = {
            "trust": points_of(fall, "trust", slow_measures(answers)[1]),
            "noise": points_of(fall, "noise", noise),
        }
        self.school = np.repeat([school for school, _sex in cells], PEOPLE)
        self.sex = np.repeat([sex for _school, sex in cells], PEOPLE)
        # Of schools, and of people at the same school, in points.
        self.deviations = {
            each.measure: 20
            / each.scale_deviation
            * np.array([each.schools_deviation, each.people_deviation])
            for each in Calibration.objects.filter(administration=fall)
        }

    def residuals(self, name, chosen):
        """Return how much each person adds to the distance of the mean."""
        if name == "safe":
            trust, noise = (self.residuals(each, chosen) for each in ("trust", "noise"))
            return (trust - noise) / 2
        points = np.where(chosen, self.points[name], np.nan)
        known = np.isfinite(points)
        return np.where(known, points - np.nanmean(points), 0) / known.sum()

    def independent(self, name, chosen):
        points = self.points[name][chosen & np.isfinite(self.points[name])]
        return points.std(ddof=1) / math.sqrt(len(points))

    def model(self, name, chosen):
        """Return the deviations of schools by their share, and of people."""
        if name == "safe":
            trust, noise = (self.model(each, chosen) for each in ("trust", "noise"))
            return (trust[0] + noise[0]) / 2, (trust[1] + noise[1]) / 2
        known = chosen & np.isfinite(self.points[name])
        between, within = self.deviations[name]
        shares = np.bincount(self.school[known], minlength=12) / known.sum()
        return between * shares, within / math.sqrt(known.sum())

    def error(self, name, chosen, compared=None):
        """Return the larger error of the sandwich and the model, of ten schools."""
        residuals = self.residuals(name, chosen)
        between, within = self.model(name, chosen)
        if compared is not None:
            residuals = residuals - self.residuals(name, compared)
            of_compared = self.model(name, compared)
            between = between - of_compared[0]
            within = math.hypot(within, of_compared[1])
        model = math.sqrt((between**2).sum() + within**2)
        return max(self.sandwich(residuals), model)

    def sandwich(self, residuals):
        sums = np.bincount(self.school, residuals)
        count = (np.bincount(self.school, residuals != 0) > 0).sum()
        return math.sqrt(count / (count - 1) * (sums**2).sum())


def row_of(fall, level, place, attribute="", value=""):
    return ScoreRow.objects.get(
        administration=fall,
        level=level,
        place_id=place,
        attribute=attribute,
        value=value,
    )


@pytest.mark.parametrize("level", ["state", "district"])
def test_errors_of_means_are_clustered_by_school(staff, fall, level):
    people = People(fall)
    chosen = people.school < (12 if level == "state" else 10)
    place = (level, 0 if level == "state" else staff.riverside.pk)
    scores = visible_scores(fall, [place])[place]
    for name in ("trust", "noise", "safe"):
        expected = people.error(name, chosen)
        stored = row_of(fall, *place).school_errors[name]
        assert stored == [pytest.approx(expected, abs=0.02)]
        assert scores[name].school_error == stored[0]
    for name in ("trust", "noise"):
        independent = people.independent(name, chosen)
        assert scores[name].people_error == pytest.approx(independent, abs=0.05)
    # Schools differ in trust, which the error of independent people does not know.
    trust = scores["trust"]
    assert trust.mean_error == trust.school_error > 2 * trust.people_error
    likely = trust.school_error * math.sqrt(trust.reliability)
    assert trust.error == pytest.approx(likely)


def test_the_error_of_a_district_of_two_schools_is_made_of_all_schools(staff, fall):
    people = People(fall)
    known = np.isfinite(people.points["trust"]) & (people.school >= 10)
    shares = np.bincount(people.school[known]) / known.sum()
    trust = Calibration.objects.get(administration=fall, measure="trust")
    variance = (
        trust.schools_deviation**2 * (shares**2).sum()
        + trust.people_deviation**2 / known.sum()
    )
    expected = 20 * math.sqrt(variance) / trust.scale_deviation
    row = row_of(fall, "district", staff.lakeside.pk)
    assert row.school_errors["trust"] == [pytest.approx(expected, abs=0.02)]


def test_schools_keep_their_errors(staff, fall):
    rows = ScoreRow.objects.filter(administration=fall, level="school")
    assert rows.filter(attribute="").count() == 12
    assert rows.exclude(attribute="").count() == 24
    assert set(rows.values_list("school_errors", flat=True)) == {None}


def test_errors_of_groups_and_gaps_are_clustered_by_school(client, staff, fall):
    people = People(fall)
    girls, boys = people.sex == "f", people.sex == "m"
    for name in ("trust", "noise", "safe"):
        gap = people.error(name, girls, boys)
        for sex, chosen in (("f", girls), ("m", boys)):
            row = row_of(fall, "state", 0, "sex", sex)
            assert row.school_errors[name] == [
                pytest.approx(people.error(name, chosen), abs=0.02),
                pytest.approx(gap, abs=0.02),
                2,
            ]
    log_in(client, staff.state)
    lines = state_lines(client, fall)
    for sex, chosen in (("f", girls), ("m", boys)):
        expected = max(
            people.error("trust", chosen), people.independent("trust", chosen)
        )
        shown = float(lines[sex]["trust mean standard error"])
        assert shown == pytest.approx(expected, abs=0.06)
    address = reverse("scores_groups", args=[fall.pk])
    page = client.get(address, {"by": "sex", "show": "safe"})
    [panel, _noise] = page.context["page"].gaps.panels
    [shown] = panel.gaps
    independent = math.hypot(
        people.independent("trust", girls), people.independent("trust", boys)
    )
    clustered = people.error("trust", girls, boys)
    expected = math.hypot(max(independent, clustered), math.sqrt(1 / 6))
    assert shown.error == pytest.approx(expected, abs=0.05)
    assert "clustered by school" in page.text
    assert "take people as independent" not in page.text


def state_lines(client, fall):
    response = client.get(reverse("scores_groups_csv", args=[fall.pk]))
    content = b"".join(response) if response.streaming else response.content
    lines = csv.DictReader(io.StringIO(content.decode("utf-8-sig")))
    return {line["group"]: line for line in lines if line["level"] == "state"}


def test_scores_from_before_say_nothing_of_schools(client, staff, fall):
    ScoreRow.objects.update(school_errors=None)
    people, everyone = People(fall), np.full(12 * 2 * PEOPLE, True)
    trust = visible_scores(fall, [("state", 0)])["state", 0]["trust"]
    independent = people.independent("trust", everyone)
    assert trust.mean_error == pytest.approx(independent, abs=0.05)
    log_in(client, staff.state)
    address = reverse("scores_groups", args=[fall.pk])
    page = client.get(address, {"by": "sex"}).text
    assert "clustered by school" not in page
    assert "Errors take people as independent" in page


def test_a_page_says_which_errors_are_by_school_if_only_some_are(client, staff, fall):
    row = row_of(fall, "state", 0, "sex", "f")
    del row.school_errors["trust"]
    row.save(update_fields=["school_errors"])
    log_in(client, staff.state)
    address = reverse("scores_groups", args=[fall.pk])
    page = client.get(address, {"by": "sex", "show": "safe"}).text
    assert "some errors here are those of a sample of schools" in page
    assert "so errors here are those of a sample of schools" not in page
    # Of gaps in few schools, it would not be true.
    assert "A gap is smaller or larger in some schools" not in page


@pytest.mark.parametrize("hidden", [False, True])
def test_a_place_with_a_hidden_group_of_a_school_has_no_errors(hidden):
    """They would tell the mean of the group, which the school does not show."""
    schools = np.arange(12)
    sums = np.random.default_rng(1).uniform(20, 30, (1, 3, 12, 2))
    grouping = Grouping("sex", ["f", "m"], schools, schools)
    shown = np.ones((1, 12, 2), dtype=bool)
    shown[0, 3, 1] = not hidden
    scale = Scale(0.0, 1.0, SCHOOLS)
    definition = {"name": "trust", "essential": "", "direction": "positive"}
    errors = errors_of_groups(
        Clusters(np.repeat([0, 1], [2, 10]), 2),
        GroupSums(grouping, sums),
        np.ones((1, 12), dtype=bool),
        shown,
        np.ones((1, 2), dtype=bool),
        [ScoredMeasure(definition, scale, Shrinkage(50.0, 20.0, 40.0))],
        {"essentials": [], "measures": [definition]},
    )
    places = {place for place, _value in errors}
    assert places == ({0} if hidden else {0, 1})
    # Nor has a measure that the place does not show.
    none = errors_of_groups(
        Clusters(np.repeat([0, 1], [2, 10]), 2),
        GroupSums(grouping, sums),
        np.ones((1, 12), dtype=bool),
        np.ones((1, 12, 2), dtype=bool),
        np.array([[True, False]]),
        [ScoredMeasure(definition, scale, Shrinkage(50.0, 20.0, 40.0))],
        {"essentials": [], "measures": [definition]},
    )
    assert {place for place, _value in none} == {0}
