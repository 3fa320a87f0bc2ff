"""Print what speaks against an upgrade of the server now."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand
from django.utils import timezone

from survey.fieldwork.busy_times import reasons_to_wait


class Command(BaseCommand):
    help = (
        "Prints as JSON why this is no time for an upgrade: administrations in which"
        " people answer now, and those that open soon. An empty list means that"
        " nothing speaks against it. provisioning/upgrade asks it."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--hours", type=int, default=12, help="that an opening may be away (12)"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        reasons = reasons_to_wait(timezone.now(), hours=options["hours"])
        self.stdout.write(json.dumps(reasons))
