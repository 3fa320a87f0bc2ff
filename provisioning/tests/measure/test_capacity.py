"""Compare the capacity sheet with examples worked out by hand."""

from __future__ import annotations

import csv
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from provisioning.commands import ROOT
from provisioning.measure import capacity
from provisioning.measure.capacity import (
    CapacitySheet,
    ClusterCost,
    Machines,
    RequestCost,
    SurveyDay,
    capacity_sheet,
    day_at,
    day_of,
    inventory_lines,
    inventory_of,
    with_digits,
)
from provisioning.tests.conftest import run

ILLINOIS = SurveyDay(takers_per_hour=50_000, pages=45, think_seconds=20)
USUAL = Machines()
# Round numbers, in µs.
COST = RequestCost(
    gunicorn=400,
    nginx=80,
    pgbouncer=20,
    postgresql=200,
    redis=20,
    memcached=0,
    wal_bytes_per_save=1000,
)


@pytest.fixture
def bench(tmp_path: Path) -> Path:
    result = {
        "machine": {"cpu": "A processor", "cores": 2, "revision": "abc1234"},
        "cpu_us_per_request": {
            "gunicorn taking": 400.0,
            "nginx": 80.0,
            "pgbouncer": 20.0,
            "PostgreSQL": 200.0,
            "Redis": 20.0,
            "load engine": 60.0,
        },
        "saves": {"wal_bytes_per_save": 1000.0},
    }
    path = tmp_path / "bench.json"
    path.write_text(json.dumps(result))
    return path


def sheet_of(
    takers: float = 50_000, machines: Machines = USUAL, **costs: float
) -> CapacitySheet:
    cost = replace(COST, **costs)
    return capacity_sheet(ILLINOIS._replace(takers_per_hour=takers), machines, cost)


def test_illinois_is_1250_requests_a_second():
    # 50,000 / 3600 = 13.9 people start in a second; 90 requests each.
    sheet = sheet_of()
    assert sheet.value("requests") == pytest.approx(1250)
    assert sheet.value("survey_change_page requests") == pytest.approx(625)
    assert sheet.value("survey_login requests") == pytest.approx(27.8, abs=0.1)
    assert sheet.value("survey_content requests") == pytest.approx(541.7, abs=0.1)


def test_short_surveys_read_no_content():
    assert sum(capacity.requests_of_a_person(45).values()) == 90
    assert capacity.requests_of_a_person(3)["survey_content"] == 0


def test_people_at_once_follow_littles_law():
    # 13.9 a second, each there for 45 * 20 = 900 s.
    assert sheet_of().value("people at once") == pytest.approx(12_500)


def test_half_of_the_processors_stay_free():
    # 1250 requests of 400 + 80 + 20 µs each: 0.625 s in each second.
    assert sheet_of().value("web processors used") == pytest.approx(0.625)
    # Half of eight cores stay free: 4 are to be had of each server.
    assert sheet_of().value("web servers") == 1
    assert sheet_of(50_000 * 4.0 / 0.625).value("web servers") == 1
    assert sheet_of(50_000 * 4.1 / 0.625).value("web servers") == 2


def test_workers_and_pools_follow_service_times():
    # Two workers and one connection for each of eight cores at least.
    assert sheet_of().value("gunicorn workers") == 16
    assert sheet_of().value("taking pool") == 8
    # 20,000 requests a second on three servers; 51 of 90 reach Python, and wait
    # 1 ms for a flush. 400 + 20 + 200 + 20 µs each keep 12.8 + 11.3 workers
    # busy, half of 49, and 200 µs each 4 + 11.3 connections, half of 31.
    sheet = sheet_of(800_000)
    assert sheet.value("web servers") == 3
    assert sheet.value("gunicorn workers") == 17
    assert sheet.value("taking pool") == 11
    assert sheet.multiples["gunicorn workers"] == pytest.approx(51 / 24.1333, rel=1e-4)
    assert sheet.multiples["taking pools"] == pytest.approx(33 / 15.3333, rel=1e-4)


def test_memory_and_disk_follow_the_number_of_people():
    sheet = sheet_of()
    # 50,000 an hour for four hours, 1,100 bytes each.
    assert sheet.value("Redis sessions") == pytest.approx(220)
    # 46 documents of 8 KiB, nine times.
    assert sheet.value("nginx content") == pytest.approx(3.39, abs=0.01)
    # 350,000 people a day, 225 rows of 130 bytes each.
    assert sheet.value("response rows") == pytest.approx(10.24, abs=0.01)
    # 15.75 million saves, 1,000 bytes each.
    assert sheet.value("write-ahead log") == pytest.approx(15.75)


def test_load_servers_are_rounded_up():
    # 600 requests a second for each core.
    assert sheet_of(machines=Machines(web_cores=2)).value("JMeter servers") == 2
    assert sheet_of(48_000, Machines(web_cores=2)).value("JMeter servers") == 1


def test_the_scarcest_resource_runs_out_first():
    sheet = sheet_of(machines=Machines(web_cores=2, database_cores=2))
    # 0.625 cores of the web, and a server of two gives one.
    assert sheet.value("web servers") == 1
    assert sheet.multiples["web processors"] == pytest.approx(2 / 0.625)
    # 1250 * 200 µs = 0.25 of two cores.
    assert sheet.multiples["primary processors"] == pytest.approx(8)
    # 1250 * 20 µs = 0.025 of its one thread.
    assert sheet.multiples["Redis (one thread)"] == pytest.approx(40)
    name, multiple = sheet.first_to_run_out
    assert multiple == min(sheet.multiples.values()) == sheet.multiples[name]


def test_any_load_gives_a_sheet():
    for takers in (1, 10_000_000):
        sheet = capacity_sheet(SurveyDay(takers, 1, 0.5), Machines(), COST)
        assert all(multiple > 1 for multiple in sheet.multiples.values()) or takers > 1


def test_the_inventory_uses_known_variables():
    known = "".join(
        path.read_text()
        for path in (ROOT / "provisioning" / "ansible").rglob("defaults/main.yml")
    )
    variables = inventory_of(capacity_sheet(ILLINOIS, Machines(), COST))
    for name in variables:
        assert re.search(rf"^{name}:", known, re.MULTILINE), name
    for name in variables["pool_sizes"]:
        assert re.search(rf"^  {name}:", known, re.MULTILINE), name


def test_without_a_target_examples_are_printed(bench):
    done = run(ROOT, "run", "capacity", f"--bench={bench}")
    assert done.returncode == 0, done.stderr
    assert "Chicago: 8,000 takers an hour" in done.stdout
    assert "Illinois: 50,000 takers an hour" in done.stdout
    assert done.stdout.splitlines()[-1].strip().startswith("Runs out first: ")


def test_the_kept_benchmark_is_complete():
    benchmark = ROOT / "provisioning" / "measured" / "bench.json"
    done = run(ROOT, "run", "capacity", f"--bench={benchmark}")
    assert done.returncode == 0, done.stderr


def test_a_sheet_is_written_as_csv(bench, tmp_path):
    table = tmp_path / "sheet.csv"
    target = ["--takers-per-hour=20,000", "--pages=30", "--think=12"]
    done = run(ROOT, "run", "capacity", f"--bench={bench}", *target, f"--csv={table}")
    assert done.returncode == 0, done.stderr
    rows = {
        row["what"]: row["value"]
        for row in csv.DictReader(table.read_text().splitlines())
    }
    assert float(rows["people at once"]) == 2000
    assert float(rows["survey_change_page requests"]) == pytest.approx(166.667)


def test_variables_are_printed_for_an_inventory(bench):
    done = run(
        ROOT,
        "run",
        "capacity",
        f"--bench={bench}",
        "--takers-per-hour=50000",
        "--inventory",
    )
    assert done.returncode == 0, done.stderr
    assert re.search(r"^taking_workers: \d+$", done.stdout, re.MULTILINE)
    assert re.search(r"^  taking: \d+$", done.stdout, re.MULTILINE)


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"cpu_us_per_request": {}}'])
def test_an_incomplete_benchmark_is_refused(tmp_path, content):
    path = tmp_path / "bench.json"
    path.write_text(content)
    done = run(ROOT, "run", "capacity", f"--bench={path}")
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "no complete result" in done.stderr


def test_without_a_benchmark_the_command_to_make_one_is_named(tmp_path):
    done = run(ROOT, "run", "capacity", f"--bench={tmp_path / 'none'}")
    assert (done.returncode, done.stdout) == (1, "")
    assert "provisioning/bench" in done.stderr


@pytest.mark.parametrize("wrong", ["--takers-per-hour=0", "--pages=x", "--inventory"])
def test_targets_are_numbers(wrong):
    assert run(ROOT, "run", "capacity", wrong).returncode == 2


def test_nginx_holds_no_worker():
    without, usual = sheet_of(nginx=0), sheet_of()
    assert without.value("web processors used") == pytest.approx(0.525)
    assert usual.value("web processors used") == pytest.approx(0.625)
    for resource in ("gunicorn workers", "taking pools"):
        assert without.multiples[resource] == usual.multiples[resource]


def test_rounding_up_ignores_rounding_errors():
    assert capacity.round_up(2.0000001) == 2
    assert capacity.round_up(2.001) == 3


def test_a_missing_server_costs_nothing():
    cost = RequestCost.of({"cpu_us_per_request": {"nginx": 8.0}, "saves": {}})
    assert (cost.nginx, cost.redis, cost.wal_bytes_per_save) == (8.0, 0.0, 0.0)
    sheet = capacity_sheet(ILLINOIS, Machines(), cost)
    assert sheet.multiples["Redis (one thread)"] == float("inf")


@pytest.mark.parametrize(
    ("value", "text"),
    [(1250, "1,250"), (1250.7, "1,251"), (13.88, "13.9"), (0.62, "0.62"), (4.0, "4")],
)
def test_figures_have_three_digits(value, text):
    assert with_digits(value) == text


def test_pools_are_listed_below_their_variable():
    lines = inventory_lines("Illinois", capacity_sheet(ILLINOIS, Machines(), COST))
    assert lines[0] == "# Illinois: 1 web servers"
    pools = lines.index("pool_sizes:")
    assert lines[pools + 1].startswith("  taking: ")
    assert any(line.startswith("redis_maxmemory: ") for line in lines)


def test_beyond_one_primary_database_servers_follow_from_the_time_on_nodes():
    measured = {
        "cpu_us_per_save": {"coordinator": 400, "worker 1": 500, "worker 2": 300},
        "cpu_us_per_save_of_one_primary": 400,
    }
    cost = ClusterCost.of(measured)
    # Half of 16 cores is left free.
    assert cost.database_servers(8, cores=16) == (1, 0)
    assert cost.database_servers(24, cores=16) == (3, 6)


def test_a_day_has_so_many_answers():
    day = day_of(1000, pages=45, think_seconds=20)
    assert day.takers_per_hour * 7 * 45 * 5 == pytest.approx(1e9)


def test_one_process_replays_the_log():
    # 1250 requests of 80 µs each, of which that process has a share.
    sheet = sheet_of(replica=80)
    assert sheet.value("replica's replay") == pytest.approx(0.1 * capacity.REPLAY_SHARE)
    multiple = sheet.multiples["replica's replay (one process)"]
    assert multiple == pytest.approx(10 / capacity.REPLAY_SHARE)
    # It does not grow with the servers.
    larger = sheet_of(replica=80, machines=Machines(database_cores=64))
    assert larger.multiples["replica's replay (one process)"] == multiple


def test_a_replica_that_cannot_follow_needs_a_cluster():
    cost = ClusterCost(coordinator=1.0, workers=2.0)
    assert cost.database_servers(4, cores=16, replay=0.5) == (1, 0)
    # Each worker's replica replays its part.
    assert cost.database_servers(4, cores=16, replay=0.6) == (1, 2)
    assert cost.database_servers(4, cores=16, replay=2.0) == (1, 4)


def test_a_rate_is_a_number_of_people(bench):
    assert day_at(1250, pages=45, think_seconds=20).takers_per_hour == 50_000
    rates = ["--requests", "5000", "100000"]
    done = run(ROOT, "run", "capacity", f"--bench={bench}", *rates)
    assert done.returncode == 0, done.stderr
    assert "100,000 requests a second: 4,000,000 takers an hour" in done.stdout
    assert re.search(r"5,000 requests a second +one primary", done.stdout)


# What more servers do not help; in the languages of the help.
INDIVISIBLE = {
    "primary processors": ("the primary’s processors", "los procesadores del primario"),
    "replica's replay (one process)": (
        "the replica’s replay",
        "la aplicación del registro en la réplica",
    ),
    "Redis (one thread)": ("Redis", "Redis"),
}
DATABASES = (("one primary", "un primario"), ("nodes", "nodos"))


@pytest.mark.parametrize(("place", "language"), [(0, "en"), (1, "es")])
def test_the_page_about_limits_has_the_figures_of_the_kept_benchmark(place, language):
    page = ROOT / "docs" / "help" / language / "operators" / "limits.md"
    text = page.read_text()
    machines = Machines()
    cost = RequestCost.of(capacity.read_benchmark(capacity.KEPT))
    cluster = ClusterCost.of(json.loads(capacity.CLUSTER.read_text()))
    expected = []
    for rate in (5000, 20_000, 100_000):
        sheet = capacity_sheet(day_at(rate, 45, 20), machines, cost)
        primary = sheet.value("primary processors used")
        replay = sheet.value("replica's replay")
        first = min(INDIVISIBLE, key=lambda name: sheet.multiples[name])
        servers, workers = cluster.database_servers(
            primary, machines.database_cores, replay
        )
        words = DATABASES[bool(workers)][place]
        cells = (
            f"{rate:,}",
            f"{sheet.day.takers_per_hour:,.0f}",
            f"{sheet.value('web servers'):.0f}",
            with_digits(primary),
            with_digits(replay),
            with_digits(sheet.value("Redis processor used")),
            f"{INDIVISIBLE[first][place]}, {sheet.multiples[first]:.1f}",
            f"{servers} + {workers} {words}" if workers else words,
        )
        expected.append(f"| {' | '.join(cells)} |")
    of_web = cost.gunicorn + cost.nginx + cost.pgbouncer
    replayed = cost.replica * capacity.REPLAY_SHARE
    rates = (
        machines.web_cores * capacity.HEADROOM / of_web,
        machines.database_cores * capacity.HEADROOM / cost.postgresql,
        1 / replayed,
        1 / cost.redis,
    )
    expected += [f" {round(1e6 * rate, -2):,.0f}" for rate in rates]
    expected += [f" {cluster.coordinator:.1f} ", f" {cluster.workers:.1f} "]
    assert [figure for figure in expected if figure not in text] == [], page
