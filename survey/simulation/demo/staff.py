"""Create the staff of the demo: an engineer, and one person for each role."""

from __future__ import annotations

import os
import secrets
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings
from django.contrib.auth.hashers import make_password
from django.db import transaction

from accounts.models import District, Membership, School, User
from accounts.staff import appoint

Role = Membership.Role
ENGINEER = "engineer@groundswell.example"
# By name, as the rosters have them.
DISTRICT, SCHOOL = "Riverside", "Lincoln Middle School"
ROLES = {
    "state@groundswell.example": Role.STATE,
    "district@groundswell.example": Role.DISTRICT,
    "coordinator@groundswell.example": Role.COORDINATOR,
    "analyst@groundswell.example": Role.ANALYST,
}
NAMES = {
    "state@groundswell.example": ("Rosa", "Delgado"),
    "district@groundswell.example": ("James", "Porter"),
    "coordinator@groundswell.example": ("Grace", "Chen"),
    "analyst@groundswell.example": ("Amir", "Haddad"),
}


@dataclass(frozen=True, slots=True)
class StaffLogin:
    email: str
    # In words, with the place: "district administrator, Riverside".
    role: str


def staff_logins() -> tuple[list[StaffLogin], str | None]:
    """Create missing logins; return all, and the password that they share.

    The embedded installation keeps the password next to its database, readable
    by its owner only. Elsewhere only the run that created it returns it.
    """
    data = getattr(settings, "DATA_DIR", None)
    path = Path(data) / "staff.txt" if data else None
    password = path.read_text().strip() if path and path.exists() else None
    if password is None and (path or not User.objects.filter(email=ENGINEER).exists()):
        password = secrets.token_urlsafe(12)
        if path:
            path.unlink(missing_ok=True)
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "w") as file:
                file.write(f"{password}\n")
        users = User.objects.filter(email__in=[ENGINEER, *ROLES])
        users.update(password=make_password(password))
    if password:
        create_missing_staff(password)
    rank = list(ROLES)
    current = Membership.objects.current().filter(user__email__in=ROLES)
    logins = [
        StaffLogin(membership.user.email, str(membership))
        for membership in current.select_related("user", "district", "school")
    ]
    return sorted(logins, key=lambda login: rank.index(login.email)), password


@transaction.atomic
def create_missing_staff(password: str) -> None:
    # Hashing takes a third of a second, so they share the hash too.
    hashed = make_password(password)
    if not User.objects.filter(email=ENGINEER).exists():
        _with_hash(User.objects.create_superuser(ENGINEER, None), hashed)
    for email, role in ROLES.items():
        district: District | None = None
        school: School | None = None
        if role == Role.COORDINATOR:
            schools = School.objects.filter(district__name=DISTRICT)
            school = schools.filter(name=SCHOOL).first()
        elif role != Role.STATE:
            district = District.objects.filter(name=DISTRICT).first()
        # Districts and schools come with the rosters.
        is_there = role == Role.STATE or district or school
        if is_there and not User.objects.filter(email=email).exists():
            first, last = NAMES[email]
            user = User.objects.create_user(
                email, None, first_name=first, last_name=last
            )
            _with_hash(user, hashed)
            appoint(
                user=user, role=role, district=district, school=school, by="load_demo"
            )


def _with_hash(user: User, hashed: str) -> User:
    user.password = hashed
    user.save(update_fields=["password"])
    return user
