from __future__ import annotations

import pytest

from provisioning.commands import write_csv
from provisioning.measure.group_commit import (
    DelayResult,
    best_delay,
    parse_options,
)


def cells(*speeds: tuple[int, int, float]) -> list[DelayResult]:
    return [
        DelayResult(clients, delay, speed, 1.0, 1.0) for clients, delay, speed in speeds
    ]


def test_the_best_delay_is_read_at_the_pools_size():
    rows = cells((8, 0, 5700), (8, 1000, 4120), (32, 0, 8200), (32, 1000, 9500))
    assert best_delay(rows, pool=12) == (0, 8)
    assert best_delay(rows, pool=40) == (1000, 32)


def test_a_delay_has_to_be_clearly_faster():
    assert best_delay(cells((16, 0, 7800), (16, 1000, 7900)), pool=12) == (0, 16)


def test_results_are_kept_as_csv(tmp_path):
    path = tmp_path / "delays.csv"
    write_csv(path, [DelayResult._fields, *cells((8, 1000, 4120.5))])
    assert path.read_text() == (
        "clients,commit_delay_us,per_second,p95_ms,commits_per_fsync\n"
        "8,1000,4120.5,1.0,1.0\n"
    )


@pytest.mark.parametrize("wrong", ["--seconds=0", "--pool=0", "--pool=x"])
def test_seconds_and_pool_are_numbers_above_zero(wrong):
    with pytest.raises(SystemExit):
        parse_options([wrong])
    assert parse_options([]).pool == 12
