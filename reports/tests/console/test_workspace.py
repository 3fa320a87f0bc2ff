"""The workspace of a survey round says how far each step is, to each role."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from accounts.models import PlaceSettings
from accounts.permissions import Permissions
from accounts.tests.logging_in import log_in
from reports.console.workspace import Workspace
from reports.models import Publication, ResultsRollUp
from reports.rates.rollup import roll_up
from reports.tests.conftest import invite
from survey.models import Administration, EmailSchedule

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
    progress, figure = steps(staff.state, students)["Results"]
    assert progress == "current" and figure.endswith("Not shared with schools yet.")
    # A coordinator has no results until they are shared.
    assert "Results" not in steps(staff.chen, students)
    roll_up_of.shared_at = now
    roll_up_of.save()
    assert steps(staff.chen, students)["Results"][0] == "done"
    Publication.objects.create(
        administration=students, title="x", basis="b", digest="d", published_at=now
    )
    assert steps(staff.state, students)["Publish"][0] == "done"


def test_results_that_everybody_may_read_do_not_wait_to_be_shared(staff, students):
    invite(students, staff.lincoln, 40, finished=10)
    roll_up()
    now = timezone.now()
    change(students, opens_at=now - 9 * HOUR, closes_at=now - HOUR)
    ResultsRollUp.objects.create(
        administration=students,
        as_of=now,
        written_at=now,
        layout={},
        released_at=now,
        hidden_as_of=now,
    )
    publication = Publication.objects.create(
        administration=students, title="x", basis="b", digest="d", published_at=now
    )
    progress, figure = steps(staff.state, students)["Results"]
    assert progress == "done"
    assert figure.endswith("Schools can read what is published, and no more.")
    current = Administration.objects.get(pk=students.pk)
    publish = Workspace(Permissions(staff.state), current).lines[-1]
    assert [page.label for page in publish.pages] == ["See or withdraw the publication"]
    # Until the embargo ends, nobody can read it.
    publication.embargo_until = now + HOUR
    publication.save()
    lines = steps(staff.state, students)
    assert lines["Results"][1].endswith("Not shared with schools yet.")
    assert lines["Publish"][0] == "current"
    publication.withdrawn_at, publication.withdrawn_because = now, "Wrong"
    publication.save()
    publish = Workspace(Permissions(staff.state), current).lines[-1]
    assert [page.label for page in publish.pages] == ["Publish for everybody"]


def test_invitations_that_a_closed_round_did_without_are_not_done(staff, students):
    invite(students, staff.lincoln, 40, finished=10)
    roll_up()
    now = timezone.now()
    change(students, opens_at=now - 9 * HOUR, closes_at=now - HOUR)
    unused = ("not-used", "No login cards were made.")
    assert steps(staff.state, students)["Invitations"] == unused
    schedule = EmailSchedule.objects.create(administration=students)
    assert steps(staff.state, students)["Invitations"] == unused
    schedule.confirmed_at, schedule.confirmed_by = now, staff.state
    schedule.save()
    assert steps(staff.state, students)["Invitations"] == (
        "done",
        "E-mails were scheduled. No login cards were made.",
    )


def test_that_everything_is_kept_is_said_once(client, staff, students):
    log_in(client, staff.state)
    address = f"/console/administrations/{students.pk}/"
    assert client.get(address).text.count("no period was set") == 1
    PlaceSettings.objects.create(identities_days=90)
    page = client.get(address).text
    assert page.count("They are kept: no period was set.") == 1
    assert "90 days after the closing" in page


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


def test_an_open_round_that_people_answer_does_not_wait_for_cards(staff, students):
    invite(students, staff.lincoln, 40)
    roll_up()
    # Nobody has a code yet: to print cards is the next step.
    cards = steps(staff.state, students)["Invitations"]
    assert cards == ("to-do", "No login cards have been made yet.")
    invite(students, staff.washington, 40, finished=10)
    roll_up()
    cards = steps(staff.state, students)["Invitations"]
    assert cards == ("not-used", "No login cards were made.")
    EmailSchedule.objects.create(
        administration=students,
        confirmed_at=timezone.now(),
        confirmed_by=staff.state,
    )
    assert steps(staff.state, students)["Invitations"][0] == "done"
