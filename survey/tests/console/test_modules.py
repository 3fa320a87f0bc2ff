"""The page of districts' questions, and the setting of the state."""

from __future__ import annotations

import pytest
from django.urls import reverse

from accounts.models import AuditEntry
from accounts.tests.logging_in import log_in
from survey.models import Administration
from survey.tests.administrations.test_modules import ONE_PAGE, publish_for
from survey.tests.conftest import publish_items

pytestmark = pytest.mark.django_db


@pytest.fixture
def state_round(administration, staff) -> Administration:
    administration.district_pages_limit = 2
    administration.save(update_fields=["district_pages_limit"])
    return administration


def page_of(administration: Administration) -> str:
    return reverse("administration_modules", args=[administration.pk])


def choose(client, administration, district, published):
    return client.post(
        page_of(administration),
        {
            "form": district.pk,
            f"d{district.pk}-district": district.pk,
            f"d{district.pk}-published": published.pk,
        },
        follow=True,
    )


def test_a_district_adds_its_questions_and_the_state_reads_them(
    client, staff, state_round
):
    published = publish_for(staff.riverside)
    log_in(client, staff.dana)
    assert "at most 2 pages" in client.get(page_of(state_round)).content.decode()
    page = choose(client, state_round, staff.riverside, published)
    assert "follows after the state&#x27;s last page" in page.content.decode()
    module = state_round.modules.get()
    assert module.published == published

    # Its own workspace leads to no rosters, cards or publications.
    workspace = client.get(reverse("administration_detail", args=[module.pk]))
    text = workspace.content.decode()
    assert state_round.title in text
    for route in ("roster_upload", "cards_list", "emails_detail"):
        assert reverse(route, args=[module.pk]) not in text
        assert client.get(reverse(route, args=[module.pk])).status_code == 404
    assert client.get(reverse("administration_change", args=[module.pk])).status_code
    for route in ("administration_change", "administration_reopen"):
        assert client.get(reverse(route, args=[module.pk])).status_code == 404
    for route in ("administration_close", "administration_remove"):
        assert client.get(reverse(route, args=[module.pk])).status_code == 200

    log_in(client, staff.state)
    seen = client.get(page_of(state_round)).content.decode()
    assert "Riverside" in seen
    assert reverse("survey_detail", args=[published.survey_id]) in seen
    gone = client.get(reverse("administration_detail", args=[module.pk]))
    assert gone.status_code == 404


def test_another_district_learns_nothing_of_it(client, staff, state_round):
    published = publish_for(staff.riverside)
    log_in(client, staff.dana)
    choose(client, state_round, staff.riverside, published)
    log_in(client, staff.sam)
    assert client.get(page_of(state_round)).status_code in (403, 404)


def test_a_district_can_not_choose_what_is_not_its_own(client, staff, state_round):
    publish_for(staff.riverside)
    elsewhere = publish_for(staff.lakeside, name="lakeside")
    of_state = publish_items(ONE_PAGE, name="of-the-state")
    log_in(client, staff.dana)
    for published in (elsewhere, of_state):
        page = choose(client, state_round, staff.riverside, published)
        assert "Choose one of these questionnaires." in page.content.decode()
    # Nor for another district.
    choose(client, state_round, staff.lakeside, elsewhere)
    assert not Administration.objects.exclude(pk=state_round.pk).exists()


def test_without_the_states_permission_nothing_is_offered(
    client, staff, administration
):
    log_in(client, staff.dana)
    workspace = client.get(reverse("administration_detail", args=[administration.pk]))
    assert page_of(administration) not in workspace.content.decode()
    page = client.get(page_of(administration)).content.decode()
    assert "does not let districts add pages" in page
    assert "There is nothing to add here." in page


def test_only_the_state_sees_the_setting(client, staff, administration):
    log_in(client, staff.state)
    address = reverse("administration_change", args=[administration.pk])
    assert 'name="district_pages_limit"' in client.get(address).content.decode()

    administration.district = staff.riverside
    administration.save(update_fields=["district"])
    log_in(client, staff.dana)
    assert 'name="district_pages_limit"' not in client.get(address).content.decode()


@pytest.mark.parametrize(("districts", "modules"), [(1, 1), (1, 0)])
def test_the_page_takes_few_statements(
    client, staff, state_round, districts, modules, django_assert_max_num_queries
):
    published = publish_for(staff.riverside)
    log_in(client, staff.dana)
    if modules:
        choose(client, state_round, staff.riverside, published)
    with django_assert_max_num_queries(17):
        client.get(page_of(state_round))


def test_the_state_stops_and_allows_questions(client, staff, state_round):
    published = publish_for(staff.riverside)
    log_in(client, staff.dana)
    choose(client, state_round, staff.riverside, published)
    module = state_round.modules.get()

    # Not the district itself.
    client.post(page_of(state_round), {"module": module.pk, "stop": "1"})
    module.refresh_from_db()
    assert module.stopped_at is None

    log_in(client, staff.state)
    for number in (1, 2):
        client.post(page_of(state_round), {"module": module.pk, "stop": "1"})
        module.refresh_from_db()
        assert module.stopped_at is not None
        assert AuditEntry.objects.filter(action="stop module").count() == 1, number
    log_in(client, staff.dana)
    page = client.get(page_of(state_round)).content.decode()
    assert "The state has stopped these questions" in page

    log_in(client, staff.state)
    client.post(page_of(state_round), {"module": module.pk, "allow": "1"})
    module.refresh_from_db()
    assert module.stopped_at is None
    # Rounds of its own have no such button.
    gone = client.post(page_of(state_round), {"module": state_round.pk, "stop": "1"})
    assert gone.status_code == 404
