"""Begin or end a survey day, or tell whether one is on."""

from __future__ import annotations

import json
from argparse import ArgumentParser, ArgumentTypeError
from datetime import time
from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from accounts.time_zones import zone_of
from survey.work import survey_day

# The command's name in the audit log.
BY = "survey_day"
# The exit status of `status` while one is on; 1 is a failure.
IS_ON = 3


class Command(BaseCommand):
    help = (
        "Let work wait that is not urgent: exports, scores, results, school reports,"
        " roster syncs, reminders and thanks. Saving, logins, response rates,"
        " invitations and password e-mails go on, and so does what runs already."
        " It ends by itself at the given time, within 24 hours. status prints one line"
        " of JSON, and ends with 0 if none is on, 3 if one is, 1 if that is unknown."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("act", choices=("on", "off", "status"))
        parser.add_argument(
            "--until",
            type=clock_time,
            metavar="HH:MM",
            help="on: the next time that the state's clocks show this, as 16:00",
        )
        parser.add_argument("--reason", help="on: a short reason for the audit log")

    def handle(self, *args: Any, act: str, **options: Any) -> None:
        if act == "on":
            self.begin(options["until"], options["reason"])
        elif act == "off" and not survey_day.end(by=BY):
            raise CommandError("No survey day is on.")
        day = survey_day.current()
        zone = zone_of(None)
        ends_at = timezone.localtime(day.ends_at, zone).isoformat() if day else None
        state = {
            "on": day is not None,
            "until": ends_at,
            "zone": str(zone),
            "reason": day.reason if day else None,
            "by": (day.by.email if day.by else BY) if day else None,
        }
        self.stdout.write(json.dumps(state))
        if act == "status" and day:
            raise SystemExit(IS_ON)

    def begin(self, until: time | None, reason: str | None) -> None:
        if until is None or not (reason or "").strip():
            raise CommandError("on needs --until HH:MM and --reason.")
        try:
            survey_day.begin(
                ends_at=survey_day.next_time(until), reason=str(reason)[:200], by=BY
            )
        except ValidationError as error:
            raise CommandError(" ".join(error.messages)) from None


def clock_time(text: str) -> time:
    try:
        clock = time.fromisoformat(text)
    except ValueError:
        clock = None
    if clock is None or clock.tzinfo or clock.second or clock.microsecond:
        raise ArgumentTypeError(f"{text} is no time such as 16:00")
    return clock
