from __future__ import annotations

from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.core.validators import validate_email
from django.db import transaction

from accounts.models import District, Membership, School, User
from accounts.staff import appoint


class Command(BaseCommand):
    help = (
        "Give somebody a role: the first state administrator, who appoints the"
        " others. Whoever is not known yet becomes a user without a password."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("email")
        parser.add_argument("--role", required=True, choices=Membership.Role.values)
        parser.add_argument("--district", metavar="CODE", help="alone, or the school's")
        parser.add_argument("--school", metavar="CODE", help="with its --district")

    @transaction.atomic
    def handle(self, *args: Any, **options: Any) -> None:
        district, school = _place(options["district"], options["school"])
        try:
            validate_email(options["email"])
            membership = appoint(
                user=_user(options["email"]),
                role=options["role"],
                district=None if school else district,
                school=school,
                by="appoint",
            )
        except ValidationError as error:
            raise CommandError("\n".join(error.messages)) from error
        self.stdout.write(f"{membership.user}: {membership}")


def _user(email: str) -> User:
    known = User.objects.filter(email__iexact=email).first()
    return known or User.objects.create_user(email)


def _place(
    district_code: str | None, school_code: str | None
) -> tuple[District | None, School | None]:
    if district_code is None:
        if school_code is not None:
            raise CommandError(
                "--school needs its --district: codes are the district's."
            )
        return None, None
    district = District.objects.filter(code=district_code).first()
    if district is None:
        raise CommandError(f"There is no district {district_code}.")
    if school_code is None:
        return district, None
    school = district.schools.filter(code=school_code).first()
    if school is None:
        raise CommandError(f"There is no school {school_code} in {district}.")
    return district, school
