"""The access log is read whatever is in it, and says what it leaves out."""

from __future__ import annotations

import gzip
import json
from datetime import datetime
from pathlib import Path

import pytest

from provisioning.measure.load.access_log import Step, read_access_log

NOON = "2026-11-22T12:00:00+00:00"
CONTENT = f"/content/{'d' * 64}/r1/en/3/"


def line(number: int, method: str, path: str, **changes: object) -> str:
    row = {"time": NOON, "request_id": f"{number:032x}", "method": method}
    row |= {"path": path, "status": 200, "seconds": 0.0, "bytes": 1}
    return json.dumps({**row, **changes}) + "\n"


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "nginx-access.log"


def moments(log: Path) -> list[float]:
    requests = read_access_log([log]).requests
    return [round(each.moment - requests[0].moment, 3) for each in requests]


def test_requests_are_in_the_order_in_which_they_were_sent(log):
    log.write_text(
        line(1, "POST", "/take/pages/7/")
        # The same second in another zone; it took longer than the one before.
        + line(2, "GET", CONTENT, time="2026-11-22T06:00:00-06:00", seconds=2.5)
        + line(3, "GET", "/", time="2026-11-22T12:00:03+00:00")
    )
    read = read_access_log([log])
    assert [(each.step, each.page) for each in read.requests] == [
        (Step.CONTENT, 3),
        (Step.SAVE, 7),
        (Step.LOGIN_PAGE, 0),
    ]
    # Two requests of a second are half a second apart.
    assert moments(log) == [0, 2.0, 5.0]
    assert (read.lines, read.skipped, read.problems) == (3, {}, [])


def test_lines_that_cannot_be_replayed_are_counted(log):
    log.write_text(
        line(1, "GET", "/")
        + line(2, "GET", "/console/")
        + line(3, "GET", "/static/css/survey.css")
        + line(4, "POST", "/take/pages/101/")
        + line(5, "POST", "/", status=422)
        # Refused for load, or given up: it was offered all the same.
        + line(6, "POST", "/take/pages/1/", status=503)
        + line(7, "POST", "/take/pages/1/", status=499)
        + line(1, "GET", "/")
    )
    read = read_access_log([log])
    assert len(read.requests) == 3
    assert read.skipped == {"not of the survey": 3, "refused": 1, "repeated": 1}


@pytest.mark.parametrize(
    ("broken", "why"),
    [
        ('127.0.0.1 - - [22/Nov/2026] "GET /"', "no line of this log"),
        ('{"time":"2026-11-22T12:00:', "no line of this log"),
        ("\x00\xff\n".encode().decode("latin-1"), "no line of this log"),
        ("[1, 2]", "no line of this log"),
        ("[" * 100_000, "no line of this log"),
        ('{"time": "2026-11-22T12:00:00+00:00"}', "it has no 'seconds'"),
        (line(1, "GET", "/", time="2026-11-22T12:00:00"), "has no time zone"),
        (line(1, "GET", "/", seconds=-1), "it took -1.0 seconds"),
        (line(1, "GET", "/", seconds=float("nan")), "it took nan seconds"),
        (line(1, "GET", "/", status="x"), "no line of this log"),
    ],
)
def test_a_broken_line_is_named_and_the_others_are_read(log, broken, why):
    log.write_text(line(9, "GET", "/") + broken.strip() + "\n" + line(8, "GET", "/"))
    read = read_access_log([log])
    assert len(read.requests) == 2
    assert read.skipped == {"broken": 1}
    assert read.problems[0].startswith("nginx-access.log:2: ")
    assert why in read.problems[0]


def test_only_the_first_problems_are_described(log):
    log.write_text("?\n" * 100)
    read = read_access_log([log])
    assert read.skipped == {"broken": 100}
    assert len(read.problems) == 5


def test_rotated_and_compressed_files_are_read_in_any_order(log, tmp_path):
    older = tmp_path / "nginx-access.log.1.gz"
    older.write_bytes(
        gzip.compress(line(1, "GET", "/", time="2026-11-22T11:59:50+00:00").encode())
    )
    log.write_text(line(2, "POST", "/"))
    requests = read_access_log([log, older]).requests
    assert [each.step for each in requests] == [Step.LOGIN_PAGE, Step.LOGIN]


def test_a_compressed_file_that_ends_too_early_is_named(log):
    whole = "".join(line(n, "GET", "/") for n in range(5000))
    log.write_bytes(gzip.compress(whole.encode())[:-2000])
    read = read_access_log([log])
    assert 0 < len(read.requests) < 5000
    assert read.skipped == {"broken": 1}
    assert f":{read.lines + 1}: Compressed file ended" in read.problems[0]


def test_a_window_leaves_out_what_ended_before_or_after_it(log):
    log.write_text(
        "".join(
            line(n, "GET", "/", time=f"2026-11-22T12:00:0{n}+00:00") for n in range(5)
        )
    )
    begin, end = (datetime.fromisoformat(NOON[:18] + f"{n}+00:00") for n in (1, 3))
    read = read_access_log([log], begin=begin, end=end)
    assert len(read.requests) == 2
    assert read.skipped == {"outside the window": 3}
