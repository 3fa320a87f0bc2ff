"""People who began with an open code are in no figure that is about a roster."""

from __future__ import annotations

import dataclasses

import pytest
from django.db import DEFAULT_DB_ALIAS

from accounts.permissions import Places
from reports.answers.selection import Selection
from reports.rates.rollup_query import count
from survey.console.people.scope import groups_of
from survey.fieldwork.administrations import (
    change_administration,
    invited_people,
    plan_of,
)
from survey.fieldwork.administrations.checks import ChangeBlocked
from survey.fieldwork.administrations.queries import count_progress, has_people
from survey.fieldwork.open_codes.codes import revoke_open_code
from survey.models import Denominator, Respondent
from survey.tests.conftest import FIRST_PAGE, Browser, enrol
from survey.tests.open_codes.cast import begin

pytestmark = pytest.mark.django_db


@pytest.fixture
def begun(code):
    assert begin(Browser(), code).status_code == 302
    return Respondent.objects.get(open_code=code)


@pytest.mark.parametrize("seen", [False, True])
def test_rates_count_people_on_the_roster_alone(parents, lincoln, begun, seen):
    # Changes of the roster count later in one of the two ways.
    parents.coordinators_see_finished = seen
    parents.save(update_fields=["coordinators_see_finished"])
    enrol(parents, lincoln)
    _, counts = count([parents])
    assert counts[parents.pk].schools[lincoln.pk].eligible == 1
    assert counts[parents.pk].schools[lincoln.pk].started == 0
    progress = count_progress(parents)
    assert (progress.not_started, progress.in_progress, progress.finished) == (1, 0, 0)


def test_no_card_and_no_list_has_them(parents, lincoln, begun):
    assert begun not in invited_people(parents)
    invited = enrol(parents, lincoln, grade="07")
    assert list(invited_people(parents)) == [invited]
    assert groups_of(parents, lincoln) == [("07", "")]


def test_an_export_has_those_who_have_answered(parents, code):
    empty, answered = Browser(), Browser()
    begin(empty, code)
    begin(answered, code)
    base = answered.bootstrap()["revision"]
    assert answered.save(1, FIRST_PAGE, base).status_code == 200
    selection = Selection([parents], Places(state=True))
    exported = selection.people(parents, DEFAULT_DB_ALIAS)
    rows = Respondent.objects.raw(
        f"SELECT r.* FROM survey_respondent r WHERE {exported}"  # noqa: S608
    )
    pk = answered.session["taking"]["respondent_id"]
    assert [row.pk for row in rows] == [pk]


def test_the_survey_and_audience_stay_once_somebody_has_begun(parents, begun):
    assert has_people(parents)
    plan = plan_of(parents)
    with pytest.raises(ChangeBlocked):
        change(parents, dataclasses.replace(plan, role="teacher"))


def test_an_administration_with_codes_stays_open_to_anyone(parents, code):
    plan = plan_of(parents)
    with pytest.raises(ChangeBlocked, match="have school links"):
        change(parents, dataclasses.replace(plan, denominator=Denominator.ROSTER))


def test_a_school_with_open_codes_stays(parents, code, lincoln, roosevelt):
    plan = plan_of(parents)
    elsewhere = dataclasses.replace(plan, schools=frozenset([roosevelt]))
    with pytest.raises(ChangeBlocked, match="School links of Lincoln are in use"):
        change(parents, elsewhere)
    revoke_open_code(code=code, by="a test")
    change(parents, elsewhere)


def change(administration, plan):
    return change_administration(
        administration=administration, to=plan, seen=None, by="a test"
    )
