"""Provide the known cast's staff, districts and schools."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from accounts.models import District, Membership, School, User
from survey.tests.database_flush import quick_flush  # noqa: F401

Role = Membership.Role


@dataclass
class Staff:
    """Two districts, three schools, and a user of each role in the first district."""

    riverside: District
    lakeside: District
    lincoln: School
    washington: School
    roosevelt: School
    state: User
    dana: User
    chen: User
    analyst: User
    sam: User


def member(email: str, role: str, **place: object) -> User:
    user = User.objects.create_user(email, "calm-harbour-42")
    Membership.objects.create(user=user, role=role, **place)
    return user


@pytest.fixture
def staff() -> Staff:
    riverside = District.objects.create(code="riverside", name="Riverside")
    lakeside = District.objects.create(code="lakeside", name="Lakeside")

    def school(district: District, name: str) -> School:
        return School.objects.create(district=district, code=name.lower(), name=name)

    lincoln, washington = school(riverside, "Lincoln"), school(riverside, "Washington")
    roosevelt = school(lakeside, "Roosevelt")
    return Staff(
        riverside=riverside,
        lakeside=lakeside,
        lincoln=lincoln,
        washington=washington,
        roosevelt=roosevelt,
        state=member("state@example.org", Role.STATE),
        dana=member("dana@example.org", Role.DISTRICT, district=riverside),
        chen=member("chen@example.org", Role.COORDINATOR, school=lincoln),
        analyst=member("analyst@example.org", Role.ANALYST, district=riverside),
        sam=member("sam@example.org", Role.COORDINATOR, school=roosevelt),
    )
