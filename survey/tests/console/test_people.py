"""Who is invited, as staff see it; one person's code."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.db import connection
from django.utils import timezone

from accounts.models import AuditEntry
from accounts.tests.logging_in import log_in
from survey.access_codes import code_of, format_code
from survey.models import Identity, Respondent
from survey.taking.login import LoginRefused, log_in_respondent
from survey.tests.conftest import FIRST_PAGE, Browser
from survey.tests.people import invite

pytestmark = pytest.mark.django_db


@pytest.fixture
def maya(administration, staff) -> Respondent:
    return invite(
        administration, staff.lincoln, "40313", "Maya López", grade="07", classroom="7B"
    )


@pytest.fixture
def noor(administration, staff) -> Respondent:
    """Sam's, whom nobody at Lincoln may see."""
    return invite(
        administration, staff.roosevelt, "77", "Noor Hassan", "noor@example.org"
    )


def people(client, administration, **asked):
    return client.get(f"/console/administrations/{administration.pk}/people/", asked)


def person(administration, respondent, act=""):
    return f"/console/administrations/{administration.pk}/people/{respondent.pk}/{act}"


def text_of(response) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", response.content.decode()))


def test_a_coordinator_finds_maya_and_gives_her_a_new_code(
    client, staff, administration, maya, noor
):
    old = code_of(maya)
    log_in(client, staff.chen)

    found = people(client, administration, q="lóp may")
    assert "López, Maya" in text_of(found)
    assert "Hassan" not in text_of(people(client, administration))

    page = client.post(person(administration, maya, "reissue/"), follow=True)
    maya.refresh_from_db()
    assert maya.issue == 2
    assert format_code(code_of(maya)) in text_of(page)
    assert log_in_respondent(code_of(maya)).respondent_id == maya.pk
    with pytest.raises(LoginRefused, match="code_wrong"):
        log_in_respondent(old)
    # Once: it is not there any more.
    again = client.get(person(administration, maya))
    assert format_code(code_of(maya)) not in text_of(again)


def test_who_is_logged_in_with_an_old_code_saves_nothing_more(
    client, staff, administration, maya
):
    child = Browser().log_in(maya)
    base = child.shell()["revision"]
    assert child.save(1, FIRST_PAGE, base).status_code == 200

    log_in(client, staff.chen)
    client.post(person(administration, maya, "reissue/"))

    assert child.save(1, FIRST_PAGE, base + 1).status_code == 401
    maya.refresh_from_db()
    assert Browser().log_in(maya).save(1, FIRST_PAGE, base + 2).status_code == 200


def test_looking_at_people_is_recorded_without_their_names(
    client, staff, administration, maya
):
    log_in(client, staff.chen)
    people(client, administration, q="López", grade="07")
    client.get(person(administration, maya))
    client.post(person(administration, maya, "code/"))

    list_, one, code = AuditEntry.objects.order_by("id")
    assert (list_.action, list_.subject, list_.school_id, list_.after) == (
        "look at people",
        "students-2027",
        staff.lincoln.pk,
        {"grade": "07", "searched": True, "page": 1, "people": 1},
    )
    assert (one.action, one.subject_id) == ("look at a person", maya.pk)
    assert (code.action, code.after) == ("show an access code", {"issue": 1})
    written = str(list(AuditEntry.objects.values()))
    assert "López" not in written
    assert code_of(maya) not in written.replace("-", "")


@pytest.mark.parametrize("who", ["state", "dana", "chen"])
def test_progress_is_seen_by_nobody_unless_the_administration_allows_it(
    client, staff, administration, maya, who
):
    Respondent.objects.filter(pk=maya.pk).update(
        started_at=timezone.now(), completed_at=timezone.now()
    )
    log_in(client, getattr(staff, who))
    school = staff.lincoln.pk

    def seen(**asked) -> str:
        return text_of(people(client, administration, school=school, **asked)).lower()

    assert "lópez" in seen()
    assert "finished" not in seen()
    assert "the administration does not allow it" in seen()
    # Nor is it told by what a filter or a sort finds.
    for state in ("finished", "started", "not-started"):
        assert "nobody here is meant" in seen(state=state)
    assert seen(sort="-completed_at") == seen()
    detail = text_of(client.get(person(administration, maya))).lower()
    assert "invited" in detail
    assert "finished" not in detail

    administration.coordinators_see_finished = True
    administration.save()
    assert "finished" in seen()
    assert "does not allow it" not in seen()
    assert "lópez" in seen(state="finished")
    assert "lópez" not in seen(state="not-started")
    assert "finished" in text_of(client.get(person(administration, maya))).lower()


def test_who_has_finished_is_never_told_of_teachers(
    client, staff, administration, maya
):
    """The database refuses the setting; the page would not follow it either."""
    from survey.console.people.scope import shows_progress

    administration.coordinators_see_finished = True
    assert shows_progress(administration)
    administration.role = "teacher"
    assert not shows_progress(administration)


@pytest.mark.parametrize("act", ["", "code/", "reissue/", "card/"])
def test_another_school_s_person_is_not_there(client, staff, administration, noor, act):
    log_in(client, staff.chen)
    address = person(administration, noor, act)
    response = client.post(address) if act else client.get(address)
    assert response.status_code == 404
    noor.refresh_from_db()
    assert noor.issue == 1
    assert not AuditEntry.objects.exists()

    log_in(client, staff.sam)
    assert (client.post(address) if act else client.get(address)).status_code in (
        200,
        302,
    )


def test_another_district_s_school_or_administration_is_not_there(
    client, staff, administration, noor
):
    log_in(client, staff.dana)
    roosevelt = staff.roosevelt.pk
    assert people(client, administration, school=roosevelt).status_code == 404
    for nonsense in ("x", "²", "9" * 30, "-1"):
        assert people(client, administration, school=nonsense).status_code == 404
    administration.district = staff.lakeside
    administration.save()
    assert people(client, administration).status_code == 404


def test_an_analyst_sees_nobody(client, staff, administration, maya):
    log_in(client, staff.analyst)
    assert people(client, administration).status_code == 404
    assert client.get(person(administration, maya)).status_code == 404


def test_whoever_has_many_schools_chooses_one_or_searches(
    client, staff, administration, maya, noor
):
    log_in(client, staff.state)
    first = text_of(people(client, administration))
    assert "Lincoln" in first and "Roosevelt" in first
    assert "López" not in first
    assert not AuditEntry.objects.exists()

    for query in ("lóp", "maya lópez", "40313", "noor@ex", "77"):
        found = text_of(people(client, administration, q=query))
        assert ("López" in found) != ("Hassan" in found), query
    assert "Hassan" not in text_of(people(client, administration, q="assan"))
    schools = people(client, administration, q="roosev")
    assert f"?school={staff.roosevelt.pk}" in schools.content.decode()


def test_a_search_of_a_district_stays_in_it(client, staff, administration, maya, noor):
    log_in(client, staff.dana)
    assert "López" in text_of(people(client, administration, q="maya"))
    assert "Hassan" not in text_of(people(client, administration, q="noor"))
    assert AuditEntry.objects.latest("id").district_id == staff.riverside.pk


def test_a_search_that_finds_too_many_says_so(
    client, staff, administration, monkeypatch
):
    monkeypatch.setattr("survey.console.people.search.MOST_FOUND", 2)
    for number in range(3):
        invite(administration, staff.lincoln, str(number), f"Ann Smith{number}")
    log_in(client, staff.state)
    found = text_of(people(client, administration, q="smith"))
    assert "More than" in found
    assert "1–2 of 2 people" in found


@pytest.mark.parametrize(
    "asked",
    [
        {"q": "\x00' OR 1=1 --"},
        {"q": "%"},
        {"q": "ü" * 5000},
        {"grade": "99"},
        {"state": "finished'"},
        {"page": "99999"},
        {"sort": "identity__birth_date"},
    ],
)
def test_nonsense_finds_nobody_and_breaks_nothing(
    client, staff, administration, maya, asked
):
    for user in (staff.chen, staff.state):
        log_in(client, user)
        response = people(client, administration, **asked)
        assert response.status_code == 200


def test_withdrawn_people_are_listed_and_have_no_code(
    client, staff, administration, maya
):
    Respondent.objects.filter(pk=maya.pk).update(withdrawn_at=timezone.now())
    log_in(client, staff.chen)
    assert "withdrawn" in text_of(people(client, administration))
    assert "López" not in text_of(people(client, administration, state="invited"))
    assert "Print the card" not in text_of(client.get(person(administration, maya)))
    for act in ("code/", "reissue/", "card/"):
        assert client.post(person(administration, maya, act)).status_code == 404
    maya.refresh_from_db()
    assert maya.issue == 1


def test_who_has_no_identity_any_more_is_still_found_and_given_a_code(
    client, staff, administration, maya
):
    Identity.objects.all().delete()
    log_in(client, staff.chen)
    assert f"No name ({maya.pk})" in text_of(people(client, administration))
    page = client.post(person(administration, maya, "code/"), follow=True)
    assert format_code(code_of(maya)) in text_of(page)


def test_nothing_changes_by_a_look(client, staff, administration, maya):
    log_in(client, staff.chen)
    for act in ("code/", "reissue/", "card/"):
        assert client.get(person(administration, maya, act)).status_code == 405
    maya.refresh_from_db()
    assert maya.issue == 1


def test_no_browser_keeps_these_pages(client, staff, administration, maya):
    log_in(client, staff.chen)
    for response in (
        people(client, administration),
        client.get(person(administration, maya)),
        client.post(person(administration, maya, "code/")),
        client.get(person(administration, maya)),
    ):
        assert "no-store" in response["Cache-Control"]


def test_a_code_shown_to_one_is_not_shown_to_another(
    client, staff, administration, maya
):
    other = invite(administration, staff.lincoln, "8", "Ben Adams")
    log_in(client, staff.chen)
    client.post(person(administration, maya, "code/"))
    page = text_of(client.get(person(administration, other)))
    assert format_code(code_of(other)) not in page
    assert format_code(code_of(maya)) not in page


@pytest.mark.parametrize("number", [1, 3])
def test_the_list_takes_as_many_statements_for_three_as_for_one(
    client, staff, administration, django_assert_num_queries, number
):
    for n in range(number):
        invite(administration, staff.lincoln, str(n), "Ann Smith", grade="07")
    log_in(client, staff.chen)
    people(client, administration)
    session = 0 if connection.vendor == "postgresql" else 1
    # User, memberships, administration, school, its classes, the number of
    # people, the people, the audit.
    with django_assert_num_queries(8 + session):
        assert "Smith" in text_of(people(client, administration))


@pytest.mark.parametrize("number", [1, 3])
def test_a_search_takes_as_many_statements_for_three_as_for_one(
    client, staff, administration, django_assert_num_queries, number
):
    for n in range(number):
        invite(administration, staff.lincoln, str(n), "Ann Smith")
    log_in(client, staff.state)
    people(client, administration, q="smith")
    session = 0 if connection.vendor == "postgresql" else 1
    # User, memberships, administration, districts, who is found, their number,
    # the people, the schools, the audit.
    with django_assert_num_queries(9 + session):
        assert "Smith" in text_of(people(client, administration, q="smith"))


def test_an_old_window_hides_nobody(client, staff, administration, maya):
    """Cards are printed before it opens, and people looked up after it closed."""
    for days in (-400, 400):
        administration.opens_at = timezone.now() + timedelta(days=days)
        administration.closes_at = administration.opens_at + timedelta(days=30)
        administration.save()
        log_in(client, staff.chen)
        assert "López" in text_of(people(client, administration))
