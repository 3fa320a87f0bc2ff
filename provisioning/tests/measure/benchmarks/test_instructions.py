from __future__ import annotations

import json
from struct import unpack

import pytest

from provisioning.measure.benchmarks import instructions
from provisioning.measure.benchmarks.instructions import (
    KEPT,
    STEPS,
    Count,
    encode,
    figures_of,
    grown,
    totals_of,
    why_not_comparable,
)

HERE = {
    **{"python": "3.11.2", "django": "5.2.19", "psycopg2": "2.9.13"},
    "architecture": "x86_64",
}


@pytest.fixture
def file_of(tmp_path, monkeypatch):
    """Return a file of figures that were kept with another identity than HERE."""

    def file_of(**identity):
        path = tmp_path / "instructions.json"
        path.write_text(json.dumps({**HERE, "save_instructions": 1000, **identity}))
        return path

    monkeypatch.setattr(instructions, "identity", lambda: HERE)
    return file_of


def test_four_percent_more_for_a_kind_of_request_are_too_many():
    before = {**HERE, "login_instructions": 4_000_000, "save_instructions": 800_000}
    [sentence] = grown({**before, "save_instructions": 832_000}, before)
    assert sentence.startswith("save_instructions is 832,000, which is 4.0% more")
    assert "--keep" in sentence


def test_two_percent_more_and_any_fewer_are_admitted():
    before = {"login_instructions": 4_000_000, "save_instructions": 800_000}
    assert grown({"login_instructions": 1, "save_instructions": 816_000}, before) == []


def test_system_calls_are_kept_and_not_compared():
    before = {"save_instructions": 800_000, "save_system_calls": 9}
    assert grown({"save_instructions": 800_000}, before) == []


def test_figures_of_the_same_python_are_comparable(file_of):
    assert why_not_comparable(file_of()) == ""


@pytest.mark.parametrize(
    "identity",
    [
        *({"python": "3.13.5"}, {"django": "5.2.20"}, {"psycopg2": "2.9.99"}),
        {"architecture": "aarch64"},
    ],
)
def test_other_figures_are_not_compared(file_of, identity):
    [(name, value)] = identity.items()
    sentence = why_not_comparable(file_of(**identity))
    assert f"has {name} {value}, and here is {name} {HERE[name]}" in sentence


def test_figures_that_name_no_version_are_not_compared(file_of):
    path = file_of()
    figures = json.loads(path.read_text())
    del figures["psycopg2"]
    path.write_text(json.dumps(figures))
    assert "psycopg2 ?" in why_not_comparable(path)


def test_the_versions_here_are_those_of_the_stack():
    here = instructions.identity()
    assert set(here) == set(HERE) and all(here.values())


def test_the_kept_figures_are_of_every_kind_of_request():
    figures = json.loads(KEPT.read_text())
    wanted = {f"{kind}_instructions" for kind in STEPS} | {"visit_instructions"}
    assert wanted <= set(figures) and set(HERE) <= set(figures)


def test_a_visit_has_a_save_of_each_page():
    counts = {"login": Count(100, {"read": 2.0}), "save": Count(10, {"read": 1.0})}
    figures = figures_of(counts)
    assert figures["visit_instructions"] == 100 + 45 * 10
    assert figures["login_system_calls"] == 2


def test_what_was_not_counted_is_no_figure():
    assert "save_system_calls" not in figures_of({"save": Count(10, {})})


def test_instructions_are_read_by_kind(tmp_path):
    dump = "desc: Trigger: Client Request: dump save\nsummary: {}\nfn=(1)\n"
    (tmp_path / "out.1").write_text(dump.format(5_000))
    (tmp_path / "out.2").write_text("desc: Trigger: Program termination\ntotals: 1\n")
    assert totals_of(tmp_path)["save"] == 5_000


def test_a_request_is_encoded_as_by_nginx():
    head = b"POST /take/ HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 2"
    data = encode(head, b"{}")
    modifier, size, more = unpack("<BHB", data[:4])
    assert (modifier, more, data[4 + size :]) == (0, 0, b"{}")
    assert b"HTTP_HOST\x01\x00a" in data and b"CONNECTION" not in data
