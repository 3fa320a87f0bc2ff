"""Scores equal a slow calculation from the plain matrix of people and items."""

from __future__ import annotations

import io
from copy import deepcopy
from datetime import timedelta

import numpy as np
import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.utils import timezone, translation

from accounts.models import AuditEntry
from reports.models import Calibration, ChosenBenchmark, ScoreRow, Scoring
from reports.rasch import MISSING, ResponseTable, calibrate, measure_people
from reports.rates.rollup import roll_up
from reports.releases.rollup import roll_up_results
from reports.scores import groups, scale
from reports.scores.benchmark import anchor_of
from reports.scores.drift import release_item
from reports.scores.job import calculate_scores, request_scores
from reports.scores.joining import Anchor
from reports.scores.problems import Kind, Problem
from reports.scores.scoring import score_administration
from reports.tests.scores.conftest import (
    ITEMS,
    MEASURES,
    closed,
    published,
    simulated,
    take_part,
)
from survey.models import CountedGroup, Respondent
from survey.work import jobs
from survey.work.jobs import JobRefused

pytestmark = pytest.mark.django_db


def calculate(administration, **options):
    """Calculate scores with the response rates of now, which allow reports."""
    roll_up()
    return score_administration(administration, **options)


@pytest.fixture
def fall(survey, staff):
    return answered_by_two_schools(survey, staff)


def answered_by_two_schools(survey, staff):
    """Return a closed administration that 240 people answered."""
    administration = closed(survey)
    take_part(
        administration,
        staff.lincoln,
        simulated(120, 1, shift=0.5),
        grade="07",
        attributes={"sex": "f"},
    )
    take_part(administration, staff.roosevelt, simulated(120, 2), grade="08")
    return administration


def slow_measures(answers, reverse=True):
    """Return the measures of "trust" of people, one row of values for each."""
    categories = [
        [MISSING if value in (None, "", "dk") else int(value) - 1 for value in row[:4]]
        for row in answers
    ]
    matrix = np.array(categories)
    if reverse:
        matrix[:, 2] = np.where(matrix[:, 2] == MISSING, MISSING, 3 - matrix[:, 2])
    table, row = ResponseTable.of_people(matrix)
    thresholds = calibrate(table).thresholds
    measures = measure_people(table, thresholds).wle[row]
    # Of a single answer there is none.
    has_enough = (matrix != MISSING).sum(axis=1) > 1
    return thresholds, np.where(has_enough, measures, np.nan)


def row_of(administration, level="state", place=0, attribute="", value=""):
    return ScoreRow.objects.get(
        administration=administration,
        level=level,
        place_id=place,
        attribute=attribute,
        value=value,
    )


def kinds(administration, measure="trust"):
    calibration = Calibration.objects.get(
        administration=administration, measure=measure
    )
    return [
        (problem["kind"], problem.get("item", ""))
        for problem in calibration.problems
        if problem["kind"] not in ("few_schools", "no_differences")
    ]


def test_scores_are_means_of_measures_on_the_scale_of_the_people(staff, fall):
    outcome = calculate(fall)

    assert (outcome.people, outcome.measures) == (240, 2)
    answers = simulated(120, 1, shift=0.5) + simulated(120, 2)
    thresholds, measures = slow_measures(answers)
    trust = Calibration.objects.get(administration=fall, measure="trust")
    assert [item["name"] for item in trust.items] == ["q1", "q2", "q3", "q4"]
    for item, expected in zip(trust.items, thresholds, strict=True):
        assert item["thresholds"] == pytest.approx(expected.tolist(), abs=1e-6)
    assert trust.items[2]["options"] == ["4", "3", "2", "1"]
    known = measures[np.isfinite(measures)]
    assert trust.people == len(known)
    assert trust.scale_mean == pytest.approx(known.mean(), abs=1e-6)
    # Two schools are too few to have a deviation.
    assert trust.scale_unit == "people"
    assert trust.scale_deviation == pytest.approx(known.std(ddof=1), abs=1e-6)
    assert 0.5 < trust.reliability < 1
    assert trust.survey_digest == fall.published_id
    assert trust.software.startswith("rasch 1, numpy")

    of_lincoln = measures[:120][np.isfinite(measures[:120])]
    people, mean, error, score = row_of(fall, "school", staff.lincoln.pk).measures[
        "trust"
    ]
    assert people == len(of_lincoln)
    assert mean == pytest.approx(of_lincoln.mean(), abs=1e-4)
    assert error == pytest.approx(
        of_lincoln.std(ddof=1) / np.sqrt(len(of_lincoln)), abs=1e-4
    )
    points = 50 + 20 * (of_lincoln.mean() - known.mean()) / known.std(ddof=1)
    assert score == round(points)
    state = row_of(fall)
    assert state.measures["trust"][3] == 50
    # Noise is negative: its score is turned round.
    assert state.essentials == {"safe": 50}


def points_of(administration, name, measures):
    calibration = Calibration.objects.get(administration=administration, measure=name)
    return 50 + 20 * (measures - calibration.scale_mean) / calibration.scale_deviation


def slow_noise(answers):
    categories = [
        [MISSING if value in ("", "dk") else int(value) - 1 for value in row[4:]]
        for row in answers
    ]
    table, row = ResponseTable.of_people(np.array(categories))
    return measure_people(table, calibrate(table).thresholds).wle[row]


def with_shared_views(seed):
    """People who trust less hear more noise, and some skip either measure."""
    answers = simulated(120, seed, skipped=0)
    answers.sort(key=lambda row: sum(int(row[n]) for n in (0, 1, 3)) - int(row[2]))
    noise = sorted((row[4:] for row in answers), key=lambda row: -sum(map(int, row)))
    shared = [
        [*row[:4], *other_row] for row, other_row in zip(answers, noise, strict=True)
    ]
    shared[5][:4] = shared[60][4:] = [""] * 4
    shared[60] = shared[60][:7]
    return shared


def test_the_error_of_an_essential_is_that_of_peoples_means(staff, survey):
    fall = closed(survey)
    everyone = with_shared_views(1) + with_shared_views(2)
    take_part(fall, staff.lincoln, everyone[:120])
    take_part(fall, staff.roosevelt, everyone[120:])
    calculate(fall)
    trust = points_of(fall, "trust", slow_measures(everyone)[1])
    noise = points_of(fall, "noise", slow_noise(everyone))
    for row, people in (
        (row_of(fall, "school", staff.lincoln.pk), slice(0, 120)),
        (row_of(fall), slice(None)),
    ):
        left, right = trust[people], 100 - noise[people]
        # The part of each person in the mean of both means.
        parts = []
        for measures in (left, right):
            known = np.isfinite(measures)
            n = known.sum()
            part = np.where(known, measures - np.nanmean(measures), 0) / n
            parts.append(part * np.sqrt(n / (n - 1)))
        expected = np.sqrt(np.square(sum(parts) / 2).sum())
        assert row.essential_errors["safe"] == pytest.approx(expected, abs=1e-3)
        # Of those with both, nearly the error of a mean.
        both = ((left + right) / 2)[np.isfinite(left + right)]
        simple = both.std(ddof=1) / np.sqrt(len(both))
        assert row.essential_errors["safe"] == pytest.approx(simple, rel=0.03)
        # As if other people had answered each measure, it would be too small.
        independent = np.sqrt(sum(np.square(part).sum() for part in parts)) / 2
        assert row.essential_errors["safe"] > 1.2 * independent


def answered_by_one_in_both(person, other_person):
    """Twelve people have one measure each, and two of these answers one person gave."""
    trust = [["1", "2", "3", "2"], ["4", "4", "1", "3"], ["2", "3", "2", "4"]] * 2
    noise = [["1", "2", "1"], ["4", "3", "4"], ["2", "3", "3"]] * 2
    both = [*trust.pop(person), *noise.pop(other_person)]
    return [
        both,
        *([*row, *[""] * 3] for row in trust),
        *([*[""] * 4, *row] for row in noise),
    ]


@pytest.mark.parametrize("is_protected", [True, False])
def test_the_error_of_an_essential_tells_nothing_of_one_person(
    staff, monkeypatch, is_protected
):
    if not is_protected:
        monkeypatch.setattr(
            groups, "without_few_pairs", lambda first, *rest, **more: first
        )
    errors = {}
    for name, person, other_person in (("one", 0, 0), ("another", 1, 0)):
        fall = closed(
            published(version=name),
            name,
            role=["student", "teacher"][person],
            minimum_group=5,
        )
        take_part(fall, staff.lincoln, answered_by_one_in_both(person, other_person))
        take_part(fall, staff.roosevelt, simulated(60, 1))
        calculate(fall)
        lincoln = row_of(fall, "school", staff.lincoln.pk)
        state = row_of(fall)
        errors[name] = (
            lincoln.measures,
            lincoln.essential_errors["safe"],
            state.essential_errors["safe"],
        )
    (measures, error, of_state), (same, other_error, other_of_state) = errors.values()
    # The same people have each measure; only who has both is another.
    assert measures == same
    assert measures["trust"][0] == measures["noise"][0] == 6
    assert (error == other_error) is is_protected
    assert (of_state == other_of_state) is is_protected
    if is_protected:
        points = [
            20 * measures[name][2] / deviation
            for name, deviation in Calibration.objects.filter(
                administration=fall
            ).values_list("measure", "scale_deviation")
        ]
        # As if both measures went together fully.
        assert error == pytest.approx(sum(points) / 2, abs=1e-3)


def test_a_school_without_a_report_is_in_no_larger_place(staff, survey):
    fall = closed(survey)
    take_part(fall, staff.lincoln, simulated(60, 1, shift=0.5))
    silent = simulated(40, 2)
    take_part(fall, staff.washington, silent[:10])
    take_part(fall, staff.washington, silent[10:], completed_at=None)
    calculate(fall)
    lincoln = row_of(fall, "school", staff.lincoln.pk)
    assert row_of(fall, "school", staff.washington.pk).measures["trust"][0] == 40
    for place in (row_of(fall, "district", staff.riverside.pk), row_of(fall)):
        assert place.measures == lincoln.measures
        assert place.essentials == lincoln.essentials
    # Nor is it in the mean of 50, which everybody knows.
    trust = Calibration.objects.get(administration=fall, measure="trust")
    assert trust.scale_mean == pytest.approx(lincoln.measures["trust"][1], abs=1e-4)


def test_districts_have_the_means_of_schools_that_show_theirs(staff, survey):
    fall = closed(survey)
    answers = simulated(60, 1, skipped=0)
    # 51 people have left the page with the measure of noise out.
    answers[9:] = [[*row[:4], "", "", ""] for row in answers[9:]]
    take_part(fall, staff.lincoln, answers)
    take_part(fall, staff.washington, simulated(40, 2, skipped=0))
    fall.minimum_group = 10
    calculate(fall)
    district = row_of(fall, "district", staff.riverside.pk)
    lincoln = row_of(fall, "school", staff.lincoln.pk)
    washington = row_of(fall, "school", staff.washington.pk)
    assert lincoln.measures["noise"][0] == 9
    assert district.measures["noise"] == washington.measures["noise"]
    assert district.measures["trust"][0] == 100
    # The benchmark's mean would be another way to a hidden one.
    assert row_of(fall).measures["noise"][1] == pytest.approx(
        Calibration.objects.get(administration=fall, measure="noise").scale_mean,
        abs=1e-4,
    )
    # With these people in it, the difference is the mean of the nine.
    fall.minimum_group = 9
    calculate(fall, recalculate=True)
    whole, shown = (
        row.measures["noise"]
        for row in (
            row_of(fall, "district", staff.riverside.pk),
            row_of(fall, "school", staff.washington.pk),
        )
    )
    difference = (whole[0] * whole[1] - shown[0] * shown[1]) / 9
    hidden = row_of(fall, "school", staff.lincoln.pk).measures["noise"][1]
    assert difference == pytest.approx(hidden, abs=1e-2)


def test_groups_and_districts_have_the_sums_of_their_people(staff, fall):
    roll_up()
    roll_up_results(fall, release=True)
    score_administration(fall)
    lincoln = row_of(fall, "school", staff.lincoln.pk).measures
    for same in (
        row_of(fall, "district", staff.riverside.pk),
        row_of(fall, "state", 0, "grade", "07"),
        row_of(fall, "school", staff.lincoln.pk, "sex", "f"),
    ):
        assert same.measures == lincoln
    assert (
        row_of(fall, "state", 0, "sex", "").measures
        == row_of(fall, "school", staff.roosevelt.pk).measures
    )


def test_people_count_in_the_school_of_the_opening(staff, fall):
    person = Respondent.objects.filter(school=staff.lincoln).first()
    CountedGroup.objects.create(
        respondent=person,
        administration=fall,
        school=staff.roosevelt,
        grade="08",
        changed_at=timezone.now(),
    )
    gone = Respondent.objects.filter(school=staff.roosevelt).first()
    gone.withdrawn_at = gone.opted_out_at = timezone.now()
    gone.save(update_fields=["withdrawn_at", "opted_out_at"])
    outcome = calculate(fall)
    assert outcome.people == 239
    [lincoln, roosevelt] = [
        row_of(fall, "school", school.pk).measures["trust"][0]
        for school in (staff.lincoln, staff.roosevelt)
    ]
    # A person at Lincoln gave one answer, and has no measure.
    assert (lincoln, roosevelt) == (118, 120)


def test_scores_stay_until_somebody_asks_for_them_again(staff, fall):
    calculate(fall)
    before = Scoring.objects.get().calculated_at
    benchmark = Calibration.objects.get(measure="trust").pk
    take_part(fall, staff.lincoln, simulated(5, 9))

    assert calculate(fall).measures == 0
    assert Scoring.objects.get().calculated_at == before

    assert calculate(fall, recalculate=True).people == 245
    assert Scoring.objects.get().calculated_at > before
    assert Calibration.objects.get(measure="trust").pk == benchmark


def test_an_open_administration_is_refused(fall):
    fall.closes_at = timezone.now() + timedelta(days=1)
    with pytest.raises(JobRefused, match="nobody can answer any more"):
        calculate(fall)
    assert not Scoring.objects.exists()


def test_answers_that_another_page_hid_later_are_missing(staff):
    survey = published(relevant={"q5": "${q1} != '1'"}, version="2")
    administration = closed(survey)
    take_part(administration, staff.lincoln, simulated(100, 1, skipped=0))
    # They answered the second page before they changed the first.
    hidden = [["1", "2", "2", "2", "4", "", ""]] * 3
    take_part(administration, staff.roosevelt, hidden)
    calculate(administration)
    assert "noise" not in row_of(administration, "school", staff.roosevelt.pk).measures
    assert (
        row_of(administration, "school", staff.roosevelt.pk).measures["trust"][0] == 3
    )


@pytest.fixture(scope="class")
def shared_waves(class_data, survey, shared_staff):
    fall = answered_by_two_schools(survey, shared_staff)
    calculate(fall)
    # By itself, so much smaller a season would be a pilot.
    ChosenBenchmark.objects.create(administration=fall, because="All schools")
    spring = closed(survey, "spring")
    answers = simulated(1500, 5, shift=1.0, moved={"q2": 1.0})
    take_part(spring, shared_staff.lincoln, answers, grade="07")
    calculate(spring)
    return fall, spring


class TestLaterWaves:
    """A second wave in which q2 has become harder to agree with."""

    @pytest.fixture
    def fall(self, shared_waves):
        return deepcopy(shared_waves[0])

    @pytest.fixture
    def spring(self, shared_waves):
        return deepcopy(shared_waves[1])

    def test_it_is_anchored_and_reports_drift(self, fall, spring):
        benchmark = Calibration.objects.get(administration=fall, measure="trust")
        trust = Calibration.objects.get(administration=spring, measure="trust")
        assert trust.anchored_to == benchmark
        assert [item["thresholds"] for item in trust.items] == [
            item["thresholds"] for item in benchmark.items
        ]
        assert trust.scale_mean == benchmark.scale_mean
        moved = {item["name"]: item["displacement"] for item in trust.items}
        assert moved["q2"] > 0.5
        assert sum(moved.values()) == pytest.approx(0, abs=1e-9)
        assert [item["name"] for item in trust.items if item["has_drifted"]] == ["q2"]
        assert 0.02 < trust.items[1]["displacement_error"] < 0.2
        assert ("drift", "q2") in kinds(spring)
        assert benchmark.linking_error is None
        expected = np.sqrt(np.square(list(moved.values())).sum() / (4 * 3))
        assert trust.linking_error == pytest.approx(expected)

    def test_displacements_are_those_of_a_free_calibration(self, fall, spring):
        answers = simulated(1500, 5, shift=1.0, moved={"q2": 1.0})
        free, _ = slow_measures(answers)
        benchmark = Calibration.objects.get(administration=fall, measure="trust")
        difference = [
            thresholds.mean() - np.mean(item["thresholds"])
            for thresholds, item in zip(free, benchmark.items, strict=True)
        ]
        trust = Calibration.objects.get(administration=spring, measure="trust")
        assert [item["displacement"] for item in trust.items] == pytest.approx(
            (difference - np.mean(difference)).tolist(), abs=1e-6
        )

    def test_a_released_item_is_estimated_freely(
        self, staff, fall, spring, django_capture_on_commit_callbacks
    ):
        before = row_of(spring).measures["trust"][3]
        trust = Calibration.objects.get(administration=spring, measure="trust")
        job = release_item(
            administration=spring,
            measure="trust",
            item="q2",
            because="reworded",
            by=staff.state,
        )
        entry = AuditEntry.objects.get(action="release item of measure")
        assert entry.after["item"] == "q2"
        assert entry.after["reason"] == "reworded"
        assert entry.by == staff.state.email
        # Nothing changes before the job has run.
        assert row_of(spring).measures["trust"][3] == before
        assert jobs.run(job.pk)
        trust.refresh_from_db()
        items = {item["name"]: item for item in trust.items}
        assert not items["q2"]["is_anchored"]
        assert items["q1"]["is_anchored"]
        assert kinds(spring) == [("released", "q2")]
        # It was harder to agree with, which had lowered the measures.
        assert row_of(spring).measures["trust"][3] > before

    def test_people_of_another_role_have_a_benchmark_of_their_own(self, staff, fall):
        teachers = closed(fall.published, "teachers", role="teacher")
        take_part(teachers, staff.lincoln, simulated(200, 8))
        calculate(teachers)
        trust = Calibration.objects.get(administration=teachers, measure="trust")
        assert trust.anchored_to is None
        assert not ScoreRow.objects.filter(
            administration=teachers, attribute="grade"
        ).exists()

    def test_new_items_are_put_on_the_scale_of_the_old_ones(self, staff, fall):
        names = ["q1", "q2", "q3", "new", "q5", "q6", "q7"]
        measures = [row[:] for row in MEASURES]
        measures[2][5] = "q1 q2 -q3 new"
        survey = published(items=names, measures=measures, version="2")
        later = closed(survey, "later")
        take_part(later, staff.lincoln, simulated(300, 6), names)
        calculate(later)
        assert ("not_anchored", "new") in kinds(later)
        assert Calibration.objects.get(
            administration=later, measure="trust"
        ).anchored_to

    def test_a_measure_whose_items_have_all_changed_begins_anew(self, staff, fall):
        names = ["r1", "r2", "r3", "r4", "q5", "q6", "q7"]
        measures = [row[:] for row in MEASURES]
        measures[2][5] = "r1 r2 -r3 r4"
        survey = published(items=names, measures=measures, version="2")
        later = closed(survey, "later")
        take_part(later, staff.lincoln, simulated(300, 6), names)
        calculate(later)
        assert kinds(later) == [("all_changed", "")]
        trust, noise = (
            Calibration.objects.get(administration=later, measure=measure)
            for measure in ("trust", "noise")
        )
        assert trust.anchored_to is None
        assert noise.anchored_to is not None
        assert row_of(later).measures["trust"][3] == 50


class TestBadInput:
    def test_a_survey_without_measures(self, staff):
        administration = closed(published(measures=[], version="2"))
        take_part(administration, staff.lincoln, simulated(10, 1))
        assert calculate(administration).rows == 0
        [problem] = Scoring.objects.get().problems
        assert Problem.from_json(problem).kind == Kind.NO_MEASURES

    def test_an_administration_without_people(self, survey):
        administration = closed(survey)
        calculate(administration)
        [problem] = Scoring.objects.get().problems
        with translation.override("es"):
            sentence = Problem.from_json(problem).sentence
        assert sentence == "Nadie ha respondido, así que no hay puntuaciones."

    def test_everybody_in_one_category(self, staff, survey):
        administration = closed(survey)
        take_part(administration, staff.lincoln, [["2"] * 7] * 30)
        calculate(administration)
        assert kinds(administration) == [
            *(("one_category", item) for item in ITEMS[:4]),
            ("too_few_items", ""),
        ]
        assert not ScoreRow.objects.exists()

    def test_a_single_person(self, staff, survey):
        administration = closed(survey)
        take_part(administration, staff.lincoln, [["1", "2", "3", "4", "1", "2", "3"]])
        calculate(administration)
        assert ("too_few_items", "") in kinds(administration)

    def test_few_people_who_cannot_place_the_items(self, staff, survey):
        administration = closed(survey)
        rows = [["1", "2", "4", "4", *"123"], ["1", "3", "4", "4", *"123"]] * 3
        rows.append(["2", "3", "3", "4", *"234"])
        take_part(administration, staff.lincoln, rows)
        calculate(administration)
        assert ("no_estimate", "") in kinds(administration)
        assert not any("trust" in row.measures for row in ScoreRow.objects.all())

    def test_a_category_that_nobody_chose(self, staff, survey):
        answers = [
            ["2" if value == "3" else value for value in row]
            for row in simulated(300, 4)
        ]
        administration = closed(survey)
        take_part(administration, staff.lincoln, answers)
        calculate(administration)
        assert kinds(administration) == [("joined", item) for item in ITEMS[:4]]
        trust = Calibration.objects.get(measure="trust")
        # With the rarer of its neighbours.
        assert [sorted(set(item["option_categories"])) for item in trust.items] == [
            [0, 1, 2]
        ] * 4
        joined = [problem.get("value") for problem in trust.problems]
        assert joined[0] in ("2, 3", "3, 4")
        assert row_of(administration).measures["trust"][3] == 50

    def test_items_that_nobody_links(self, staff, survey):
        answers = simulated(300, 4, skipped=0)
        for number, row in enumerate(answers):
            row[: 2 if number % 2 else 4] = (
                ["", ""] if number % 2 else row[:2] + [""] * 2
            )
        administration = closed(survey)
        take_part(administration, staff.lincoln, answers)
        calculate(administration)
        assert kinds(administration) == [("disconnected", "q3"), ("disconnected", "q4")]

    def test_a_later_wave_with_a_category_that_the_benchmark_did_not_have(
        self, staff, survey
    ):
        answers = simulated(300, 4)
        before = [["2" if row[0] == "3" else row[0], *row[1:]] for row in answers]
        fall, spring = closed(survey), closed(survey, "spring")
        take_part(fall, staff.lincoln, before)
        take_part(spring, staff.lincoln, answers)
        calculate(fall)
        calculate(spring)
        assert kinds(fall) == [("joined", "q1")]
        assert ("joined", "q1") in kinds(spring)
        assert ("not_anchored", "q1") not in kinds(spring)
        trust = Calibration.objects.get(administration=spring, measure="trust")
        assert all(item["is_anchored"] for item in trust.items)

    def test_one_rare_answer_never_costs_a_measure(self, staff, survey):
        answers = simulated(300, 4, skipped=0)
        for row in answers:
            row[0] = {"1": "2", "4": "3"}.get(row[0], row[0])
        answers[0][0] = "4"
        administration = closed(survey)
        take_part(administration, staff.lincoln, answers)
        calculate(administration)
        assert kinds(administration) == [("joined", "q1")]
        row = row_of(administration)
        assert row.measures["trust"][0] == 300
        assert row.essentials == {"safe": 50}

    def test_anchors_of_an_older_calibration(self):
        item = {
            "options": ["a", "b", "c", "d"],
            "categories": [1, 3],
            "thresholds": [0],
        }
        assert anchor_of(item) == Anchor((0, 0, 0, 1), (0,), {})

    def test_people_with_one_answer_count_in_no_measure(self, staff, survey, settings):
        answers = simulated(300, 4, skipped=0)
        single = [[row[0], *[None] * 3, *row[4:]] for row in answers[:100]]
        administration = closed(survey)
        take_part(administration, staff.lincoln, answers + single)
        calculate(administration)
        trust = Calibration.objects.get(measure="trust")
        assert (trust.people, trust.items[0]["people"]) == (300, 400)
        judged = (trust.reliability, [item["outfit"] for item in trust.items])
        assert row_of(administration).measures["trust"][0] == 300
        # If a state wants them, they count in means, but in no fit and reliability.
        settings.FEWEST_ANSWERS_OF_A_MEASURE = 1
        calculate(administration, recalculate=True)
        trust.refresh_from_db()
        assert trust.people == 400
        assert (trust.reliability, [item["outfit"] for item in trust.items]) == judged

    def test_a_later_wave_with_one_answer_for_all(self, staff, fall):
        calculate(fall)
        spring = closed(fall.published, "spring")
        take_part(spring, staff.lincoln, [["4", "4", "1", "4", *"444"]] * 30)
        calculate(spring)
        # The benchmark's thresholds measure them, where the scale ends.
        people, _, error, score = row_of(spring).measures["trust"]
        assert (people, error) == (30, 0)
        assert score > 70

    @pytest.mark.parametrize("kind", Kind)
    def test_each_problem_has_a_sentence_in_both_languages(self, kind):
        problem = Problem(kind, item="q1", value="3", logits=0.512)
        with translation.override("es"):
            spanish = problem.sentence
        with translation.override("en"):
            assert problem.sentence != spanish
        assert "%(" not in spanish
        assert Problem.from_json(problem.as_json()) == problem


class TestScale:
    def test_schools_have_a_deviation_once_there_are_enough(self):
        random = np.random.default_rng(1)
        people = np.array([20.0] * 12 + [3.0])
        means = np.append(random.normal(0, 0.3, 12), 9.0)
        sums = scale.Sums(people, people * means, people * (means**2 + 1))
        benchmark_scale = scale.benchmark_scale(sums, 0.3)
        assert (benchmark_scale.unit, benchmark_scale.deviation) == ("schools", 0.3)
        assert benchmark_scale.mean == pytest.approx(np.average(means, weights=people))
        # Where chance alone can explain that they differ, it is that of people.
        assert scale.benchmark_scale(sums, 0.0).unit == "people"
        few = scale.Sums(people[4:], sums.sums[4:], sums.squares[4:])
        assert scale.benchmark_scale(few, 0.3).unit == "people"

    @pytest.mark.parametrize(
        ("points", "band"), [(19.49, 1), (19.5, 2), (39.5, 3), (59.4, 3), (99, 5)]
    )
    def test_scores_are_rounded_before_banding(self, points, band):
        assert scale.band(scale.rounded(points)) == band

    def test_scores_end_at_1_and_99(self):
        narrow = scale.Scale(0.0, 0.1, scale.SCHOOLS)
        assert (narrow.points(-9.0), narrow.points(9.0)) == (1, 99)


def test_the_job_runs_once_and_says_what_was_calculated(fall):
    job = request_scores(fall)
    assert request_scores(fall) == job
    assert job.kind == calculate_scores.name
    assert jobs.run(job.pk)
    job.refresh_from_db()
    assert job.message == "Ready: the scores of 2 measures were calculated."
    repeated = request_scores(fall)
    jobs.run(repeated.pk)
    repeated.refresh_from_db()
    assert repeated.message == "Ready: nothing was calculated."


def test_the_command_prints_problems_and_counts(fall):
    out, err = io.StringIO(), io.StringIO()
    call_command("score_administration", "fall", stdout=out, stderr=err)
    assert "240 people, 2 measures" in out.getvalue()
    assert "trust: Too few schools" in err.getvalue()
    with pytest.raises(CommandError, match="No administration is named winter"):
        call_command("score_administration", "winter")
