"""The page of the quality of measures, and decisions about items that drift."""

from __future__ import annotations

import csv
import io
from copy import deepcopy
from datetime import timedelta

import pytest
from django.core.exceptions import PermissionDenied
from django.urls import reverse
from django.utils import timezone, translation

from accounts.models import AuditEntry, Membership
from accounts.tests.logging_in import log_in
from reports.models import (
    Calibration,
    ChosenBenchmark,
    GroupResults,
    PublishedPlace,
    ReleasedItem,
    ScoreRow,
)
from reports.publishing.freezing import recomputed_digest
from reports.scores.drift import DecisionRefused, anchor_item, release_item
from reports.scores.quality import reliability_sentence
from reports.scores.scoring import score_administration
from reports.tests.console.scores.conftest import answered, scored
from reports.tests.publishing.conftest import publish  # noqa: F401
from reports.tests.scores.conftest import closed, run_jobs, simulated, take_part
from survey.models import Administration, Job

pytestmark = pytest.mark.django_db


@pytest.fixture(scope="module")
def shared_spring(shared_staff, shared_fall):
    """A later wave in which q2 is much harder to agree with."""
    administration = closed(shared_fall.published, "spring-2027")
    answered(administration, shared_staff.lincoln, 600, 5, moved={"q2": 1.2})
    answered(administration, shared_staff.roosevelt, 600, 6, moved={"q2": 1.2})
    # By itself, so much smaller a season would be a pilot.
    ChosenBenchmark.objects.create(administration=shared_fall, because="All schools")
    return scored(administration)


@pytest.fixture
def spring(shared_spring):
    return deepcopy(shared_spring)


def quality(client, administration):
    return client.get(reverse("scores_quality", args=[administration.pk]))


def item_path(administration, item="q2", measure="trust"):
    return reverse("scores_quality_item", args=[administration.pk, measure, item])


def decide(client, administration, decision="release", item="q2", **more):
    data = {"decision": decision, "because": "Reworded in spring", **more}
    return client.post(item_path(administration, item), data)


def lines(response, measure="trust"):
    [line] = [m for m in response.context["page"].measures if m.name == measure]
    return {item.name: item for item in line.items}


def release(administration, by, item="q2"):
    return release_item(
        administration=administration,
        measure="trust",
        item=item,
        because="Reworded",
        by=by,
    )


def anchored(administration):
    trust = Calibration.objects.get(administration=administration, measure="trust")
    return [item["name"] for item in trust.items if item["is_anchored"]]


def test_an_item_that_drifted_is_found_released_and_anchored_again(
    client, staff, fall, spring
):
    log_in(client, staff.state)
    page = quality(client, spring)
    assert "The answers tell people apart" in page.text
    assert "q2 has drifted by" in page.text
    assert lines(page)["q2"].has_drifted
    assert lines(page)["q2"].state == "anchored"
    assert f"Anchored to the benchmark {fall.title} (about 140 people)." in page.text
    assert "Survey climate, version 1. Calculated on" in page.text
    assert "rasch 1, numpy" in page.text
    before = ScoreRow.objects.get(administration=spring, level="state", attribute="")

    form = client.get(item_path(spring))
    assert "All scores of this season are calculated again" in form.text
    assert "What is published stays" not in form.text
    assert client.post(item_path(spring), {"decision": "release"}).status_code == 200
    assert not ReleasedItem.objects.exists()
    assert decide(client, spring).status_code == 302
    page = quality(client, spring)
    assert lines(page)["q2"].state == "will be released"
    assert "Reworded in spring" in page.text
    run_jobs()
    assert anchored(spring) == ["q1", "q3", "q4"]
    page = quality(client, spring)
    assert lines(page)["q2"].state == "released"
    assert "q2 has been released" in page.text
    now = ScoreRow.objects.get(administration=spring, level="state", attribute="")
    assert now.measures["trust"][1] > before.measures["trust"][1]

    assert "Anchor this item again?" in client.get(item_path(spring)).text
    decide(client, spring, "anchor", because="A mistake")
    run_jobs()
    assert anchored(spring) == ["q1", "q2", "q3", "q4"]
    state_row = ScoreRow.objects.get(administration=spring, level="state", attribute="")
    assert state_row.measures == before.measures
    entries = AuditEntry.objects.filter(action__contains="item of measure")
    assert [(entry.action.split()[0], entry.after["reason"]) for entry in entries] == [
        ("anchor", "A mistake"),
        ("release", "Reworded in spring"),
    ]


def test_an_item_is_released_once(client, staff, spring):
    log_in(client, staff.state)
    decide(client, spring)
    page = client.post(
        item_path(spring), {"decision": "release", "because": "x"}, follow=True
    )
    assert "q2 is released already." in page.text
    run_jobs()
    page = client.post(
        item_path(spring), {"decision": "release", "because": "x"}, follow=True
    )
    assert "q2 is released already." in page.text
    assert ReleasedItem.objects.get().because == "Reworded in spring"
    assert AuditEntry.objects.filter(action="release item of measure").count() == 1


def test_unknown_items_are_not_found(client, staff, spring):
    log_in(client, staff.state)
    for item in ("q9", "trust", "q5", "q2;--", "%00"):
        path = item_path(spring).replace("q2", item)
        for response in (client.get(path), client.post(path, {"decision": "release"})):
            assert response.status_code == 404, item
    assert client.get(item_path(spring, measure="nothing")).status_code == 404


def test_the_benchmark_has_nothing_to_release(client, staff, fall):
    log_in(client, staff.state)
    page = quality(client, fall)
    assert "This survey round is the benchmark" in page.text
    assert lines(page)["q2"].state == "free"
    assert client.get(item_path(fall)).status_code == 404
    response = client.post(
        item_path(fall), {"decision": "release", "because": "x"}, follow=True
    )
    assert "q2 is not anchored." in response.text
    assert not Job.objects.exists()


def test_the_last_anchored_item_stays_anchored(client, staff, spring):
    log_in(client, staff.state)
    for item in ("q1", "q2", "q3", "q4"):
        decide(client, spring, item=item)
    run_jobs()
    assert anchored(spring) == ["q4"]
    page = client.post(
        item_path(spring, "q4"), {"decision": "release", "because": "x"}, follow=True
    )
    assert "q4 is the last anchored item of this measure" in page.text
    trust = Calibration.objects.get(administration=spring, measure="trust")
    assert trust.anchored_to is not None


class During:
    """Progress of a calculation in which something happens before it is stored."""

    def __init__(self, act):
        self.act = act

    def begin_step(self, message, *, total=None):
        if "Storing" in message and (act := self.act):
            self.act = None
            act()

    def advance(self, count=1):
        pass

    def confirm(self):
        pass


def test_an_older_calculation_does_not_undo_a_release(staff, spring):
    def newer():
        release(spring, staff.state)
        score_administration(spring, recalculate=True)

    score_administration(spring, During(newer), recalculate=True)
    assert anchored(spring) == ["q1", "q3", "q4"]


def test_without_a_look_at_the_end_it_would(staff, spring, monkeypatch):
    def newer():
        release(spring, staff.state)
        score_administration(spring, recalculate=True)
        assert anchored(spring) == ["q1", "q3", "q4"]
        monkeypatch.setattr("reports.scores.scoring.released_items", lambda _: {})

    score_administration(spring, During(newer), recalculate=True)
    assert anchored(spring) == ["q1", "q2", "q3", "q4"]


def test_while_people_can_answer_nothing_is_released(client, staff, spring):
    log_in(client, staff.state)
    Administration.objects.filter(pk=spring.pk).update(
        closes_at=timezone.now() + timedelta(days=1)
    )
    with pytest.raises(DecisionRefused, match="nobody can answer"):
        release(spring, staff.state)
    assert not ReleasedItem.objects.exists()


def test_what_is_published_stays_as_it_is(client, staff, spring, publish):  # noqa: F811
    publication = publish(spring)
    before = list(PublishedPlace.objects.order_by("pk").values("summary", "digest"))
    log_in(client, staff.state)
    assert "What is published stays as it is" in client.get(item_path(spring)).text
    score = ScoreRow.objects.get(administration=spring, level="state", attribute="")
    decide(client, spring)
    run_jobs()
    after = ScoreRow.objects.get(administration=spring, level="state", attribute="")
    assert after.measures != score.measures
    rows = PublishedPlace.objects.order_by("pk").values("summary", "digest")
    assert list(rows) == before
    publication.refresh_from_db()
    assert recomputed_digest(publication) == publication.digest


def test_users_who_do_not_see_all_responses_see_no_quality(client, staff, fall, spring):
    routes = ("scores_quality", "scores_quality_csv")
    for user in (staff.dana, staff.analyst, staff.chen, staff.sam):
        log_in(client, user)
        for route in routes:
            path = reverse(route, args=[spring.pk])
            assert client.get(path).status_code == 404, user
        assert client.get(item_path(spring)).status_code == 404
        assert decide(client, spring).status_code == 404
        table = client.get(reverse("scores_table", args=[spring.pk]))
        assert "Quality of measures" not in table.text
    log_in(client, staff.state)
    assert quality(client, spring).status_code == 200
    table = client.get(reverse("scores_table", args=[spring.pk]))
    assert reverse("scores_quality", args=[spring.pk]) in table.text
    assert not ReleasedItem.objects.exists()


def test_an_analyst_reads_and_administrators_decide(client, staff, survey):
    administrations = [
        closed(survey, name, district=staff.riverside) for name in ("first", "second")
    ]
    for n, administration in enumerate(administrations):
        answered(administration, staff.lincoln, 300, n, moved={"q2": 1.2 * n})
        scored(administration)
    second = administrations[1]
    log_in(client, staff.analyst)
    page = quality(client, second)
    assert lines(page)["q2"].has_drifted
    assert "Release" not in page.text.partition('id="main"')[2]
    assert decide(client, second).status_code == 404
    log_in(client, staff.dana)
    assert ">Release</a>" in quality(client, second).text
    assert decide(client, second).status_code == 302
    assert ReleasedItem.objects.get().by == staff.dana


def test_permission_is_checked_again_after_the_lock(staff, spring):
    Membership.objects.filter(user=staff.state).delete()
    with pytest.raises(PermissionDenied):
        release(spring, staff.state)
    with pytest.raises(PermissionDenied):
        anchor_item(
            administration=spring,
            measure="trust",
            item="q2",
            because="x",
            by=staff.state,
        )
    assert not ReleasedItem.objects.exists()


def test_a_calculation_that_failed_after_a_decision_is_started_again(
    client, staff, spring
):
    log_in(client, staff.state)
    path = reverse("scores_quality_calculate", args=[spring.pk])
    # Nothing is waiting for it.
    client.post(path)
    assert not Job.objects.exists()
    decide(client, spring)
    assert "Calculate again" not in quality(client, spring).text
    Job.objects.update(
        state=Job.State.FAILED, ended_at=timezone.now(), message="It failed."
    )
    page = quality(client, spring)
    assert "It failed." in page.text
    assert "Calculate again" in page.text
    client.post(path)
    run_jobs()
    assert lines(quality(client, spring))["q2"].state == "released"


def csv_of(client, administration):
    path = reverse("scores_quality_csv", args=[administration.pk])
    text = client.get(path).content.decode("utf-8-sig")
    return list(csv.DictReader(io.StringIO(text)))


def test_the_file_has_each_item_with_its_provenance(client, staff, fall, spring):
    log_in(client, staff.state)
    rows = {row["item"]: row for row in csv_of(client, spring)}
    trust = Calibration.objects.get(administration=spring, measure="trust")
    q2 = next(item for item in trust.items if item["name"] == "q2")
    row = rows["q2"]
    thresholds = [float(row[f"threshold {n}"]) for n in (1, 2, 3)]
    assert thresholds == pytest.approx(q2["thresholds"], abs=1e-3)
    assert float(row["displacement"]) == pytest.approx(q2["displacement"], abs=1e-3)
    assert (row["drifted"], row["state"]) == ("yes", "anchored")
    assert (row["anchored to"], row["survey version"]) == ("fall-2026", "1")
    assert row["software"] == trust.software
    assert row["question"] == "Question <2>"
    assert rows["q5"]["measure"] == "noise"


class TestSmallNumbers:
    def figures(self, client, administration):
        """Return the numbers of items of trust on the page and in the file."""
        page = quality(client, administration)
        [trust] = [m for m in page.context["page"].measures if m.name == "trust"]
        shown = [value for item in trust.items for value, _words in item.fits]
        rows = csv_of(client, administration)
        file = [row["infit"] for row in rows if row["measure"] == "trust"]
        return [value for value in (*shown, *file) if value not in ("*", "–", "")]

    def test_a_hidden_item_hides_its_measure(self, client, staff, fall):
        log_in(client, staff.state)
        assert len(self.figures(client, fall)) == 12
        everyone = GroupResults.objects.filter(
            administration=fall, level="state", attribute=""
        )
        everyone.update(hidden_items=["q1"])
        assert self.figures(client, fall) == []
        assert "* Hidden, because too few people" in quality(client, fall).text
        everyone.update(hidden_items=[], is_hidden=True)
        assert self.figures(client, fall) == []

    def test_too_few_people_hide_their_measure(self, client, staff, fall):
        log_in(client, staff.state)
        people = Calibration.objects.get(administration=fall, measure="trust").people
        fall.minimum_group = people + 1
        fall.save(update_fields=["minimum_group"])
        assert self.figures(client, fall) == []
        fall.minimum_group = people
        fall.save(update_fields=["minimum_group"])
        # Some have left an item out.
        few = [value for value in self.figures(client, fall) if value]
        assert len(few) < 12

    def test_too_few_answers_hide_an_item_and_its_problems(self, client, staff, fall):
        log_in(client, staff.state)
        trust = Calibration.objects.get(administration=fall, measure="trust")
        trust.items[1]["people"] = fall.minimum_group
        trust.problems = [{"kind": "unused_category", "item": "q2", "value": "4"}]
        trust.save()
        assert len(self.figures(client, fall)) == 12
        assert "Nobody chose the answer 4 of q2" in quality(client, fall).text
        trust.items[1]["people"] -= 1
        trust.save()
        assert len(self.figures(client, fall)) == 9
        page = quality(client, fall)
        assert "Nobody chose" not in page.text
        assert lines(page)["q2"].thresholds == ["*"]


def test_an_item_that_could_not_be_used_is_left_out_with_its_reason(
    client, staff, new_survey
):
    administration = closed(new_survey, "unanswered")
    answers = [[*row[:3], None, *row[4:]] for row in simulated(120, 1)]
    take_part(administration, staff.lincoln, answers)
    take_part(administration, staff.roosevelt, answers)
    scored(administration)
    log_in(client, staff.state)
    page = quality(client, administration)
    assert "Nobody answered q4." in page.text
    assert lines(page)["q4"].state == "left out"
    assert {row["item"]: row for row in csv_of(client, administration)}["q4"][
        "infit"
    ] == ""


def test_without_scores_the_page_says_so(client, staff, new_survey):
    administration = closed(new_survey, "uncounted")
    log_in(client, staff.state)
    page = quality(client, administration)
    assert "No scores yet." in page.text
    assert "Download CSV" not in page.text
    assert client.get(item_path(administration)).status_code == 404
    scored(administration)
    assert "Nobody has answered" in quality(client, administration).text


def test_reliability_is_said_in_words():
    space = "\N{NO-BREAK SPACE}"
    assert f"apart well: about 84{space}%" in reliability_sentence(0.84)
    assert f"hardly single people: about 70{space}%" in reliability_sentence(0.7)
    assert f"poorly: only about 0{space}%" in reliability_sentence(-0.3)
    assert "could not be calculated" in reliability_sentence(None)
    with translation.override("es"):
        assert f"84{space}%" in reliability_sentence(0.84)


def test_the_page_costs_the_same_for_any_number_of_measures(
    client, staff, fall, spring, django_assert_num_queries
):
    log_in(client, staff.state)
    quality(client, spring)
    with django_assert_num_queries(18):
        quality(client, spring)
    release(spring, staff.state)
    release(spring, staff.state, "q3")
    with django_assert_num_queries(18):
        quality(client, spring)
