"""`provisioning/stack` and the folder it lives in; no server is started."""

from __future__ import annotations

import os
from argparse import Namespace

import pytest

from provisioning.commands import Refusal
from provisioning.installation import promotion
from provisioning.installation import stack as stack_command
from provisioning.installation.promotion import (
    promote_replica,
    refuse_impossible,
    refuse_lag,
)
from provisioning.installation.stack import put_aside, refuse_unmovable
from provisioning.installation.up import (
    StackOptions,
    keep_options,
    merge_options,
    refuse_other_owner,
)
from provisioning.load.target import refuse_real_respondents

pytestmark = pytest.mark.once


def options(home, *settings, port=None):
    return merge_options(home, Namespace(port=port, set=list(settings)))


# What was chosen before


def test_port_and_settings_are_kept_until_somebody_changes_them(tmp_path, capsys):
    keep_options(
        tmp_path, options(tmp_path, ("commit_delay", "9"), ("x", "1"), port=9000)
    )
    assert capsys.readouterr().out == ""
    assert options(tmp_path) == StackOptions(9000, {"commit_delay": "9", "x": "1"})
    said = "As the last time: --port=9000 --set=commit_delay=9 --set=x=1\n"
    assert capsys.readouterr().out == said
    assert options(tmp_path, ("x", "2"), port=9100).settings["x"] == "2"
    assert (tmp_path / "etc" / "chosen.json").stat().st_mode & 0o777 == 0o600


def test_nothing_after_the_sign_forgets_it(tmp_path):
    keep_options(tmp_path, StackOptions(9000, {"commit_delay": "9"}))
    assert options(tmp_path, ("commit_delay", ""), port=0) == StackOptions(0, {})


# Rebuilding


def test_a_second_rebuild_leaves_what_the_firstput_aside(tmp_path, monkeypatch):
    home = tmp_path / ".stack"
    for number in (1, 2):
        home.mkdir()
        (home / "answers").write_text(str(number))
        stamp = f"20260101-00000{number}"
        monkeypatch.setattr(
            stack_command.time, "strftime", lambda _, stamp=stamp: stamp
        )
        put_aside(home)
    kept = sorted(tmp_path.glob(".stack.before-*/answers"))
    assert [one.read_text() for one in kept] == ["1", "2"]


def test_a_link_is_notput_aside(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path)
    with pytest.raises(Refusal, match="symbolic link"):
        refuse_unmovable(tmp_path / "link")
    refuse_unmovable(tmp_path)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give folders away")
def test_root_leaves_a_users_stack_alone(tmp_path):
    refuse_other_owner(tmp_path, "nobody")
    os.chown(tmp_path, 12345, 12345)
    with pytest.raises(Refusal, match="belongs to another user"):
        refuse_other_owner(tmp_path, "nobody")


# Whom nobody measures with


def test_real_people_are_not_touched():
    with pytest.raises(Refusal, match=r"now \(spring\), and no"):
        refuse_real_respondents(lambda question: ["spring"], consequence="no")
    refuse_real_respondents(lambda question: [], consequence="no")


# Promoting


class Supervised:
    """A supervisor whose primary is in this state."""

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
    """What each says to what; an empty one is away."""
    says: dict[int, dict[str, str]] = {5432: {}, 5433: {}}

    def ask(run, port, question):
        if not says[port]:
            raise Refusal("nobody there")
        found = [say for part, say in says[port].items() if part in question]
        return found[0] if found else ""

    monkeypatch.setattr(promotion, "ask", ask)
    return says


def test_a_replica_of_a_dead_primary_must_be_fresh(servers, tmp_path, capsys):
    servers[5433] = {"replay_timestamp": "61"}
    with pytest.raises(Refusal, match="--although-it-lags"):
        refuse_lag(tmp_path, False)
    assert "61 s old" in capsys.readouterr().out
    refuse_lag(tmp_path, True)
    servers[5433] = {"replay_timestamp": "60"}
    refuse_lag(tmp_path, False)


def test_a_primary_that_serves_must_be_followed(servers, tmp_path):
    servers[5432] = {"SELECT true": "t", "pg_stat_replication": "f"}
    with pytest.raises(Refusal, match="does not follow"):
        refuse_lag(tmp_path, True)
    servers[5432]["pg_stat_replication"] = "t"
    refuse_lag(tmp_path, False)


def test_a_promotion_that_only_warned_is_none(servers, tmp_path):
    servers[5433] = {"pg_promote": "f"}
    with pytest.raises(Refusal, match="no data were moved"):
        promote_replica(Supervised(), tmp_path)
    servers[5433] = {"pg_promote": "t"}
    promote_replica(Supervised(), tmp_path)


def test_a_promoted_replica_goes_on_only_without_another_primary(servers, tmp_path):
    servers[5433] = {"SELECT true": "t", "pg_is_in_recovery": "f"}
    refuse_impossible(Supervised("STOPPED"), tmp_path, False)
    with pytest.raises(Refusal, match="a primary already"):
        refuse_impossible(Supervised("BACKOFF"), tmp_path, False)
    servers[5432] = {"SELECT true": "t"}
    with pytest.raises(Refusal, match="a primary already"):
        refuse_impossible(Supervised("STOPPED"), tmp_path, True)
