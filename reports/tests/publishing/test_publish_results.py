"""The command that publishes results for a demonstration."""

from __future__ import annotations

from dataclasses import replace
from io import StringIO

import pytest
from django.conf import settings
from django.core.management import CommandError, call_command
from django.test import Client

from reports.models import Calibration, ChosenBenchmark, Publication
from reports.publishing.page import frozen_score
from reports.scores.spans import SpanScale
from reports.tests.console.scores.conftest import answered
from reports.tests.scores.conftest import closed
from survey.simulation.demo import load
from survey.simulation.demo.emails import STATE

pytestmark = pytest.mark.django_db


@pytest.fixture
def data(settings, tmp_path):
    settings.DATA_DIR = tmp_path


def test_it_counts_scores_and_publishes_once(staff, new_survey, capsys):
    administration = closed(new_survey, "fall-2026")
    answered(administration, staff.lincoln, 60, 1)
    answered(administration, staff.roosevelt, 40, 3)
    call_command("publish_results", "fall-2026")
    publication = Publication.objects.get()
    assert publication.digest in capsys.readouterr().out
    assert publication.published_by is None
    assert administration.results_roll_up.shared_at
    lincoln = publication.places.get(level="school", place_id=staff.lincoln.pk)
    assert lincoln.summary["scores"]["trust"]
    assert Client().get(f"/results/{administration.pk}/").status_code == 200
    call_command("publish_results", "fall-2026")
    assert "Published already" in capsys.readouterr().out


def test_what_cannot_be_published_is_an_error(staff, new_survey):
    with pytest.raises(CommandError):
        call_command("publish_results", "nothing")
    # Nobody has answered.
    closed(new_survey, "fall-2026")
    with pytest.raises(CommandError):
        call_command("publish_results", "fall-2026")
    assert not Publication.objects.exclude(digest="").exists()


def test_its_benchmark_is_chosen_by_a_person_and_by_grade_span(staff, new_survey):
    for name in ("fall-2026", "spring-2027"):
        administration = closed(new_survey, name)
        answered(administration, staff.lincoln, 60, 1)
        answered(administration, staff.roosevelt, 40, 3)
    for name in ("fall-2026", "spring-2027"):
        chosen = {"benchmark": "fall-2026", "chosen_by": staff.state.email}
        call_command("publish_results", name, **chosen)
    choice = ChosenBenchmark.objects.get()
    assert choice.administration.name == "fall-2026"
    assert choice.by == staff.state and choice.by_span


@pytest.mark.slow
@pytest.mark.sqlite
@pytest.mark.skipif(bool(settings.SERVERS), reason="the demonstration runs on SQLite")
def test_all_themes_of_the_demonstration_are_rated(data, monkeypatch):
    """Schools so small need large differences, which chance cannot explain."""
    monkeypatch.setattr(load, "CLOSED", load.CLOSED[1:])
    monkeypatch.setattr(load, "RUNNING", replace(load.RUNNING, finished=0, stopped=0))
    monkeypatch.setattr(load, "load_parents_of_wave", lambda now: None)
    call_command("load_demo", "--json", stdout=StringIO())
    for name in ("demo-first-students", "demo-last-students"):
        chosen = {"benchmark": "demo-first-students", "chosen_by": STATE}
        call_command("publish_results", name, stdout=StringIO(), **chosen)
    calibrations = Calibration.objects.all()
    assert len(calibrations) == 12
    assert all(each.schools_deviation for each in calibrations)
    for span in calibrations.values_list("span_scales", flat=True):
        assert all(SpanScale.from_json(at).differences.between for at in span.values())
    publication = Publication.objects.latest("pk")
    for place in publication.places.filter(level="school"):
        bands = [
            frozen_score(each).band for each in place.summary["scores"].values() if each
        ]
        assert len(bands) > 5
        assert all(bands)
