"""A published benchmark is checked, imported, compared with, and taken back."""

from __future__ import annotations

import math

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.urls import reverse

from accounts.models import AuditEntry
from accounts.tests.logging_in import log_in
from reports.models import Calibration, ChosenBenchmark, ImportedBenchmark, ScoreRow
from reports.rates.rollup import roll_up
from reports.releases.apply_suppression import hide_small_groups
from reports.releases.rollup import roll_up_results
from reports.scores.benchmark_choice import choose_benchmark
from reports.scores.benchmark_titles import title_of_benchmark
from reports.scores.scoring import score_administration
from reports.scores.visible import visible_scores
from reports.tests.scores.conftest import (
    TRUST,
    closed,
    run_jobs,
    simulated,
    take_part,
)
from survey.models import Job
from survey.tests.workbooks import workbook

pytestmark = pytest.mark.django_db
HEADER = (
    "Measure,Item,Thresholds,Mean,Standard deviation,Deviation of,People,Date,Source"
)
NORMS = ["trust,,,0.25,0.5,schools,120344,2025-05,State norms"]
ITEMS = [
    f"trust,{name},{' '.join(map(str, steps))},,,,,," for name, steps in TRUST.items()
]


def scored(survey, staff, name, people, seed, shift=0.0):
    administration = closed(survey, name)
    take_part(administration, staff.lincoln, simulated(people, seed, shift=shift))
    roll_up()
    roll_up_results(administration)
    hide_small_groups(administration)
    score_administration(administration)
    return administration


@pytest.fixture
def fall(survey, staff):
    return scored(survey, staff, "fall", 200, 1)


@pytest.fixture
def spring(survey, staff, fall):
    return scored(survey, staff, "spring", 200, 2, shift=0.5)


def trust(administration):
    return Calibration.objects.get(administration=administration, measure="trust")


def stored_scores(*administrations):
    """Return what is stored of the measures, without moments and keys."""
    rows = ScoreRow.objects.filter(administration__in=administrations)
    return {
        (row.administration_id, row.level, row.place_id, row.attribute, row.value): (
            row.measures
        )
        for row in rows
    }


def csv_file(*lines, header=HEADER):
    content = "\n".join([header, *lines]).encode()
    return SimpleUploadedFile("norms.csv", content, "text/csv")


def check(client, administration, file, because="National norms"):
    path = reverse("scores_benchmark_import", args=[administration.pk])
    return client.post(path, {"file": file, "because": because})


def save(client, administration, page):
    path = reverse("scores_benchmark_import_save", args=[administration.pk])
    checked = {"checked": page.context["checked"]}
    answer = client.post(path, checked, follow=True)
    run_jobs()
    return answer


def test_a_published_benchmark_is_checked_imported_and_taken_back(
    client, staff, fall, spring
):
    log_in(client, staff.state)
    before = stored_scores(fall, spring)
    page = check(client, spring, csv_file(*NORMS, *ITEMS))
    assert "1 measure would be compared with this benchmark" in page.text
    assert "120,344" in page.text and "4 of 4" in page.text
    # A dry run: nothing is stored.
    assert not ImportedBenchmark.objects.exists() and not Job.objects.exists()
    assert "Scores are calculated again" in save(client, spring, page).text

    for administration in (fall, spring):
        calibration = trust(administration)
        assert calibration.anchored_to is None
        assert (calibration.scale_mean, calibration.scale_deviation) == (0.25, 0.5)
        thresholds = {item["name"]: item["thresholds"] for item in calibration.items}
        assert thresholds == TRUST
        assert (
            title_of_benchmark(calibration) == "State norms, 2025-05 (120,344 people)"
        )
        row = ScoreRow.objects.get(
            administration=administration, level="state", attribute=""
        )
        _people, mean, _error, score = row.measures["trust"]
        assert score == round(50 + 20 * (mean - 0.25) / 0.5)
    # The other measure keeps its benchmark.
    noise = Calibration.objects.get(administration=spring, measure="noise")
    assert noise.anchored_to.administration == fall and noise.imported is None
    assert AuditEntry.objects.get(action="import benchmark").after == {
        "measures": ["trust"],
        "sources": ["State norms"],
        "reason": "National norms",
    }
    shown = client.get(reverse("scores_quality", args=[spring.pk])).text
    assert "50 is the mean of the published benchmark State norms, 2025-05" in shown
    table = client.get(reverse("scores_table", args=[spring.pk])).text
    assert "State norms, 2025-05 (120,344 people)" in table

    undo = reverse("scores_benchmark_withdraw", args=[spring.pk])
    assert "compared with its own benchmark again" in client.get(undo).text
    assert "Say why" in client.post(undo, {"because": ""}).text
    client.post(undo, {"because": "Wrong table"})
    run_jobs()
    assert stored_scores(fall, spring) == before
    assert trust(spring).anchored_to == trust(fall)
    assert "no imported benchmark any more" in client.get(undo, follow=True).text


def test_a_mean_without_thresholds_moves_the_scale_alone(client, staff, fall, spring):
    log_in(client, staff.state)
    items = trust(fall).items
    save(client, fall, check(client, fall, csv_file(*NORMS)))
    assert trust(fall).items == items
    assert trust(spring).anchored_to == trust(fall)
    assert (trust(spring).scale_mean, trust(spring).scale_deviation) == (0.25, 0.5)


def test_spans_of_a_publication_have_their_own_scale(client, staff, fall):
    log_in(client, staff.state)
    header = HEADER.replace("Item", "Item,Grade span")
    lines = [
        "trust,,,,0.25,0.5,schools,120344,2025-05,State norms",
        "trust,,high,,-0.1,0.4,schools,40000,2025-05,State norms",
    ]
    save(client, fall, check(client, fall, csv_file(*lines, header=header)))
    stored = trust(fall).span_scales["high"]
    assert stored["scale"] == {"mean": -0.1, "deviation": 0.4, "unit": "schools"}
    assert title_of_benchmark(trust(fall), "high").endswith(
        "(40,000 people), high schools"
    )


def test_a_workbook_is_read_too(client, staff, fall):
    log_in(client, staff.state)
    rows = [line.split(",") for line in (HEADER, *NORMS)]
    file = SimpleUploadedFile("norms.xlsx", workbook({"norms": rows}))
    assert "would be compared" in check(client, fall, file).text


@pytest.mark.parametrize(
    ("line", "column", "reason"),
    [
        ("happy,,,0,1,,9,2025,x", "Measure", "is no measure of this survey"),
        ("trust,q9,1 2 3,,,,,,", "Item", "is no item of this measure"),
        ("trust,q1,1 2,,,,,,", "Thresholds", "needs 3 thresholds"),
        ("trust,q1,1 2 high,,,,,,", "Thresholds", "is no number from -10 to 10"),
        ("trust,q1,1 2 99,,,,,,", "Thresholds", "is no number from -10 to 10"),
        ("trust,,,nan,1,,9,2025,x", "Mean", "is no number from -10 to 10"),
        ("trust,,,0,0,,9,2025,x", "Standard deviation", "is no number above 0"),
        ("trust,,,0,1,pupils,9,2025,x", "Deviation of", "is neither"),
        ("trust,,,0,1,,many,2025,x", "People", "is no whole number above 0"),
        ("trust,,,0,1,,9,May,x", "Date", "is no date such as"),
        ("trust,,,0,1,,9,2025,", "Source", "is empty, or longer"),
        ("noise,q5,1 2 3,,,,,,", "Measure", "has no row with its mean"),
    ],
)
def test_a_file_with_a_problem_is_refused_with_row_and_column(
    client, staff, fall, line, column, reason
):
    log_in(client, staff.state)
    # A good row before it is not imported either.
    good = "noise,,,0,1,,9,2025,x" if line.startswith("trust") else NORMS[0]
    page = check(client, fall, csv_file(good, line))
    [problem] = page.context["problems"]
    assert (problem.row, problem.column) == (3, column)
    assert reason in problem.reason and reason in page.text
    assert page.context["change_count"] == 0
    assert 'name="checked"' not in page.text


def test_a_row_that_is_there_already_is_refused(client, staff, fall):
    log_in(client, staff.state)
    page = check(client, fall, csv_file(*NORMS, *NORMS, ITEMS[0], ITEMS[0]))
    assert [(problem.row, problem.column) for problem in page.context["problems"]] == [
        (3, "Measure"),
        (5, "Item"),
    ]


WITH_ERRORS = HEADER.replace("Thresholds", "Thresholds,Threshold errors")
NORMS_WITH_ERRORS = "trust,,,,0.25,0.5,schools,120344,2025-05,State norms"


def items_with_errors(error, moved=0.0):
    """Return the items with an error of each threshold, the second one moved."""
    lines = []
    for name, steps in TRUST.items():
        shift = moved if name == "q2" else 0.0
        thresholds = " ".join(f"{step + shift:.2f}" for step in steps)
        errors = " ".join([str(error)] * len(steps)) if error else ""
        lines.append(f"trust,{name},{thresholds},{errors},,,,,,")
    return lines


@pytest.mark.parametrize("error", [0, 0.9])
def test_published_errors_are_in_no_error_of_a_change(
    client, staff, fall, spring, error
):
    """They move both rounds alike, and only such rounds are compared."""
    log_in(client, staff.state)
    file = csv_file(NORMS_WITH_ERRORS, *items_with_errors(error), header=WITH_ERRORS)
    page = check(client, spring, file)
    assert ("with standard errors" in page.text) is bool(error)
    save(client, spring, page)
    for each in (fall, spring):
        moved = [item["displacement"] for item in trust(each).items]
        # As if the items were a sample.
        of_items = math.sqrt(sum(value**2 for value in moved) / 12)
        assert trust(each).linking_error == pytest.approx(of_items)
    # With the error of the mean of four places, each of three thresholds, it would be
    # far larger.
    published = math.sqrt(4 * 3 * error**2 / 9) / 4
    assert not error or published > 2 * trust(spring).linking_error
    place = ("school", staff.lincoln.pk)
    before, now = (
        visible_scores(each, [place])[place]["trust"] for each in (fall, spring)
    )
    assert before.benchmarks == now.benchmarks
    links = [20 * trust(each).linking_error / 0.5 for each in (fall, spring)]
    of_people = [now.mean_error, before.mean_error, math.sqrt(1 / 6)]
    assert now.error_of_change(before) == pytest.approx(math.hypot(*of_people, *links))
    # It moves all places alike, and is in no interval.
    row = ScoreRow.objects.get(
        administration=spring, level="school", place_id=staff.lincoln.pk, attribute=""
    )
    assert now.mean_error == pytest.approx(20 * row.measures["trust"][2] / 0.5)
    for name in ("scores_table", "scores_quality"):
        shown = client.get(reverse(name, args=[spring.pk])).text
        assert ("are in no interval of a score or a change" in shown) is bool(error)
        assert ("which is not known" in shown) is (not error)
    report = f"/console/results/{spring.pk}/schools/{staff.lincoln.pk}/"
    assert ("which is not known" in client.get(report).text) is (not error)


def test_an_own_benchmark_has_no_word_about_published_errors(client, staff, spring):
    log_in(client, staff.state)
    for name in ("scores_table", "scores_quality"):
        shown = client.get(reverse(name, args=[spring.pk])).text
        assert (
            "of a score or a change" not in shown and "which is not known" not in shown
        )


@pytest.mark.parametrize("error", [0, 0.9])
def test_published_errors_are_part_of_the_test_of_drift(client, staff, fall, error):
    log_in(client, staff.state)
    items = items_with_errors(error, moved=-1.2)
    file = csv_file(NORMS_WITH_ERRORS, *items, header=WITH_ERRORS)
    save(client, fall, check(client, fall, file))
    second = next(item for item in trust(fall).items if item["name"] == "q2")
    assert second["displacement"] > 0.5
    assert second["has_drifted"] is (not error)


@pytest.mark.parametrize(
    ("errors", "reason"),
    [
        ("0.1 0.2", "needs 3 standard errors"),
        ("0.1 0.2 0", "is no number above 0"),
        ("0.1 0.2 -0.3", "is no number above 0"),
        ("0.1 0.2 small", "is no number above 0"),
    ],
)
def test_errors_that_are_none_are_refused(client, staff, fall, errors, reason):
    log_in(client, staff.state)
    line = f"trust,q1,1 2 3,{errors},,,,,,"
    page = check(client, fall, csv_file(NORMS_WITH_ERRORS, line, header=WITH_ERRORS))
    [problem] = page.context["problems"]
    assert (problem.row, problem.column) == (3, "Threshold errors")
    assert reason in problem.reason
    assert 'name="checked"' not in page.text


def test_choosing_a_round_ends_the_import(client, staff, fall, spring):
    log_in(client, staff.state)
    save(client, fall, check(client, fall, csv_file(*NORMS, *ITEMS)))
    choose_benchmark(administration=spring, because="Ours", by=staff.state)
    run_jobs()
    assert ChosenBenchmark.objects.get().administration == spring
    assert trust(fall).anchored_to == trust(spring)
    assert trust(spring).imported is None


def test_others_cannot_import(client, staff, fall):
    for user in (staff.chen, staff.dana):
        log_in(client, user)
        assert check(client, fall, csv_file(*NORMS)).status_code in (403, 404)
