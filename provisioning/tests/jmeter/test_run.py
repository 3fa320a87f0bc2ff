from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from provisioning.commands import Refusal
from provisioning.jmeter import shapes
from provisioning.jmeter.run import (
    JmeterData,
    check_people,
    given_data,
    write_properties,
)

LOAD = shapes.bell(rate=27.7, duration=10, pages=10, within=5)


@pytest.fixture
def data(tmp_path: Path) -> JmeterData:
    codes, pages = tmp_path / "codes.csv", tmp_path / "pages.properties"
    codes.write_text("code,take\n" + "".join(f"C{n},1\n" for n in range(10)))
    pages.write_text("take.1.pages=10\n")
    return JmeterData(codes, pages)


def options(**changes: object) -> argparse.Namespace:
    usual = {"protocol": "http", "host": "127.0.0.1", "port": 8080, "influxdb": None}
    return argparse.Namespace(**{**usual, "remote": [], **changes})


def test_too_few_people_are_refused_before_the_run(data):
    check_people(data.codes, LOAD)
    data.codes.write_text("code,take\nC1,1\n")
    with pytest.raises(Refusal, match="1 people have codes, and the load needs 10"):
        check_people(data.codes, LOAD)


def test_given_files_have_to_exist(data):
    given = options(codes=data.codes, pages=data.pages)
    assert given_data(given) == data
    data.pages.unlink()
    with pytest.raises(Refusal, match="pages.properties is not there"):
        given_data(given)
    assert given_data(options(codes=None)) is None


@pytest.mark.parametrize(
    ("protocol", "port", "origin"),
    [
        ("http", 8080, "http://127.0.0.1:8080"),
        ("http", 80, "http://127.0.0.1"),
        ("https", 443, "https://127.0.0.1"),
        ("https", 80, "https://127.0.0.1:80"),
    ],
)
def test_the_origin_is_written_as_browsers_send_it(
    tmp_path, data, protocol, port, origin
):
    path = tmp_path / "run.properties"
    write_properties(path, options(protocol=protocol, port=port), data, LOAD)
    assert shapes.read_properties(path)["origin"] == origin


def test_the_plan_reads_codes_target_and_answers(tmp_path, data):
    path = tmp_path / "run.properties"
    write_properties(path, options(), data, LOAD)
    written = shapes.read_properties(path)
    assert written["codes"] == str(tmp_path / "codes")
    assert written["take.1.pages"] == "10"
    assert "influxdb" not in written


def test_load_servers_keep_their_own_codes(tmp_path, data):
    path = tmp_path / "run.properties"
    write_properties(path, options(remote=["a", "b"], influxdb="http://x"), data, LOAD)
    written = shapes.read_properties(path)
    assert "codes" not in written
    assert written["influxdb"] == "http://x"
    assert written["arrivals"] == f"{LOAD.arrivals / 2:.4f}"
