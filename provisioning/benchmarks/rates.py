"""`provisioning/measure_rates`: the roll-up, the board, and page saves meanwhile.

On servers of its own, with a replica: made-up people in 4,000 schools, a good
half of whom have started, class by class as schools do it. Then the roll-up
from nothing, with nothing new, and with a busy minute's news; the board's
pages over HTTP; and page saves in a closed loop, with and without a roll-up
each minute, in turns.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from provisioning.benchmarks.saves import Student
from provisioning.commands import (
    ROOT,
    Refusal,
    output_of,
    reason,
    run_command,
    step,
    undelayed,
)
from provisioning.environment import (
    PRODUCTION,
    PYTHON,
    STACK,
    TESTS,
    prepare_environment,
)
from provisioning.installation.servers import private_servers
from provisioning.percentiles import percentile
from provisioning.processes import end_with_parent

DATABASE = "groundswell"
REPLICA_PORT = "5433"
# A busy minute: 50,000 start in an hour, and as many finish.
A_MINUTE = 833
LOOKS = 30

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
    arguments = _arguments()
    prepare_environment(PRODUCTION, TESTS, STACK)
    with tempfile.TemporaryDirectory(dir=ROOT) as folder, private_servers() as servers:
        bench = Bench(Path(folder), servers)
        demo = bench.prepare(arguments.people, arguments.schools)
        print(f"\n{arguments.people:,} people in {arguments.schools:,} schools")
        _time_roll_ups(bench)
        with bench.served() as port:
            _time_board(bench, port)
            codes = [card["code"] for card in demo["cards"]]
            codes = codes[: arguments.students]
            _time_saves(bench, port, codes, arguments.rounds, arguments.seconds)
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="provisioning/measure_rates",
        description="Times the roll-up of response rates, the pages of the board, and"
        " page saves with and without a roll-up each minute.",
    )
    parser.add_argument("--people", type=int, default=2_000_000)
    parser.add_argument("--schools", type=int, default=4000)
    parser.add_argument("--rounds", type=int, default=3, help="of saves, each way")
    parser.add_argument("--seconds", type=float, default=60, help="each round lasts")
    parser.add_argument("--students", type=int, default=8, help="who save at once")
    return parser.parse_args()


@dataclass
class Bench:
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
            self.manage("migrate", "--verbosity=0")
            self.manage("collectstatic", "--no-input", "--verbosity=0")
            self.manage("compress", "--verbosity=0")
            demo = json.loads(self.manage("load_demo", "--json"))
        with step(f"Inviting {people:,} people"):
            self.sql(PLACES.format(schools=schools))
            self.sql(PEOPLE.format(each=people // schools))
            self.sql("VACUUM (ANALYZE) survey_respondent")
            self.sql("CHECKPOINT")
        return demo

    def manage(self, *arguments: str) -> str:
        return output_of(
            [PYTHON, ROOT / "manage.py", *arguments],
            failing=f"manage.py {arguments[0]} failed",
            env=self.environment,
        )

    def sql(self, text: str) -> None:
        done = subprocess.run(
            ["psql", "--no-psqlrc", "--quiet", "-v", "ON_ERROR_STOP=1"]
            + [f"--host={self.servers}", "--port=5432", "--username=postgres"]
            + [f"--dbname={DATABASE}"],
            input=text,
            capture_output=True,
            text=True,
        )
        if done.returncode:
            raise Refusal(f"PostgreSQL refuses: {reason(done.stderr)}")

    def roll_up(self) -> dict[str, float]:
        return json.loads(self.manage("roll_up_rates", "--json"))

    @contextmanager
    def served(self) -> Iterator[int]:
        with socket.create_server(("127.0.0.1", 0), backlog=64) as listener:
            port = undelayed(listener).getsockname()[1]
            server = subprocess.Popen(
                [str(PYTHON), "-m", "gunicorn", "settings.wsgi", "--no-control-socket"]
                + ["--worker-class=gthread", "--threads=8", "--workers=2"]
                # A student waits between two rounds and comes back.
                + ["--keep-alive=300"]
                + ["--log-level=warning", f"--bind=fd://{listener.fileno()}"],
                cwd=ROOT,
                env=self.environment,
                pass_fds=(listener.fileno(),),
                preexec_fn=end_with_parent(15),
            )
        try:
            yield port
        finally:
            server.terminate()
            server.wait()


def _time_roll_ups(bench: Bench) -> None:
    print(f"{'roll-up, s':<34}{'counting':>9}{'all':>9}{'rows changed':>15}")
    _tell("from nothing", bench.roll_up())
    for _ in range(3):
        _tell("nothing new", bench.roll_up())
    for salt in range(3):
        bench.sql(NEWS.format(count=A_MINUTE, salt=salt))
        _tell("a busy minute", bench.roll_up())


def _tell(what: str, rolled: dict[str, float]) -> None:
    figures = f"{rolled['counting']:9.2f}{rolled['seconds']:9.2f}"
    print(f"  {what:<32}{figures}{rolled['rows_changed']:15,}", flush=True)


def _time_board(bench: Bench, port: int) -> None:
    cookie = output_of(
        [PYTHON, "-c", LOG_IN], failing="Nobody can log in", env=bench.environment
    ).strip()
    # The demonstration's own administrations are smaller.
    pages = ["", "schools/", "schools/?sort=quiet", "schools/?q=42&sort=-rate"]
    district, school, administration = _ids(bench)
    pages += [f"districts/{district}/", f"schools/{school}/", "schools.csv"]
    print(f"{'board, ms':<34}{'median':>9}{'p95':>9}{'bytes':>15}")
    for page in pages:
        address = f"{page}{'&' if '?' in page else '?'}administration={administration}"
        times, size = [], 0
        for _ in range(LOOKS):
            began = time.perf_counter()
            size = _look(port, address, cookie)
            times.append((time.perf_counter() - began) * 1000)
        figures = (
            f"{statistics.median(times):9.1f}{percentile(times, 95):9.1f}{size:15,}"
        )
        print(f"  /{page:<31}{figures}", flush=True)


def _ids(bench: Bench) -> list[str]:
    """A district, a school in it, and the administration."""
    return bench.manage(
        "shell",
        "--no-imports",
        "-c",
        "from accounts.models import School; from survey.models import Administration;"
        " one = School.objects.get(code='s1');"
        " measured = Administration.objects.get(name='measured');"
        " print(one.district_id, one.pk, measured.pk)",
    ).split()


def _look(port: int, page: str, cookie: str) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    connection.request("GET", f"/console/rates/{page}", headers={"Cookie": cookie})
    reply = connection.getresponse()
    content = reply.read()
    connection.close()
    if reply.status != 200:
        raise Refusal(f"{page}: {reply.status} {content[:200]!r}")
    return len(content)


# Saves meanwhile -------------------------------------------------------------


def _time_saves(
    bench: Bench, port: int, codes: list[str], rounds: int, seconds: float
) -> None:
    students = [Student(port, code) for code in codes]
    # Warm, and thrown away.
    _round(students, min(seconds, 5))
    alone: list[tuple[float, list[float]]] = []
    beside: list[tuple[float, list[float]]] = []
    during: list[float] = []
    took: list[float] = []
    for number in range(rounds):
        # In turns, each way first in half of them: machines wander.
        for with_roll_up in (False, True) if number % 2 else (True, False):
            if not with_roll_up:
                alone.append(_round(students, seconds)[:2])
                continue
            bench.sql(NEWS.format(count=A_MINUTE, salt=f"saves {number}"))
            rate, times, while_rolling, rolled = _round(students, seconds, bench)
            beside.append((rate, times))
            during += while_rolling
            took.append(rolled)
    print(f"{'saves, ms':<34}{'median':>9}{'p95':>9}{'saves/s':>15}")
    without, beside_it = _tell_saves("alone", alone), _tell_saves("a roll-up", beside)
    if len(during) > 1:
        figures = f"{statistics.median(during):9.2f}{percentile(during, 95):9.2f}"
        print(f"  {'while it runs':<32}{figures}")
    print(
        f"The roll-up took {statistics.median(took):.2f} s beside the saves; they were"
        f" {100 * (1 - beside_it / without):.1f} % fewer over all, one roll-up in"
        f" {seconds:g} s."
    )


def _tell_saves(what: str, rounds: list[tuple[float, list[float]]]) -> float:
    times = [one for _, each in rounds for one in each]
    rate = statistics.median(rate for rate, _ in rounds)
    figures = (
        f"{statistics.median(times):9.2f}{percentile(times, 95):9.2f}{rate:15,.0f}"
    )
    print(f"  {what:<32}{figures}", flush=True)
    return rate


def _round(
    students: list[Student], seconds: float, bench: Bench | None = None
) -> tuple[float, list[float], list[float], float]:
    """Saves a second, their times, those during the roll-up, and its seconds."""
    saved: list[tuple[float, float]] = []
    over = time.monotonic() + seconds

    def save(student: Student) -> None:
        while (began := time.monotonic()) < over:
            student.save()
            saved.append((began, time.monotonic() - began))

    threads = [threading.Thread(target=save, args=(one,)) for one in students]
    began = time.monotonic()
    for thread in threads:
        thread.start()
    rolled, first, last = 0.0, 0.0, 0.0
    if bench is not None:
        rolled = bench.roll_up()["seconds"]
        # The command's own start is not the roll-up: a worker is running.
        last = time.monotonic()
        first = last - rolled
    for thread in threads:
        thread.join()
    took = time.monotonic() - began
    times = [duration * 1000 for _, duration in saved]
    during = [duration * 1000 for at, duration in saved if first <= at <= last]
    return len(saved) / took, times, during, rolled


if __name__ == "__main__":
    sys.exit(run_command("provisioning/measure_rates", main))
