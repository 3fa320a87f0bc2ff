"""The list of schools: each user sees those of their places."""

from __future__ import annotations

import re

import pytest
from django.test import Client
from django.utils import timezone

from accounts.models import Membership, School
from accounts.tests.logging_in import log_in

pytestmark = pytest.mark.django_db
ADDRESS = "/console/schools/"


def page_of(user, query=""):
    return log_in(Client(), user).get(f"{ADDRESS}{query}").content.decode()


def schools_of(page):
    return re.findall(
        r'<th scope="row"><a href="/console/rates/schools/\d+/">([^<]+)', page
    )


def test_each_user_sees_the_schools_of_their_places(staff):
    assert schools_of(page_of(staff.chen)) == ["Lincoln"]
    assert schools_of(page_of(staff.sam)) == ["Roosevelt"]
    assert schools_of(page_of(staff.dana)) == ["Lincoln", "Washington"]
    assert schools_of(page_of(staff.state)) == ["Lincoln", "Roosevelt", "Washington"]


def test_coordinators_are_named_for_those_who_manage_staff(staff):
    page = page_of(staff.dana)
    assert staff.chen.name in page and staff.sam.name not in page
    # Washington has none.
    assert page.count('<span class="badge caution">none</span>') == 1
    assert schools_of(page_of(staff.dana, "?show=no-coordinator")) == ["Washington"]
    for user in (staff.chen, staff.analyst):
        assert "Coordinators" not in page_of(user)


def test_a_coordinator_whose_role_has_ended_is_not_named(staff):
    Membership.objects.filter(user=staff.chen).update(ended_at=timezone.now())
    assert staff.chen.name not in page_of(staff.dana)
    School.objects.filter(pk=staff.washington.pk).update(closed_at=timezone.now())
    page = page_of(staff.dana, "?show=no-coordinator")
    assert schools_of(page) == ["Lincoln"]


def test_a_school_is_found_by_name_code_or_district(staff):
    code = staff.roosevelt.code
    for word in ("roosev", code, str(staff.roosevelt.district)):
        assert "Roosevelt" in schools_of(page_of(staff.state, f"?q={word}"))
    assert "No matching schools" in page_of(staff.state, "?q=nowhere")


@pytest.mark.parametrize("count", [1, 3])
def test_the_list_costs_the_same_for_one_and_for_three(
    staff, count, django_assert_num_queries
):
    for number in range(1, count):
        school = School.objects.create(
            district=staff.riverside, code=f"{number}", name=f"{number}"
        )
        Membership.objects.create(user=staff.sam, role="coordinator", school=school)
    # Session, user, memberships; the count and the rows; coordinators.
    for user, statements in ((staff.dana, 6), (staff.analyst, 5)):
        client = log_in(Client(), user)
        with django_assert_num_queries(statements):
            client.get(ADDRESS)
