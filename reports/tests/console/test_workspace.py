"""The workspace of a survey round says how far each step is, to each role."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from accounts.permissions import Permissions
from reports.console.workspace import Workspace
from reports.models import Publication, ResultsRollUp
from reports.rates.rollup import roll_up
from reports.tests.conftest import invite
from survey.models import Administration

pytestmark = pytest.mark.django_db
HOUR = timedelta(hours=1)


def steps(user, administration):
    current = Administration.objects.get(pk=administration.pk)
    lines = Workspace(Permissions(user), current).lines
    return {str(line.step.name): (line.progress, line.figure) for line in lines}


def change(administration, **fields):
    Administration.objects.filter(pk=administration.pk).update(**fields)


def test_before_anybody_is_invited_people_are_next(staff, students):
    lines = steps(staff.dana, students)
    assert lines["Questions"][0] == "done"
    assert lines["People"] == ("to-do", "No one is invited yet.")
    assert lines["Invitations"][0] == "waits"
    assert lines["Results"] == ("waits", "Counted after the survey has closed.")
    # Only the state publishes, and not before the closing.
    assert "Publish" not in lines


def test_an_open_round_is_live(staff, students):
    invite(students, staff.lincoln, 40, finished=10)
    roll_up()
    lines = steps(staff.dana, students)
    assert lines["People"] == ("done", "40 people invited")
    progress, figure = lines["Live"]
    assert progress == "current" and figure.startswith("25 % finished. Closes ")


def test_results_and_publication_of_a_closed_round(staff, students):
    invite(students, staff.lincoln, 40, finished=10)
    roll_up()
    now = timezone.now()
    change(students, opens_at=now - 9 * HOUR, closes_at=now - HOUR)
    lines = steps(staff.state, students)
    assert lines["Live"][0] == "done"
    assert lines["Results"] == ("current", "The answers are being counted.")
    assert lines["Publish"] == ("waits", "Not published.")
    roll_up_of = ResultsRollUp.objects.create(
        administration=students,
        as_of=now,
        written_at=now,
        layout={},
        released_at=now,
        hidden_as_of=now,
    )
    assert steps(staff.state, students)["Results"][1].endswith(
        "Not shared with schools yet."
    )
    # A coordinator has no results until they are shared.
    assert "Results" not in steps(staff.chen, students)
    roll_up_of.shared_at = now
    roll_up_of.save()
    assert steps(staff.chen, students)["Results"][0] == "done"
    Publication.objects.create(
        administration=students, title="x", basis="b", digest="d", published_at=now
    )
    assert steps(staff.state, students)["Publish"][0] == "done"


def test_a_coordinator_sees_the_cards_of_the_own_school_only(staff, students):
    invite(students, staff.lincoln, 12)
    invite(students, staff.roosevelt, 30)
    roll_up()
    assert steps(staff.chen, students)["People"] == ("done", "12 people invited")
    assert steps(staff.state, students)["People"] == ("done", "42 people invited")


def test_schools_below_the_threshold_are_the_next_action_of_its_step(staff, students):
    invite(students, staff.lincoln, 40, finished=10)
    roll_up()
    current = Administration.objects.get(pk=students.pk)
    workspace = Workspace(Permissions(staff.state), current)
    [step] = [line.step.name for line in workspace.lines if line.action]
    assert step == "Live"
    assert workspace.next.label == "See schools to remind"
