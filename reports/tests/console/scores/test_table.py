from __future__ import annotations

import csv
import io
import re
from copy import deepcopy

import pytest
from django.utils import timezone

from accounts.models import AuditEntry, District, School
from accounts.tests.logging_in import log_in
from reports.console.scores.table import ScoreCell, score_columns
from reports.models import (
    Calibration,
    GroupResults,
    ResultsRollUp,
    SchoolRate,
    ScoreRow,
    Scoring,
)
from reports.scores.visible import measures_in_survey, visible_scores

pytestmark = pytest.mark.django_db


def table(client, administration, query="", htmx=False):
    headers = {"HX-Request": "true"} if htmx else None
    return client.get(
        f"/console/results/{administration.pk}/scores/{query}", headers=headers
    )


def rows_of(response):
    """Return the cells of each row of the body as text."""
    assert response.status_code == 200, response.status_code
    body = response.content.decode().partition("<tbody>")[2].partition("</tbody>")[0]
    return [
        [
            re.sub(r"\s+", " ", re.sub(r"<[^>]+>", "", cell)).strip()
            for cell in re.findall(r"<t[hd].*?</t[hd]>", row, re.S)
        ]
        for row in body.split("</tr>")
        if "<t" in row
    ]


def csv_of(client, administration, query=""):
    response = client.get(f"/console/results/{administration.pk}/scores.csv{query}")
    return list(csv.DictReader(io.StringIO(response.content.decode("utf-8-sig"))))


def test_schools_are_compared_with_their_rates(client, staff, fall):
    log_in(client, staff.state)
    rows = {row[0]: row[1:] for row in rows_of(table(client, fall, "?show=all"))}
    scores = visible_scores(fall, [("school", staff.lincoln.pk), ("state", 0)])
    lincoln = scores["school", staff.lincoln.pk]
    assert rows["Lincoln"] == [
        *("Riverside", "100 %"),
        *(str(lincoln[name].score) for name in ("safe", "trust", "noise")),
    ]
    assert rows["All schools"][2:] == ["50", "50", "50"]
    # Enough answers for scores, but not for a report.
    assert visible_scores(fall, [("school", staff.washington.pk)])
    assert rows["Washington"] == [
        *("Riverside", "37 %"),
        "No scores: 5 more students to reach 50 %",
    ]


def test_noise_is_colored_the_other_way_round(client, staff, fall):
    rows = ScoreRow.objects.filter(administration=fall, level="school", attribute="")
    row = rows.get(place_id=staff.lincoln.pk)
    row.measures["trust"][3] = row.measures["noise"][3] = 85
    row.save()
    Calibration.objects.update(schools_deviation=1.0, people_deviation=1.0)
    log_in(client, staff.state)
    page = re.sub(r"\s+", " ", table(client, fall, "?show=all").content.decode())
    assert '<td class="number band-5" title="very strong">85</td>' in page
    assert '<td class="number band-1" title="very high">85</td>' in page
    # A score of few people among very different ones has no color.
    Calibration.objects.update(people_deviation=9.0)
    page = re.sub(r"\s+", " ", table(client, fall, "?show=all").content.decode())
    doubt = "very strong, but could be strong"
    assert f'<td class="number band-0 doubtful" title="{doubt}">85</td>' in page
    Calibration.objects.update(schools_deviation=0.0)
    page = re.sub(r"\s+", " ", table(client, fall, "?show=all").content.decode())
    assert '<td class="number band-0">85</td>' in page


def test_a_measure_without_a_theme_is_set_apart_as_a_theme_is(fall):
    content = deepcopy(measures_in_survey(fall))
    content["measures"][1]["essential"] = ""

    def is_apart():
        columns = score_columns(fall, content)
        cells = [ScoreCell.of(column, {}).html for column in columns]
        return {
            column.name: "essential" in cell
            for column, cell in zip(columns, cells, strict=True)
        }

    assert is_apart() == {"safe": True, "trust": False, "noise": True}
    # Without any theme, nothing is set apart.
    content["essentials"] = []
    content["measures"][0]["essential"] = ""
    assert is_apart() == {"trust": False, "noise": False}


def test_signs_are_explained_where_they_are_shown(client, staff, fall):
    log_in(client, staff.state)
    assert "* Hidden" not in table(client, fall).text
    rows = GroupResults.objects.filter(administration=fall, level="school")
    rows.filter(place_id=staff.lincoln.pk).update(is_hidden=True)
    assert "* Hidden" in table(client, fall).text


def test_hidden_scores_are_on_no_page_and_in_no_file(client, staff, fall):
    log_in(client, staff.state)
    shown = rows_of(table(client, fall, "?show=all"))
    [before] = [row for row in shown if row[0] == "Lincoln"]
    assert before[3].isdigit()
    lincoln = GroupResults.objects.filter(
        administration=fall, level="school", place_id=staff.lincoln.pk
    )
    lincoln.update(is_hidden=True)
    shown = rows_of(table(client, fall, "?show=all"))
    [after] = [row for row in shown if row[0] == "Lincoln"]
    assert after[3:] == ["*"] * 3
    [line] = [row for row in csv_of(client, fall) if row["school"] == "Lincoln"]
    assert (line["trust"], line["trust standard error"]) == ("*", "*")
    # Not even its place in a sorted list tells anything.
    names = [row[0] for row in rows_of(table(client, fall, "?sort=-score-trust"))]
    assert names[1] == "Roosevelt"


def test_schools_are_sorted_by_a_measure_and_searched(client, staff, fall):
    log_in(client, staff.state)

    def names(query):
        return [row[0] for row in rows_of(table(client, fall, query))][1:]

    assert names("?sort=-score-trust") == ["Lincoln", "Roosevelt", "Washington"]
    assert names("?sort=score-trust") == ["Roosevelt", "Lincoln", "Washington"]
    assert names("?sort=score-safe")[2] == "Washington"
    assert names("?sort=district") == ["Roosevelt", "Lincoln", "Washington"]
    assert names("?sort=-rate")[2] == "Washington"
    assert names("?q=linc") == ["Lincoln"]
    assert names("?sort=score-nothing") == names("")
    assert [row["school"] for row in csv_of(client, fall, "?q=linc")] == ["Lincoln"]


def test_columns_can_be_chosen(client, staff, fall):
    log_in(client, staff.state)
    for show, columns in (("", 1), ("all", 3), ("safe", 3), ("x", 1)):
        [first, *_others] = rows_of(table(client, fall, f"?show={show}"))
        assert len(first) == 3 + columns
    # Filters stay, and each can be removed.
    query = f"?show=safe&q=linc&district={staff.riverside.pk}"
    page = table(client, fall, query).text.replace("&amp;", "&")
    assert f"?q=linc&district={staff.riverside.pk}&show=all" in page
    path = f'href="/console/results/{fall.pk}/scores/'
    assert f'{path}?show=safe&q=linc">Riverside' in page
    assert f'{path}?show=safe&district={staff.riverside.pk}">“linc”' in page
    # And after looking at the report of a school.
    filters = f"q=linc&district={staff.riverside.pk}&show=safe"
    address = f"/console/results/{fall.pk}/schools/{staff.lincoln.pk}/?{filters}"
    assert f'href="{address}"' in page
    report = client.get(f"{address}&language=es").text.replace("&amp;", "&")
    assert f'{path}?{filters}">' in report
    assert f'href="?language=en&{filters}"' in report


def test_users_see_schools_of_their_places(client, staff, fall):
    log_in(client, staff.dana)
    page = table(client, fall).content.decode()
    assert "Lincoln" in page
    assert "Roosevelt" not in page
    assert "Riverside" in page
    assert "Roosevelt" not in str(csv_of(client, fall))
    assert table(client, fall, f"?district={staff.lakeside.pk}").status_code == 404
    log_in(client, staff.state)
    assert "Roosevelt" in table(client, fall).content.decode()
    response = table(client, fall, f"?district={staff.riverside.pk}")
    assert "Roosevelt" not in response.text
    # All rows are of one district.
    [lincoln] = [row for row in rows_of(response) if row[0] == "Lincoln"]
    assert lincoln[1] == "100 %"


@pytest.mark.parametrize("person", ["chen", "sam"])
def test_coordinators_find_no_scores(client, staff, fall, person):
    log_in(client, getattr(staff, person))
    assert table(client, fall).status_code == 404
    path = f"/console/results/{fall.pk}/scores.csv"
    assert client.get(path).status_code == 404


def test_coordinators_see_shared_scores_of_their_school(client, staff, fall):
    ResultsRollUp.objects.update(shared_at=timezone.now())
    log_in(client, staff.chen)
    page = table(client, fall).content.decode()
    assert "Lincoln" in page
    assert "Washington" not in page
    assert [row["school"] for row in csv_of(client, fall)] == ["Lincoln"]


@pytest.mark.parametrize("district", ["0", "x", "-1", "9" * 40])
def test_unknown_districts_are_not_found(client, staff, fall, district):
    log_in(client, staff.state)
    assert table(client, fall, f"?district={district}").status_code == 404


def test_a_file_has_all_schools_and_is_recorded(client, staff, fall):
    log_in(client, staff.dana)
    lines = csv_of(client, fall)
    assert [line["school"] for line in lines] == ["Lincoln", "Washington"]
    assert lines[0]["rate (%)"] == "100"
    assert lines[0]["safe"].isdigit()
    assert 0 < float(lines[0]["trust standard error"]) < 10
    assert lines[1]["trust"] == ""
    entry = AuditEntry.objects.get(action="download scores")
    assert entry.user_id == staff.dana.pk


def test_an_administration_without_scores_says_so(client, staff, fall):
    log_in(client, staff.state)
    Scoring.objects.all().delete()
    assert "No scores yet" in table(client, fall).content.decode()


def test_the_list_alone_answers_htmx(client, staff, fall):
    log_in(client, staff.state)
    page = table(client, fall, htmx=True).content.decode()
    assert "Lincoln" in page
    assert "<html" not in page


def test_many_schools_take_as_many_statements(
    client, staff, fall, django_assert_num_queries
):
    log_in(client, staff.state)
    table(client, fall)
    with django_assert_num_queries(14):
        table(client, fall)
    with django_assert_num_queries(15):
        table(client, fall, "?sort=score-trust")
    more = District.objects.create(code="more", name="More")
    schools = School.objects.bulk_create(
        School(district=more, code=f"s{n}", name=f"School {n}") for n in range(30)
    )
    rate = SchoolRate.objects.get(administration=fall, school=staff.lincoln)
    for school in schools:
        rate.pk, rate.school, rate.district = None, school, more
        rate.save()
    with django_assert_num_queries(14):
        assert "School 29" in table(client, fall).content.decode()
