"""Time the roll-up of response rates, the pages of the board, and saves meanwhile.

Runs on private servers with a replica: made-up people in 4,000 schools, a good half of
whom have started, class by class. Times the roll-up from nothing, with nothing new, and
with the news of a busy minute; the pages of the rates over HTTP; and page saves in a
closed loop, with and without a roll-up, in turns.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import NamedTuple

from provisioning.benchmarks.saves import SIZE
from provisioning.benchmarks.stack import Application, private_application, sql_file
from provisioning.benchmarks.timed_requests import (
    TimedReply,
    fetch_requests,
    figures_of,
    log_in,
    send_requests,
    served,
)
from provisioning.commands import positive_integer, print_table, step
from provisioning.load.crowd import Person
from provisioning.load.target import Target

REPLICA_PORT = "5433"
# A busy minute: 50,000 start in an hour, and as many finish.
A_MINUTE = 833
TIMES = 30
# Prints the cookie of a state administrator's session.
LOG_IN = """
import django; django.setup()
from django.conf import settings
from django.test import Client
from accounts.models import Membership, User
from accounts.staff_cookies import PREFIX
from accounts.tests.logging_in import log_in
user, _ = User.objects.get_or_create(email="state@groundswell.example")
Membership.objects.get_or_create(user=user, role="state")
name = PREFIX + settings.SESSION_COOKIE_NAME
print(f"{name}={log_in(Client(), user).cookies[name].value}")
"""


def main() -> int:
    options = parse_options()
    people, schools = options.people, options.schools
    with private_application(GROUNDSWELL_TEST_REPLICA=REPLICA_PORT) as application:
        application.collect_static()
        with step(f"Inviting {people:,} people"):
            details, codes = application.open_rehearsal(
                f"--respondents={options.students}", *SIZE
            )
            each = people // schools
            application.sql(sql_file("invite_people", schools=schools, each=each))
        print(f"\n{people:,} people in {schools:,} schools")
        _time_roll_ups(application)
        with served(application, "--workers=2") as target:
            _time_pages(application, target)
            students = log_in(details, codes, target)
            _time_saves(application, target, students, options.rounds, options.seconds)
    return 0


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="provisioning/measure_rates", description=__doc__
    )
    add, number = parser.add_argument, positive_integer
    add("--people", type=number, default=2_000_000)
    add("--schools", type=number, default=4000)
    add("--rounds", type=number, default=3, help="of saves, each way")
    add("--seconds", type=float, default=60, help="each round lasts")
    add("--students", type=number, default=8, help="saving at once")
    return parser.parse_args()


def _add_news(application: Application, salt: object) -> None:
    """Start and finish as many people as in a busy minute."""
    application.sql(sql_file("finish_people", count=A_MINUTE, salt=salt))


def _roll_up(application: Application) -> dict[str, float]:
    figures: dict[str, float] = json.loads(
        application.manage("roll_up_rates", "--json")
    )
    return figures


def _time_roll_ups(application: Application) -> None:
    rows = []
    names = ["from nothing"] + ["nothing new"] * 3 + ["a busy minute"] * 3
    for number, name in enumerate(names):
        if name == "a busy minute":
            _add_news(application, number)
        rolled = _roll_up(application)
        figures = f"{rolled['counting']:.2f}", f"{rolled['seconds']:.2f}"
        rows.append((name, *figures, f"{rolled['rows_changed']:,}"))
    print_table(("roll-up, s", "counting", "all", "rows changed"), rows)


def _time_pages(application: Application, target: Target) -> None:
    cookie = application.run_python("-c", LOG_IN, failing="Logging in failed").strip()
    [[district, school, administration]] = application.sql(
        "SELECT s.district_id, s.id, a.id FROM accounts_school s"
        " CROSS JOIN survey_administration a"
        " WHERE s.code = 's1' AND a.name = 'measured'"
    )
    pages = ["", "schools/", "schools/?sort=quiet", "schools/?q=42&sort=-rate"]
    pages += [f"districts/{district}/", f"schools/{school}/", "schools.csv"]
    rows = []
    for page in pages:
        # The students who save have an administration of their own.
        path = f"{page}{'&' if '?' in page else '?'}administration={administration}"
        requests = fetch_requests(target, f"/console/rates/{path}", cookie=cookie)
        replies = send_requests(target, [islice(requests, TIMES)])
        median, p95, _ = figures_of([each.milliseconds for each in replies], 1)
        rows.append((f"/{page}", median, p95, f"{replies[-1].bytes:,}"))
    print_table(("board, ms", "median", "p95", "bytes"), rows)


# Saves with and without a roll-up


class SavingRound(NamedTuple):
    replies: list[TimedReply]
    # When the roll-up began and ended, on the same clock.
    began: float = 0.0
    ended: float = 0.0


def _time_saves(
    application: Application,
    target: Target,
    students: Sequence[Person],
    rounds: int,
    seconds: float,
) -> None:
    # A warm-up, not counted.
    send_requests(target, students, seconds=min(seconds, 5))
    alone: list[SavingRound] = []
    together: list[SavingRound] = []
    for number in range(rounds):
        # In turns, and each of them first in half of the rounds: machines vary.
        for with_roll_up in (False, True) if number % 2 else (True, False):
            if not with_roll_up:
                replies = send_requests(target, students, seconds=seconds)
                alone.append(SavingRound(replies))
                continue
            _add_news(application, f"saves {number}")
            with ThreadPoolExecutor(1) as pool:
                roll_up = pool.submit(_timed_roll_up, application)
                replies = send_requests(target, students, seconds=seconds)
                together.append(SavingRound(replies, *roll_up.result()))
    during = [
        [reply for reply in each.replies if each.began <= reply.sent <= each.ended]
        for each in together
    ]
    rows, speeds = [], {}
    for name, found in (
        ("alone", [each.replies for each in alone]),
        ("a roll-up", [each.replies for each in together]),
        ("while it runs", during),
    ):
        times = [reply.milliseconds for replies in found for reply in replies]
        speeds[name] = statistics.median(map(len, found)) / seconds
        if times:
            median, p95, _ = figures_of(times)
            speed = "" if found is during else f"{speeds[name]:,.0f}"
            rows.append((name, median, p95, speed))
    print_table(("saves, ms", "median", "p95", "saves/s"), rows)
    took = statistics.median(each.ended - each.began for each in together)
    fewer = 100 * (1 - speeds["a roll-up"] / speeds["alone"])
    print(
        f"The roll-up took {took:.2f} s beside the saves; they were"
        f" {fewer:.1f} % fewer over all, one roll-up in"
        f" {seconds:g} s."
    )


def _timed_roll_up(application: Application) -> tuple[float, float]:
    seconds = _roll_up(application)["seconds"]
    # Without the command's start: in production a worker is running.
    ended = time.monotonic()
    return ended - seconds, ended
