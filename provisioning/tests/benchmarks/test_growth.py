from __future__ import annotations

from pathlib import Path

import pytest

from provisioning.benchmarks import growth
from provisioning.commands import Refusal


class FakeStack:
    """Answers queries in order, and keeps the statements."""

    folder = Path("/")

    def __init__(self, *answers):
        self.answers = list(answers)
        self.statements = []

    def sql(self, statements, *, failing=""):
        self.statements.append(statements)
        return self.answers.pop(0)


def test_growth_leaves_people_without_answers():
    wanted = growth.Growth(rows=1_000_000, items=range(50))
    assert wanted.people == 20_000
    # Of eleven, ten have answered.
    assert wanted.invited(1000) * 10 // 11 >= 20_000
    assert wanted.invited(5000) // 11 >= 5000
    assert "1 million responses of 20,000 people" in wanted.announcement()


def test_missing_rows_need_room_on_the_disk():
    wanted = growth.Growth(rows=10**13, items=range(50))
    with pytest.raises(Refusal, match="GB must be free in /"):
        growth.check_disk(FakeStack(), wanted, stored=0)
    # A partition that is full already needs nothing.
    growth.check_disk(FakeStack(), wanted, stored=10**13)


def test_a_large_partition_is_estimated_instead_of_counted():
    assert growth.stored_rows(FakeStack([["-1"]], [["42"]]), 7) == 42
    assert growth.stored_rows(FakeStack([["6000000"]]), 7) == 6_000_000


def test_a_partition_is_filled_until_it_has_enough_rows(monkeypatch):
    monkeypatch.setattr(growth, "check_disk", lambda *_: None)
    counts = ([["0"]], [["0"]])
    stack = FakeStack(*counts, [["1000", "5000"]], [["200", "9000"]], [])
    assert growth.fill(stack, 7, growth.Growth(rows=2400, items=[1, 2])) == 2400
    first, second, settled = stack.statements[2:]
    assert "LIMIT 1000" in first and "id > 0" in first
    # It goes on after the last person, and takes only those still needed.
    assert "LIMIT 200" in second and "id > 5000" in second
    assert "VACUUM" in settled


def test_too_few_people_end_the_filling(monkeypatch):
    monkeypatch.setattr(growth, "check_disk", lambda *_: None)
    stack = FakeStack([["0"]], [["0"]], [["0", "0"]])
    with pytest.raises(Refusal, match="too few people"):
        growth.fill(stack, 7, growth.Growth(rows=100, items=[1, 2]))
