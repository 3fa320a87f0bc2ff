"""Provide the known cast's staff, districts and schools."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from django.contrib.auth.hashers import make_password

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
    return create_staff()


def create_staff() -> Staff:
    """Create them with a statement for each table, because most tests begin so."""
    riverside, lakeside = District.objects.bulk_create(
        District(code=name.lower(), name=name) for name in ("Riverside", "Lakeside")
    )
    lincoln, washington, roosevelt = School.objects.bulk_create(
        School(district=district, code=name.lower(), name=name)
        for district, name in [
            (riverside, "Lincoln"),
            (riverside, "Washington"),
            (lakeside, "Roosevelt"),
        ]
    )
    roles = {
        "state": {"role": Role.STATE},
        "dana": {"role": Role.DISTRICT, "district": riverside},
        "chen": {"role": Role.COORDINATOR, "school": lincoln},
        "analyst": {"role": Role.ANALYST, "district": riverside},
        "sam": {"role": Role.COORDINATOR, "school": roosevelt},
    }
    password = make_password("calm-harbour-42")
    users = User.objects.bulk_create(
        User(email=f"{name}@example.org", password=password) for name in roles
    )
    Membership.objects.bulk_create(
        Membership(user=user, **role)
        for user, role in zip(users, roles.values(), strict=True)
    )
    return Staff(riverside, lakeside, lincoln, washington, roosevelt, *users)
