"""Every role's capabilities in every place, and edge cases."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import AnonymousUser
from django.db import IntegrityError, connection, transaction
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from accounts.models import Membership, School, User
from accounts.permissions import CAPABILITIES, Capability, Permissions
from accounts.tests.conftest import member

pytestmark = pytest.mark.django_db
Role = Membership.Role
C = Capability
EVERYWHERE = {"Lincoln", "Washington", "Roosevelt"}
OF_DISTRICTS = set(Capability) - {C.PUBLISH_RESULTS, C.MANAGE_PROJECTS}


def names(schools) -> set[str]:
    return {school.name for school in schools}


# Who, and in how many of the three schools each capability is theirs.
TABLE = {
    "state": dict.fromkeys(Capability, EVERYWHERE),
    "dana": dict.fromkeys(OF_DISTRICTS, {"Lincoln", "Washington"}),
    "chen": {
        C.SEE_RATES: {"Lincoln"},
        C.SEE_RESULTS: {"Lincoln"},
        C.SEE_IDENTITIES: {"Lincoln"},
        C.MANAGE_ROSTERS: {"Lincoln"},
    },
    "analyst": {
        C.SEE_RATES: {"Lincoln", "Washington"},
        C.SEE_RESULTS: {"Lincoln", "Washington"},
        C.SEE_RESPONSES: {"Lincoln", "Washington"},
    },
    "sam": {
        C.SEE_RATES: {"Roosevelt"},
        C.SEE_RESULTS: {"Roosevelt"},
        C.SEE_IDENTITIES: {"Roosevelt"},
        C.MANAGE_ROSTERS: {"Roosevelt"},
    },
}


@pytest.mark.parametrize("name", TABLE)
@pytest.mark.parametrize("capability", Capability)
def test_each_role_sees_only_its_own_schools(staff, name, capability):
    permissions = Permissions(getattr(staff, name))
    expected = TABLE[name].get(capability, set())
    assert names(permissions.schools(capability)) == expected
    places = permissions.places(capability)
    assert {
        school.name for school in School.objects.all() if places.has_school(school)
    } == expected
    assert permissions.has(capability) is bool(expected)


def test_coordinators_do_not_see_their_district(staff):
    assert not Permissions(staff.chen).districts(C.SEE_RATES)
    assert [*Permissions(staff.dana).districts(C.SEE_RATES)] == [staff.riverside]
    assert Permissions(staff.state).districts(C.SEE_RATES).count() == 2


@pytest.mark.parametrize("capability", Capability)
def test_users_without_memberships_have_no_capability(staff, capability):
    engineer = User.objects.create_superuser("engineer@example.org", "x")
    for nobody in (AnonymousUser(), engineer, User.objects.create_user("new@x.org")):
        permissions = Permissions(nobody)
        assert not permissions.has(capability)
        assert not permissions.schools(capability)
        assert not permissions.districts(capability)


def test_dismissed_users_have_no_capability(staff):
    staff.chen.memberships.update(ended_at=timezone.now())
    assert not Permissions(staff.chen).has(C.SEE_RATES)


def test_deactivated_users_have_no_capability(staff):
    staff.chen.is_active = False
    assert not Permissions(staff.chen).has(C.SEE_RATES)


def test_memberships_add_up_without_mixing_capabilities(staff):
    """Each role counts only in its own school."""
    Membership.objects.create(
        user=staff.chen, role=Role.ANALYST, school=staff.roosevelt
    )
    permissions = Permissions(staff.chen)
    assert names(permissions.schools(C.SEE_RATES)) == {"Lincoln", "Roosevelt"}
    assert names(permissions.schools(C.SEE_RESPONSES)) == {"Roosevelt"}
    assert names(permissions.schools(C.SEE_IDENTITIES)) == {"Lincoln"}


def test_only_administrators_see_both_answers_and_names():
    for role, capabilities in CAPABILITIES.items():
        if role not in (Role.STATE, Role.DISTRICT):
            assert not {C.SEE_RESPONSES, C.SEE_IDENTITIES} <= capabilities


def test_every_role_here_needs_a_second_factor(staff):
    for name in TABLE:
        assert Permissions(getattr(staff, name)).needs_second_factor
    assert not Permissions(User.objects.create_user("new@x.org")).needs_second_factor


def test_permissions_cost_one_statement(staff):
    with CaptureQueriesContext(connection) as queries:
        permissions = Permissions(staff.dana)
        for capability in Capability:
            permissions.places(capability).has_school(staff.lincoln)
    assert len(queries) == 1


# Appointing


@pytest.mark.parametrize(
    ("name", "role", "district", "school", "may"),
    [
        ("state", Role.STATE, None, None, True),
        ("state", Role.COORDINATOR, None, "roosevelt", True),
        ("dana", Role.STATE, None, None, False),
        ("dana", Role.ANALYST, None, None, False),
        ("dana", Role.DISTRICT, "riverside", None, True),
        ("dana", Role.DISTRICT, "lakeside", None, False),
        ("dana", Role.COORDINATOR, None, "lincoln", True),
        ("dana", Role.COORDINATOR, None, "roosevelt", False),
        ("chen", Role.COORDINATOR, None, "lincoln", False),
        ("analyst", Role.ANALYST, "riverside", None, False),
    ],
)
def test_roles_that_each_role_may_appoint(staff, name, role, district, school, may):
    place = {
        "district": getattr(staff, district) if district else None,
        "school": getattr(staff, school) if school else None,
    }
    assert Permissions(getattr(staff, name)).may_appoint(role, **place) is may


# What the database itself refuses


@pytest.mark.parametrize(
    ("role", "place"),
    [
        (Role.STATE, {"district": "riverside"}),
        (Role.DISTRICT, {}),
        (Role.DISTRICT, {"school": "lincoln"}),
        (Role.COORDINATOR, {}),
        (Role.COORDINATOR, {"district": "riverside"}),
        (Role.ANALYST, {"district": "riverside", "school": "lincoln"}),
        ("director", {}),
    ],
)
def test_a_role_must_fit_its_place(staff, role, place):
    user = User.objects.create_user("new@example.org")
    where = {name: getattr(staff, value) for name, value in place.items()}
    with pytest.raises(IntegrityError, match="a_role_has_the_place"):
        Membership.objects.create(user=user, role=role, **where)


def test_a_user_has_each_role_once_per_place(staff):
    membership = {"user": staff.chen, "role": Role.COORDINATOR, "school": staff.lincoln}
    with pytest.raises(IntegrityError), transaction.atomic():
        Membership.objects.create(**membership)
    with pytest.raises(IntegrityError), transaction.atomic():
        Membership.objects.create(user=staff.state, role=Role.STATE)
    staff.chen.memberships.update(ended_at=timezone.now())
    Membership.objects.create(**membership)
    assert member("other@example.org", Role.STATE).memberships.count() == 1
