"""Check that a user may see everything that a file contains."""

from __future__ import annotations

import pytest

from accounts.models import Membership
from accounts.permissions import Capability, Permissions, Places

pytestmark = pytest.mark.django_db
RESPONSES, NAMES = Capability.SEE_RESPONSES, Capability.SEE_IDENTITIES


def places(*districts, schools=(), state=False) -> Places:
    return Places(
        state=state,
        districts=frozenset(district.pk for district in districts),
        schools=frozenset(school.pk for school in schools),
    )


def test_places_are_covered_only_if_they_lie_inside_completely(staff):
    dana = Permissions(staff.dana)
    assert dana.cover(places(staff.riverside), RESPONSES)
    assert dana.cover(places(schools=[staff.lincoln, staff.washington]), RESPONSES)
    assert not dana.cover(places(staff.riverside, staff.lakeside), RESPONSES)
    both = places(schools=[staff.lincoln, staff.roosevelt])
    assert not dana.cover(both, RESPONSES)
    assert not dana.cover(places(state=True), RESPONSES)
    everything = places(staff.lakeside, schools=[staff.lincoln], state=True)
    assert Permissions(staff.state).cover(everything, RESPONSES, NAMES)


def test_unknown_schools_and_empty_places_are_not_covered(staff):
    dana = Permissions(staff.dana)
    assert not dana.cover(Places(schools=frozenset((0,))), RESPONSES)
    assert not dana.cover(Places(), RESPONSES)


def test_an_analyst_is_covered_without_names(staff):
    analyst = Permissions(staff.analyst)
    assert analyst.cover(places(staff.riverside), RESPONSES)
    assert not analyst.cover(places(staff.riverside), RESPONSES, NAMES)


def test_capabilities_of_two_roles_are_not_combined(staff):
    Membership.objects.create(
        user=staff.analyst, role=Membership.Role.COORDINATOR, school=staff.lincoln
    )
    analyst = Permissions(staff.analyst)
    lincoln = places(schools=[staff.lincoln])
    assert analyst.cover(lincoln, RESPONSES)
    assert analyst.cover(lincoln, NAMES)
    assert not analyst.cover(lincoln, RESPONSES, NAMES)
    assert not analyst.places(RESPONSES, NAMES)
