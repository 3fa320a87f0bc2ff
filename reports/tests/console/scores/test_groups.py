"""Scores by group: figures from rows, who sees them, and what is said of gaps."""

from __future__ import annotations

import csv
import io
import math
import re
from collections import Counter
from copy import deepcopy

import numpy as np
import pypdfium2
import pytest
from django.urls import reverse
from django.utils import timezone

from accounts.tests.logging_in import log_in
from reports.models import (
    Calibration,
    GroupResults,
    ResultsRollUp,
    SchoolRate,
    ScoreRow,
)
from reports.rates.rollup import roll_up
from reports.releases.rollup import roll_up_results
from reports.scores.gaps import gaps_between
from reports.scores.scoring import score_administration
from reports.scores.visible import VisibleScore
from reports.tests.scores.conftest import closed, published, simulated, take_part
from reports.tests.scores.test_scoring import slow_measures
from survey.models import Administration

pytestmark = pytest.mark.django_db

# School, sex, grade, people, and how much higher their measures are.
PEOPLE = [
    ("lincoln", "f", "07", 30, 0.9),
    ("lincoln", "f", "08", 30, 0.9),
    ("lincoln", "m", "07", 30, 0.0),
    ("lincoln", "m", "08", 30, 0.0),
    ("washington", "f", "07", 25, 0.2),
    ("washington", "m", "07", 25, 0.0),
    ("washington", "f", "08", 20, 0.2),
    ("washington", "m", "08", 20, 0.0),
    ("roosevelt", "f", "07", 16, 0.0),
    ("roosevelt", "m", "08", 12, 0.0),
    ("roosevelt", "x", "08", 4, 0.0),
]


@pytest.fixture(scope="module")
def shared_fall(shared_staff):
    fall = closed(published(), "fall-by-group")
    for seed, (school, sex, grade, people, shift) in enumerate(PEOPLE):
        take_part(
            fall,
            getattr(shared_staff, school),
            simulated(people, seed, shift=shift),
            grade=grade,
            attributes={"sex": sex},
        )
    roll_up()
    roll_up_results(fall, release=True)
    score_administration(fall)
    ResultsRollUp.objects.update(shared_at=timezone.now())
    return fall


@pytest.fixture
def fall(shared_fall):
    return deepcopy(shared_fall)


def lines_of(client, fall):
    response = client.get(reverse("scores_groups_csv", args=[fall.pk]))
    assert response.status_code == 200
    content = b"".join(response) if response.streaming else response.content
    return list(csv.DictReader(io.StringIO(content.decode("utf-8-sig"))))


def page_of(client, fall, **query):
    return client.get(reverse("scores_groups", args=[fall.pk]), query).text


def test_figures_of_groups_are_those_of_their_people(client, staff, fall):
    log_in(client, staff.state)
    lines = lines_of(client, fall)
    answers = [
        row
        for seed, (*_group, people, shift) in enumerate(PEOPLE)
        for row in simulated(people, seed, shift=shift)
    ]
    _thresholds, measures = slow_measures(answers)
    of_person = np.repeat(np.arange(len(PEOPLE)), [row[3] for row in PEOPLE])
    measured_of = np.bincount(of_person[np.isfinite(measures)])
    trust = Calibration.objects.get(administration=fall, measure="trust")
    points = 50 + 20 * (measures - trust.scale_mean) / trust.scale_deviation
    names = {
        "lincoln": staff.lincoln.name,
        "washington": staff.washington.name,
        "roosevelt": staff.roosevelt.name,
    }
    figures = 0
    for line in lines:
        column = {"sex": 1, "grade": 2}[line["attribute"]]
        inside, schools = [], Counter()
        for group in PEOPLE:
            school = getattr(staff, group[0])
            is_here = line["school"] in ("", names[group[0]])
            is_here &= line["district"] in ("", school.district.name)
            # Roosevelt hides a group by sex, and is in no larger place by it.
            is_here &= line["attribute"] != "sex" or group[0] != "roosevelt"
            inside.append(is_here and group[column] == line["group"])
            mine = measured_of[len(inside) - 1]
            schools[group[0]] += mine if inside[-1] else 0
        schools = {name: people for name, people in schools.items() if people}
        chosen = points[np.array(inside)[of_person]]
        chosen = chosen[np.isfinite(chosen)]
        assert int(line["trust people"]) == len(chosen), line
        assert abs(int(line["trust mean"]) - chosen.mean()) <= 0.5001, line
        error = chosen.std(ddof=1) / np.sqrt(len(chosen))
        if len(schools) > 1 and trust.schools_deviation:
            # Of few schools: how far all schools differ, and people in them.
            shares = np.array(list(schools.values())) / len(chosen)
            between = trust.schools_deviation**2 * (shares**2).sum()
            within = trust.people_deviation**2 / len(chosen)
            by_school = 20 * np.sqrt(between + within) / trust.scale_deviation
            error = max(error, by_school)
        assert float(line["trust mean standard error"]) == pytest.approx(
            error, abs=0.06
        )
        figures += 3
    # Three schools, two districts and the state.
    assert len(lines) == 20 and figures == 60
    # A theme is the mean of its measures; noise is turned round.
    line = next(line for line in lines if line["school"] == staff.lincoln.name)
    both = int(line["trust mean"]) + 100 - int(line["noise mean"])
    assert abs(int(line["safe mean"]) - both / 2) <= 0.5


def test_a_page_says_how_far_groups_are_apart(client, staff, fall):
    log_in(client, staff.state)
    lines = {
        line["group"]: line
        for line in lines_of(client, fall)
        if line["school"] == staff.lincoln.name and line["attribute"] == "sex"
    }
    page = page_of(client, fall, school=staff.lincoln.pk, by="sex", show="safe")
    difference = int(lines["f"]["trust mean"]) - int(lines["m"]["trust mean"])
    errors = [float(lines[each]["trust mean standard error"]) for each in "fm"]
    margin = 1.96 * math.hypot(*errors, math.sqrt(1 / 6))
    assert difference - margin > 0
    verdict, sentence = re.search(
        r"<strong>([^<]*)</strong> (“Sex: f” scores [^<]*)</li>", page
    ).groups()
    assert f"scores {difference} points higher than “Sex: m”." in sentence
    low, high = map(
        int, re.search(r"interval: (\d+) to (\d+) points", sentence).groups()
    )
    assert abs(low - (difference - margin)) <= 1
    assert abs(high - (difference + margin)) <= 1
    assert verdict in ("A large gap.", "A moderate gap.")
    # The table and the picture have the numbers of the file.
    for line in lines.values():
        assert f'<td class="number">{line["trust mean"]}</td>' in page
        assert f"<title>Sex: {line['group']}: {line['trust mean']}. Between" in page
    assert "and not why" in page


def test_a_hidden_group_is_named_with_the_reason(client, staff, fall):
    log_in(client, staff.state)
    page = page_of(client, fall, school=staff.roosevelt.pk, by="sex")
    assert "Too few people of a group have answered" in page
    assert "gap-rows" not in page
    page = page_of(client, fall, by="sex")
    assert "gap-rows" in page
    assert "Not shown: x." in page


@pytest.mark.parametrize("hidden", ["grade", "sex", ""])
def test_a_page_begins_with_groups_that_have_scores(client, staff, fall, hidden):
    ScoreRow.objects.filter(administration=fall, attribute=hidden or "none").delete()
    log_in(client, staff.state)
    response = client.get(reverse("scores_groups", args=[fall.pk]))
    page = response.context["page"]
    assert page.gaps.panels
    assert page.attribute == next(each for each in page.attributes if each != hidden)
    asked = client.get(reverse("scores_groups", args=[fall.pk]), {"by": "grade"})
    assert asked.context["page"].attribute == "grade"


def test_a_group_that_results_hide_since_is_hidden(client, staff, fall):
    log_in(client, staff.state)
    query = {"school": staff.lincoln.pk, "by": "sex", "show": "safe"}
    assert "<title>Sex: f:" in page_of(client, fall, **query)
    rows = GroupResults.objects.filter(place_id=staff.lincoln.pk, level="school")
    rows.filter(value="f").update(is_hidden=True)
    page = page_of(client, fall, **query)
    assert "<title>Sex: f:" not in page
    assert "Not shown: f, x." in page
    rows.filter(value="m").update(hidden_items=["q1"])
    page = page_of(client, fall, **query)
    assert "<title>Sex: m: *" in page


def report_of(client, fall, school, suffix=""):
    return client.get(f"/console/results/{fall.pk}/schools/{school.pk}/{suffix}")


def words_of(pdf):
    document = pypdfium2.PdfDocument(pdf)
    words = " ".join(page.get_textpage().get_text_bounded() for page in document)
    return re.sub(r"\s+", " ", words)


@pytest.mark.parametrize("name", ["lincoln", "washington", "roosevelt"])
def test_a_report_shows_the_groups_of_the_page_and_nothing_else(
    client, staff, fall, name
):
    log_in(client, staff.state)
    school = getattr(staff, name)
    report = report_of(client, fall, school).context["report"]
    assert [gaps.attribute for gaps in report.groups] == ["grade", "sex"]
    page_words = ""
    for gaps in report.groups:
        query = {"school": school.pk, "by": gaps.attribute}
        response = client.get(reverse("scores_groups", args=[fall.pk]), query)
        of_page = response.context["page"].gaps
        assert (gaps.rows, gaps.summary) == (of_page.rows, of_page.summary)
        assert (gaps.certain, gaps.hidden) == (of_page.certain, of_page.hidden)
        page_words += re.sub(r"<[^>]+>", " ", response.text)
    words = words_of(report_of(client, fall, school, "report.pdf").content)
    _before, section = words.split(" Scores by group ")
    # The file has page numbers, and the share of the interval.
    numbers = set(re.findall(r"\d+", re.sub(r"\d / \d", "", section)))
    assert len(numbers) > 5
    assert numbers <= set(re.findall(r"\d+", page_words))
    assert ("No scores are shown by this column here: Sex" in section) is (
        name == "roosevelt"
    )


def test_a_report_hides_the_groups_that_results_hide_since(client, staff, fall):
    log_in(client, staff.state)
    shown = r"Sex: f [0-9]+"
    before = words_of(report_of(client, fall, staff.lincoln, "report.pdf").content)
    assert re.search(shown, before)
    rows = GroupResults.objects.filter(place_id=staff.lincoln.pk, level="school")
    rows.filter(value="f").update(is_hidden=True)
    after = words_of(report_of(client, fall, staff.lincoln, "report.pdf").content)
    assert not re.search(shown, after)
    assert "Not shown: f, x." in after
    assert "Sex: f" not in report_of(client, fall, staff.lincoln).text


def test_a_report_names_the_gaps_that_are_more_than_chance(client, staff, fall):
    log_in(client, staff.state)
    [_grade, sex] = report_of(client, fall, staff.lincoln).context["report"].groups
    certain = [verdict for _panel, verdict, _sentence in sex.certain]
    gaps = [gap for panel in sex.panels for gap in panel.gaps]
    assert len(certain) == sum(gap.is_certain for gap in gaps)
    words = words_of(report_of(client, fall, staff.lincoln, "report.pdf").content)
    for verdict in certain:
        assert verdict in words
    assert sex.summary in words


def test_nobody_sees_groups_of_places_that_are_not_theirs(client, staff, fall):
    url = reverse("scores_groups", args=[fall.pk])
    for user, places in (
        (staff.state, {"lincoln", "washington", "roosevelt", "", "district"}),
        (staff.dana, {"lincoln", "washington", "district"}),
        (staff.chen, {"lincoln"}),
        (staff.sam, {"roosevelt"}),
    ):
        log_in(client, user)
        levels = {(line["level"], line["school"]) for line in lines_of(client, fall)}
        schools = {school for level, school in levels if level == "school"}
        own_schools = places & {"lincoln", "washington", "roosevelt"}
        assert schools == {getattr(staff, each).name for each in own_schools}
        assert (("state", "") in levels) == ("" in places)
        assert (("district", "") in levels) == ("district" in places)
        for school in ("lincoln", "washington", "roosevelt"):
            key = getattr(staff, school).pk
            status = client.get(url, {"school": key}).status_code
            assert status == (200 if school in places else 404)
    # A coordinator's page is that of the school, also where all schools are asked for.
    log_in(client, staff.chen)
    assert client.get(url, {"district": staff.riverside.pk}).status_code == 404
    assert staff.lincoln.name in client.get(url).text
    log_in(client, staff.dana)
    assert staff.riverside.name in client.get(url).text


def test_a_school_below_its_threshold_shows_no_groups(client, staff, fall):
    log_in(client, staff.state)
    query = {"school": staff.lincoln.pk, "by": "sex"}
    assert "gap-rows" in page_of(client, fall, **query)
    SchoolRate.objects.filter(school=staff.lincoln).update(finished=20)
    page = page_of(client, fall, **query)
    assert "gap-rows" not in page and "reached its threshold" in page
    schools = {line["school"] for line in lines_of(client, fall)}
    assert staff.lincoln.name not in schools


@pytest.mark.parametrize("place", ["", "school"])
def test_a_page_takes_few_statements(
    client, staff, fall, django_assert_num_queries, place
):
    log_in(client, staff.state)
    query = {"school": staff.lincoln.pk} if place else {}
    page_of(client, fall, **query)
    with django_assert_num_queries(QUERIES[place]):
        page_of(client, fall, **query)


QUERIES = {"": 13, "school": 17}


def test_the_file_takes_as_many_statements_for_all_schools(
    client, staff, fall, django_assert_num_queries
):
    log_in(client, staff.state)
    lines_of(client, fall)
    with django_assert_num_queries(15):
        lines_of(client, fall)


def test_results_lead_to_the_groups_of_the_same_place(client, staff, fall):
    address = reverse("scores_groups", args=[fall.pk])
    results = reverse("results_page", args=[fall.pk])
    log_in(client, staff.state)
    assert f'href="{address}"' in client.get(results).text
    page = client.get(results, {"school": staff.lincoln.pk}).text
    assert f'href="{address}?school={staff.lincoln.pk}"' in page
    page = client.get(results, {"questions": "theme.safe"}).text
    assert f'href="{address}?show=safe"' in page


def test_nothing_is_stored_of_hidden_groups(staff, fall):
    rows = ScoreRow.objects.filter(administration=fall).exclude(attribute="")
    assert rows.exists()
    assert not rows.filter(value="x").exists()
    of_roosevelt = rows.filter(level="school", place_id=staff.roosevelt.pk)
    assert set(of_roosevelt.values_list("attribute", flat=True)) == {"grade"}


def score(points, error, people):
    return VisibleScore(
        points, frozenset(), people=people, mean=points, mean_error=error
    )


def test_scores_without_a_release_show_no_groups(staff, shared_fall):
    administration = Administration.objects.get(pk=shared_fall.pk)
    ResultsRollUp.objects.update(hidden_as_of=None)
    score_administration(administration, recalculate=True)
    rows = ScoreRow.objects.filter(administration=administration)
    assert not rows.exclude(attribute="").exists()


class TestGaps:
    def test_each_of_three_groups_is_compared_with_the_others_together(self):
        scores = {
            "a": score(60, 3.0, 100),
            "b": score(40, 4.0, 50),
            "c": score(50, 2.0, 150),
        }
        gap = gaps_between(scores, 60.0)[0]
        assert gap.points == pytest.approx(60 - (50 * 40 + 150 * 50) / 200)
        of_others = np.hypot(50 * 4, 150 * 2) / 200
        assert gap.error**2 == pytest.approx(9 + of_others**2 + 1 / 6)

    def test_a_group_alone_has_no_gap(self):
        assert gaps_between({"a": score(60, 3.0, 100)}, 60.0) == []
