from __future__ import annotations

import os
from typing import Any

import pytest

from provisioning.commands import Refusal
from provisioning.installation import promotion
from provisioning.installation.promotion import (
    promote_replica,
    refuse_impossible,
    refuse_lag,
)


class FakeSupervisor:
    """A supervisor with a primary in this state."""

    def __init__(self, state="STOPPED"):
        self.calls = self
        self.state = state

    def refuse_unless_running(self):
        pass

    def stopProcess(self, name):  # noqa: N802
        self.state = "STOPPED"

    def getProcessInfo(self, name):  # noqa: N802
        return {"statename": self.state}


@pytest.fixture
def servers(monkeypatch):
    """Answers by port and part of the query; a server without any is away.

    Under port 0, the queries that were asked.
    """
    queries: list[str] = []
    answers: dict[int, Any] = {5432: {}, 5433: {}, 0: queries}

    def ask(run, port, query):
        if not answers[port]:
            raise Refusal("no answer")
        queries.append(query)
        matching = [answer for part, answer in answers[port].items() if part in query]
        return matching[0] if matching else ""

    monkeypatch.setattr(promotion, "ask", ask)
    return answers


def test_a_replica_of_a_dead_primary_must_be_fresh(servers, tmp_path, capsys):
    servers[5433] = {"replay_timestamp": "61"}
    with pytest.raises(Refusal, match="--although-it-lags"):
        refuse_lag(tmp_path, tmp_path, False)
    assert "61 s before now" in capsys.readouterr().out
    refuse_lag(tmp_path, tmp_path, True)
    servers[5433] = {"replay_timestamp": "60"}
    refuse_lag(tmp_path, tmp_path, False)


def test_the_time_since_the_primarys_death_is_not_lag(servers, tmp_path, capsys):
    """The replica has all that was written, however long ago that was."""
    log = tmp_path / "pg_wal"
    log.mkdir()
    for name, written in (("0001", 1_700_000_000), ("0002", 1_600_000_000)):
        (log / name).touch()
        os.utime(log / name, (written, written))
    servers[5433] = {"replay_timestamp": "2"}
    refuse_lag(tmp_path, tmp_path, False)
    assert "2 s before the primary's last write" in capsys.readouterr().out
    assert "to_timestamp(1700000000.0)" in servers[0][-1]
    assert "clock_timestamp" not in servers[0][-1]


def test_a_primary_that_serves_must_be_followed(servers, tmp_path):
    servers[5432] = {"SELECT true": "t", "pg_stat_replication": "f"}
    with pytest.raises(Refusal, match="does not follow"):
        refuse_lag(tmp_path, tmp_path, True)
    servers[5432]["pg_stat_replication"] = "t"
    refuse_lag(tmp_path, tmp_path, False)


def test_a_promotion_that_only_warned_has_failed(servers, tmp_path):
    servers[5433] = {"pg_promote": "f"}
    with pytest.raises(Refusal, match="no data were moved"):
        promote_replica(FakeSupervisor(), tmp_path)
    servers[5433] = {"pg_promote": "t"}
    promote_replica(FakeSupervisor(), tmp_path)


def test_an_interrupted_promotion_refuses_another_primary(servers, tmp_path):
    servers[5433] = {"SELECT true": "t", "pg_is_in_recovery": "f"}
    refuse_impossible(FakeSupervisor("STOPPED"), tmp_path, False)
    with pytest.raises(Refusal, match="a primary already"):
        refuse_impossible(FakeSupervisor("BACKOFF"), tmp_path, False)
    servers[5432] = {"SELECT true": "t"}
    with pytest.raises(Refusal, match="a primary already"):
        refuse_impossible(FakeSupervisor("STOPPED"), tmp_path, True)
