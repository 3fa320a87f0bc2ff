"""`provisioning/measure_rates`: time the roll-up, the rate pages, and saves meanwhile.

Runs on private servers with a replica: made-up people in 4,000 schools, a good
half of whom have started, class by class. Times the roll-up from nothing, with
nothing new, and with the news of a busy minute; the pages of the rates over
HTTP; and page saves in a closed loop, with and without a roll-up, in turns.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from provisioning.benchmarks.saves import Student, prepare_demo, served
from provisioning.commands import ROOT, Refusal, output_of, run_command, step
from provisioning.environment import (
    PRODUCTION,
    PYTHON,
    STACK,
    TESTS,
    manage,
    prepare_environment,
)
from provisioning.installation.servers import private_servers
from provisioning.percentiles import percentile
from provisioning.postgresql import DATABASE, run_sql

REPLICA_PORT = "5433"
# A busy minute: 50,000 start in an hour, and as many finish.
A_MINUTE = 833
TIMES = 30

PLACES = """
INSERT INTO accounts_district (code, name)
SELECT 'm' || n, 'District ' || lpad(n::text, 3, '0')
FROM generate_series(1, greatest({schools} / 20, 1)) n;
INSERT INTO accounts_school (district_id, code, name)
SELECT d.id, 's' || n, 'School ' || lpad(n::text, 4, '0')
FROM generate_series(1, {schools}) n
JOIN accounts_district d ON d.code = 'm' || (1 + n % greatest({schools} / 20, 1));
INSERT INTO survey_administration
    (name, role, opens_at, closes_at, published_id, coordinators_see_finished)
SELECT 'measured', 'student', now() - interval '14 days', now() + interval '7 days',
       published_id, false
FROM survey_administration WHERE role = 'student' LIMIT 1;
"""
# Each class has an hour of its own, in which four of five come; one percent
# of all is withdrawn. Rows lie school by school, as rosters bring them.
PEOPLE = """
INSERT INTO survey_respondent
    (administration_id, school_id, grade, language, classroom, attributes, issue,
     code_digest, code_key_version, started_at, completed_at, withdrawn_at)
SELECT a.id, s.id, lpad(p.grade::text, 2, '0'), 'en', p.grade || 'A',
       '{{"gender": "x", "lunch": "free"}}', 1,
       sha256(('measured' || n)::bytea), 1,
       CASE WHEN p.comes THEN p.start END,
       CASE WHEN p.comes AND p.ends THEN p.start + p.takes END,
       CASE WHEN p.leaves THEN now() END
FROM (SELECT * FROM survey_administration WHERE name = 'measured') a,
LATERAL (SELECT id, row_number() OVER (ORDER BY id) AS nth
         FROM accounts_school WHERE code LIKE 's%') s,
LATERAL generate_series(1 + (s.nth - 1) * {each}, s.nth * {each}) n,
LATERAL (SELECT 4 + n % 9 AS grade, random() < 0.55 AS comes, random() < 0.92 AS ends,
         random() < 0.01 AS leaves, random() < 0.8 AS with_class,
         (8 + random() * 32) * interval '1 minute' AS takes) drawn,
LATERAL (SELECT drawn.*, date_trunc('day', now()) - interval '1 day'
         * (1 + CASE WHEN with_class THEN (s.nth * 7 + drawn.grade) % 12
                     ELSE floor(random() * 12) END)
         + interval '1 hour'
         * (14 + CASE WHEN with_class THEN (s.nth + drawn.grade * 3) % 7
                      ELSE floor(random() * 7) END)
         + random() * interval '20 minutes' AS start) p;
"""
NEWS = """
WITH chosen AS (
    SELECT id FROM survey_respondent
    WHERE administration_id = (SELECT id FROM survey_administration
                               WHERE name = 'measured')
      AND started_at IS NULL AND withdrawn_at IS NULL
    ORDER BY md5(id::text || '{salt}') LIMIT {count}
) UPDATE survey_respondent SET started_at = now(), completed_at = now()
WHERE id IN (SELECT id FROM chosen);
"""
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
    prepare_environment(PRODUCTION, TESTS, STACK)
    with tempfile.TemporaryDirectory(dir=ROOT) as folder, private_servers() as servers:
        bench = RatesBench(Path(folder), servers)
        demo = bench.prepare(options.people, options.schools)
        print(f"\n{options.people:,} people in {options.schools:,} schools")
        _time_roll_ups(bench)
        # A student waits between two rounds and comes back.
        with served(bench.environment, "--workers=2", "--keep-alive=300") as port:
            _time_pages(bench, port)
            codes = [card["code"] for card in demo["cards"]][: options.students]
            students = [Student(port, code) for code in codes]
            _time_saves(bench, students, options.rounds, options.seconds)
    return 0


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="provisioning/measure_rates",
        description="Times the roll-up of response rates, the pages of the board, and"
        " page saves with and without a roll-up each minute.",
    )
    parser.add_argument("--people", type=int, default=2_000_000)
    parser.add_argument("--schools", type=int, default=4000)
    parser.add_argument("--rounds", type=int, default=3, help="of saves, each way")
    parser.add_argument("--seconds", type=float, default=60, help="each round lasts")
    parser.add_argument("--students", type=int, default=8, help="saving at once")
    return parser.parse_args()


@dataclass
class RatesBench:
    folder: Path
    servers: Path
    environment: dict[str, str] = field(init=False)

    def __post_init__(self) -> None:
        self.environment = {
            **os.environ,
            "GROUNDSWELL_DATA": str(self.folder),
            "GROUNDSWELL_STATIC_ROOT": str(self.folder / "static"),
            "DJANGO_SETTINGS_MODULE": "settings.browser_test_server",
            "GROUNDSWELL_TEST_SERVERS": str(self.servers),
            "GROUNDSWELL_TEST_DATABASE": DATABASE,
            "GROUNDSWELL_TEST_REPLICA": REPLICA_PORT,
        }

    def prepare(self, people: int, schools: int) -> dict[str, Any]:
        with step("Preparing the servers"):
            demo = prepare_demo(self.environment)
        with step(f"Inviting {people:,} people"):
            run_sql(PLACES.format(schools=schools), run=self.servers)
            run_sql(PEOPLE.format(each=people // schools), run=self.servers)
            run_sql("VACUUM (ANALYZE) survey_respondent;CHECKPOINT", run=self.servers)
        return demo

    def add_news(self, salt: object) -> None:
        """Start and finish as many people as in a busy minute."""
        run_sql(NEWS.format(count=A_MINUTE, salt=salt), run=self.servers)

    def roll_up(self) -> dict[str, float]:
        figures: dict[str, float] = json.loads(
            manage("roll_up_rates", "--json", environment=self.environment)
        )
        return figures


def _time_roll_ups(bench: RatesBench) -> None:
    print(f"{'roll-up, s':<34}{'counting':>9}{'all':>9}{'rows changed':>15}")
    names = ["from nothing"] + ["nothing new"] * 3 + ["a busy minute"] * 3
    for number, name in enumerate(names):
        if name == "a busy minute":
            bench.add_news(number)
        rolled = bench.roll_up()
        figures = f"{rolled['counting']:9.2f}{rolled['seconds']:9.2f}"
        print(f"  {name:<32}{figures}{rolled['rows_changed']:15,}", flush=True)


def _time_pages(bench: RatesBench, port: int) -> None:
    cookie = output_of(
        [PYTHON, "-c", LOG_IN], failing="Logging in failed", env=bench.environment
    ).strip()
    [[district, school, administration]] = run_sql(
        "SELECT s.district_id, s.id, a.id FROM accounts_school s"
        " CROSS JOIN survey_administration a"
        " WHERE s.code = 's1' AND a.name = 'measured'",
        run=bench.servers,
    )
    pages = ["", "schools/", "schools/?sort=quiet", "schools/?q=42&sort=-rate"]
    pages += [f"districts/{district}/", f"schools/{school}/", "schools.csv"]
    print(f"{'board, ms':<34}{'median':>9}{'p95':>9}{'bytes':>15}")
    for page in pages:
        # The demonstration's own administrations are smaller.
        address = f"{page}{'&' if '?' in page else '?'}administration={administration}"
        times, size = [], 0
        for _ in range(TIMES):
            began = time.perf_counter()
            size = _fetch_page(port, address, cookie)
            times.append((time.perf_counter() - began) * 1000)
        figures = f"{statistics.median(times):9.1f}{percentile(times, 95):9.1f}"
        print(f"  /{page:<31}{figures}{size:15,}", flush=True)


def _fetch_page(port: int, page: str, cookie: str) -> int:
    """Return the size of a page of the console's rates."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    connection.request("GET", f"/console/rates/{page}", headers={"Cookie": cookie})
    reply = connection.getresponse()
    content = reply.read()
    connection.close()
    if reply.status != 200:
        raise Refusal(f"{page}: {reply.status} {content[:200]!r}")
    return len(content)


# Saves with and without a roll-up


@dataclass(frozen=True)
class SavingRound:
    saves_per_second: float
    # Milliseconds of each save.
    times: list[float]
    times_during_roll_up: list[float]
    # Seconds of the roll-up.
    roll_up: float


def _time_saves(
    bench: RatesBench, students: Sequence[Student], rounds: int, seconds: float
) -> None:
    # A warm-up, not counted.
    _save_for(students, min(seconds, 5))
    alone: list[SavingRound] = []
    together: list[SavingRound] = []
    for number in range(rounds):
        # In turns, and each of them first in half of the rounds: machines vary.
        for with_roll_up in (False, True) if number % 2 else (True, False):
            if with_roll_up:
                bench.add_news(f"saves {number}")
                together.append(_save_for(students, seconds, bench))
            else:
                alone.append(_save_for(students, seconds))
    print(f"{'saves, ms':<34}{'median':>9}{'p95':>9}{'saves/s':>15}")
    rates = []
    for name, found in (("alone", alone), ("a roll-up", together)):
        times = [time for each in found for time in each.times]
        rates.append(statistics.median(each.saves_per_second for each in found))
        figures = f"{statistics.median(times):9.2f}{percentile(times, 95):9.2f}"
        print(f"  {name:<32}{figures}{rates[-1]:15,.0f}", flush=True)
    during = [time for each in together for time in each.times_during_roll_up]
    if len(during) > 1:
        figures = f"{statistics.median(during):9.2f}{percentile(during, 95):9.2f}"
        print(f"  {'while it runs':<32}{figures}")
    took = statistics.median(each.roll_up for each in together)
    print(
        f"The roll-up took {took:.2f} s beside the saves; they were"
        f" {100 * (1 - rates[1] / rates[0]):.1f} % fewer over all, one roll-up in"
        f" {seconds:g} s."
    )


def _save_for(
    students: Sequence[Student], seconds: float, bench: RatesBench | None = None
) -> SavingRound:
    """Save from all students for so many seconds; with `bench`, roll up meanwhile."""
    saves: list[tuple[float, float]] = []
    over = time.monotonic() + seconds

    def save(student: Student) -> None:
        while (began := time.monotonic()) < over:
            student.save()
            saves.append((began, time.monotonic() - began))

    threads = [threading.Thread(target=save, args=(each,)) for each in students]
    began = time.monotonic()
    for thread in threads:
        thread.start()
    roll_up, first, last = 0.0, 0.0, 0.0
    if bench is not None:
        roll_up = bench.roll_up()["seconds"]
        # Without the command's start: in production a worker is running.
        last = time.monotonic()
        first = last - roll_up
    for thread in threads:
        thread.join()
    return SavingRound(
        saves_per_second=len(saves) / (time.monotonic() - began),
        times=[took * 1000 for _, took in saves],
        times_during_roll_up=[took * 1000 for at, took in saves if first <= at <= last],
        roll_up=roll_up,
    )


if __name__ == "__main__":
    sys.exit(run_command("provisioning/measure_rates", main))
