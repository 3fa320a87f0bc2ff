"""The technical report: what is in its tables, who gets it, and what it hides."""

from __future__ import annotations

import csv
import io
import re
from zipfile import ZipFile

import numpy as np
import pytest
from django.urls import reverse

from accounts.models import AuditEntry, Membership
from accounts.permissions import Role
from accounts.tests.logging_in import log_in
from reports.models import Calibration, GroupResults
from reports.models.exports import Export
from reports.rasch import MISSING, ResponseTable
from reports.rasch.dif import compare_groups
from reports.school_report.pdf import pdf_files
from reports.scores.effects import Effects
from reports.scores.scoring import score_administration
from reports.technical.files import ABOUT
from reports.technical.requests import request_technical_report
from reports.tests.console.scores.conftest import (
    published_in_three_languages,
    scored,
)
from reports.tests.school_report.test_pdf import objects
from reports.tests.scores.conftest import (  # noqa: F401
    closed,
    run_jobs,
    shared_staff,
    simulated,
    staff,
    take_part,
)
from survey.models import Administration, Respondent, Response
from survey.tests.conftest import empty_caches  # noqa: F401
from survey.work.files import path_of

pytestmark = pytest.mark.django_db

# Sex -> seed and how much harder q2 is to agree with.
GROUPS = {"f": (1, 1.2), "m": (2, 0.0)}


@pytest.fixture
def fall(answered):
    return Administration.objects.get(pk=scored(answered).pk)


@pytest.fixture
def answered(staff):  # noqa: F811
    """A wave of two schools, in which q2 means something else to girls."""
    administration = closed(published_in_three_languages(), "fall-2026")
    for number, school in enumerate((staff.lincoln, staff.roosevelt)):
        for sex, (seed, moved) in GROUPS.items():
            take_part(
                administration,
                school,
                simulated(250, seed + 10 * number, moved={"q2": moved}),
                grade="07",
                attributes={"sex": sex},
                language="en" if sex == "f" else "es",
            )
    return administration


@pytest.fixture
def statistician(staff):  # noqa: F811
    """An analyst of the state."""
    Membership.objects.filter(user=staff.analyst).delete()
    Membership.objects.create(user=staff.analyst, role=Role.ANALYST)
    return staff.analyst


def report_of(administration, by):
    """Return the rows of each table, as dictionaries."""
    export = request_technical_report(administration=administration, by=by)
    run_jobs()
    export.refresh_from_db()
    assert export.file_name, export.job.message
    with ZipFile(path_of(export.file_name)) as archive:
        files = {
            name: archive.read(name).decode("utf-8-sig")
            for name in archive.namelist()
            if name.endswith(".csv")
        }
    return {
        name.removesuffix(".csv"): list(csv.DictReader(io.StringIO(text)))
        for name, text in files.items()
    }


def failure_of(administration, by):
    export = request_technical_report(administration=administration, by=by)
    run_jobs()
    export.refresh_from_db()
    assert not export.file_name
    return export.job.message


def rows_of(table, **chosen):
    return [
        row
        for row in table
        if all(row[name] == value for name, value in chosen.items())
    ]


def test_a_statistician_downloads_what_the_scores_are_made_of(
    client, fall, statistician
):
    log_in(client, statistician)
    page = client.get(reverse("scores_quality", args=[fall.pk]))
    assert "Request a technical report" in page.text
    response = client.post(reverse("scores_quality_report", args=[fall.pk]))
    export = Export.objects.get()
    assert response.url == reverse("export_detail", args=[export.pk])
    run_jobs()
    page = client.get(response.url)
    assert "Technical report" in page.text
    assert reverse("export_codebook", args=[export.pk]) not in page.text
    file = client.get(reverse("export_download", args=[export.pk]))
    assert file["Content-Disposition"].endswith('.zip"')
    assert b"".join(file)
    for codebook in ("export_codebook", "export_codebook_table"):
        assert client.get(reverse(codebook, args=[export.pk])).status_code == 404
    assert AuditEntry.objects.filter(action="ask for technical report").count() == 1

    tables = report_of(fall, statistician)
    about = ABOUT.read_text()
    assert [name for name in tables if f"\n{name}.csv" not in about] == []
    facts = {row["fact"]: row["value"] for row in tables["provenance"]}
    assert facts["digest of the survey"] == fall.published_id
    assert facts["people who answered"] == "1000"

    trust = Calibration.objects.get(administration=fall, measure="trust")
    [measure] = rows_of(tables["measures"], measure="trust")
    assert float(measure["reliability"]) == pytest.approx(trust.reliability, abs=1e-4)
    assert float(measure["mean Q3"]) == pytest.approx(-1 / 3, abs=0.05)
    for item in trust.items:
        rows = rows_of(tables["thresholds"], measure="trust", item=item["name"])
        assert [float(row["logits"]) for row in rows] == pytest.approx(
            item["thresholds"], abs=1e-4
        )
        assert [float(row["standard error"]) for row in rows] == pytest.approx(
            item["standard_errors"], abs=1e-4
        )
    [q3] = rows_of(tables["items"], item="q3")
    assert q3["reversed"] == "yes"
    assert q3["question"] == "Question <3>"


def test_an_item_that_means_something_else_to_a_group_is_named(fall, statistician):
    tables = report_of(fall, statistician)
    rows = rows_of(tables["dif"], measure="trust", attribute="sex")
    assert {row["item"]: row["class"] for row in rows} == {
        "q1": "A",
        "q2": "C",
        "q3": "A",
        "q4": "A",
    }
    # Both groups have 500 people on the roster; the larger one answered more.
    assert {(row["reference group"], row["focal group"]) for row in rows} <= {
        ("f", "m"),
        ("m", "f"),
    }
    assert {row["class"] for row in rows_of(tables["dif"], measure="noise")} == {"A"}
    # The languages are the same people.
    by_language = rows_of(tables["dif"], measure="trust", attribute="language")
    assert [row["class"] for row in by_language] == ["A", "C", "A", "A"]
    # One grade has nothing to be compared with.
    assert rows_of(tables["dif"], attribute="grade") == []

    answers = {
        sex: np.vstack([_categories(seed + 10 * n, moved) for n in (0, 1)])
        for sex, (seed, moved) in GROUPS.items()
    }
    trust = Calibration.objects.get(administration=fall, measure="trust")
    [first, *_] = rows
    by_hand = compare_groups(
        *(
            ResponseTable.of_people(answers[first[f"{kind} group"]])[0]
            for kind in ("reference", "focal")
        ),
        [np.array(item["thresholds"]) for item in trust.items],
    )
    assert [float(row["difference"]) for row in rows] == pytest.approx(
        by_hand.differences.tolist(), abs=1e-4
    )


def _categories(seed, moved):
    rows = [
        [MISSING if value in (None, "dk") else int(value) - 1 for value in row[:4]]
        for row in simulated(250, seed, moved={"q2": moved})
    ]
    matrix = np.array(rows)
    matrix[:, 2] = np.where(matrix[:, 2] == MISSING, MISSING, 3 - matrix[:, 2])
    return matrix


def test_numbers_of_answers_are_those_that_the_results_show(fall, statistician):
    tables = report_of(fall, statistician)
    rows = rows_of(tables["categories"], item="q3")
    # A reversed item: the lowest category is the highest answer.
    assert [row["answer"] for row in rows] == ["4", "3", "2", "1"]
    assert [row["category"] for row in rows] == ["0", "1", "2", "3"]
    answers = answers_to(fall, "q3")
    assert [int(row["people"]) for row in rows] == [
        answers.filter(value=row["answer"]).count() for row in rows
    ]
    measures = [float(row["mean measure"]) for row in rows]
    assert measures == sorted(measures)
    assert {row["falls"] for row in rows} == {"no"}


def test_only_people_who_see_the_whole_state_get_it(client, fall, staff):  # noqa: F811
    path = reverse("scores_quality_report", args=[fall.pk])
    for user in (staff.analyst, staff.chen, staff.dana):
        log_in(client, user)
        assert client.post(path).status_code in (403, 404), user
    assert not Export.objects.exists()


def test_a_report_cannot_be_downloaded_after_a_role_ended(
    client,
    fall,
    staff,  # noqa: F811
    statistician,
):
    report_of(fall, statistician)
    path = reverse("export_download", args=[Export.objects.get().pk])
    log_in(client, statistician)
    file = client.get(path)
    assert file.status_code == 200
    assert b"".join(file)
    roles = Membership.objects.filter(user=statistician)
    assert roles.update(district=staff.riverside)
    assert client.get(path).status_code == 404


def test_a_group_that_the_results_hide_is_in_no_table(fall, statistician):
    shown = report_of(fall, statistician)
    assert len(rows_of(shown["groups"], attribute="sex")) == 2
    assert rows_of(shown["dif"], attribute="sex")

    GroupResults.objects.filter(
        administration=fall, level="state", attribute="sex", value="f"
    ).update(is_hidden=True)
    tables = report_of(fall, statistician)
    assert [row["value"] for row in rows_of(tables["groups"], attribute="sex")] == ["m"]
    assert rows_of(tables["dif"], attribute="sex") == []


def test_an_item_that_a_group_hides_has_no_difference(fall, statistician):
    GroupResults.objects.filter(
        administration=fall, level="state", attribute="sex", value="f"
    ).update(hidden_items=["q2"])
    rows = rows_of(report_of(fall, statistician)["dif"], attribute="sex")
    by_item = {row["item"]: row["difference"] for row in rows}
    assert by_item["q2"] == "*"
    assert "*" not in {value for item, value in by_item.items() if item != "q2"}


def test_means_are_hidden_where_a_category_has_few_people(answered, statistician):
    lowest = answers_to(answered, "q1").filter(value="1")
    keys = list(lowest.values_list("respondent_id", flat=True))
    lowest.filter(respondent_id__in=keys[11:]).update(value="2")
    scored(answered)
    # Answers of fewer than ten people are joined with others, and have no mean alone.
    Administration.objects.filter(pk=answered.pk).update(minimum_group=12)
    answered.refresh_from_db()
    tables = report_of(answered, statistician)
    rows = rows_of(tables["categories"], item="q1")
    assert {row["mean measure"] for row in rows} == {"*"}
    of_q2 = rows_of(tables["categories"], item="q2")
    assert "*" not in {row["mean measure"] for row in of_q2}

    # Without the rule, the mean of eleven people would be there.
    Administration.objects.filter(pk=answered.pk).update(minimum_group=1)
    rows = rows_of(report_of(answered, statistician)["categories"], item="q1")
    assert float(rows[0]["mean measure"]) < 0


def answers_to(administration, name):
    item = administration.published.survey.items.get(name=name)
    return Response.objects.filter(administration_id=administration.pk, item_id=item.pk)


def test_a_measure_that_the_results_hide_is_hidden(fall, statistician):
    GroupResults.objects.filter(
        administration=fall, level="state", attribute=""
    ).update(hidden_items=["q5"])
    tables = report_of(fall, statistician)
    [noise] = rows_of(tables["measures"], measure="noise")
    assert noise["reliability"] == noise["people"] == "*"
    for name in ("thresholds", "categories", "dif", "dependence"):
        assert rows_of(tables[name], measure="noise") == []
        assert rows_of(tables[name], measure="trust")


def test_there_is_no_report_of_other_answers_than_those_of_the_scores(
    fall, statistician
):
    person = Respondent.objects.filter(administration=fall).first()
    Response.objects.filter(administration_id=fall.pk, respondent_id=person.pk).delete()
    person.delete()
    assert "Answers have changed" in failure_of(fall, statistician)


def test_there_is_no_report_while_the_state_is_hidden(fall, statistician):
    GroupResults.objects.filter(
        administration=fall, level="state", attribute=""
    ).update(is_hidden=True)
    assert "There is no technical report" in failure_of(fall, statistician)


def test_the_people_who_answered_are_compared_with_the_roster(
    answered,
    staff,  # noqa: F811
    statistician,
):
    # Of 600 girls and 1,000 boys on the roster, 500 each have answered.
    for sex, language, people in (("f", "en", 100), ("m", "es", 500)):
        fields = {"attributes": {"sex": sex}, "language": language, "grade": "07"}
        enrol(answered, staff.lincoln, people, **fields)
    scored(answered)
    tables = report_of(answered, statistician)
    by_sex = {row["value"]: row for row in rows_of(tables["response"], attribute="sex")}
    assert by_sex["f"]["on the roster"] == "600"
    assert by_sex["f"]["finished"] == by_sex["m"]["finished"] == "500"
    assert float(by_sex["f"]["percent finished"]) == pytest.approx(83.3)
    assert float(by_sex["m"]["from"]) < 50 < float(by_sex["m"]["to"])
    assert float(by_sex["m"]["percent of the roster"]) == pytest.approx(62.5)
    assert float(by_sex["m"]["percent of those who started"]) == 50

    # Girls agree less with q2: like the roster, the mean is higher.
    [weighted] = rows_of(
        tables["effects"], measure="trust", people="weighted to the roster"
    )
    assert float(weighted["change of the mean"]) > 0.01
    assert float(weighted["largest weight"]) == pytest.approx(1.25, abs=0.01)
    assert weighted["like the roster by"] == "sex language"
    assert float(weighted["distance from the roster"]) == 0
    [error] = rows_of(tables["errors"], measure="trust")
    assert float(error["standard error of independent people"]) == pytest.approx(
        float(error["standard deviation"]) / 1000**0.5, rel=0.01
    )


def enrol(administration, school, people, **fields):
    """Put people on the roster who never start."""
    Respondent.objects.bulk_create(
        Respondent(
            administration=administration,
            school=school,
            code_digest=f"silent {fields} {number}".encode(),
            code_key_version=1,
            **fields,
        )
        for number in range(people)
    )


def careless(administration, school, people):
    take_part(
        administration,
        school,
        [["4"] * 7] * people,
        grade="07",
        attributes={"sex": "m"},
    )


def test_careless_people_are_counted_and_left_out_of_nothing(
    answered,
    staff,  # noqa: F811
    statistician,
):
    careless(answered, staff.lincoln, 30)
    scored(answered)
    tables = report_of(answered, statistician)
    [row] = rows_of(tables["careless"], rule="same answers")
    assert 30 <= int(row["flagged people"]) < 60
    [rest] = rows_of(
        tables["effects"], measure="trust", people="without careless answers"
    )
    # They agreed with all but the reversed statement.
    assert float(rest["change of the mean"]) < -0.001
    trust = Calibration.objects.get(administration=answered, measure="trust")
    assert trust.people >= 1000


def test_few_careless_people_are_hidden(answered, statistician):
    Administration.objects.filter(pk=answered.pk).update(minimum_group=100)
    scored(Administration.objects.get(pk=answered.pk))
    tables = report_of(answered, statistician)
    [row] = rows_of(tables["careless"], rule="same answers")
    assert (row["flagged people"], row["percent"]) == ("<100", "*")
    for row in rows_of(tables["effects"], people="without careless answers"):
        assert row["change of the mean"] == row["reliability"] == "*"


def test_the_file_has_a_pdf_with_the_same_figures(fall, statistician, monkeypatch):
    documents = {}

    def keep(html, seconds):
        documents.update(html)
        return pdf_files(html, seconds)

    monkeypatch.setattr("reports.technical.document.pdf_files", keep)
    tables = report_of(fall, statistician)
    [export] = Export.objects.all()
    with ZipFile(path_of(export.file_name)) as archive:
        content = objects(archive.read("technical-report.pdf"))
    assert "/Marked true" in content and "pdfuaid:part" in content
    for tag in ("H1", "H2", "H3", "Table", "THead", "TH", "TD"):
        assert re.search(rf"/S /{tag}\b", content), tag
    html = documents["technical-report"]
    for row in tables["thresholds"]:
        for name in ("logits", "standard error"):
            assert f">{float(row[name]):.4f}<" in html
    # Of two attributes, q2 alone differs; the others are only counted.
    notable = rows_of(tables["dif"], measure="trust")
    assert sum(row["class"] != "A" for row in notable) == 2
    assert "6 of 8 differences are of class A" in html
    [trust] = rows_of(tables["measures"], measure="trust")
    assert f">{float(trust['reliability']):.4f}<" in html
    for words in (fall.published_id, "fewest people of a shown group", "Wilson 1927"):
        assert words in html
    about = ABOUT.read_text()
    hiding = about.split("WHAT IS HIDDEN")[1].split()
    assert " ".join(hiding[:8]) in " ".join(html.split())
    assert "<dt>Outfit of a category</dt>" in html


def test_effects_are_shown_on_the_page_about_quality(client, fall, statistician):
    log_in(client, statistician)
    path = reverse("scores_quality", args=[fall.pk])
    assert "Once somebody has requested a technical report" in client.get(path).text
    tables = report_of(fall, statistician)
    page = client.get(path)
    effects = page.context["page"].effects
    rows = rows_of(tables["effects"], people="weighted to the roster")
    changes = {row["measure"]: float(row["change in points"]) for row in rows}
    assert effects.weighted == changes
    largest = max(map(abs, changes.values()))
    assert f"changes no measure by more than {largest:.1f} points" in page.text
    assert "No score is changed for either." in page.text
    # Scores that are calculated again have other people.
    score_administration(fall, recalculate=True)
    assert client.get(path).context["page"].effects is None


@pytest.mark.parametrize(
    ("percent", "changes", "words"),
    [
        (3.0, {"a": 0.4, "b": -1.2}, "the 3.0\N{NO-BREAK SPACE}% of people"),
        (3.0, {"a": 0.4, "b": -1.2}, "by more than 1.2 points"),
        (0.0, {"a": 0.0}, "Nobody seems"),
        ("*", {"a": "*"}, "is not shown"),
        (3.0, {"a": "*"}, "is not shown"),
    ],
)
def test_a_sentence_says_what_careless_answers_change(percent, changes, words):
    effects = Effects(percent, changes, {})
    assert words in effects.careless_sentence
    assert effects.weights_sentence == ""
    assert Effects(percent, {"a": "*"}, {}).cells("a") == ["*", "–"]
