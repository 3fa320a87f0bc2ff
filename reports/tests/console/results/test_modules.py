"""What a district asks after the state's questions is in its own figures alone."""

from __future__ import annotations

import pytest
from django.urls import reverse
from django.utils import timezone

from accounts.tests.logging_in import log_in
from reports.models import Export, GradeRate, SchoolRate
from reports.rates.rollup import roll_up
from reports.tests.exports.conftest import (
    answer_all,
    made_as_it_is,
    released,
    respondent_of,
)
from reports.tests.releases.conftest import stored
from survey.fieldwork.administrations import open_administration
from survey.models import Administration, Respondent, Role
from survey.work.files import path_of

pytestmark = pytest.mark.django_db

SECRET = "The bus of line 7 is unsafe."


def take_part(administration, school, people, **answers):
    respondents = Respondent.objects.bulk_create(
        respondent_of(administration, school, completed_at=timezone.now())
        for _ in range(people)
    )
    answer_all(administration, ((person, answers) for person in respondents))
    return respondents


@pytest.fixture
def state_round(staff, fall) -> Administration:
    """Twelve pupils of Lincoln have finished, and four of Roosevelt, elsewhere."""
    take_part(fall, staff.lincoln, 12, safe="1", comment="fine")
    take_part(fall, staff.roosevelt, 4, safe="2")
    return fall


def add_module(state_round, district, published) -> Administration:
    return open_administration(
        name="riverside-pages",
        published=published,
        role=state_round.role,
        district=district,
        opens_at=state_round.opens_at,
        closes_at=state_round.closes_at,
        minimum_group=1,
        module_of=state_round,
    )


@pytest.fixture
def module(staff, state_round, second_survey) -> Administration:
    """Ten of Lincoln's twelve pupils have gone on."""
    module = add_module(state_round, staff.riverside, second_survey)
    take_part(module, staff.lincoln, 10, safe="2", lunch=SECRET)
    return module


def test_the_states_release_is_the_same_with_a_module(
    staff, state_round, second_survey
):
    released(state_round)
    before = stored(state_round)
    assert before["state", 0, "", ""]["people"] == 16

    module = add_module(state_round, staff.riverside, second_survey)
    take_part(module, staff.lincoln, 10, safe="2", lunch=SECRET)
    released(state_round)
    assert stored(state_round) == before


def test_the_modules_release_is_of_its_district(staff, module):
    released(module)
    figures = stored(module)
    of_lincoln = figures["school", staff.lincoln.pk, "", ""]
    assert of_lincoln["people"] == 10
    assert of_lincoln["items"]["safe"]["=2"] == 10
    assert not any(
        (level, place) == ("school", staff.roosevelt.pk)
        for level, place, _attribute, _value in figures
    )


@pytest.mark.parametrize(
    ("name", "status"),
    [("dana", 200), ("analyst", 200), ("state", 404), ("sam", 404)],
)
def test_only_the_district_reads_its_results(client, staff, module, name, status):
    released(module)
    log_in(client, getattr(staff, name))
    for route in ("results_page", "administration_detail"):
        page = client.get(reverse(route, args=[module.pk]))
        assert page.status_code == status


def test_the_state_reads_its_own_results_alone(client, staff, state_round, module):
    released(state_round)
    released(module)
    log_in(client, staff.state)
    for route in ("results_list", "administration_list", "console_home", "wave_list"):
        page = client.get(reverse(route)).content.decode()
        assert module.name not in page
        assert reverse("results_page", args=[module.pk]) not in page
    assert client.get(reverse("results_page", args=[state_round.pk])).status_code == 200
    # There is something to leak.
    Administration.objects.filter(pk=module.pk).update(module_of=None)
    assert module.name in client.get(reverse("administration_list")).content.decode()


def ask_for_file(client, *administrations, **choices):
    given = {"format": "wide", "language": "en", **choices}
    given["administrations"] = [row.pk for row in administrations]
    return client.post(reverse("export_new"), given)


def test_the_state_gets_no_file_of_it(client, staff, state_round, module):
    released(module)
    log_in(client, staff.state)
    ask_for_file(client, module)
    assert not Export.objects.exists()

    log_in(client, staff.dana)
    ask_for_file(client, module)
    assert Export.objects.get().administrations.get() == module


def test_no_file_has_names_next_to_its_answers(client, staff, module):
    log_in(client, staff.dana)
    reason = "The board asked who is on this bus."
    page = ask_for_file(client, module, identities="on", reason=reason)
    assert "answered without names" in page.content.decode()
    assert not Export.objects.exists()


def test_a_file_of_both_parts_joins_nobody(staff, state_round, module):
    released(state_round)
    released(module)
    places = {"districts": [staff.riverside.pk]}
    export = made_as_it_is(staff.dana, state_round, module, places=places)
    lines = path_of(export.file_name).read_text("utf-8-sig").splitlines()
    ids = [line.split(",")[0] for line in lines[1:]]
    assert len(ids) == 22
    assert len(set(ids)) == 22


# Response rates


def test_the_home_page_asks_nobody_to_invite_people(
    client, staff, state_round, second_survey
):
    take_part(state_round, staff.washington, 1, safe="1")
    add_module(state_round, staff.riverside, second_survey)
    roll_up()
    log_in(client, staff.dana)
    page = client.get(reverse("console_home")).content.decode()
    assert "Upload a roster" not in page
    assert "0 of 13" in page


def rate_of(administration, school) -> tuple[int, int, int]:
    rate = SchoolRate.objects.get(administration=administration, school=school)
    return rate.eligible, rate.started, rate.finished


def test_the_states_people_are_the_denominator(staff, state_round, module):
    roll_up()
    assert rate_of(state_round, staff.lincoln) == (12, 12, 12)
    assert rate_of(module, staff.lincoln) == (12, 10, 10)
    assert rate_of(module, staff.washington) == (0, 0, 0)
    grades = GradeRate.objects.filter(administration=module)
    assert list(grades.values_list("grade", "eligible", "finished")) == [("07", 12, 10)]


def test_without_it_everybody_who_came_would_be_everybody(staff, state_round, module):
    """The twin: the denominator of an ordinary round."""
    Administration.objects.filter(pk=module.pk).update(module_of=None)
    roll_up()
    assert rate_of(module, staff.lincoln) == (10, 10, 10)


def test_pupils_of_a_module_are_not_counted_twice_for_their_parents(
    staff, state_round, module, first_survey
):
    parents = open_administration(
        name="parents",
        published=first_survey,
        role=Role.PARENT,
        opens_at=state_round.opens_at,
        closes_at=state_round.closes_at,
    )
    roll_up()
    roll_up()
    rate = SchoolRate.objects.get(administration=parents, school=staff.lincoln)
    assert rate.students == 12
