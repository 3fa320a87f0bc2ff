"""Districts add pages to a round of the state."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from django.core.exceptions import PermissionDenied, ValidationError
from django.db import IntegrityError, transaction
from django.utils import timezone

from accounts.models import AuditEntry, Membership
from accounts.permissions import Capability as C
from accounts.permissions import Permissions
from survey.fieldwork.administrations import (
    ChangeBlocked,
    administrations_for,
    change_administration,
    close_administration,
    plan_of,
    reopen_administration,
)
from survey.fieldwork.administrations.modules import (
    add_module,
    change_questions,
    districts_to_add_in,
    surveys_of_modules,
)
from survey.fieldwork.administrations.queries import may_manage
from survey.fieldwork.administrations.removal import remove_administration
from survey.models import Administration, Respondent
from survey.tests.conftest import publish_items

pytestmark = pytest.mark.django_db

ONE_PAGE = [{"bus_ride": {"kind": "text"}}]


@pytest.fixture
def state_round(administration, staff) -> Administration:
    administration.district_pages_limit = 2
    administration.minimum_group = 12
    administration.save(update_fields=["district_pages_limit", "minimum_group"])
    return administration


def publish_for(district, pages=ONE_PAGE, name="riverside-pages"):
    published = publish_items(pages, name=name)
    published.survey.district = district
    published.survey.save(update_fields=["district"])
    return published


def add(state_round, staff, **changes) -> Administration:
    values = {
        "state_round": state_round,
        "district": staff.riverside,
        "by": staff.dana,
        **changes,
    }
    if "published" not in values:
        values["published"] = publish_for(values["district"])
    return add_module(**values)


@pytest.mark.sqlite
def test_a_district_adds_its_pages(state_round, staff):
    module = add(state_round, staff)

    assert module.module_of == state_round
    assert module.district == staff.riverside
    for name in ("role", "opens_at", "closes_at", "subgroups", "denominator"):
        assert getattr(module, name) == getattr(state_round, name)
    assert module.is_completion_confidential
    assert not module.joins_waves
    # Never less private than the state's round.
    assert module.minimum_group == 12
    entry = AuditEntry.objects.get(action="open administration")
    assert entry.by == staff.dana.email


def test_nothing_that_names_people_is_taken_over(state_round, staff):
    Administration.objects.filter(pk=state_round.pk).update(
        coordinators_see_finished=True,
        messages_have_names=True,
        messages_have_codes=True,
        joins_waves=True,
        requires_consent=True,
    )
    module = add(state_round, staff)
    for name in ("coordinators_see_finished", "joins_waves", "requires_consent"):
        assert getattr(module, name) is False
    # Nor can the database be made to.
    with pytest.raises(IntegrityError), transaction.atomic():
        Administration.objects.filter(pk=module.pk).update(
            coordinators_see_finished=True
        )


def test_the_state_sets_the_limit(state_round, staff):
    two = [{"bus_ride": {"kind": "text"}}, {"lunch": {"kind": "text"}}]
    three = [*two, {"library": {"kind": "text"}}]
    too_long = publish_for(staff.riverside, three, "long")
    with pytest.raises(ValidationError, match="It has 3 pages, and the state allows 2"):
        add(state_round, staff, published=too_long)
    just_right = publish_for(staff.riverside, two)
    dana = Permissions(staff.dana)
    offered = surveys_of_modules(dana, state_round, staff.riverside)
    assert list(offered) == [just_right]
    add(state_round, staff, published=just_right)


def test_without_a_limit_no_district_adds_pages(administration, staff):
    assert districts_to_add_in(Permissions(staff.dana), administration) == []
    with pytest.raises(ChangeBlocked, match="can't add pages"):
        add(administration, staff)


def test_each_district_has_one_module(state_round, staff):
    add(state_round, staff)
    second = publish_for(staff.riverside, name="second")
    with pytest.raises(ChangeBlocked, match="has added its questions already"):
        add(state_round, staff, published=second)


def test_only_where_the_state_asks(state_round, staff):
    state_round.districts.add(staff.lakeside)
    assert districts_to_add_in(Permissions(staff.dana), state_round) == []
    with pytest.raises(ChangeBlocked, match="not offered in Riverside"):
        add(state_round, staff)

    state_round.schools.add(staff.lincoln)
    second = publish_for(staff.riverside, name="second")
    module = add(state_round, staff, published=second)
    assert list(module.schools.all()) == [staff.lincoln]


@pytest.mark.parametrize("name", ["state", "chen", "analyst"])
def test_only_the_district_adds_pages(state_round, staff, name):
    with pytest.raises(PermissionDenied):
        add(state_round, staff, by=getattr(staff, name))


def test_another_district_adds_nothing_here(state_round, staff):
    with pytest.raises(PermissionDenied):
        add(state_round, staff, district=staff.lakeside)


def test_a_district_chooses_other_questions_until_people_came(state_round, staff):
    module = add(state_round, staff)
    second = publish_for(staff.riverside, name="second")
    module = change_questions(module=module, published=second, by=staff.dana)
    assert module.published == second

    Respondent.objects.create(
        administration=module,
        school=staff.lincoln,
        code_digest=b"came",
        code_key_version=1,
        started_at=timezone.now(),
    )
    third = publish_for(staff.riverside, name="third")
    with pytest.raises(ChangeBlocked):
        change_questions(module=module, published=third, by=staff.dana)


# Following the state's round


def change(state_round, staff, **changes) -> Administration:
    return change_administration(
        administration=state_round,
        to=replace(plan_of(state_round), **changes),
        seen=None,
        by=staff.state,
    )


def test_a_module_is_open_as_long_as_the_states_round(state_round, staff):
    module = add(state_round, staff)
    later = state_round.closes_at + timedelta(days=7)
    state_round = change(state_round, staff, closes_at=later, minimum_group=20)
    module.refresh_from_db()
    assert (module.closes_at, module.minimum_group) == (later, 20)

    closed = close_administration(administration=state_round, seen=None, by=staff.state)
    module.refresh_from_db()
    assert module.closes_at == closed.closes_at

    reopen_administration(
        administration=state_round, closes_at=later, seen=None, by=staff.state
    )
    module.refresh_from_db()
    assert module.closes_at == later


def test_a_module_that_its_district_has_closed_stays_closed(state_round, staff):
    module = add(state_round, staff)
    close_administration(administration=module, seen=None, by=staff.dana)
    change(state_round, staff, closes_at=state_round.closes_at + timedelta(days=7))
    module.refresh_from_db()
    assert module.state == Administration.State.CLOSED


def test_the_state_lowers_its_limit_to_none_or_to_what_is_used(state_round, staff):
    two = [{"bus_ride": {"kind": "text"}}, {"lunch": {"kind": "text"}}]
    add(state_round, staff, published=publish_for(staff.riverside, two))
    with pytest.raises(ValidationError, match="Riverside"):
        change(state_round, staff, district_pages_limit=1)
    assert change(state_round, staff, district_pages_limit=0).district_pages_limit == 0


def test_a_district_sets_no_limit(state_round, staff):
    module = add(state_round, staff)
    with pytest.raises(ValidationError, match="Only the state"):
        change_administration(
            administration=module,
            to=replace(plan_of(module), district_pages_limit=3),
            seen=None,
            by=staff.dana,
        )


def test_a_round_is_removed_after_its_modules(state_round, staff):
    module = add(state_round, staff)
    with pytest.raises(ChangeBlocked, match="Riverside"):
        remove_administration(
            administration=state_round,
            seen=None,
            confirmed=state_round.name,
            by=staff.state,
        )
    remove_administration(
        administration=module, seen=None, confirmed=module.name, by=staff.dana
    )
    assert not state_round.modules.exists()


# Who sees it


def visible(user, capability) -> set[str]:
    rows = administrations_for(Permissions(user), capability)
    return set(rows.values_list("name", flat=True))


def test_a_module_is_for_its_district_alone(state_round, staff):
    module = add(state_round, staff)
    for capability in (C.SEE_RATES, C.SEE_RESULTS, C.SEE_RESPONSES, C.MANAGE_SURVEYS):
        assert module.name in visible(staff.dana, capability)
        assert visible(staff.state, capability) == {state_round.name}
        assert module.name not in visible(staff.sam, capability)
    assert module.name in visible(staff.chen, C.SEE_RATES)
    assert module.name in visible(staff.analyst, C.SEE_RESPONSES)
    assert may_manage(Permissions(staff.dana), module)
    assert not may_manage(Permissions(staff.state), module)


def test_the_state_would_see_it_without_this_protection(
    state_round, staff, monkeypatch
):
    """The twin: what the state sees where modules are ordinary rounds."""
    module = add(state_round, staff)
    Administration.objects.filter(pk=module.pk).update(module_of=None)
    assert module.name in visible(staff.state, C.SEE_RESPONSES)


def test_somebody_of_the_state_and_the_district_sees_it(state_round, staff):
    module = add(state_round, staff)
    Membership.objects.create(
        user=staff.state, role=Membership.Role.DISTRICT, district=staff.riverside
    )
    assert module.name in visible(staff.state, C.SEE_RESPONSES)


@pytest.mark.parametrize("capability", [C.SEE_IDENTITIES, C.MANAGE_ROSTERS])
def test_nobody_is_invited_to_a_module(state_round, staff, capability):
    module = add(state_round, staff)
    assert visible(staff.dana, capability) == {state_round.name}
    assert module.name not in visible(staff.chen, capability)
