"""The demonstration's staff: an engineer, and one of each role."""

from __future__ import annotations

import os
import secrets
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings
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


@dataclass(frozen=True, slots=True)
class Login:
    email: str
    # In words, with the place: "district administrator, Riverside".
    role: str


def staff_logins() -> tuple[list[Login], str | None]:
    """All of them, made where they are missing, and the password they share.

    The embedded installation keeps it beside its database, readable by its
    owner only. Elsewhere it is known once, from the run that made it: None.
    """
    data = getattr(settings, "DATA_DIR", None)
    kept = Path(data) / "staff.txt" if data else None
    password = kept.read_text().strip() if kept and kept.exists() else None
    if password is None and (kept or not User.objects.filter(email=ENGINEER).exists()):
        password = secrets.token_urlsafe(12)
        if kept:
            _write_privately(kept, password)
        for user in User.objects.filter(email__in=[ENGINEER, *ROLES]):
            user.set_password(password)
            user.save(update_fields=["password"])
    if password:
        _make_missing(password)
    return _known(), password


@transaction.atomic
def _make_missing(password: str) -> None:
    if not User.objects.filter(email=ENGINEER).exists():
        User.objects.create_superuser(ENGINEER, password)
    for email, role in ROLES.items():
        district, school = _place_of(role)
        # Before the rosters are there, nobody works in a place.
        is_there = role == Role.STATE or district or school
        if is_there and not User.objects.filter(email=email).exists():
            user = User.objects.create_user(email, password)
            appoint(
                user=user, role=role, district=district, school=school, by="load_demo"
            )


def _place_of(role: str) -> tuple[District | None, School | None]:
    if role == Role.COORDINATOR:
        schools = School.objects.filter(district__name=DISTRICT)
        return None, schools.filter(name=SCHOOL).first()
    if role == Role.STATE:
        return None, None
    return District.objects.filter(name=DISTRICT).first(), None


def _known() -> list[Login]:
    current = Membership.objects.current().filter(user__email__in=ROLES)
    rank = list(ROLES)
    logins = [
        Login(one.user.email, str(one))
        for one in current.select_related("user", "district", "school")
    ]
    return sorted(logins, key=lambda login: rank.index(login.email))


def _write_privately(path: Path, text: str) -> None:
    path.unlink(missing_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(f"{text}\n")
