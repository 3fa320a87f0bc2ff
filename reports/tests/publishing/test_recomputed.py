"""Figures of a report, of groups and of public pages, calculated again from answers.

Nothing but thresholds and the scale's mean are taken from the product: measures of
people, means, errors and shares are calculated here in plain Python.
"""

from __future__ import annotations

import io
import math
import re
from collections import Counter
from functools import cache
from statistics import fmean, stdev

import pypdfium2
import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from accounts.models import School
from accounts.tests.logging_in import log_in
from reports.models import Calibration, ResultsRollUp
from reports.tests.scores.test_larger_places import (  # noqa: F401
    answers_of,
    fall,
    shared_fall,
)

pytestmark = pytest.mark.django_db
OWN = 3
QUESTIONS = {"trust": slice(0, 4), "noise": slice(4, 7)}
# Schools of Riverside.
RIVERSIDE = range(10)


@cache
def wle(categories, thresholds):
    """Return Warm's estimate of a person (Warm 1989), by bisection."""
    low, high = -12.0, 12.0
    for _step in range(50):
        theta = (low + high) / 2
        score = information = skew = 0.0
        for category, steps in zip(categories, thresholds, strict=True):
            if category is None:
                continue
            logs = [0.0]
            for step in steps:
                logs.append(logs[-1] + theta - step)
            weights = [math.exp(log - max(logs)) for log in logs]
            chances = [weight / sum(weights) for weight in weights]
            mean = sum(n * chance for n, chance in enumerate(chances))
            score += category - mean
            for power in (2, 3):
                moment = sum((n - mean) ** power * p for n, p in enumerate(chances))
                information += moment if power == 2 else 0.0
                skew += moment if power == 3 else 0.0
        if score + skew / (2 * information) > 0:
            low = theta
        else:
            high = theta
    return (low + high) / 2


class Measured:
    """The points of all people on a measure, by school and sex."""

    def __init__(self, administration, measure):
        calibration = Calibration.objects.get(
            administration=administration, measure=measure
        )
        thresholds = tuple(tuple(item["thresholds"]) for item in calibration.items)
        self.points = {}
        for school in range(12):
            for sex in "fm":
                logits = []
                for row in answers_of(school, sex):
                    categories = [
                        None if value in (None, "dk") else int(value) - 1
                        for value in row[QUESTIONS[measure]]
                    ]
                    if measure == "trust" and categories[2] is not None:
                        categories[2] = 3 - categories[2]
                    if sum(each is not None for each in categories) > 1:
                        logits.append(wle(tuple(categories), thresholds))
                self.points[school, sex] = logits
        everybody = self.of(range(12))
        self.between, self.within, self.center = self._differences()
        self.middle, self.unit = fmean(everybody), self.between or stdev(everybody)

    def of(self, schools, sexes="fm"):
        return [
            point
            for (school, sex), points in self.points.items()
            if school in schools and sex in sexes
            for point in points
        ]

    def _differences(self):
        """Return τ, σ and the mean of schools in logits (DerSimonian and Laird)."""
        schools = [self.of([school]) for school in range(12)]
        around = sum(sum((x - fmean(of)) ** 2 for x in of) for of in schools)
        variance = around / (sum(map(len, schools)) - len(schools))
        weights = [len(of) / variance for of in schools]

        def weighted(weights):
            total = sum(w * fmean(of) for w, of in zip(weights, schools, strict=True))
            return total / sum(weights)

        mean = weighted(weights)
        scatter = sum(
            w * (fmean(of) - mean) ** 2 for w, of in zip(weights, schools, strict=True)
        )
        divisor = sum(weights) - sum(w * w for w in weights) / sum(weights)
        between = max(0.0, (scatter - 11) / divisor)
        # Above it, chance alone explains one survey in a hundred (11 degrees).
        if scatter < 24.725:
            return 0.0, math.sqrt(variance), mean
        drawn = weighted([1 / (between + variance / len(of)) for of in schools])
        return math.sqrt(between), math.sqrt(variance), drawn

    def in_points(self, logits):
        return 50 + 20 * (logits - self.middle) / self.unit

    def reliability(self, people):
        return self.between**2 / (self.between**2 + self.within**2 / people)

    def likely(self, schools):
        """Return the score of a place and the margin of its 95 % interval."""
        logits = self.of(schools)
        share = self.reliability(len(logits))
        if not self.between:
            return rounded(self.in_points(fmean(logits))), None
        center = self.in_points(self.center)
        score = center + share * (self.in_points(fmean(logits)) - center)
        error = 20 * math.sqrt(1 - share)
        if len(schools) > 1:
            error = max(error, self.clustered(schools) * math.sqrt(share))
        return rounded(score), 1.96 * round(error, 1)

    def clustered(self, schools):
        """Return the standard error of a mean by school, in points (CR1)."""
        everybody = self.of(schools)
        mean, count = fmean(everybody), len(schools)
        residuals = [sum(x - mean for x in self.of([school])) for school in schools]
        squares = count / (count - 1) * sum(residual**2 for residual in residuals)
        return 20 * math.sqrt(squares) / len(everybody) / self.unit


def rounded(points):
    return math.floor(points + 0.5)


def text_of(response):
    assert response.status_code == 200
    html = response.content.decode()
    bare = re.sub(r"<svg.*?</svg>|<[^>]+>", " ", html, flags=re.S)
    return re.sub(r"\s+", " ", bare)


@pytest.fixture
def trust(fall):  # noqa: F811
    return Measured(fall, "trust")


@pytest.fixture
def noise(fall):  # noqa: F811
    return Measured(fall, "noise")


def essential(trust, noise, schools):
    """Return the score of the theme: the mean of its measures, noise turned round."""
    return rounded((trust.likely(schools)[0] + 100 - noise.likely(schools)[0]) / 2)


def between(score, margin):
    low, high = max(round(score - margin), 1), min(round(score + margin), 99)
    return f"Between {low} and {high}"


def school(number):
    return School.objects.get(code=f"s{number}")


def groups_of(trust, noise, schools, sexes):
    """Return the score of the theme of the answers alone."""
    means = [
        rounded(each.in_points(fmean(each.of(schools, sexes))))
        for each in (trust, noise)
    ]
    return rounded((means[0] + 100 - means[1]) / 2)


def report_of(client, administration, suffix=""):
    ResultsRollUp.objects.update(shared_at=timezone.now())
    path = f"/console/results/{administration.pk}/schools/{school(OWN).pk}/"
    return client.get(path + suffix)


def test_ten_figures_of_a_school_report(client, staff, fall, trust, noise):  # noqa: F811
    log_in(client, staff.state)
    page = text_of(report_of(client, fall))
    score, margin = trust.likely([OWN])
    people = len(trust.of([OWN]))
    assert "44 of 44 finished (100 %)" in page
    assert f"{score} points of 99" in page
    assert between(score, margin) in page
    assert f"{people} people have this measure." in page
    assert f"Riverside: {trust.likely(RIVERSIDE)[0]}" in page
    assert f"All schools: {trust.likely(range(12))[0]}" in page
    assert f"Safe school {essential(trust, noise, [OWN])}" in page
    for sex in "fm":
        assert f"Sex: {sex} {groups_of(trust, noise, [OWN], sex)} " in page
    _name, everyone = page.split("Everyone ")[:2]
    assert int(everyone.split()[0]) == groups_of(trust, noise, [OWN], "fm")
    assert f"{noise.likely([OWN])[0]} points of 99" in page


def test_ten_figures_of_its_file(client, staff, fall, trust, noise):  # noqa: F811
    log_in(client, staff.state)
    document = pypdfium2.PdfDocument(report_of(client, fall, "report.pdf").content)
    words = " ".join(page.get_textpage().get_text_bounded() for page in document)
    words = re.sub(r"\s+", " ", words)
    score, margin = trust.likely([OWN])
    for figure in (
        "44 of 44 finished",
        f"Safe school {essential(trust, noise, [OWN])}",
        f"{score} points of 99",
        between(score, margin),
        f"{noise.likely([OWN])[0]} points of 99",
        f"Riverside: {trust.likely(RIVERSIDE)[0]}",
        f"All schools: {trust.likely(range(12))[0]}",
        f"Sex: f {groups_of(trust, noise, [OWN], 'f')} ",
        f"Sex: m {groups_of(trust, noise, [OWN], 'm')} ",
        f"Everyone {groups_of(trust, noise, [OWN], 'fm')}",
    ):
        assert figure in words, figure


def test_figures_of_groups_of_the_state(client, staff, fall, trust):  # noqa: F811
    log_in(client, staff.state)
    address = reverse("scores_groups", args=[fall.pk])
    page = text_of(client.get(address, {"by": "sex", "show": "safe"}))
    means = {}
    for sex in "fm":
        logits = trust.of(range(12), sex)
        means[sex] = rounded(trust.in_points(fmean(logits)))
        assert f"Sex: {sex} {len(logits)} {means[sex]} Between" in page
    # The gap, with its error by school.
    residuals = []
    for number in range(12):
        parts = []
        for sex in "fm":
            everybody = trust.of(range(12), sex)
            mean = fmean(everybody)
            residual = sum(x - mean for x in trust.of([number], sex))
            parts.append(residual / len(everybody))
        residuals.append(parts[0] - parts[1])
    clustered = math.sqrt(12 / 11 * sum(each**2 for each in residuals))
    independent = math.hypot(
        *(
            stdev(trust.of(range(12), sex)) / math.sqrt(len(trust.of(range(12), sex)))
            for sex in "fm"
        )
    )
    error = 20 * max(clustered, independent) / trust.unit
    difference = means["f"] - means["m"]
    margin = 1.96 * math.hypot(error, math.sqrt(1 / 6))
    shown = re.search(
        rf"“Sex: f” scores {difference} points higher than “Sex: m”. 95\s% interval:"
        r" (\d+) to (\d+) points higher",
        page,
    )
    assert shown, page
    for end, expected in zip(
        shown.groups(), (difference - margin, difference + margin), strict=True
    ):
        assert abs(int(end) - expected) <= 1


@pytest.mark.parametrize("level", ["school", "district", "state"])
def test_ten_figures_of_public_pages(publish, fall, trust, noise, level):  # noqa: F811
    publish(fall)
    keys = {
        "school": ("published_school", [school(OWN).pk], [OWN]),
        "district": ("published_district", [school(OWN).district_id], RIVERSIDE),
        "state": ("published_state", [], range(12)),
    }
    name, arguments, schools = keys[level]
    page = text_of(Client().get(reverse(name, args=[fall.pk, *arguments])))
    score, margin = trust.likely(schools)
    people = 44 * len(schools)
    figures = [
        f"{people} people answered at least one question.",
        f"{people} of {people} finished the survey",
        f"Safe school {essential(trust, noise, schools)}",
        f"{score} points of 99",
        between(score, margin),
        f"{noise.likely(schools)[0]} points of 99",
        f"±{margin:.1f}",
    ]
    for figure in figures:
        assert figure in page, figure
    # How people answered the first question, in percent of those who did.
    given = Counter(
        row[0]
        for number in schools
        for sex in "fm"
        for row in answers_of(number, sex)
        if row[0] is not None
    )
    path = reverse(
        {
            "school": "published_answers_of_school",
            "district": "published_answers_of_district",
            "state": "published_answers",
        }[level],
        args=[fall.pk, *arguments],
    )
    content = Client().get(path).content.decode("utf-8-sig")
    lines = [line.split(",") for line in io.StringIO(content).read().splitlines()]
    shown = {line[1]: line for line in lines if line[0] == "q1"}
    total = sum(given.values())
    exact = 0
    for value, count in given.items():
        if shown[value][2] == str(count):
            exact += 1
            assert float(shown[value][3]) == round(100 * count / total, 1)
        assert shown[value][4] == str(total)
    assert exact >= 3


@pytest.mark.parametrize("level", ["school", "district", "state"])
def test_ten_figures_of_results_pages(client, staff, fall, trust, noise, level):  # noqa: F811
    log_in(client, staff.state)
    district = school(OWN).district_id
    query, schools = {
        "school": ({"district": district, "school": school(OWN).pk}, [OWN]),
        "district": ({"district": district}, RIVERSIDE),
        "state": ({}, range(12)),
    }[level]
    address = reverse("results_page", args=[fall.pk])
    overview = client.get(address, query)
    page, people = text_of(overview), 44 * len(schools)
    theme = essential(trust, noise, schools)
    figures = [
        f"{people} people answered",
        f"{people} finished",
        "100 % response rate",
        f"Safe school {theme}",
    ]
    if level == "school":
        figures += [
            f"Riverside: {essential(trust, noise, RIVERSIDE)}",
            f"All schools: {essential(trust, noise, range(12))}",
        ]
    [(linked, _label)] = overview.context["page"].linked_themes
    of_theme = text_of(client.get(address, {**query, "questions": linked.key}))
    score, margin = trust.likely(schools)
    figures_of_theme = [
        f"Trust {score}",
        between(score, margin),
        f"Noise {noise.likely(schools)[0]}",
    ]
    for text, expected in ((page, figures), (of_theme, figures_of_theme)):
        for figure in expected:
            assert figure in text, (figure, text)
    # How people answered the first question, in percent of those who did.
    given = Counter(
        row[0]
        for number in schools
        for sex in "fm"
        for row in answers_of(number, sex)
        if row[0] is not None
    )
    table, total = page.split("Show figures")[1], sum(given.values())
    exact = 0
    for count in given.values():
        percent = math.floor(100 * count / total + 0.5)
        exact += bool(re.search(rf"\b{percent}\s% \({count}\)", table))
    assert exact >= 3, (given, table)
