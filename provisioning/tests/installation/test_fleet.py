"""Render the templates with the inventory of a fleet."""

from __future__ import annotations

import configparser
import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import jinja2
import pytest
import yaml

from provisioning.installation.environment import PYTHON, ROLES, path_of_program
from provisioning.installation.playbook import ANSIBLE, ansible_environment
from provisioning.installation.stack_folder import environment_of
from provisioning.tests.installation.rendered_files import (
    EXAMPLE_FLEET,
    play,
    render_fleet,
)

# Each host that differs from the others in more than its address: the last database
# makes the backups, the first web server migrates, and one worker has the scheduler.
DATABASE_HOSTS = ("db1", "db3")
RENDERED = (
    *DATABASE_HOSTS,
    *("cache1", "queue1", "web1", "web2", "worker1", "worker2", "load1"),
)


@pytest.fixture(scope="module")
def fleet() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="gs-", dir="/tmp"))
    render_fleet(folder, f"--limit={','.join(RENDERED)}", nginx_version="1.26.3")
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def changed_fleet() -> Iterator[Path]:
    """Some hosts, with what an owner may choose instead, rendered together."""
    folder = Path(tempfile.mkdtemp(prefix="gs-", dir="/tmp"))
    render_fleet(
        folder,
        "--limit=db3,web2,worker1",
        "--skip-tags=failover,kernel,chrony,haproxy,pgbouncer",
        nginx_version="1.22.1",
        untracked=False,
        files_bucket="",
        files_shared=True,
        files_gid=2001,
        backup_repository="host",
        backup_host="10.0.0.71",
        allowed_hosts=".example.org",
    )
    yield folder
    shutil.rmtree(folder)


def test_the_playbooks_syntax_is_correct(tmp_path):
    play(tmp_path, EXAMPLE_FLEET, "--syntax-check")


def test_each_host_has_its_own_programs_only(fleet):
    programs = {
        host.name: {ini.parent.name for ini in host.glob("etc/*/supervisor.ini")}
        for host in fleet.iterdir()
        if (host / "etc").is_dir()
    }
    assert all("logs" in names for names in programs.values())
    web = {"nginx", "taking", "console", "pgbouncer", "haproxy"}
    database = {"database", "etcd", "clock", "watch", "backup"}
    assert {host: names - {"logs"} for host, names in programs.items()} == {
        "db1": database,
        "db3": database,
        "cache1": {"memcached", "redis", "redis-messages"},
        "queue1": {"rabbitmq"},
        "web1": web,
        "web2": web,
        "worker1": {"worker", "pgbouncer", "haproxy", "backup"},
        "worker2": {"worker", "pgbouncer", "haproxy", "backup"},
        "load1": set(),
    }


@pytest.mark.parametrize("host", ["db1", "web1", "worker1"])
def test_each_host_says_where_its_code_is(host, fleet):
    """So that `provisioning/stack` there finds the host's servers."""
    described = json.loads((fleet / host / "etc/stack.json").read_text())
    assert described["checkout_of_fleet"] == "/srv/groundswell-checkout"


def test_templates_are_completely_rendered(fleet):
    written = [path for path in fleet.glob("*/etc/**/*") if path.is_file()]
    assert len(written) > 100
    for path in written:
        text = path.read_text()
        assert "{{" not in text, path
        assert "{%" not in text, path
        assert path.stat().st_mode & 0o077 == 0, path
    for path in fleet.glob("*/etc/*/supervisor.ini"):
        configparser.RawConfigParser().read(path)


def test_hosts_have_addresses_and_passwords_of_others(fleet):
    def etc(path: str) -> str:
        host, _, name = path.partition("/")
        return (fleet / host / "etc" / name).read_text()

    password = (fleet / "secrets" / "postgresql_taking").read_text().strip()
    assert f"ALTER ROLE taking  PASSWORD '{password}'" in etc("db1/database/roles.sql")
    assert f'"taking" "{password}"' in etc("web1/pgbouncer/users.txt")
    assert "taking = host=127.0.0.1 port=5432" in etc("web2/pgbouncer/pgbouncer.ini")
    assert "hostssl all groundswell,taking" in etc("db1/database/pg_hba.conf")
    redis = (fleet / "secrets" / "redis_password").read_text().strip()
    assert f"requirepass {redis}" in etc("cache1/redis/redis.conf")
    assert f"rediss://:{redis}@10.0.0.21:6379/0?ssl_ca_certs=/" in etc(
        "web1/app/taking.env"
    )
    assert f"rediss://:{redis}@10.0.0.21:6380/0?" in etc("web1/app/taking.env")
    queue = (fleet / "secrets" / "queue_password").read_text().strip()
    assert f"default_pass = {queue}" in etc("queue1/rabbitmq/rabbitmq.conf")
    assert f"amqps://groundswell:{queue}@10.0.0.31:5671//" in etc(
        "worker1/app/worker.env"
    )
    # No address is trusted, and no server listens everywhere.
    assert "trust" not in etc("db1/database/pg_hba.conf")
    assert "auth_type = scram-sha-256" in etc("web1/pgbouncer/pgbouncer.ini")


def test_each_program_has_the_secrets_it_needs_and_no_others(fleet):
    def secrets_of(host: str, program: str) -> set[str]:
        written = (fleet / host / "etc" / "app" / f"{program}.env").read_text()
        return {
            path.name
            for path in (fleet / "secrets").iterdir()
            if path.is_file() and path.read_text().strip() in written
        }

    shared = {"redis_password"}
    console = {
        "staff_secret_key",
        "access_code_key",
        "feed_key",
        "queue_password",
        *shared,
    }
    assert secrets_of("web1", "taking") == {
        "secret_key",
        "postgresql_taking",
        *shared,
    }
    assert secrets_of("web1", "console") == {
        "second_factor_key",
        "monitoring_key",
        "postgresql_console",
        *console,
    }
    assert secrets_of("worker1", "worker") == {
        "certificate_key",
        "postgresql_worker",
        "postgresql_reports",
        *console,
    }
    # Nor the password of the mail server.
    mail = "smtp+tls://groundswell:password@"
    assert mail in (fleet / "worker1/etc/app/worker.env").read_text()
    for program in ("taking", "console"):
        assert mail not in (fleet / "web1/etc/app" / f"{program}.env").read_text()


def test_each_host_has_the_passwords_of_its_own_roles(fleet):
    def passwords_on(host: str) -> set[str]:
        written = "".join(
            path.read_text() for path in (fleet / host / "etc").rglob("*.*")
        )
        return {
            path.name.removeprefix("postgresql_")
            for path in (fleet / "secrets").glob("postgresql_*")
            if path.read_text().strip() in written
        }

    roles = {"taking", "console", "worker", "reports", "groundswell", "replicator"}
    roles |= {"backup", "rewinder"}
    assert passwords_on("web2") == {"taking", "console"}
    assert passwords_on("worker1") == {"worker", "reports"}
    # It migrates.
    assert passwords_on("web1") == {"taking", "console", "groundswell"}
    for host in ("cache1", "queue1"):
        assert passwords_on(host) == set()
    assert passwords_on("db1") == roles


DATABASES = {"10.0.0.11", "10.0.0.12", "10.0.0.13"}
WEB_AND_WORKER = {"10.0.0.41", "10.0.0.42", "10.0.0.51", "10.0.0.52"}
CACHE_AND_QUEUE = {"10.0.0.21", "10.0.0.31"}
ADDRESSES = DATABASES | WEB_AND_WORKER | CACHE_AND_QUEUE | {"10.0.0.61"}


@pytest.mark.parametrize(
    ("host", "port", "callers"),
    [
        ("db1", "5432", DATABASES | WEB_AND_WORKER),
        ("db3", "5432", DATABASES | WEB_AND_WORKER),
        ("db1", "8008", DATABASES | WEB_AND_WORKER),
        ("db3", "2379", DATABASES),
        ("db1", "2380", DATABASES),
        ("cache1", "11211", WEB_AND_WORKER),
        ("cache1", "6379", WEB_AND_WORKER),
        ("queue1", "5671", WEB_AND_WORKER),
        ("queue1", "25672", {"10.0.0.31"}),
    ],
)
def test_firewalls_admit_only_known_callers(fleet, host, port, callers):
    accepted, dropped = rules_of(fleet, host, port)
    assert set(accepted) == callers
    assert dropped


def rules_of(fleet: Path, host: str, port: str) -> tuple[list[str], bool]:
    """Return the addresses admitted to a port, and whether all others are dropped."""
    accepted: list[str] = []
    for line in (fleet / host / "etc/firewall/rules.nft").read_text().splitlines():
        rule = re.fullmatch(
            r" *(?:ip saddr {(.+)} )?tcp dport {(.+)} (accept|drop)", line
        )
        if rule is None or port not in rule[2].replace(" ", "").split(","):
            continue
        if rule[3] == "drop":
            return accepted, True
        accepted += rule[1].replace(" ", "").split(",")
    return accepted, False


def test_web_hosts_admit_everybody_with_a_number_of_connections(fleet):
    rules = (fleet / "web1/etc/firewall/rules.nft").read_text()
    limits = re.findall(
        r"tcp dport { 80, 443 } ct state new add @clients6? { ip6? saddr"
        r"(?: & ffff:ffff:ffff:ffff::)? ct count over (\d+) } reject with tcp reset",
        rules,
    )
    # Not before a school of 2,000 behind one address has two for each pupil.
    assert [int(limit) > 2 * 2000 for limit in limits] == [True, True]
    named = [line for line in rules.splitlines() if "dport" in line]
    assert len([line for line in named if "notrack" not in line]) == len(limits)
    # And one address leaves most of nginx's connections to the others.
    nginx = (fleet / "web1/etc/nginx/nginx.conf").read_text()
    [connections] = re.findall("worker_connections ([0-9]+);", nginx)
    assert int(limits[0]) < int(connections)
    assert "ct count" not in (fleet / "db1/etc/firewall/rules.nft").read_text()


@pytest.mark.skipif(not path_of_program("nft"), reason="nftables is not installed here")
def test_firewall_rules_can_be_loaded(fleet):
    for rules in fleet.glob("*/etc/firewall/rules.nft"):
        # In a separate network, not this machine's.
        check = [
            "unshare",
            "--user",
            "--map-root-user",
            "--net",
            path_of_program("nft"),
        ]
        done = subprocess.run(
            [*check, "--check", "--file", rules], capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr


def test_every_host_asks_the_organisations_servers_for_the_time(fleet):
    hosts = [path for path in fleet.iterdir() if (path / "etc").is_dir()]
    assert {host.name for host in hosts} == set(RENDERED)
    for host in hosts:
        written = (host / "etc/chrony/chrony.conf").read_text()
        servers = re.findall("^server (.*) iburst$", written, re.MULTILINE)
        assert servers == [f"ntp{n}.example.org" for n in (1, 2, 3)], host
        assert "pool" not in written
        # It sets the clock after a start alone, and serves nobody.
        assert "\nmakestep 1 3\n" in written
        assert "\nport 0\n" in written


def test_without_servers_of_its_own_a_fleet_asks_the_pool():
    role = ROLES / "chrony"
    defaults = yaml.safe_load((role / "defaults/main.yml").read_text())
    template = (role / "templates/chrony.conf.j2").read_text()
    written = jinja2.Template(template, trim_blocks=True).render(defaults)
    assert re.match("pool [a-z0-9.]+ iburst maxsources 4\n#", written)
    assert "server" not in written


@pytest.mark.skipif(not path_of_program("chronyd"), reason="chrony is not installed")
def test_chrony_reads_its_configuration(fleet):
    file = fleet / "db1/etc/chrony/chrony.conf"
    printed = subprocess.check_output([path_of_program("chronyd"), "-p", "-f", file])
    assert b"server ntp1.example.org iburst" in printed


def test_private_files_are_in_a_bucket(fleet):
    bucket = "s3://KEY:SECRET@s3.us-east-1.amazonaws.com/groundswell-files"
    for host, name in (("web1", "console"), ("web2", "console"), ("worker1", "worker")):
        written = (fleet / host / "etc" / "app" / f"{name}.env").read_text()
        assert f"GROUNDSWELL_FILES_BUCKET='{bucket}?region=us-east-1'" in written
        assert "GROUNDSWELL_FILES_ADDRESS='/private-files/'" in written
    # Nor does any other program have the secret.
    for host, names in (("web1", {"console"}), ("worker1", {"worker"})):
        environments = (fleet / host / "etc" / "app").glob("*.env")
        with_secret = {p.stem for p in environments if "KEY:SECRET" in p.read_text()}
        assert with_secret - {"manage"} == names
    described = (fleet / "worker1/etc/backup/backup.json").read_text()
    assert '"files": ""' in described
    # A restore asks for the journal of erasures.
    assert '"files_bucket": true' in described


def test_storage_of_another_host_is_verified(fleet):
    nginx = (fleet / "web2/etc/nginx/nginx.conf").read_text()
    assert "set $files_server s3.us-east-1.amazonaws.com;" in nginx
    assert "proxy_pass https://$files_server/$stored$is_args$args;" in nginx
    assert "proxy_ssl_verify on;" in nginx
    assert "alias" not in nginx.partition("private-files")[2].partition("}")[0]


def test_private_files_may_be_in_a_shared_folder(changed_fleet):
    shared = changed_fleet / "shared"
    for path in ("web2/etc/app/console.env", "worker1/etc/app/worker.env"):
        written = (changed_fleet / path).read_text()
        assert f"GROUNDSWELL_FILES='{shared}'" in written
        assert "GROUNDSWELL_FILES_ADDRESS='/private-files/'" in written
    nginx = (changed_fleet / "web2/etc/nginx/nginx.conf").read_text()
    assert f"alias {shared}/;" in nginx
    for folder in (shared, shared / "incoming"):
        assert folder.stat().st_mode & 0o777 == 0o700
    schedule = (changed_fleet / "worker1/etc/backup/supervisor.ini").read_text()
    assert "program:backup]" in schedule


def test_a_fleet_with_one_database_is_told_that_it_is_no_cluster(fleet):
    text = (fleet / "web1/etc/app/taking.env").read_text()
    assert "GROUNDSWELL_DISTRIBUTED=false" in text
    written = [path for path in (fleet / "db1/etc").rglob("*") if path.is_file()]
    assert not [path.name for path in written if "citus." in path.read_text()]


def test_links_begin_with_the_first_name(changed_fleet):
    written = environment_of(changed_fleet / "worker1", "worker")
    assert written["GROUNDSWELL_URL"] == "https://example.org"
    assert written["GROUNDSWELL_EMAIL_FROM"].endswith("@example.org>")
    assert written["GROUNDSWELL_TIME_ZONE"] == "America/Chicago"


def test_workers_read_reports_with_a_read_only_role(fleet):
    worker = (fleet / "worker1/etc/app/worker.env").read_text()
    password = (fleet / "secrets" / "postgresql_reports").read_text().strip()
    assert "GROUNDSWELL_REPORTS_NAME=reports_replica" in worker
    assert f"GROUNDSWELL_REPORTS_PASSWORD='{password}'" in worker
    assert "GROUNDSWELL_DATABASE_USER=worker" in worker
    # Pages have no statements of minutes.
    assert "REPORTS" not in (fleet / "web1/etc/app/console.env").read_text()
    pools = (fleet / "worker1/etc/pgbouncer/pgbouncer.ini").read_text()
    assert "reports_replica = host=127.0.0.1 port=5433" in pools
    assert "worker = host=127.0.0.1 port=5432" in pools


def test_each_queue_has_its_own_workers(fleet):
    written = configparser.RawConfigParser()
    written.read(fleet / "worker1/etc/worker/supervisor.ini")
    queues = {"worker": "quick", "download_worker": "downloads"}
    queues |= {"email_worker": "emails"}
    for name, queue in queues.items():
        command = written[f"program:{name}"]["command"]
        assert f"--queues {queue} --hostname {queue}@%%h" in command
    assert (
        "--pool threads --concurrency 16"
        in written["program:download_worker"]["command"]
    )
    for name, host in (("long_worker", "long"), ("scan_worker", "scans")):
        command = written[f"program:{name}"]["command"]
        assert f"--queues confirmed,long,scans --hostname {host}@%%h" in command
        assert "nice -n 10" in command


def settings_of(host: Path) -> dict[str, str]:
    """Return the kernel's settings of a host, by name."""
    lines = (host / "etc/kernel/settings.conf").read_text().splitlines()
    pairs = [line.split(" = ") for line in lines if not line.startswith("#")]
    return dict(pairs)


def test_hosts_have_the_settings_of_the_kernel_that_they_need(fleet):
    web = settings_of(fleet / "web1")
    # 1,500 new connections a second on two cores, whose entries last two minutes.
    assert int(web["net.netfilter.nf_conntrack_max"]) > 1500 * 120
    assert web["kernel.sched_autogroup_enabled"] == "0"
    # Who respondents' queues of 64 cores have room for.
    assert int(web["net.core.somaxconn"]) > 64 * 512
    # A boot sets what the module has only if that is loaded before.
    modules = (fleet / "web1/etc/kernel/modules.conf").read_text()
    assert modules.endswith("\nnf_conntrack\n")
    database = settings_of(fleet / "db1")
    assert not [name for name in database if "conntrack" in name]
    assert "nf_conntrack" not in (fleet / "db1/etc/kernel/modules.conf").read_text()


def test_settings_that_a_machine_refuses_are_named_and_no_fault(fleet, tmp_path):
    kernel = {
        name: tmp_path / name.replace(".", "/") for name in settings_of(fleet / "db1")
    }
    for path in kernel.values():
        path.parent.mkdir(parents=True, exist_ok=True)
    # As a container has it: one setting is there, the other is not.
    kernel["net.core.somaxconn"].write_text("4096\n")
    kernel["kernel.sched_autogroup_enabled"].parent.rmdir()

    def apply() -> list[str]:
        done = subprocess.run(
            ["/bin/sh", fleet / "db1/etc/kernel/apply"],
            capture_output=True,
            text=True,
            env={"PATH": "/usr/bin:/bin", "PROC": str(tmp_path)},
        )
        assert done.returncode == 0
        return done.stdout.splitlines()

    refused = "kernel.sched_autogroup_enabled can not be set to 0 here"
    assert apply() == [refused, "net.core.somaxconn is now 65535"]
    assert kernel["net.core.somaxconn"].read_text() == "65535\n"
    # A second call changes nothing.
    assert apply() == [refused]


def test_what_servers_say_to_one_another_is_not_tracked(fleet):
    rules = (fleet / "web1/etc/firewall/rules.nft").read_text()
    assert "iif lo notrack" in rules
    left_out = re.findall(
        r"ip ([sd]addr) { (.*?) } tcp [sd]port { (.*?) } notrack", rules
    )
    assert [side for side, _, _ in left_out] == ["saddr", "saddr", "daddr", "daddr"]
    for _, addresses, ports in left_out:
        # Whoever could send from such a port would escape the count of connections.
        assert set(addresses.split(", ")) == ADDRESSES
        assert {"5432", "6379", "11211", "5671"} <= set(ports.split(", "))
        assert not {"80", "443", "22"} & set(ports.split(", "))


# A connection of loopback, once as the rules are, once without what they leave out.
COUNTS = """
ip link set lo up && nft --file {rules} && {python} -c "{connect}"
cat /proc/sys/net/netfilter/nf_conntrack_count
nft flush chain inet groundswell untracked_in
nft flush chain inet groundswell untracked_out
{python} -c "{connect}"
cat /proc/sys/net/netfilter/nf_conntrack_count
"""
CONNECT = (
    "import socket; server = socket.create_server(('127.0.0.1', 0));"
    " socket.create_connection(server.getsockname()).close()"
)


@pytest.mark.skipif(not path_of_program("nft"), reason="nftables is not installed here")
def test_connections_between_servers_take_no_place_in_the_kernels_table(fleet):
    script = COUNTS.format(
        rules=fleet / "web1/etc/firewall/rules.nft",
        python=sys.executable,
        connect=CONNECT,
    )
    done = subprocess.run(
        ["unshare", "--user", "--map-root-user", "--net", "sh", "-ec", script],
        capture_output=True,
        text=True,
    )
    assert done.stderr == ""
    as_written, all_tracked = map(int, done.stdout.split())
    assert (as_written, all_tracked > 0) == (0, True)


def test_an_owner_whose_rules_need_tracking_keeps_it(changed_fleet):
    rules = (changed_fleet / "web2/etc/firewall/rules.nft").read_text()
    assert "notrack" not in rules
    assert "ct count over" in rules


def test_messages_are_redelivered_only_after_the_longest_job(fleet):
    queue = (fleet / "queue1/etc/rabbitmq/rabbitmq.conf").read_text()
    [patience] = re.findall("^consumer_timeout = ([0-9]+)$", queue, re.MULTILINE)
    roles = (fleet / "db1/etc/database/roles.sql").read_text()
    longest = max(
        int(minutes)
        for minutes in re.findall(
            "ALTER ROLE (?:worker|reports) SET [a-z_]+ = '([0-9]+)min'", roles
        )
    )
    assert longest == 30
    assert int(patience) / 60_000 >= 2 * longest


def test_no_connection_begins_with_half_of_a_roles_settings(fleet):
    roles = (fleet / "db1/etc/database/roles.sql").read_text()
    names = re.findall(r"^ALTER ROLE (\w+) RESET ALL;$", roles, re.MULTILINE)
    assert {"taking", "console", "worker"} <= set(names)
    for name in names:
        setting = rf"ALTER ROLE {name} SET [^\n]+;\n"
        together = rf"BEGIN;\nALTER ROLE {name} RESET ALL;\n(?:{setting})+COMMIT;\n"
        assert re.search(together, roles)
        assert len(re.findall(setting, roles)) == re.search(together, roles)[0].count(
            " SET "
        )


def test_the_page_for_too_large_a_file_names_the_limit(fleet):
    nginx = (fleet / "web1/etc/nginx/nginx.conf").read_text()
    [megabytes] = re.findall("client_max_body_size ([0-9]+)m;", nginx)
    page = (fleet / "web1/etc/nginx/errors/413.html").read_text()
    assert f"up to {megabytes} MB" in page
    assert f"hasta {megabytes} MB" in page


def test_one_host_migrates_and_one_runs_the_scheduler(fleet):
    def has(host: str, path: str, text: str) -> bool:
        return text in (fleet / host / "etc" / path).read_text()

    hosts = ("web1", "web2", "worker1")
    assert [has(host, "app/release", "migrate") for host in hosts] == [1, 0, 0]
    beats = ["worker/supervisor.ini", "[program:beat]"]
    assert [has(host, *beats) for host in ("worker1", "worker2")] == [1, 0]


def test_a_fleet_ships_with_promise_a2_and_two_standbys(fleet):
    cluster = yaml.safe_load((fleet / "db1/etc/database/dcs.yml").read_text())
    assert cluster["synchronous_mode"]
    assert cluster["synchronous_mode_strict"]
    members = yaml.safe_load((fleet / "db3/etc/database/patroni.yml").read_text())
    assert len(members["etcd"]["hosts"]) == 3
    # A new cluster begins with what `configure` writes into an existing one.
    assert members["bootstrap"]["dcs"] == cluster


def test_a_primary_gives_up_before_its_lease_ends(fleet):
    cluster = yaml.safe_load((fleet / "db1/etc/database/dcs.yml").read_text())
    gives_up = cluster["loop_wait"] + 2 * cluster["retry_timeout"]
    assert gives_up <= cluster["ttl"] < 15


def test_pools_are_led_to_the_primary_by_patronis_word(fleet):
    proxy = (fleet / "worker1/etc/haproxy/haproxy.cfg").read_text()
    primary = proxy.partition("listen primary")[2].partition("listen replica")[0]
    assert "bind 127.0.0.1:5432" in primary
    assert "uri /primary" in primary
    servers = re.findall(r"server (\S+) (\S+):5432 check", primary)
    assert servers == [
        ("db1", "10.0.0.11"),
        ("db2", "10.0.0.12"),
        ("db3", "10.0.0.13"),
    ]
    # A host that hangs keeps no connection.
    assert "on-marked-down shutdown-sessions port 8008" in proxy


def test_sizes_depend_on_the_machines_memory(fleet):
    (line,) = [
        line
        for line in (fleet / "db1/etc/database/server.conf").read_text().splitlines()
        if line.startswith("shared_buffers")
    ]
    memory = int(Path("/proc/meminfo").read_text().split()[1]) // 1024
    assert abs(int(line.removeprefix("shared_buffers = ")[:-2]) - memory / 4) < 16


def test_slow_requests_end_with_the_workers_that_a_renewal_replaces(fleet):
    nginx = (fleet / "web1/etc/nginx/nginx.conf").read_text()
    [longest] = re.findall("worker_shutdown_timeout ([0-9]+)s;", nginx)
    written = configparser.RawConfigParser()
    written.read(fleet / "web1/etc/nginx/supervisor.ini")
    command = written["program:nginx_renewal"]["command"]
    assert f"sleep {longest}; do kill -HUP" in command
    [limit] = re.findall("limit_conn addresses ([0-9]+);", nginx)
    # A school behind one address is never refused.
    assert int(limit) >= 2000


def test_nginx_knows_the_session_cookie_by_its_name_with_tls(fleet):
    nginx = (fleet / "web1/etc/nginx/nginx.conf").read_text()
    assert r"\s*__Host-sessionid\s*=" in nginx
    assert "GROUNDSWELL_TLS=on" in (fleet / "web1/etc/app/taking.env").read_text()


def test_one_database_host_makes_encrypted_backups_into_a_bucket(fleet):
    written = {
        host: (fleet / host / "etc/backup/pgbackrest.conf").read_text()
        for host in DATABASE_HOSTS
    }
    passphrase = (fleet / "secrets" / "backup_passphrase").read_text().strip()
    for text in written.values():
        assert "repo1-type = s3" in text
        assert "repo1-cipher-type = aes-256-cbc" in text
        assert f"repo1-cipher-pass = {passphrase}" in text
        assert "archive-push-queue-max = 64GB" in text
    # It reads its own files, and reaches the others by its certificate.
    assert "pg1-host" not in written["db3"]
    assert "pg2-host = 10.0.0.11\npg2-host-type = tls" in written["db3"]
    assert "backup-standby = y" in written["db3"]
    programs = {
        host: re.findall(
            r"program:(\w+)",
            (fleet / host / "etc/backup/supervisor.ini").read_text(),
        )
        for host in ("db1", "db3", "worker1")
    }
    assert programs == {
        "db1": ["backup_server"],
        "db3": ["backup", "backup_server"],
        # Uploaded files are the storage's.
        "worker1": [],
    }
    settings = (fleet / "db1/etc/database/server.conf").read_text()
    assert "archive_mode = on" in settings


def test_database_hosts_reach_one_another_by_certificates_of_their_own(fleet):
    shown = {}
    for host in DATABASE_HOSTS:
        etc = fleet / host / "etc/backup"
        shown[host] = verified_names(etc / "ca.pem", etc / "certificate.pem")
    # pgBackRest looks for the address among the names.
    assert shown == {
        f"db{n}": f"DNS:10.0.0.1{n}, IP Address:10.0.0.1{n}" for n in (1, 3)
    }
    assert not (fleet / "worker1/etc/backup/certificate.pem").exists()
    # Who has the authority's key makes others.
    assert [*fleet.rglob("ca.key")] == [fleet / "secrets/backup_certificates/ca.key"]


def verified_names(authority: Path, certificate: Path) -> str:
    command = ["openssl", "verify", "-CAfile", authority, certificate]
    subprocess.run(command, check=True)
    command = ["openssl", "x509", "-noout", "-ext", "subjectAltName", "-in"]
    text = subprocess.check_output([*command, certificate], text=True)
    return text.splitlines()[-1].strip()


def test_servers_show_certificates_for_their_own_addresses(fleet):
    """Only those of databases have the address of HAProxy on a client's host."""
    etc = {host: fleet / host / "etc" for host in ("db3", "cache1", "queue1", "web1")}
    authority = etc["web1"] / "certificates/ca.pem"
    local = ", DNS:127.0.0.1, IP Address:127.0.0.1"
    for path, address, further in (
        (etc["db3"] / "database", "10.0.0.13", local),
        (etc["cache1"] / "redis", "10.0.0.21", ""),
        (etc["cache1"] / "memcached", "10.0.0.21", ""),
        (etc["queue1"] / "rabbitmq", "10.0.0.31", ""),
    ):
        names = verified_names(authority, path / "certificate.pem")
        assert names == f"DNS:{address}, IP Address:{address}{further}"
        # pgBackRest admits clients by another name.
        command = ["openssl", "x509", "-noout", "-subject", "-in"]
        subject = subprocess.check_output([*command, path / "certificate.pem"])
        assert b"groundswell-server" in subject
    # A key is where its server is.
    keys = {str(path.relative_to(fleet)) for path in fleet.glob("*/etc/**/*.key")}
    assert not any(key.startswith(("web", "worker", "load")) for key in keys)


def test_no_server_of_another_host_is_called_without_verification(fleet):
    replication = yaml.safe_load((fleet / "db1/etc/database/patroni.yml").read_text())
    for user in ("replication", "rewind"):
        login = replication["postgresql"]["authentication"][user]
        assert login["sslmode"] == "verify-full"
        assert Path(login["sslrootcert"]).is_file()
    for host in ("web1", "web2", "worker1"):
        pool = (fleet / host / "etc/pgbouncer/pgbouncer.ini").read_text()
        assert "server_tls_sslmode = verify-full" in pool
        for path in (fleet / host / "etc/app").glob("*.env"):
            text = path.read_text()
            [authority] = re.findall("(?m)^GROUNDSWELL_CA='(.+)'$", text)
            assert Path(authority).is_file()
            assert not re.search(r"\b(redis|amqp)://", text), path
    conf = (fleet / "cache1/etc/redis/redis.conf").read_text()
    assert re.search(r"(?m)^port 0$", conf)
    assert "-Z " in (fleet / "cache1/etc/memcached/supervisor.ini").read_text()
    assert (
        "listeners.tcp = none"
        in (fleet / "queue1/etc/rabbitmq/rabbitmq.conf").read_text()
    )


def test_a_host_with_the_repository_is_called_and_admitted(changed_fleet):
    here = (changed_fleet / "db3/etc/backup/pgbackrest.conf").read_text()
    assert "repo1-host = 10.0.0.71\nrepo1-host-type = tls" in here
    folder = changed_fleet / "db3/etc/backup/repository_host"
    there = (folder / "pgbackrest.conf").read_text()
    assert "tls-server-address = 10.0.0.71" in there
    called = re.findall("pg[1-3]-host = (.*)", there)
    assert sorted(called) == ["10.0.0.11", "10.0.0.12", "10.0.0.13"]
    assert {path.name for path in folder.iterdir()} == {
        *("pgbackrest.conf", "ca.pem", "certificate.pem", "certificate.key")
    }
    makes = (changed_fleet / "db3/etc/backup/prepare").read_text()
    assert "until ssh -o BatchMode=yes postgres@10.0.0.71 'pgbackrest" in makes
    rules = (changed_fleet / "db3/etc/firewall/rules.nft").read_text()
    callers = "10.0.0.11, 10.0.0.12, 10.0.0.13, 10.0.0.71"
    assert f"ip saddr {{ {callers} }} tcp dport {{ 8432 }} accept" in rules


@pytest.mark.parametrize(
    ("hosts", "words"),
    [
        # With 1.22.1 and 1.26.3.
        ("changed_fleet", [" ssl http2 backlog=4096;", " ssl http2;"]),
        (
            "fleet",
            [" ssl backlog=4096;\n        http2 on;", " ssl;\n        http2 on;"],
        ),
    ],
)
def test_http2_is_said_as_the_version_of_nginx_wants_it(request, hosts, words):
    folder = request.getfixturevalue(hosts)
    nginx = (folder / "web2/etc/nginx/nginx.conf").read_text()
    listening = r"listen .+:(?:443|8443)( ssl[^;]*;(?:\s+http2 on;)?)"
    assert re.findall(listening, nginx) == words


def test_engineers_have_an_encrypted_listener_of_their_own(fleet):
    nginx = (fleet / "web1/etc/nginx/nginx.conf").read_text()
    public, engineers = (
        nginx.partition(f"listen {address} ssl")[2].partition("\n    server {")[0]
        for address in ("0.0.0.0:443", "10.0.0.41:8443")
    )
    assert "location ^~ /engineers/ {\n            return 404;" in public
    assert "/(engineers|console/account)/" in engineers
    assert "deny all;" in engineers


def test_each_host_gets_every_package_of_its_roles(tmp_path):
    tasks = yaml.safe_load((ROLES / "common/tasks/packages.yml").read_text())
    variables = tasks[-1]["vars"]
    written = {
        "ansible.builtin.copy": {
            "dest": f"{tmp_path}/{{{{ inventory_hostname }}}}",
            "content": "{{ packages | join(' ') }}",
        },
        "vars": variables,
    }
    play = {"hosts": "all", "gather_facts": False, "tasks": [written]}
    for name in ("roles", "group_vars"):
        (tmp_path / name).symlink_to(ANSIBLE / name)
    book = tmp_path / "packages.yml"
    book.write_text(yaml.safe_dump([play]))
    local = ["ansible_connection=local", "ansible_become=false"]
    subprocess.run(
        [PYTHON.with_name("ansible-playbook"), EXAMPLE_FLEET, book]
        + ["-e", f"ansible_python_interpreter={sys.executable} {' '.join(local)}"],
        env=ansible_environment(tmp_path),
        check=True,
    )
    packages = {host: (tmp_path / host).read_text().split() for host in ("db1", "web1")}
    assert {"git", "tzdata", "nftables", "conntrack", "patroni", "etcd-client"} <= {
        *packages["db1"]
    }
    assert {"nginx-light", "pgbouncer", "iproute2", "haproxy"} <= {*packages["web1"]}
    assert "restic" in packages["db1"] and "restic" not in packages["web1"]


def test_the_other_members_have_an_order_that_stays(fleet):
    # A set's differs from run to run, and each would write the file anew.
    for host in DATABASE_HOSTS:
        text = (fleet / host / "etc/clock/watch_clock").read_text()
        [members] = re.findall(r"^OTHERS = (.+)$", text, re.M)
        assert json.loads(members) == sorted(json.loads(members))
