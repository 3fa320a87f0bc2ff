from __future__ import annotations

from pathlib import Path

import pytest

from provisioning.commands import Refusal
from provisioning.measure.benchmarks import growth


class FakeStack:
    """Answers queries in order, and keeps the statements."""

    folder = Path("/")

    def __init__(self, *answers):
        self.answers = list(answers)
        self.statements = []

    def sql(self, statements, *, failing=""):
        self.statements.append(statements)
        return self.answers.pop(0)


def rehearsal(*options: str):
    """Return the output of open_rehearsal for ten pages of five items."""
    items = [{"id": number} for number in range(5)]
    return {"administration_id": 7, "pages": [{"items": items}] * 10}, []


@pytest.mark.parametrize("measured", [1000, 5000])
def test_growth_leaves_people_without_answers(monkeypatch, capsys, measured):
    opened, filled = [], []
    stack = FakeStack([["-1"]], [["0"]])
    stack.open_rehearsal = lambda *options: opened.append(options) or rehearsal()
    monkeypatch.setattr(growth, "check_disk", lambda *_: None)
    monkeypatch.setattr(growth, "fill", lambda *arguments: filled.append(arguments))
    growth.fill_with_others(stack, ["--pages=10"], 1_000_000, measured=measured)
    assert "1 million responses of 20,000 people" in capsys.readouterr().out
    invited = int(opened[-1][-1].removeprefix("--respondents="))
    # Of eleven, ten have answered.
    assert invited * 10 // 11 >= 20_000
    assert invited // 11 >= measured
    assert filled == [(stack, 7, 1_000_000, list(range(5)) * 10)]


def test_missing_rows_need_room_on_the_disk():
    with pytest.raises(Refusal, match="GB in /, and"):
        growth.check_disk(FakeStack.folder, 10**13)
    # A partition that is full already needs nothing.
    growth.check_disk(FakeStack.folder, 0)


def test_a_large_partition_is_estimated_instead_of_counted():
    assert growth.stored_rows(FakeStack([["-1"]], [["42"]]), 7) == 42
    assert growth.stored_rows(FakeStack([["6000000"]]), 7) == 6_000_000


def test_a_partition_is_filled_until_it_has_enough_rows():
    counts = ([["0"]], [["0"]])
    stack = FakeStack(*counts, [["1000", "5000"]], [["200", "9000"]], [])
    assert growth.fill(stack, 7, 2400, [1, 2]) == 2400
    first, second, settled = stack.statements[2:]
    assert "\\set people '1000'" in first and "\\set after '0'" in first
    # It goes on after the last person, and takes only those still needed.
    assert "\\set people '200'" in second and "\\set after '5000'" in second
    assert "VACUUM" in settled


def test_too_few_people_end_the_filling():
    stack = FakeStack([["0"]], [["0"]], [["0", "0"]])
    with pytest.raises(Refusal, match="too few people"):
        growth.fill(stack, 7, 100, [1, 2])
