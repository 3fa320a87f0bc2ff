"""Render the templates with the inventory of a fleet whose database is a cluster."""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from provisioning.installation.playbook import ANSIBLE
from provisioning.tests.installation.rendered_files import play, render_fleet
from provisioning.tests.installation.test_fleet import rules_of, verified_names

EXAMPLE_CLUSTER = f"--inventory={ANSIBLE / 'inventories' / 'citus.example'}"
HOSTS = ("db1", "node1a", "node1c", "node2b", "web1", "worker1")
COORDINATOR = {"10.0.0.11", "10.0.0.12", "10.0.0.13"}
NODES = {f"10.0.0.{number}" for number in (81, 82, 83, 91, 92, 93)}
PROGRAMS = {"10.0.0.41", "10.0.0.42", "10.0.0.51", "10.0.0.52"}


@pytest.fixture(scope="module")
def cluster() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="gs-", dir="/tmp"))
    render_fleet(folder, EXAMPLE_CLUSTER, f"--limit={','.join(HOSTS)}")
    yield folder
    shutil.rmtree(folder)


def read(cluster: Path, path: str) -> str:
    host, _, name = path.partition("/")
    return (cluster / host / "etc" / name).read_text()


def settings_of(cluster: Path, host: str) -> dict[str, str]:
    text = read(cluster, f"{host}/database/server.conf")
    return dict(re.findall(r"^([a-z_.]+) = (.+)$", text, re.MULTILINE))


def test_the_inventory_lists_a_primary_and_two_standbys_for_each_node(tmp_path):
    play(tmp_path, EXAMPLE_CLUSTER, "--syntax-check")
    written = yaml.safe_load(
        (ANSIBLE / "inventories/citus.example/hosts.yml").read_text()
    )
    hosts = written["fleet"]["children"]["citus_workers"]["hosts"].values()
    assert [host["citus_node"] for host in hosts] == [1, 1, 1, 2, 2, 2]


def test_worker_nodes_have_a_database_and_ask_the_coordinators_etcd(cluster):
    programs = {
        host: {
            path.parent.name for path in cluster.glob(f"{host}/etc/*/supervisor.ini")
        }
        for host in ("db1", "node1a")
    }
    assert programs["db1"] - programs["node1a"] == {"etcd"}
    assert programs["node1a"] >= {"database", "watch", "clock", "backup"}
    for host, group in (("db1", 0), ("node1a", 1), ("node1c", 1), ("node2b", 2)):
        patroni = yaml.safe_load(read(cluster, f"{host}/database/patroni.yml"))
        assert patroni["citus"] == {"group": group, "database": "groundswell"}
        assert patroni["etcd"]["hosts"] == [
            f"{each}:2379" for each in sorted(COORDINATOR)
        ]
        assert f"groundswell --group {group}\n" in (
            read(cluster, f"{host}/database/configure").replace(" >/dev/null; do", "\n")
        )


def test_patroni_keeps_the_settings_of_a_node(cluster):
    """It gives some to PostgreSQL itself, in place of those of its configuration."""
    settings = settings_of(cluster, "node2b")
    dcs = yaml.safe_load(read(cluster, "node2b/database/dcs.yml"))
    of_patroni = dcs["postgresql"]["parameters"]
    for name in (
        *("wal_level", "max_prepared_transactions", "max_locks_per_transaction"),
        *("max_worker_processes", "max_connections", "shared_preload_libraries"),
    ):
        assert str(of_patroni[name]) == settings[name].strip("'"), name
    assert settings["wal_level"] == "logical"
    assert settings["shared_preload_libraries"] == "'citus,pg_stat_statements'"


def test_nodes_call_one_another_encrypted_and_verified(cluster):
    for host, address in (("db1", "10.0.0.11"), ("node1a", "10.0.0.81")):
        settings = settings_of(cluster, host)
        assert settings["citus.local_hostname"] == f"'{address}'"
        authority = cluster / host / "etc/certificates/ca.pem"
        assert settings["citus.node_conninfo"] == (
            f"'sslmode=verify-full sslrootcert={authority}'"
        )
        certificate = cluster / host / "etc/database/certificate.pem"
        assert f"IP Address:{address}," in verified_names(authority, certificate)
        admitted = re.findall(
            "^hostssl groundswell all (.+)/32 scram-sha-256$",
            read(cluster, f"{host}/database/pg_hba.conf"),
            re.MULTILINE,
        )
        assert set(admitted) == COORDINATOR | NODES
    text = read(cluster, "node1a/database/pg_hba.conf")
    assert "trust" not in text
    # The superuser comes from nodes alone.
    assert not [
        line
        for line in text.splitlines()
        if re.search(r"\bpostgres .*/24", line) and "rewinder" not in line
    ]


def test_a_node_has_the_passwords_by_which_it_calls_the_others(cluster):
    passwords = {
        path.name.removeprefix("postgresql_"): path.read_text().strip()
        for path in (cluster / "secrets").glob("postgresql_*")
    }
    lines = read(cluster, "node1a/database/pgpass").splitlines()
    for role in ("postgres", "taking", "console", "worker", "reports", "groundswell"):
        assert f"*:*:*:{role}:{passwords[role]}" in lines
    assert 'PGPASSFILE="' in read(cluster, "node1a/database/supervisor.ini")
    roles = read(cluster, "node1a/database/roles.sql")
    assert f"ALTER ROLE postgres PASSWORD '{passwords['postgres']}'" in roles
    for host in ("web1", "worker1"):
        written = [
            path for path in (cluster / host / "etc").rglob("*") if path.is_file()
        ]
        assert not any(passwords["postgres"] in path.read_text() for path in written)


@pytest.mark.parametrize(
    ("host", "port", "callers"),
    [
        ("db1", "5432", COORDINATOR | NODES | PROGRAMS),
        ("node1a", "5432", COORDINATOR | NODES),
        ("node1a", "8008", COORDINATOR | NODES),
        ("db1", "2379", COORDINATOR | NODES),
        ("db1", "2380", COORDINATOR),
        ("node2b", "8432", NODES),
    ],
)
def test_firewalls_admit_what_nodes_say_to_one_another(cluster, host, port, callers):
    accepted, dropped = rules_of(cluster, host, port)
    assert set(accepted) == callers
    assert dropped


def test_programs_are_told_and_call_the_coordinator_alone(cluster):
    for path in (
        "web1/app/taking.env",
        "web1/app/console.env",
        "worker1/app/worker.env",
    ):
        text = read(cluster, path)
        assert "GROUNDSWELL_DISTRIBUTED=true" in text
        assert "GROUNDSWELL_REPLICA_" not in text
    assert "GROUNDSWELL_REPORTS_NAME=reports\n" in read(
        cluster, "worker1/app/worker.env"
    )
    assert "_replica" not in read(cluster, "web1/pgbouncer/pgbouncer.ini")
    proxy = read(cluster, "web1/haproxy/haproxy.cfg")
    assert set(re.findall(r"server \S+ ([0-9.]+):5432", proxy)) == COORDINATOR


def test_staffs_roles_get_the_settings_of_a_cluster_in_the_same_transaction(cluster):
    roles = read(cluster, "node1a/database/roles.sql")
    for role in ("groundswell", "console", "worker"):
        [block] = re.findall(
            rf"BEGIN;\nALTER ROLE {role} RESET ALL;\n(.+?)COMMIT;", roles, re.DOTALL
        )
        assert "citus.multi_shard_modify_mode = 'sequential'" in block
        assert "citus.local_table_join_policy = 'prefer-distributed'" in block
    assert "taking SET citus." not in roles


def test_tables_are_distributed_once_and_functions_come_back(cluster):
    text = read(cluster, "db1/citus/distribution.sql")
    first, _, later = text.partition("\\else")
    assert "create_distributed_table('public.survey_response'" in first
    assert "create_distributed_table" not in later
    assert "FUNCTION public.survey_answered_people" in later
    assert "groupid > 0 AND isactive AND metadatasynced) = 2 THEN" in (
        read(cluster, "db1/citus/wait.sql")
    )
    assert not (cluster / "node1a/etc/citus").exists()


def test_each_node_has_backups_of_its_own(cluster):
    stanzas = {}
    for host in ("db1", "node1c", "node2b"):
        text = read(cluster, f"{host}/backup/pgbackrest.conf")
        [stanza] = re.findall(r"^\[(groundswell.*)\]$", text, re.MULTILINE)
        stanzas[host] = stanza
        assert f"--stanza={stanza} archive-push" in (
            read(cluster, f"{host}/database/postgresql.conf")
        )
        assert f"=groundswell{stanza.removeprefix('groundswell')}\n" in text
    assert stanzas == {
        "db1": "groundswell", "node1c": "groundswell-1", "node2b": "groundswell-2"
    }  # fmt: skip
    text = read(cluster, "node1c/backup/pgbackrest.conf")
    assert re.findall("pg[0-9]-host = (.+)", text) == ["10.0.0.81", "10.0.0.82"]
    programs = {
        host: re.findall(
            r"program:(\w+)", read(cluster, f"{host}/backup/supervisor.ini")
        )
        for host in ("db1", "node1a", "node1c", "worker1")
    }
    assert programs == {
        "db1": ["restore_points", "backup_server"],
        "node1a": ["backup_server"],
        # The last host of each node makes its backups.
        "node1c": ["backup", "backup_server"],
        "worker1": [],
    }


def test_a_host_with_the_repository_knows_all_nodes(tmp_path):
    render_fleet(
        tmp_path,
        EXAMPLE_CLUSTER,
        *("--limit=node2c", "--skip-tags=failover"),
        backup_repository="host",
        backup_host="10.0.0.71",
    )
    there = read(tmp_path, "node2c/backup/repository_host/pgbackrest.conf")
    stanzas = re.findall(r"^\[(groundswell.*)\]$", there, re.MULTILINE)
    assert stanzas == ["groundswell", "groundswell-1", "groundswell-2"]
    assert set(re.findall("pg[1-3]-host = (.+)", there)) == COORDINATOR | NODES
