"""Time the roll-up of response rates, the pages of the board, and saves meanwhile.

Runs on private servers with a replica: made-up people in 4,000 schools, a good half of
whom have started, class by class. Times the roll-up from nothing, with nothing new, and
with the news of a busy minute; the pages of the rates over HTTP; and page saves in a
closed loop, with and without a roll-up, in turns.
"""

from __future__ import annotations

import json

from provisioning.commands import command_parser, print_table, step
from provisioning.measure.benchmarks.answered_survey import REPLICA_PORT, measured_ids
from provisioning.measure.benchmarks.stack import (
    Application,
    private_application,
    sql_file,
)
from provisioning.measure.benchmarks.timed_requests import (
    SIZE,
    log_in,
    save_beside,
    served,
    time_pages,
)

# A busy minute: 50,000 start in an hour, and as many finish.
A_MINUTE = 833
PAGES = ("", "schools/", "schools/?sort=quiet", "schools/?q=42&sort=-rate")


def main() -> int:
    options = command_parser(
        __doc__,
        people=(2_000_000, "who are invited"),
        schools=(4000, "with equally many people"),
        rounds=(3, "of saves, each way"),
        seconds=(60.0, "that each round lasts"),
        students=(8, "who save at once"),
    ).parse_args()
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
        district, school, administration = measured_ids(application)
        pages = [*PAGES, f"districts/{district}/", f"schools/{school}/", "schools.csv"]
        # The students who save have an administration of their own.
        chosen = f"administration={administration}"
        with served(application, "--workers=2") as target:
            time_pages(
                application,
                target,
                [
                    f"/console/rates/{p}{'&' if '?' in p else '?'}{chosen}"
                    for p in pages
                ],
            )
            save_beside(
                lambda: _roll_up(application)["seconds"],
                name="roll-up",
                target=target,
                students=log_in(details, codes, target),
                rounds=options.rounds,
                seconds=options.seconds,
                prepare=lambda number: _add_news(application, f"saves {number}"),
            )
    return 0


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
