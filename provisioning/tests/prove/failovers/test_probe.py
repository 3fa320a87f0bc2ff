"""Two primaries at one time are found, and a handover is none."""

from __future__ import annotations

from provisioning.prove.failovers.drill import Write, find_split


def writes(host: str, timeline: int, *times: float) -> list[Write]:
    """Writes that took a tenth of a second each."""
    return [Write(host, timeline, sent, sent + 0.1) for sent in times]


def test_a_primary_that_stops_before_its_successor_begins_is_no_split():
    history = writes("db1", 1, 1.0, 2.0) + writes("db2", 2, 9.0, 10.0)
    assert find_split(history + writes("db1", 3, 20.0)) == []


def test_an_old_primary_that_accepts_a_write_after_its_successor_is_a_split():
    late = writes("db1", 1, 9.5)
    history = writes("db1", 1, 1.0) + writes("db2", 2, 9.0, 10.0)
    assert find_split(history + late) == late


def test_two_primaries_on_the_same_timeline_are_a_split_too():
    late = writes("db1", 2, 5.0)
    assert find_split(writes("db1", 2, 1.0) + late + writes("db2", 2, 3.0)) == late


def test_a_write_under_way_during_the_handover_is_not_certain():
    slow = Write("db1", 1, 8.9, 9.5)
    assert find_split([*writes("db1", 1, 1.0), slow, *writes("db2", 2, 9.0)]) == []
