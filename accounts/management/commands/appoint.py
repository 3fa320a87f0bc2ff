from __future__ import annotations

from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.core.validators import validate_email
from django.db import transaction

from accounts.invitations import first_administrator_link, invite, is_pending
from accounts.models import District, Membership, School


class Command(BaseCommand):
    help = (
        "Give a user a role, for example the first state administrator. New users"
        " get an e-mail with a link to choose a password."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("email")
        parser.add_argument("--role", required=True, choices=Membership.Role.values)
        parser.add_argument(
            "--district",
            metavar="CODE",
            help="district of the role or school",
        )
        parser.add_argument(
            "--school",
            metavar="CODE",
            help="needs --district",
        )

        parser.add_argument(
            "--first",
            action="store_true",
            help="print a link that ends in 24 hours and send no e-mail; nothing once"
            " a state administrator has a password",
        )

    @transaction.atomic
    def handle(self, *args: Any, **options: Any) -> None:
        if options["first"]:
            if options["role"] != Membership.Role.STATE:
                raise CommandError("--first is for state administrators.")
            email = options["email"]
            self.stdout.write(first_administrator_link(email=email, by="appoint"))
            return
        district, school = find_place(options["district"], options["school"])
        try:
            validate_email(options["email"])
            membership = invite(
                email=options["email"],
                role=options["role"],
                district=None if school else district,
                school=school,
                by="appoint",
            )
        except ValidationError as error:
            raise CommandError("\n".join(error.messages)) from error
        link = " with a link to choose a password"
        self.stdout.write(
            f"{membership.user}: {membership}. They are told by mail"
            f"{link if is_pending(membership.user) else ''}."
        )


def find_place(
    district_code: str | None, school_code: str | None
) -> tuple[District | None, School | None]:
    """Return the district and school with these codes. Raises CommandError."""
    if district_code is None:
        if school_code is not None:
            raise CommandError(
                "--school requires --district: school codes are unique per district."
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
