from __future__ import annotations

import csv
import io
import re

import pytest
from django.urls import reverse
from django.utils import timezone

from accounts.models import AuditEntry, District, School
from accounts.tests.logging_in import log_in
from reports.models import GroupResults, ResultsRollUp, SchoolRate, ScoreRow, Scoring
from reports.scores.visible import visible_scores

pytestmark = pytest.mark.django_db


def rates(client, administration, **query):
    return client.get(reverse("scores_rates", args=[administration.pk]), query)


def names(response):
    return [row.line.name for row in response.context["page"].listing.rows]


def csv_of(client, administration, **query):
    address = reverse("scores_rates_csv", args=[administration.pk])
    text = client.get(address, query).content.decode("utf-8-sig")
    return list(csv.DictReader(io.StringIO(text)))


def many_schools(fall, lincoln, numbers):
    """Copy the figures of Lincoln to schools with these rates and scores."""
    more = District.objects.create(code="more", name="More")
    for n, (finished, points) in enumerate(numbers):
        school = School.objects.create(district=more, code=f"m{n}", name=f"More {n:02}")
        for model in (SchoolRate, GroupResults, ScoreRow):
            of_school = {"level": "school", "place_id": lincoln.pk, "attribute": ""}
            if model is SchoolRate:
                of_school = {"school": lincoln}
            row = model.objects.get(administration=fall, **of_school)
            row.pk = None
            if model is SchoolRate:
                row.school, row.district = school, more
                row.finished = row.started = finished
            else:
                row.place_id = school.pk
            if model is ScoreRow:
                row.measures["trust"][3] = points
            row.save()
    return more


def test_each_school_with_a_report_is_a_point_that_leads_to_it(client, staff, fall):
    log_in(client, staff.state)
    page = rates(client, fall, measure="trust")
    # Washington has scores, but too few finished for a report.
    assert visible_scores(fall, [("school", staff.washington.pk)])
    assert names(page) == ["Lincoln", "Roosevelt"]
    points = re.findall(r'<a href="(.*?)" tabindex="-1"><path d="(.*?)"', page.text)
    place = ("school", staff.lincoln.pk)
    score = visible_scores(fall, [place])[place]["trust"].score
    address = f"../../schools/{staff.lincoln.pk}/"
    assert (address, f"M100 {100 - score}h0") in points
    report = reverse("school_report", args=[fall.pk, staff.lincoln.pk])
    assert f'<a href="{report}">Lincoln</a>' in page.text
    assert "Not shown: 1 school" in page.text
    assert "Washington" not in page.text


def test_hidden_scores_are_no_points(client, staff, fall):
    log_in(client, staff.state)
    assert "Lincoln" in names(rates(client, fall, measure="trust"))
    GroupResults.objects.filter(
        administration=fall, level="school", place_id=staff.lincoln.pk
    ).update(hidden_items=["q1"])
    for measure in ("trust", "safe"):
        assert names(rates(client, fall, measure=measure)) == ["Roosevelt"]
        assert [row["school"] for row in csv_of(client, fall, measure=measure)] == [
            "Roosevelt"
        ]
    # It is made of other questions.
    assert "Lincoln" in names(rates(client, fall, measure="noise"))


def test_a_sentence_says_how_rates_and_scores_go_together(client, staff, fall):
    log_in(client, staff.state)
    page = rates(client, fall, measure="trust")
    assert "Too few schools with different numbers" in page.text
    more = many_schools(fall, staff.lincoln, [(30 + n, 20 + 3 * n) for n in range(20)])
    page = rates(client, fall, measure="trust", district=more.pk)
    assert "scores tend to be higher (correlation +1.00, schools: 20)" in page.text
    assert page.context["page"].groups == [
        ("50–59 %", "6", "28"),
        ("60–69 %", "6", "46"),
        ("70–79 %", "6", "64"),
        ("80–89 %", "2", "76"),
    ]
    SchoolRate.objects.filter(district=more).update(finished=40)
    page = rates(client, fall, measure="trust", district=more.pk)
    assert "Too few schools with different numbers" in page.text


def test_schools_are_searched_sorted_and_downloaded(client, staff, fall):
    log_in(client, staff.state)
    assert names(rates(client, fall, sort="score")) == ["Roosevelt", "Lincoln"]
    assert names(rates(client, fall, sort="-district")) == ["Lincoln", "Roosevelt"]
    assert names(rates(client, fall, q="linc")) == ["Lincoln"]
    assert "No school matches" in rates(client, fall, q="nothing").text
    [row] = csv_of(client, fall, q="linc", measure="trust")
    assert (row["rate (%)"], row["measure"]) == ("100", "trust")
    assert 0 < float(row["standard error"]) < 10
    assert AuditEntry.objects.get(action="download scores").user_id == staff.state.pk


def test_users_see_schools_of_their_places(client, staff, fall):
    log_in(client, staff.dana)
    assert names(rates(client, fall)) == ["Lincoln"]
    assert rates(client, fall, district=staff.lakeside.pk).status_code == 404
    for person in (staff.chen, staff.sam):
        log_in(client, person)
        assert rates(client, fall).status_code == 404
    ResultsRollUp.objects.update(shared_at=timezone.now())
    assert names(rates(client, fall)) == ["Roosevelt"]


def test_an_administration_without_scores_says_so(client, staff, fall):
    Scoring.objects.all().delete()
    log_in(client, staff.state)
    assert "No scores yet" in rates(client, fall).text
    assert csv_of(client, fall) == []


def test_many_schools_take_as_many_statements_and_few_bytes(
    client, staff, fall, django_assert_num_queries
):
    log_in(client, staff.state)
    rates(client, fall)
    with django_assert_num_queries(12):
        before = len(rates(client, fall, measure="trust").content)
    more = many_schools(fall, staff.lincoln, [(40, n) for n in range(1, 61)])
    with django_assert_num_queries(12):
        page = rates(client, fall, measure="trust", page=2)
    assert f"More {len(names(page)) - 3}" in page.text
    # A point has a title of 50 bytes while there are not too many.
    assert (len(page.content) - before) / 60 < 600
    page = rates(client, fall, measure="trust", district=more.pk, q="More 07")
    assert "<title>More 07: 66 %, 8</title>" in page.text
