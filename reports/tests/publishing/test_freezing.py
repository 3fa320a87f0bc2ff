"""What is frozen when results are published, and what is not."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest
from django.db import IntegrityError, transaction
from django.utils import timezone

from reports.models import GroupResults, PublishedPlace, SchoolRate, ScoreRow
from reports.publishing import freezing, publications
from reports.publishing.freezing import recomputed_digest
from reports.publishing.publications import (
    PublicationRefused,
    freeze_results,
    withdraw,
)
from reports.rates import visible_rates
from reports.releases.apply_suppression import hide_small_groups
from reports.releases.levels import STATE
from reports.releases.rollup import roll_up_results
from reports.results.sums import SchoolSum
from reports.results.visible import visible_groups
from reports.scores.visible import visible_scores
from reports.scores.words import score_figures
from reports.tests.console.scores.conftest import answered, scored
from reports.tests.scores.conftest import closed
from survey.work import jobs

pytestmark = pytest.mark.django_db


def of_school(publication, school):
    return publication.places.filter(level="school", place_id=school.pk).first()


def everything(publication):
    rows = publication.places.values_list("name", "summary", "answers")
    return json.dumps([publication.frame, list(rows)])


def remainder(publication):
    """Subtract published schools from the state; return what is left, by answer."""
    state = publication.places.get(level="state").answers["items"]
    left = {
        (name, value): people
        for name, item in state.items()
        for value, people in item["values"].items()
    }
    for school in publication.places.filter(level="school"):
        for name, item in school.answers["items"].items():
            for value, people in item["values"].items():
                left[name, value] -= people
    return {key: people for key, people in left.items() if people}


class TestFreezing:
    def test_schools_districts_and_the_state_are_frozen(self, staff, fall, publish):
        publication = publish(fall)
        assert publication.published_at
        assert publication.places.filter(level="school").count() == 2
        assert publication.places.filter(level="district").count() == 2
        state = publication.places.get(level="state")
        # All is of Lincoln and Roosevelt, not of Washington, which has no report.
        assert state.summary["rate"] == {"eligible": 100, "finished": 100, "rate": 100}
        assert state.answers["people"] == 100
        lincoln = of_school(publication, staff.lincoln)
        assert lincoln.name == staff.lincoln.name
        assert lincoln.summary["rate"]["finished"] == 60
        assert set(lincoln.summary["scores"]) == {"safe", "trust", "noise"}
        assert lincoln.answers["items"]["q1"]["values"]["1"] > 0
        assert publication.frame["titles"]["es"].startswith("School climate, estudi")
        assert publication.frame["schools"] == 2
        assert publication.frame["other_schools"] == 1

    def test_the_digest_is_of_all_content(self, staff, fall, publish):
        publication = publish(fall)
        assert recomputed_digest(publication) == publication.digest
        lincoln = of_school(publication, staff.lincoln)
        lincoln.summary["scores"]["trust"] = [99, 1.0]
        lincoln.save(update_fields=["summary"])
        assert recomputed_digest(publication) != publication.digest

    def test_a_recount_does_not_change_what_is_published(self, staff, fall, publish):
        publication = publish(fall)
        before = everything(publication)
        answered(fall, staff.lincoln, 30, 9, shift=2.0)
        scored(fall)
        place = ("school", staff.lincoln.pk)
        assert visible_groups(fall, [place])[place].people == 90
        publication.refresh_from_db()
        assert everything(publication) == before
        assert recomputed_digest(publication) == publication.digest


class TestScoresOfLargerPlaces:
    @pytest.fixture
    def higher(self, fall):
        """Let the mean of all people be far more than that of rounded scores."""
        row = ScoreRow.objects.get(administration=fall, level="state", attribute="")
        scores = []
        for measure in row.measures.values():
            measure[3] += 20
            scores.append(measure[3])
        row.essentials["safe"] += 20
        row.save(update_fields=["measures", "essentials"])
        return [*scores, row.essentials["safe"]]

    def state_of(self, publication):
        scores = publication.places.get(level="state").summary["scores"]
        return [scores[name][0] for name in ("trust", "noise", "safe")]

    def test_they_are_the_released_ones_of_the_console(self, fall, publish, higher):
        publication = publish(fall)
        assert self.state_of(publication) == higher
        released = visible_scores(fall, [STATE])[STATE]
        scores = publication.places.get(level="state").summary["scores"]
        for name, figures in scores.items():
            columns = score_figures(released[name])
            assert figures[: len(columns)] == columns
            # For changes, in which the same schools take part twice, where errors know
            # that people of one school are alike.
            for of_people in figures[len(columns) :]:
                assert of_people == round(released[name].people_error, 1)
            assert figures[1] == round(released[name].error, 1)

    def test_a_school_that_hides_a_measure_since_then_is_not_in_it(
        self, staff, fall, publish, higher
    ):
        rows = GroupResults.objects.filter(administration=fall, level="school")
        lincoln = rows.filter(place_id=staff.lincoln.pk, attribute="")
        lincoln.update(hidden_items=["q2"])
        publication = publish(fall)
        trust, noise, safe = self.state_of(publication)
        roosevelt = of_school(publication, staff.roosevelt).summary["scores"]
        assert trust == roosevelt["trust"][0] != higher[0]
        assert noise == higher[1]
        assert safe != higher[2]

    def test_a_school_with_a_later_report_is_added_up(
        self, staff, fall, publish, higher
    ):
        SchoolRate.objects.filter(school=staff.washington).update(needed=1)
        publication = publish(fall)
        assert of_school(publication, staff.washington)
        for score, released in zip(self.state_of(publication), higher, strict=True):
            assert score < released - 10


class TestProtection:
    def test_a_school_below_its_threshold_is_not_published(self, staff, fall, publish):
        publication = publish(fall)
        assert of_school(publication, staff.washington) is None
        assert "Washington" not in everything(publication)

    def test_without_the_threshold_it_would_be(self, staff, fall, publish, monkeypatch):
        is_reached = property(lambda line: True)
        monkeypatch.setattr(visible_rates.SchoolRateLine, "is_reached", is_reached)
        publication = publish(fall)
        assert of_school(publication, staff.washington)

    @pytest.mark.usefixtures("exact_shares")
    def test_a_school_without_report_is_in_no_sum(self, staff, fall, publish):
        publication = publish(fall)
        assert remainder(publication) == {}

    @pytest.mark.usefixtures("exact_shares")
    def test_in_the_sums_its_answers_could_be_calculated(
        self, staff, fall, publish, monkeypatch
    ):
        def unprotected(total, administration):
            return visible_groups(administration, [("state", 0)])["state", 0]

        monkeypatch.setattr(SchoolSum, "group", unprotected)
        place = "school", staff.washington.pk
        washington = visible_groups(fall, [place])[place]
        answers = {
            (name, value): people
            for name, item in washington.items.items()
            for value, people in item.values.items()
            if people
        }
        assert answers
        assert remainder(publish(fall)) == answers

    def test_if_no_school_has_a_report_the_state_is_of_everybody(
        self, fall, publish, monkeypatch
    ):
        is_reached = property(lambda line: False)
        monkeypatch.setattr(visible_rates.SchoolRateLine, "is_reached", is_reached)
        monkeypatch.setattr(freezing, "summed_schools", lambda administration: {})
        monkeypatch.setattr(freezing, "FEWEST_SCHOOLS", 3)
        [state] = publish(fall).places.all()
        assert state.answers["people"] == 140

    def test_few_schools_without_a_report_are_not_published_as_the_state(
        self, staff, new_survey, publish, monkeypatch
    ):
        administration = closed(new_survey, "one-school")
        answered(administration, staff.washington, 40, 2, finished=15)
        with pytest.raises(PublicationRefused, match="nothing to publish"):
            publish(scored(administration))
        # Nor does the job, if the schools have lost their report meanwhile.
        monkeypatch.setattr(publications, "has_content", lambda _place: True)
        publication = publish(administration)
        assert publication.published_at is None
        assert not publication.places.exists()

    def test_the_state_would_be_the_answers_of_a_single_school(
        self, staff, new_survey, publish, monkeypatch
    ):
        monkeypatch.setattr(freezing, "FEWEST_SCHOOLS", 1)
        administration = closed(new_survey, "one-school")
        answered(administration, staff.washington, 40, 2, finished=15)
        [state] = publish(scored(administration)).places.all()
        place = "school", staff.washington.pk
        washington = visible_groups(administration, [place])[place]
        assert state.answers["items"]["q1"]["values"] == washington.items["q1"].values

    def test_a_hidden_school_is_not_published(self, staff, fall, publish):
        rows = GroupResults.objects.filter(administration=fall, level="school")
        rows.filter(place_id=staff.lincoln.pk).update(is_hidden=True)
        publication = publish(fall)
        assert of_school(publication, staff.lincoln) is None
        # Nor is it part of a rate that others are subtracted from.
        state = publication.places.get(level="state")
        assert state.summary["rate"]["finished"] == 40
        assert state.answers["people"] == 40

    def test_unhidden_it_would_be(self, staff, fall, publish):
        assert of_school(publish(fall), staff.lincoln)

    def test_a_hidden_item_is_not_published(self, staff, fall, publish):
        rows = GroupResults.objects.filter(administration=fall, level="school")
        lincoln = rows.filter(place_id=staff.lincoln.pk, attribute="")
        lincoln.update(hidden_items=["q2"])
        publication = publish(fall)
        place = of_school(publication, staff.lincoln)
        assert "q2" not in place.answers["items"]
        assert place.answers["hidden_items"] == ["q2"]
        # Nor are the scores that it is part of.
        assert place.summary["scores"]["trust"] is None
        assert place.summary["scores"]["safe"] is None
        assert place.summary["scores"]["noise"]
        roosevelt = of_school(publication, staff.roosevelt)
        assert "q2" in roosevelt.answers["items"]
        # Nor in what they have together.
        state = publication.places.get(level="state")
        assert state.answers["items"]["q2"] == roosevelt.answers["items"]["q2"]
        trust = state.summary["scores"]["trust"]
        assert trust == roosevelt.summary["scores"]["trust"]

    def test_read_without_protection_it_would_be(
        self, staff, fall, publish, monkeypatch
    ):
        rows = GroupResults.objects.filter(administration=fall, level="school")
        lincoln = rows.filter(place_id=staff.lincoln.pk, attribute="")
        lincoln.update(hidden_items=["q2"])

        def unprotected(administration, places):
            GroupResults.objects.update(hidden_items=[])
            return visible_groups(administration, places)

        monkeypatch.setattr(freezing, "visible_groups", unprotected)
        place = of_school(publish(fall), staff.lincoln)
        assert "q2" in place.answers["items"]

    def test_a_small_school_is_hidden_from_everybody(self, staff, new_survey, publish):
        administration = closed(
            new_survey, "small", minimum_group=5, coordinators_see_finished=True
        )
        answered(administration, staff.lincoln, 60, 1)
        answered(administration, staff.washington, 8, 2)
        answered(administration, staff.roosevelt, 40, 3)
        scored(administration)
        # Its coordinator may see who has finished; nobody else.
        SchoolRate.objects.filter(school=staff.washington).update(needed=4)
        publication = publish(administration)
        assert of_school(publication, staff.washington) is None
        assert of_school(publication, staff.roosevelt)

    def test_nothing_but_figures_of_whole_places_is_published(self, fall, publish):
        # Subgroups and what people wrote are not.
        publication = publish(fall)
        assert '"sex"' not in everything(publication)
        for place in publication.places.all():
            kinds = {item["measured"] for item in place.answers["items"].values()}
            assert kinds == {"choice"}


class TestRefusals:
    def test_what_is_not_over_is_not_published(self, fall, publish):
        fall.closes_at = timezone.now() + timedelta(days=1)
        fall.save()
        with pytest.raises(PublicationRefused, match="has closed"):
            publish(fall)

    def test_undecided_figures_are_not_published(self, fall, publish):
        roll_up_results(fall, all_schools=True)
        with pytest.raises(PublicationRefused, match="being counted"):
            publish(fall)
        hide_small_groups(fall)
        assert publish(fall).published_at

    def test_results_are_published_once_until_they_are_withdrawn(
        self, staff, fall, publish
    ):
        first = publish(fall)
        with pytest.raises(PublicationRefused, match="already"):
            publish(fall)
        with pytest.raises(IntegrityError), transaction.atomic():
            fall.publications.create(title="x")
        assert withdraw(first, because="A mistake.", by=staff.state)
        assert not withdraw(first, because="Again.", by=staff.state)
        assert publish(fall).pk != first.pk

    def test_a_withdrawal_needs_a_reason(self, staff, fall, publish):
        with pytest.raises(IntegrityError), transaction.atomic():
            withdraw(publish(fall), because="", by=staff.state)

    def test_figures_that_changed_since_the_request_are_not_published(
        self, staff, fall, publish, monkeypatch
    ):
        monkeypatch.setattr(
            "reports.publishing.publications.reason_not_to_publish", lambda _place: ""
        )
        publication = publish(fall)
        publication.basis = "0" * 64
        publication.published_at, publication.digest = None, ""
        publication.save()
        PublishedPlace.objects.all().delete()
        repeated = jobs.start(freeze_results, subject_id=publication.pk, by=staff.state)
        jobs.run(repeated.pk)
        repeated.refresh_from_db()
        assert "changed since the preview" in repeated.message
        assert not publication.places.exists()
