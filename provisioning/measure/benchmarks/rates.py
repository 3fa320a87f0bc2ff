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
from collections.abc import Sequence
from itertools import islice

from provisioning.commands import command_parser, positive_integer, print_table, step
from provisioning.measure.benchmarks.answered_survey import REPLICA_PORT, measured_ids
from provisioning.measure.benchmarks.saves import SIZE
from provisioning.measure.benchmarks.saves_beside import save_beside
from provisioning.measure.benchmarks.stack import (
    Application,
    private_application,
    sql_file,
)
from provisioning.measure.benchmarks.timed_requests import (
    fetch_requests,
    figures_of,
    log_in,
    send_requests,
    served,
)
from provisioning.measure.load.target import Target

# A busy minute: 50,000 start in an hour, and as many finish.
A_MINUTE = 833
TIMES = 30


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
            save_beside(
                lambda: _roll_up(application)["seconds"],
                name="roll-up",
                target=target,
                students=students,
                rounds=options.rounds,
                seconds=options.seconds,
                prepare=lambda number: _add_news(application, f"saves {number}"),
            )
    return 0


def parse_options() -> argparse.Namespace:
    parser = command_parser(__doc__)
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
    district, school, administration = measured_ids(application)
    pages = ["", "schools/", "schools/?sort=quiet", "schools/?q=42&sort=-rate"]
    pages += [f"districts/{district}/", f"schools/{school}/", "schools.csv"]
    # The students who save have an administration of their own.
    chosen = f"administration={administration}"
    paths = [f"{page}{'&' if '?' in page else '?'}{chosen}" for page in pages]
    time_pages(application, target, [f"/console/rates/{path}" for path in paths])


def time_pages(
    application: Application,
    target: Target,
    paths: Sequence[str],
    *,
    times: int = TIMES,
) -> dict[str, float]:
    """Print the times of pages of the console; return their medians in ms."""
    cookies = application.call("staff_login.cookies_of_state")
    cookie = "; ".join(f"{name}={value}" for name, value in cookies.items())
    rows, medians = [], {}
    for path in paths:
        requests = fetch_requests(target, path, cookie=cookie)
        replies = send_requests(target, [islice(requests, times)])
        taken = [each.milliseconds for each in replies]
        median, p95, _ = figures_of(taken, 1)
        medians[path] = statistics.median(taken)
        rows.append((path.removeprefix("/console"), median, p95, replies[-1].bytes))
    print_table(("page, ms", "median", "p95", "bytes"), rows)
    return medians
