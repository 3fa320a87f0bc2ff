"""What the benchmark reads and says; `provisioning/bench --quick` is the rest."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import sys
import tempfile
import time
from pathlib import Path

import pytest
from django.db import connection

from provisioning import processes
from provisioning.benchmarks import growth, statement
from provisioning.benchmarks.compare_revisions import ratios_of_medians
from provisioning.benchmarks.group_commit import DelayResult, best_delay
from provisioning.benchmarks.meter import SOCKETS
from provisioning.benchmarks.phases import Size, with_enough_people
from provisioning.commands import ROOT, Refusal
from provisioning.tests.conftest import run
from survey.models import Response
from survey.simulation.load_survey import open_rehearsal
from survey.taking.published import build_published

COMMANDS = ("bench", "group_commit", "capacity")


@pytest.mark.once
@pytest.mark.parametrize("command", COMMANDS)
def test_commands_explain_themselves(command):
    done = run(ROOT, command, "--help")
    assert done.returncode == 0
    assert f"usage: provisioning/{command}" in done.stdout


@pytest.mark.once
@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ([], "provisioning/stack up"),
        (["--seconds=0.1"], "at least 1"),
        (["--address=http://example.org"], "There is no stack"),
    ],
)
def test_bench_refuses_in_one_line(tmp_path, options, reason):
    # Where nobody else may enter, root's stack would be another one.
    tmp_path.chmod(0o755)
    done = run(ROOT, "bench", f"--home={tmp_path / 'none'}", *options)
    assert done.returncode == 1
    assert done.stderr.startswith("provisioning/bench: ")
    assert done.stderr.count("\n") == 1
    assert reason in done.stderr


@pytest.mark.once
@pytest.mark.parametrize("wrong", ["--pages=0", "--rate=1 --growth=1", "--seconds=x"])
def test_bench_checks_its_options(wrong):
    assert run(ROOT, "bench", *wrong.split()).returncode == 2


# The statement ------------------------------------------------------------


@pytest.fixture
def people(db):
    """Ids as the benchmark would read them, of a rehearsal in this database."""
    opened = open_rehearsal(name="rehearsal", respondents=4, pages=3, items=5)
    published = build_published(
        "", json.loads(opened.administration.published.definition)
    )
    ids = opened.administration.respondents.values_list("pk", flat=True)
    return statement.SavedPages(
        administration=opened.administration.pk,
        first_respondent=min(ids),
        last_respondent=max(ids),
        first_items=[next(iter(page.values()))["id"] for page in published.answerable],
        items=5,
    )


def test_pgbench_saves_as_the_product_does(people):
    script = statement.save_script(Path(sys.executable), ROOT, people)
    *settings, text = script.splitlines()
    assert "%s" not in text
    assert "ON CONFLICT (administration_id, respondent_id, item_id)" in text
    assert "FOR SHARE OF r" in text
    if connection.vendor != "postgresql":
        return
    drawn = {"person": people.first_respondent, "page": 1, "answer": 4, "revision": 7}
    step = int(re.search(r":page \* (\d+)", script)[1])
    drawn["item"] = people.first_items[0] + step
    for name, value in drawn.items():
        text = text.replace(f":{name}", str(value))
    with connection.cursor() as cursor:
        cursor.execute(text.rstrip(";"))
        assert cursor.rowcount == 5
    stored = Response.objects.order_by("item_id")
    assert [row.item_id for row in stored] == list(
        range(people.first_items[1], people.first_items[1] + 5)
    )
    assert [row.value for row in stored] == ["5", "1", "2", "3", "4"]


@pytest.mark.once
def test_ids_without_order_are_refused():
    scattered = statement.SavedPages(1, 1, 2, first_items=(1, 7, 20), items=5)
    with pytest.raises(Refusal, match="no regular ids"):
        statement.distance(scattered)


# Processor time -----------------------------------------------------------


@pytest.fixture
def folder():
    path = Path(tempfile.mkdtemp(prefix="bench-", dir="/tmp"))
    yield path
    shutil.rmtree(path)


@pytest.mark.once
def test_a_server_is_whoever_listens(folder):
    with socket.socket(socket.AF_UNIX) as redis:
        redis.bind(str(folder / "redis.sock"))
        redis.listen()
        found = processes.listeners(folder, SOCKETS, {"nginx": 1})
        assert found == {"Redis": {os.getpid()}}

        before = processes.cpu_seconds_by_group(found)["Redis"]
        began = time.process_time()
        while time.process_time() - began < 0.2:
            pass
        used = processes.cpu_seconds_by_group(found)["Redis"] - before
    assert 0.15 < used < 0.4
    assert processes.machine_cpu_seconds() > 0


@pytest.mark.once
def test_a_supervisor_is_not_its_servers(folder):
    """It holds the sockets of two, and all processes are its children."""
    with (
        socket.socket(socket.AF_UNIX) as taking,
        socket.socket(socket.AF_UNIX) as console,
    ):
        for listener, name in ((taking, "taking.sock"), (console, "console.sock")):
            listener.bind(str(folder / name))
            listener.listen()
        assert processes.listeners(folder, SOCKETS, {"nginx": 1}) == {}


# What is concluded --------------------------------------------------------


def cells(*speeds: tuple[int, int, float]) -> list[DelayResult]:
    return [
        DelayResult(clients, delay, speed, 1.0, 1.0) for clients, delay, speed in speeds
    ]


@pytest.mark.once
def test_the_best_delay_is_read_at_the_pool_s_size():
    rows = cells((8, 0, 5700), (8, 1000, 4120), (32, 0, 8200), (32, 1000, 9500))
    assert best_delay(rows, pool=12) == (0, 8)
    assert best_delay(rows, pool=40) == (1000, 32)


@pytest.mark.once
def test_a_delay_has_to_win_clearly():
    assert best_delay(cells((16, 0, 7800), (16, 1000, 7900)), pool=12) == (0, 16)


@pytest.mark.once
def test_ratios_are_of_medians():
    here = [{"saves_per_s": speed, "failed": 0} for speed in (100.0, 300.0, 110.0)]
    there = [{"saves_per_s": speed, "failed": 0} for speed in (100.0, 100.0, 10.0)]
    assert ratios_of_medians(here, there) == {"saves_per_s": 1.1}


@pytest.mark.once
def test_no_part_runs_out_of_people():
    size = with_enough_people(Size(pages=10, room=500), parts=5)
    # 12 s each: 5 * 1,700 saves a second, and once 3,000, of ten pages.
    assert size.respondents == max(20_000, 10_200 + 3_600 + 1_000)
    short = with_enough_people(Size(pages=2, room=500), parts=5)
    assert short.respondents == 51_000 + 18_000 + 1_000


@pytest.mark.once
def test_growth_leaves_people_to_measure_with():
    wanted = growth.Growth(rows=1_000_000, items=range(50))
    assert wanted.people == 20_000
    # Of eleven, ten have answered.
    assert wanted.invited(1000) * 10 // 11 >= 20_000
    assert wanted.invited(5000) // 11 >= 5000
    assert "1 million responses of 20,000 people" in wanted.announcement()
