"""Stop a fleet's database in order, and begin anew: another version, or a cluster."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from provisioning.installation.playbook import ANSIBLE
from provisioning.tests.installation.fleet_night import (
    DATABASES,
    FleetOfFolders,
    fleet_of_folders,
)

UPGRADE = "upgrade_postgresql.yml"
CLUSTER = "become_cluster.yml"


@pytest.fixture
def fleet() -> Iterator[FleetOfFolders]:
    with (
        tempfile.TemporaryDirectory(prefix="gs-", dir="/tmp") as folder,
        fleet_of_folders(Path(folder)) as made,
    ):
        yield made


def stops_of(fleet: FleetOfFolders) -> list[str]:
    return fleet.hosts_that(" pg_ctl stop")


def assert_stopped_in_order(fleet: FleetOfFolders) -> None:
    """Patroni pauses, the primary stops, then its standbys, then Patroni everywhere."""
    assert stops_of(fleet)[0] == "db2"
    assert sorted(stops_of(fleet)) == list(DATABASES)
    log = "\n".join(fleet.log())
    assert log.index("patronictl") < log.index("pg_ctl stop")
    # A standby stops once it has replayed what the primary wrote last.
    assert log.index("pg_ctl stop") < log.index("replay_lsn")
    assert log.rindex("replay_lsn") < log.rindex("pg_ctl stop")
    assert sorted(fleet.hosts_that("replay_lsn")) == ["db1", "db3"]
    assert log.rindex("pg_ctl stop") < log.index("stop database")


def assert_primary_started_first(fleet: FleetOfFolders) -> None:
    started = fleet.hosts_that(" start ", "database")
    assert started[0] == "db2"
    assert sorted(started) == list(DATABASES)
    assert fleet.state("db2")["state"] == "primary"
    assert {fleet.state(host)["state"] for host in ("db1", "db3")} == {"standby"}


def test_the_night_of_another_version(fleet):
    status, printed = fleet.play(UPGRADE, to=17, link=True)
    assert status == 0, printed
    assert_stopped_in_order(fleet)
    assert_primary_started_first(fleet)
    assert fleet.hosts_that("upgrade_data_folder", "--to 17 --link") == ["db2"]
    log = "\n".join(fleet.log())
    places = [
        log.index(words)
        for words in (
            *("pg_ctl stop", "upgrade_data_folder", "etcdctl"),
            *("prepare stanza-upgrade", " start ", "vacuumdb", "answers /replica"),
        )
    ]
    assert places == sorted(places)
    # Under A2 a commit waits for a standby, and none is there yet.
    assert fleet.hosts_that("vacuumdb", "synchronous_commit=local") == ["db2"]
    for host in DATABASES:
        assert fleet.state(host)["version"] == 17
        patroni = (fleet.hosts / host / "etc/database/patroni.yml").read_text()
        assert "/postgresql/17/bin" in patroni
    # The standbys' folders are the way back, and they are copied anew.
    for host in ("db1", "db3"):
        aside = fleet.hosts / host / "data/postgresql-15"
        assert (aside / "PG_VERSION").read_text() == "15"
    assert not (fleet.hosts / "db2/data/postgresql-15").exists()
    status, printed = fleet.play(UPGRADE, to=17)
    assert "PostgreSQL 17 serves already: go on with site.yml" in printed
    assert "/postgresql/17/bin/vacuumdb --all --analyze-only" in printed
    assert status
    assert fleet.hosts_that("upgrade_data_folder") == ["db2"]


def test_a_night_that_was_interrupted_goes_on(fleet):
    fleet.stop()
    fleet.change("db2", version=17)
    status, printed = fleet.play(UPGRADE, to=17)
    assert status == 0, printed
    # Nothing is stopped or upgraded a second time.
    assert stops_of(fleet) == fleet.hosts_that("upgrade_data_folder") == []
    assert_primary_started_first(fleet)


def test_another_host_with_the_repository_reads_the_files_of_the_primary(fleet):
    there = {
        "backup_repository": "host",
        "backup_host": "127.0.0.99",
        "backup_host_command": f"{fleet.folder}/bin/repository",
    }
    status, printed = fleet.play(
        *("site.yml", "--limit=failover", "--tags=backup"), **there
    )
    assert status == 0, printed
    # Its own configuration begins with a standby, whose folder is aside by then.
    conf = fleet.hosts / "db3/etc/backup/repository_host/pgbackrest.conf"
    assert "pg1-host = 127.0.0.13" in conf.read_text()
    status, printed = fleet.play(UPGRADE, to=17, **there)
    assert status == 0, printed
    assert len(fleet.hosts_that("--pg1-host=127.0.0.12 stanza-upgrade")) == 1


# What is changed before -> what is refusal.
UNREADY = {
    "behind": "end at different places of the log",
    # upgrade_data_folder starts the old server once, and renames its pg_control when
    # it has linked the files.
    "interrupted inside": "db2 at 0/2, db3 at 0/1). Start them again",
    "interrupted after linking": "db2 is without data",
    "earlier night": "data/postgresql-15 is of an earlier night",
    "cluster": "nodes of a cluster can't be upgraded so",
    "stopped cluster": "nodes of a cluster can't be upgraded so",
    "two primaries": "One host has to be the primary",
    "crashed": "One host has to be the primary",
    "survey": "This is no time for it: Climate 2027 opens at 08:00",
}


@pytest.mark.parametrize("kind", UNREADY)
def test_a_fleet_that_is_not_ready_is_not_upgraded(fleet, kind):
    match kind:
        case "behind":
            fleet.change("db3", checkpoint="0/0")
        case "interrupted inside" | "interrupted after linking" | "stopped cluster":
            fleet.stop()
            if kind == "interrupted inside":
                fleet.change("db2", checkpoint="0/2")
            elif kind == "stopped cluster":
                deploy(fleet, "db3", "scope: groundswell\n\ncitus:\n  group: 0\n")
            else:
                (fleet.hosts / "db2/data/database/state.json").unlink()
        case "earlier night":
            (fleet.hosts / "db1/data/postgresql-15").mkdir()
        case "cluster":
            fleet.change("db2", libraries="citus,pg_stat_statements")
        case "two primaries":
            fleet.change("db1", state="primary")
        case "crashed":
            fleet.change("db1", state="in archive recovery")
        case "survey":
            (fleet.hosts / "reasons").write_text('["Climate 2027 opens at 08:00"]')
    status, printed = fleet.play(UPGRADE, to=17)
    assert status
    assert UNREADY[kind] in " ".join(printed.split())
    assert fleet.hosts_that("upgrade_data_folder") == []
    assert bool(stops_of(fleet)) == (kind == "behind")


def test_a_survey_day_can_be_overridden(fleet):
    (fleet.hosts / "reasons").write_text('["Climate 2027 opens at 08:00"]')
    status, printed = fleet.play(UPGRADE, to=17, during_survey=True)
    assert status == 0, printed
    assert fleet.hosts_that("upgrade_data_folder") == ["db2"]


@pytest.mark.parametrize(
    ("options", "cluster", "variables", "refusal"),
    [
        ((), False, {}, "Say to which version"),
        ((), False, {"to": 18}, "Say to which version"),
        ((), True, {"to": 17}, "nodes of a cluster can't be upgraded so"),
        (("--limit=db1",), False, {"to": 17}, "All database hosts have to take part"),
        ((), False, {"to": 17, "upgrade_room": 10**12}, "MB free, and this needs"),
    ],
)
def test_what_is_not_possible_is_refused(fleet, options, cluster, variables, refusal):
    status, printed = fleet.play(UPGRADE, *options, cluster=cluster, **variables)
    assert status
    assert refusal in " ".join(printed.split())
    assert fleet.log() == [] or stops_of(fleet) == []


# A fleet that serves becomes a cluster


def give_citus(fleet: FleetOfFolders) -> None:
    share = fleet.folder / "usr/share/postgresql/15/extension"
    share.mkdir(parents=True)
    (share / "citus.control").touch()


def run_worker_nodes(fleet: FleetOfFolders, *addresses: str) -> None:
    for address in addresses:
        fleet.change(address, state="primary", version=15)


def test_a_fleet_becomes_a_coordinator(fleet):
    give_citus(fleet)
    run_worker_nodes(fleet, "127.0.0.82", "127.0.0.91")
    for host in DATABASES:
        settings = fleet.hosts / host / "data/database/patroni.dynamic.json"
        settings.write_text('{"postgresql": {"parameters": {}}}')
    status, printed = fleet.play(CLUSTER, cluster=True)
    assert status == 0, printed
    assert_stopped_in_order(fleet)
    assert_primary_started_first(fleet)
    # Pages are closed before the database stops, and nginx goes on.
    log = "\n".join(fleet.log())
    assert log.index("stop taking:taking_0 long_worker") < log.index("pg_ctl stop")
    assert "stop nginx" not in log
    for host in DATABASES:
        patroni = yaml.safe_load(
            (fleet.hosts / host / "etc/database/patroni.yml").read_text()
        )
        assert patroni["citus"] == {"group": 0, "database": "groundswell"}
        # Patroni's leader would write them over those of a cluster.
        assert not (fleet.hosts / host / "data/database/patroni.dynamic.json").exists()
    assert sorted(fleet.hosts_that("patronictl", "edit-config")) == ["db2"]


@pytest.mark.parametrize("missing", ["node", "citus", "inventory"])
def test_a_fleet_that_is_not_prepared_stays_one(fleet, missing):
    if missing != "citus":
        give_citus(fleet)
    run_worker_nodes(fleet, "127.0.0.81")
    if missing != "node":
        run_worker_nodes(fleet, "127.0.0.93")
    status, printed = fleet.play(CLUSTER, cluster=missing != "inventory")
    refusal = {
        "node": "Worker node 2 has no primary that these hosts reach",
        "citus": "PostgreSQL 15 has no Citus here",
        "inventory": "Give two inventories",
    }
    assert status
    assert refusal[missing] in " ".join(printed.split())
    assert stops_of(fleet) == []


def test_a_coordinator_that_runs_is_not_stopped(fleet):
    fleet.change("db2", libraries="citus,pg_stat_statements")
    status, printed = fleet.play(CLUSTER, cluster=True)
    assert status
    assert "go on with site.yml" in printed
    assert stops_of(fleet) == []


def deploy(fleet: FleetOfFolders, host: str, patroni: str) -> None:
    folder = fleet.hosts / host / "etc/database"
    folder.mkdir(exist_ok=True)
    (folder / "patroni.yml").write_text(patroni)


# With one role's tasks only: where it is not refused, nothing of this machine changes.
USUAL = ("site.yml", "--limit=failover", "--tags=failover")
# The backup's files need certificates, and the host's own are not touched.
FILES = ("--tags=files", "--skip-tags=backup,firewall,kernel,chrony,updates")


def test_the_usual_playbook_makes_no_cluster_of_a_fleet_that_serves(fleet):
    deploy(fleet, "db1", "scope: groundswell\nname: db1\n")
    status, printed = fleet.play(*USUAL, cluster=True)
    assert status
    assert "run become_cluster.yml" in printed
    assert not (fleet.hosts / "db1/etc/database/dcs.yml").exists()
    # The firewall may open before, on new hosts too, which have no code. Its tasks are
    # skipped here.
    status, printed = fleet.play(
        *("site.yml", "--limit=failover", "--tags=firewall", "--skip-tags=firewall"),
        cluster=True,
        deploys_code=True,
        checkout=f"{fleet.folder}/none",
    )
    assert status == 0, printed


def test_the_usual_playbook_makes_no_fleet_of_a_cluster(fleet):
    deploy(fleet, "db1", "scope: groundswell\n\ncitus:\n  group: 0\n")
    status, printed = fleet.play(*USUAL)
    assert status
    assert "give the inventory of its worker nodes too" in printed
    assert not (fleet.hosts / "db1/etc/database/dcs.yml").exists()
    # The way back: without Patroni's configuration, the fleet's is written.
    (fleet.hosts / "db1/etc/database/patroni.yml").unlink()
    fleet.stop()
    status, printed = fleet.play("site.yml", "--limit=failover", *FILES)
    assert status == 0, printed
    written = (fleet.hosts / "db1/etc/database/patroni.yml").read_text()
    assert "group:" not in written
    assert fleet.hosts_that(" start ") == fleet.hosts_that("signal") == []


def test_some_roles_alone_write_the_version_of_the_data(fleet):
    """The checkout is a folder here, which no task of these brings."""
    for host in DATABASES:
        fleet.change(host, version=17)
    status, printed = fleet.play(
        "site.yml", "--limit=failover", *FILES, deploys_code=True
    )
    assert status == 0, printed
    for host in DATABASES:
        written = (fleet.hosts / host / "etc/database/patroni.yml").read_text()
        assert "/postgresql/17/bin" in written


def test_pages_stay_closed_where_tables_are_not_distributed():
    plays = yaml.safe_load((ANSIBLE / "site.yml").read_text())
    names = [play["name"] for play in plays]
    [cluster] = [play for play in plays if play["name"] == "Cluster"]
    # Without it, only the host that failed leaves the plays after it.
    assert cluster["any_errors_fatal"]
    assert names.index("Cluster") < names.index("Web")


def test_without_the_check_the_usual_playbook_starts_hosts_in_any_order(fleet):
    """Be the damage: db1 has no Patroni's configuration, so that nothing is checked."""
    for host in DATABASES:
        fleet.change(host, state="shut down")
    status, printed = fleet.play(*USUAL, "--forks=1", cluster=True)
    assert status == 0, printed
    assert fleet.hosts_that(" start ", "database")[0] != "db2"
