"""The command that publishes results for a demonstration."""

from __future__ import annotations

import pytest
from django.core.management import CommandError, call_command
from django.test import Client

from reports.models import ChosenBenchmark, Publication
from reports.tests.console.scores.conftest import answered
from reports.tests.scores.conftest import closed

pytestmark = pytest.mark.django_db


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
