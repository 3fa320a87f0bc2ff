from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from accounts import second_factor
from accounts.models import User


class Command(BaseCommand):
    help = (
        "Remove the second factor of a user who has lost it and whom no administrator"
        " can help, such as an engineer or the only state administrator. The user sets"
        " up a new one at the next login."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("email")

    def handle(self, *args: Any, **options: Any) -> None:
        email = User.objects.normalize_email(options["email"])
        user = User.objects.filter(email=email).first()
        if user is None:
            raise CommandError(f"There is no user {email}.")
        second_factor.reset(user=user, by="reset_second_factor")
        self.stdout.write(f"{user} has no second factor any more.")
