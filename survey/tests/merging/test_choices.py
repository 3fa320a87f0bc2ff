"""Choose for single people which of two started records stays."""

from __future__ import annotations

import pytest
from django.test import Client

from accounts.console.listing import Listing
from accounts.models import AuditEntry
from accounts.tests.logging_in import log_in
from survey.models import Identity, PairChoice, Respondent
from survey.people.merging.merges import MergeConflict, choose_records, confirm_merge
from survey.tests.merging.test_merges import answer, answers, person
from survey.tests.people import invite

pytestmark = pytest.mark.django_db

NAMES = ("Maya Lopez", "Ali Diaz", "Zoe Kim")


@pytest.fixture
def administration(administration):
    """Let staff see who has started."""
    administration.coordinators_see_finished = True
    administration.save(update_fields=["coordinators_see_finished"])
    return administration


@pytest.fixture
def twice(administration, staff, copy, lincoln_copy):
    """Three people have started with both of their records, and Noor with one."""
    for number, name in enumerate(NAMES):
        for school in (lincoln_copy, staff.lincoln):
            answer(invite(administration, school, f"0012{number}", name), school.code)
    answer(invite(administration, lincoln_copy, "00200", "Noor Haddad"), "mine")
    invite(administration, staff.lincoln, "00200", "Noor Haddad")


@pytest.fixture
def checked(twice, merge, staff, copy):
    """Return the merge after a first run, which leaves people with two records."""
    created = merge(copy, staff.riverside)
    assert created.state == "partly"
    return created


def address(merge):
    return f"/console/merges/{merge.pk}/people/"


def listed(page):
    return [row.duplicate.identity.given_name for row in page.context["pairs"]]


def test_an_administrator_chooses_for_single_people(checked, merge, staff, copy):
    maya, ali, zoe = (person(f"0012{number}", copy) for number in range(3))
    twin = person("00121", staff.riverside)
    client = log_in(Client(), staff.state)
    detail = client.get(f"/console/merges/{checked.pk}/").content.decode()
    assert address(checked) in detail
    page = client.get(address(checked))
    # Noor has started once, and that record stays anyway.
    assert listed(page) == ["Ali", "Zoe", "Maya"]
    choices = {f"keep-{maya.pk}": "duplicate", f"keep-{ali.pk}": "kept"}
    page = client.post(address(checked), choices, follow=True)
    assert "Choices saved" in page.content.decode()
    assert [row.chosen for row in page.context["pairs"]] == ["kept", "", "duplicate"]
    before = answers()

    merge.go_on(checked)
    assert checked.state == "partly"
    assert person("00120", staff.riverside) == maya
    assert person("00121", staff.riverside) == twin
    ali.refresh_from_db()
    assert ali.withdrawn_at
    # The choice for all was to leave them.
    assert list(Identity.objects.filter(district=copy)) == [zoe.identity]
    merge.go_on(checked, keep="duplicate")
    assert checked.state == "merged", checked.message
    assert person("00122", staff.riverside) == zoe
    assert answers() == before


def test_a_choice_wins_over_the_one_for_all(checked, merge, staff, copy):
    maya, target = person("00120", copy), person("00120", staff.riverside)
    choose_records(checked, {maya.pk: "kept"}, by=staff.state)
    merge.go_on(checked, keep="duplicate")
    assert checked.state == "merged"
    assert person("00120", staff.riverside) == target


def test_a_choice_can_be_taken_back(checked, staff, copy):
    maya = person("00120", copy)
    choose_records(checked, {maya.pk: "kept"}, by=staff.state)
    choose_records(checked, {maya.pk: "duplicate"}, by=staff.state)
    assert PairChoice.objects.get().keep == "duplicate"
    choose_records(checked, {maya.pk: ""}, by=staff.state)
    assert not PairChoice.objects.exists()


def test_other_people_cannot_be_chosen_for(checked, staff):
    everybody = Respondent.objects.values_list("pk", flat=True)
    choose_records(checked, dict.fromkeys(everybody, "kept"), by=staff.state)
    assert PairChoice.objects.count() == len(NAMES)
    client = log_in(Client(), staff.state)
    nonsense = {"keep-x": "kept", "keep-": "kept", f"keep-{'9' * 30}": "kept"}
    assert client.post(address(checked), nonsense).status_code == 302
    first = PairChoice.objects.first()
    client.post(address(checked), {f"keep-{first.respondent_id}": "both"})
    assert set(PairChoice.objects.values_list("keep", flat=True)) == {"kept"}


def test_nobody_chooses_during_a_merge(checked, staff, copy):
    maya = person("00120", copy)
    confirm_merge(checked, by=staff.state, typed=checked.duplicate_name)
    with pytest.raises(MergeConflict):
        choose_records(checked, {maya.pk: "kept"}, by=staff.state)
    assert not PairChoice.objects.exists()


def test_people_are_not_listed_where_progress_is_hidden(
    checked, merge, staff, copy, administration
):
    client = log_in(Client(), staff.state)
    assert len(listed(client.get(address(checked)))) == len(NAMES)
    administration.coordinators_see_finished = False
    administration.save()
    page = client.get(address(checked)).content.decode()
    assert "Lopez" not in page and "1–" not in page
    assert "There is nobody to choose for" in page
    maya = person("00120", copy)
    client.post(address(checked), {f"keep-{maya.pk}": "kept"})
    assert not PairChoice.objects.exists()
    # For all, without seeing anybody.
    merge.go_on(checked, keep="duplicate")
    assert checked.state == "merged"


def test_only_the_state_sees_them(checked, staff):
    for user in (staff.dana, staff.chen, staff.sam, staff.analyst):
        client = log_in(Client(), user)
        assert client.get(address(checked)).status_code == 404
        assert client.post(address(checked), {}).status_code == 404


def test_viewing_and_choosing_is_logged_without_names(checked, staff, copy):
    client = log_in(Client(), staff.state)
    client.get(address(checked))
    client.post(address(checked), {f"keep-{person('00120', copy).pk}": "kept"})
    choose, look = AuditEntry.objects.order_by("-pk")[:2]
    assert (look.action, look.after["people"]) == ("look at people", 3)
    assert (choose.action, choose.after["people"]) == ("choose records", 1)
    assert "Lopez" not in str(list(AuditEntry.objects.values()))


def test_thousands_are_paged(checked, staff, monkeypatch):
    client = log_in(Client(), staff.state)
    assert listed(client.get(address(checked), {"q": "zoe"})) == ["Zoe"]
    monkeypatch.setitem(Listing.__init__.__kwdefaults__, "per_page", 2)
    assert listed(client.get(address(checked))) == ["Ali", "Zoe"]
    assert listed(client.get(address(checked), {"page": 2})) == ["Maya"]


@pytest.mark.parametrize("rows", [1, 3])
def test_the_page_costs_the_same_for_any_number_of_people(
    checked, staff, rows, django_assert_num_queries
):
    if rows == 1:
        rest = Respondent.objects.exclude(identity__external_id="00120")
        rest.update(started_at=None)
    client = log_in(Client(), staff.state)
    # Session, user, permissions; the merge; their number, the people, their other
    # records, the choices; the district, the audit.
    with django_assert_num_queries(10):
        page = client.get(address(checked))
    assert len(listed(page)) == rows
