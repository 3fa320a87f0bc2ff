from __future__ import annotations

import argparse
import stat

import pytest

from provisioning.measure.jmeter.server import _part, write_part
from provisioning.tests.measure.jmeter.commands import run_jmeter_command


def test_load_servers_use_separate_people(tmp_path):
    codes = tmp_path / "codes.csv"
    codes.write_text("code,take\n" + "".join(f"C{n},1\n" for n in range(7)))
    parts = [tmp_path / f"{n}.csv" for n in (1, 2, 3)]
    assert [write_part(codes, p, (n, 3)) for n, p in enumerate(parts, 1)] == [3, 2, 2]
    lines = [line for part in parts for line in part.read_text().split()[1:]]
    assert sorted(lines) == [f"C{n},1" for n in range(7)]
    assert stat.S_IMODE(parts[0].stat().st_mode) == 0o600


def test_a_load_server_stays_on_loopback(tmp_path):
    done = run_jmeter_command("server", "--codes", "c.csv", "--address", "192.0.2.1")
    assert done.returncode == 1
    assert "stays on loopback" in done.stderr


def test_a_part_is_a_number_of_so_many():
    assert _part("2/3") == (2, 3)


@pytest.mark.parametrize("text", ["0/3", "4/3", "2", "a/b", "1/0"])
def test_other_parts_are_refused(text):
    with pytest.raises(argparse.ArgumentTypeError, match="no part such as 2/3"):
        _part(text)
