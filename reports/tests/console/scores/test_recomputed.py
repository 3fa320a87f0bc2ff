"""Figures of pages about scores equal a slow calculation from the stored answers."""

from __future__ import annotations

import math
from collections import defaultdict

import numpy as np
import pytest
from django.urls import reverse
from scipy.stats import chi2

from accounts.models import School
from accounts.tests.logging_in import log_in
from reports.models import Calibration
from reports.rasch import MISSING, ResponseTable, measure_people
from reports.tests.console.scores.test_changes import (  # noqa: F401
    changes,
    shared_spring,
    spring,
)
from reports.tests.console.scores.test_table import rows_of, table
from survey.models import Respondent, Response

pytestmark = pytest.mark.django_db
WITH_REPORT = ("Lincoln", "Roosevelt")


def calibration_of(administration, measure):
    return Calibration.objects.get(administration=administration, measure=measure)


def answers_of(administration):
    """Return the answers of each person by item, of each school by name."""
    schools: defaultdict[str, dict[int, dict[str, str]]] = defaultdict(dict)
    names = dict(School.objects.values_list("pk", "name"))
    for key, school in Respondent.objects.filter(
        administration=administration
    ).values_list("pk", "school"):
        schools[names[school]][key] = {}
    of_person = {key: row for rows in schools.values() for key, row in rows.items()}
    items = dict(administration.published.survey.items.values_list("pk", "name"))
    for key, item, value in Response.objects.filter(
        administration_id=administration.pk, state="a"
    ).values_list("respondent_id", "item_id", "value"):
        of_person[key][items[item]] = value
    return {name: list(rows.values()) for name, rows in schools.items()}


def measures_of(administration, measure):
    """Return the measures of the people of each school, in logits."""
    items = calibration_of(administration, measure).items
    category = {
        item["name"]: dict(zip(item["options"], item["option_categories"], strict=True))
        for item in items
    }
    measures = {}
    for school, people in answers_of(administration).items():
        matrix = np.array(
            [
                [category[name].get(row.get(name), MISSING) for name in category]
                for row in people
            ]
        )
        responses, place = ResponseTable.of_people(matrix)
        thresholds = [np.array(item["thresholds"]) for item in items]
        wle = measure_people(responses, thresholds).wle[place]
        enough = (matrix != MISSING).sum(axis=1) > 1
        measures[school] = wle[enough & np.isfinite(wle)]
    return measures


def differences_of(groups):
    """Return the mean of schools, τ and σ (DerSimonian and Laird)."""
    people = np.array([len(group) for group in groups])
    means = np.array([group.mean() for group in groups])
    around = sum(((group - group.mean()) ** 2).sum() for group in groups)
    within = around / (people.sum() - len(groups))
    weights = people / within
    mean = (weights * means).sum() / weights.sum()
    scatter = (weights * (means - mean) ** 2).sum()
    degrees = len(groups) - 1
    between = max(
        0.0,
        (scatter - degrees) / (weights.sum() - (weights**2).sum() / weights.sum()),
    )
    if chi2.sf(scatter, degrees) > 0.01:
        return mean, 0.0, math.sqrt(within)
    weights = 1 / (between + within / people)
    mean = (weights * means).sum() / weights.sum()
    return mean, math.sqrt(between), math.sqrt(within)


def scale_of(fall, measure):
    """Return the mean and deviation of the benchmark, of people: schools are few."""
    groups = [measures_of(fall, measure)[name] for name in WITH_REPORT]
    people = np.concatenate(groups)
    return people.mean(), people.std(ddof=1)


def drawn(group, groups, mean, deviation):
    """Return the likely score of a school."""
    center, between, within = differences_of(groups)
    points = 50 + 20 * (group.mean() - mean) / deviation
    center = 50 + 20 * (center - mean) / deviation
    share = 1.0
    if between:
        share = between**2 / (between**2 + within**2 / len(group))
    score = center + share * (points - center)
    return math.floor(min(max(score, 1), 99) + 0.5)


def test_scores_of_the_table(client, staff, fall):
    log_in(client, staff.state)
    rows = {row[0]: row for row in rows_of(table(client, fall, "?show=all"))}
    shown, expected = [], []
    for measure, column in (("trust", 4), ("noise", 5)):
        mean, deviation = scale_of(fall, measure)
        by_school = measures_of(fall, measure)
        groups = [by_school[name] for name in WITH_REPORT]
        for name in WITH_REPORT:
            shown.append(rows[name][column])
            expected.append(drawn(by_school[name], groups, mean, deviation))
        # A district of one school has its score; all schools are the mean of both.
        of_all_schools = np.concatenate(groups)
        shown.append(rows["All schools"][column])
        expected.append(drawn(of_all_schools, groups, mean, deviation))
    assert shown == [str(score) for score in expected]
    for name in (*WITH_REPORT, "All schools"):
        safe, trust, noise = map(int, rows[name][3:6])
        assert safe == math.floor((trust + 100 - noise) / 2 + 0.5)
    assert "50 is the average of" in table(client, fall).text


def test_changes_and_their_errors(client, staff, fall, spring):  # noqa: F811
    log_in(client, staff.state)
    rows = {
        row.line.name: row
        for row in changes(client, spring).context["page"].listing.rows
    }
    mean, deviation = scale_of(fall, "trust")
    before, now = measures_of(fall, "trust"), measures_of(spring, "trust")
    link = calibration_of(spring, "trust")
    moved = [item["displacement"] for item in link.items if item["is_anchored"]]
    linking = math.sqrt(
        sum(value**2 for value in moved) / (len(moved) * (len(moved) - 1))
    )
    for name in WITH_REPORT:
        row, points, errors = rows[name], [], []
        for group in (before[name], now[name]):
            points.append(math.floor(50 + 20 * (group.mean() - mean) / deviation + 0.5))
            error = group.std(ddof=1) / math.sqrt(len(group))
            errors.append(20 * error / deviation)
        assert row.means == tuple(points)
        assert row.change == points[1] - points[0]
        expected = math.hypot(*errors, math.sqrt(1 / 6), 20 * linking / deviation)
        assert row.error == pytest.approx(expected, abs=0.01)
        assert row.is_certain == (abs(row.change) > 1.96 * expected)


def test_figures_of_the_quality_page(client, staff, fall):
    log_in(client, staff.state)
    page = client.get(reverse("scores_quality", args=[fall.pk])).context["page"]
    people = [row for rows in answers_of(fall).values() for row in rows]
    for line in page.measures:
        by_school = measures_of(fall, line.name)
        groups = [by_school[name] for name in WITH_REPORT]
        _mean, between, within = differences_of(groups)
        facts = dict(line.facts)
        assert facts["People"] == str(sum(map(len, by_school.values())))
        assert float(facts["Deviation of schools"]) == pytest.approx(between, abs=0.01)
        assert float(facts["Deviation within schools"]) == pytest.approx(
            within, abs=0.01
        )
        correlation = between**2 / (between**2 + within**2)
        assert float(facts["ICC"]) == pytest.approx(correlation, abs=0.01)
        for item in line.items:
            answered = sum(row.get(item.name) not in (None, "dk") for row in people)
            assert item.people == str(answered)


def test_the_benchmark_of_a_page_is_named_with_its_size(client, staff, fall):
    log_in(client, staff.state)
    people = sum(
        any(row.values()) for rows in answers_of(fall).values() for row in rows
    )
    about = round(people, 1 - math.floor(math.log10(people)))
    text = table(client, fall).text
    assert f"50 is the average of “{fall.title} (about {about:,} people)”" in text


def test_most_schools_are_between_30_and_70(client, staff, fall):
    """What pages say, also where 20 points are a deviation of people, who differ more.

    It would be wrong of people where 20 points are a deviation of schools.
    """
    log_in(client, staff.state)
    rows = {row[0]: row for row in rows_of(table(client, fall, "?show=all"))}
    scores = [int(rows[name][column]) for name in WITH_REPORT for column in (4, 5)]
    assert all(30 <= score <= 70 for score in scores)
    mean, _deviation = scale_of(fall, "trust")
    groups = measures_of(fall, "trust")
    people = np.concatenate([groups[name] for name in WITH_REPORT])
    _mean, between, _within = differences_of([groups[name] for name in WITH_REPORT])
    points = 50 + 20 * (people - mean) / between
    assert ((points >= 30) & (points <= 70)).mean() < 0.5
