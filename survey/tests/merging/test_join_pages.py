"""The console's pages for joining two records of one person."""

from __future__ import annotations

import re
from datetime import date, timedelta

import pytest
from django.test import Client
from django.utils import timezone

from accounts import permissions
from accounts.models import AuditEntry
from accounts.permissions import Capability
from accounts.tests.logging_in import log_in
from survey.models import Identity, Job, RecordJoin, Respondent
from survey.people.merging.joins import NOT_PERMITTED, request_join
from survey.tests.people import invite
from survey.work import jobs

pytestmark = pytest.mark.django_db


@pytest.fixture
def administration(administration):
    """Let staff see who has started."""
    administration.coordinators_see_finished = True
    administration.save(update_fields=["coordinators_see_finished"])
    return administration


@pytest.fixture
def confidential(administration):
    administration.coordinators_see_finished = False
    administration.save(update_fields=["coordinators_see_finished"])
    return administration


@pytest.fixture
def maya(administration, staff) -> Respondent:
    return invite(administration, staff.lincoln, "00123", "Maya Lopez", grade="07")


@pytest.fixture
def twin(administration, staff) -> Respondent:
    return invite(administration, staff.lincoln, "A-77", "Maya Lopez", grade="08")


def address(person, twin=None, action="join/"):
    base = f"/console/administrations/{person.administration_id}/people/{person.pk}/"
    return f"{base}{action}" + (f"?other={twin.pk}" if twin else "")


def text_of(response) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", response.content.decode()))


def start(person):
    Respondent.objects.filter(pk=person.pk).update(started_at=timezone.now())


def seen(*people):
    return " ".join(str(person.pk) for person in people)


def run_job():
    jobs.run(Job.objects.get(kind="people.join").pk)


def test_a_coordinator_joins_two_records(client, staff, maya, twin):
    log_in(client, staff.chen)
    page = client.get(address(maya, action="")).content.decode()
    assert address(maya) in page
    # The record with the same name is there at once.
    page = client.get(address(maya))
    assert "A-77" in text_of(page)
    assert address(maya, twin) in page.content.decode()

    page = client.get(address(maya, twin))
    assert "00123" in text_of(page) and "A-77" in text_of(page)
    form = {"kept": maya.pk, "seen": "", "typed": "00123"}
    page = client.post(address(maya, twin), form)
    assert "Type the ID of the record that is withdrawn: A-77" in text_of(page)
    assert not RecordJoin.objects.exists()
    reply = client.post(address(maya, twin), {**form, "typed": " a-77 "})
    assert reply.url == address(maya, action="")
    assert "job-message" in client.get(reply.url).content.decode()

    run_job()
    maya.refresh_from_db()
    twin.refresh_from_db()
    assert maya.withdrawn_at is None and twin.withdrawn_at
    assert "Other IDs A-77" in text_of(client.get(reply.url))
    page = text_of(client.get(address(twin, action="")))
    assert "This record was joined with the record that stays" in page
    assert client.get(address(twin)).status_code == 404


def test_a_person_is_found_by_the_id_of_a_joined_record(
    client, staff, administration, maya, twin
):
    log_in(client, staff.chen)
    client.post(address(maya, twin), {"kept": maya.pk, "seen": "", "typed": "A-77"})
    people = f"/console/administrations/{administration.pk}/people/"

    def find(user, query):
        log_in(client, user)
        return " 00123 " in text_of(client.get(people, {"q": query}))

    assert not find(staff.dana, "A-77")
    run_job()
    for user in (staff.chen, staff.dana, staff.state):
        assert find(user, "A-77") and find(user, "a-77") and not find(user, "A-78")
    # The other record to join with a third one is found by it, too.
    third = invite(administration, staff.lincoln, "B-9", "Mia Lopez")
    assert " 00123 " in text_of(client.get(address(third), {"q": "A-77"}))
    assert not find(staff.sam, "A-77")
    # An ID that somebody else has been given leads to that person only.
    RecordJoin.objects.update(district=None)
    assert not find(staff.chen, "A-77") and not find(staff.dana, "A-77")


def test_the_record_that_has_been_started_stays(client, staff, maya, twin):
    start(twin)
    log_in(client, staff.chen)
    page = text_of(client.get(address(maya, twin)))
    assert "Which record stays" not in page
    assert "To confirm, type: 00123" in page
    form = {"seen": seen(twin), "kept": maya.pk, "typed": "00123"}
    reply = client.post(address(maya, twin), form)
    assert reply.url == address(twin, action="")
    assert RecordJoin.objects.get().kept == twin


def test_somebody_chooses_where_both_have_been_started(client, staff, maya, twin):
    start(maya)
    start(twin)
    log_in(client, staff.chen)
    page = client.get(address(maya, twin))
    assert "Both records have been started" in text_of(page)
    assert "checked" not in page.content.decode()
    form = {"seen": seen(maya, twin), "typed": "00123"}
    assert client.post(address(maya, twin), form).status_code == 200
    assert not RecordJoin.objects.exists()
    client.post(address(maya, twin), {**form, "kept": twin.pk})
    join = RecordJoin.objects.get()
    assert (join.kept, join.is_chosen) == (twin, True)


def test_a_start_after_the_page_was_shown_is_shown_first(client, staff, maya, twin):
    log_in(client, staff.chen)
    start(twin)
    form = {"seen": "", "kept": maya.pk, "typed": "A-77"}
    page = client.post(address(maya, twin), form, follow=True)
    assert "has been started in the meantime" in text_of(page)
    assert not RecordJoin.objects.exists()


def test_why_records_were_not_joined_is_shown(client, staff, maya, twin):
    log_in(client, staff.chen)
    client.post(address(maya, twin), {"kept": maya.pk, "seen": "", "typed": "A-77"})
    start(maya)
    start(twin)
    run_job()
    page = text_of(client.get(address(maya, action="")))
    assert "Both records have been started in the meantime" in page


def test_only_records_that_the_user_may_change_are_offered(
    client, staff, administration, maya, twin
):
    washington = invite(administration, staff.washington, "W-1", "Maya Lopez")
    lakeside = invite(administration, staff.roosevelt, "L-1", "Maya Lopez")
    for user, expected in (
        (staff.chen, {"A-77"}),
        (staff.dana, {"A-77", "W-1"}),
        # Of another district: not even for the state.
        (staff.state, {"A-77", "W-1"}),
    ):
        log_in(client, user)
        for query in ("", "?q=maya", "?q=L-1"):
            page = text_of(client.get(address(maya) + query))
            listed = {text for text in ("A-77", "W-1", "L-1") if f" {text} " in page}
            assert listed == (set() if "L-1" in query else expected)
        shown = {
            record
            for record in (twin, washington, lakeside)
            if client.get(address(maya, record)).status_code == 200
        }
        assert len(shown) == len(expected)
        assert lakeside not in shown
    log_in(client, staff.chen)
    form = {"kept": maya.pk, "seen": "", "typed": "W-1"}
    assert client.post(address(maya, washington), form).status_code == 404
    assert not RecordJoin.objects.exists()


def test_people_of_other_schools_are_not_found(client, staff, maya, twin):
    for user in (staff.sam, staff.analyst):
        log_in(client, user)
        assert client.get(address(maya)).status_code == 404
        assert client.get(address(maya, twin)).status_code == 404
        form = {"kept": maya.pk, "seen": "", "typed": "A-77"}
        assert client.post(address(maya, twin), form).status_code == 404
    assert not RecordJoin.objects.exists()
    assert not AuditEntry.objects.exists()


def test_seeing_the_people_of_a_school_is_not_enough(
    client, staff, maya, twin, monkeypatch
):
    """Somebody manages the rosters of one school, and only sees those of another."""
    roles = permissions.CAPABILITIES
    seeing = roles["analyst"] | {Capability.SEE_IDENTITIES}
    monkeypatch.setitem(roles, "analyst", seeing)
    staff.chen.memberships.update(school=staff.washington)
    staff.chen.memberships.create(role="analyst", school=staff.lincoln)
    log_in(client, staff.chen)
    page = client.get(address(maya, action=""))
    assert page.status_code == 200
    assert "Join with another record" not in text_of(page)
    form = {"kept": maya.pk, "seen": "", "typed": "A-77"}
    for asked in (address(maya), address(maya, twin)):
        assert client.get(asked).status_code == 404
        assert client.post(asked, form).status_code == 404
    # The job asks again.
    join = request_join(maya, twin, by=staff.chen)
    run_job()
    join.refresh_from_db()
    assert (join.state, join.message) == ("refused", NOT_PERMITTED)


@pytest.mark.parametrize("key", ["x", "²", "9" * 30, "-1", "0"])
def test_nonsense_is_not_found(client, staff, maya, key):
    log_in(client, staff.state)
    assert client.get(address(maya), {"other": key}).status_code == 404
    assert client.get(address(maya), {"other": maya.pk}).status_code == 404


@pytest.mark.parametrize("login", ["state", "dana", "chen"])
def test_where_progress_is_hidden_nobody_learns_it(
    client, staff, confidential, maya, twin, login
):
    log_in(client, getattr(staff, login))

    def pages():
        form = {"kept": maya.pk, "seen": "", "typed": "A-77"}
        return [
            re.sub("csrfmiddlewaretoken[^>]*", "", response.content.decode())
            for response in (
                client.get(address(maya)),
                client.get(address(maya, twin)),
                client.post(address(maya, twin), form),
            )
        ]

    before = pages()
    start(twin)
    assert pages() == before
    assert "Nobody may see who has started" in before[0]
    assert not RecordJoin.objects.exists()
    # There is something to hide: elsewhere the same pages show it.
    confidential.coordinators_see_finished = True
    confidential.save()
    assert "has been started stays" in text_of(client.get(address(maya, twin)))


def test_before_the_opening_a_district_joins_records_where_progress_is_hidden(
    client, staff, confidential, maya, twin
):
    confidential.opens_at = timezone.now() + timedelta(days=1)
    confidential.save()
    log_in(client, staff.chen)
    assert "Ask your district" in text_of(client.get(address(maya, twin)))
    log_in(client, staff.dana)
    before = text_of(client.get(address(maya, twin)))
    assert "Progress" not in before and "Which record stays?" in before
    # Somebody has started before the opening was moved.
    start(twin)
    assert text_of(client.get(address(maya, twin))) == before
    Respondent.objects.update(started_at=None)
    form = {"kept": maya.pk, "seen": "", "typed": "A-77"}
    assert client.post(address(maya, twin), form).status_code == 302
    run_job()
    assert RecordJoin.objects.get().state == "joined"


def test_different_birth_dates_are_pointed_out(client, staff, maya, twin):
    log_in(client, staff.chen)
    Identity.objects.filter(pk=maya.pk).update(birth_date=date(2014, 3, 4))
    assert "birth dates" not in text_of(client.get(address(maya, twin)))
    Identity.objects.filter(pk=twin.pk).update(birth_date=date(2014, 3, 5))
    page = text_of(client.get(address(maya, twin)))
    assert "different birth dates" in page
    assert "2014" not in page


def test_viewing_both_records_is_logged_without_names(client, staff, maya, twin):
    log_in(client, staff.chen)
    client.get(address(maya))
    client.get(address(maya, twin))
    actions = AuditEntry.objects.order_by("pk").values_list("action", "subject_id")
    assert list(actions) == [
        ("look at people", maya.administration_id),
        ("look at a person", twin.pk),
    ]
    assert "Lopez" not in str(list(AuditEntry.objects.values()))


@pytest.mark.parametrize("rows", [1, 3])
def test_the_pages_cost_the_same_for_any_number_of_records(
    staff, administration, maya, rows, django_assert_num_queries
):
    twins = [
        invite(administration, staff.lincoln, f"A-{n}", "Maya Lopez")
        for n in range(rows)
    ]
    client = log_in(Client(), staff.chen)
    # Session, user, permissions; the administration, the person; districts, matches,
    # their number, the records; the audit.
    with django_assert_num_queries(10):
        client.get(address(maya))
    # Session, user, permissions; the administration, both records; the audit.
    with django_assert_num_queries(7):
        client.get(address(maya, twins[0]))
    # Session, user, permissions; the administration, the person; the audit, joins.
    with django_assert_num_queries(7):
        client.get(address(maya, action=""))
