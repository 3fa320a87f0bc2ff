"""What `provisioning/doctor` says of what it has read, without a machine.

`provisioning/drill_install` plants the same faults on a real one.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path

import pytest

from provisioning.commands import ROOT, Refusal, scratch_folder
from provisioning.installation.doctor import (
    databases,
    doctor,
    machine,
    outside,
    services,
)
from provisioning.installation.doctor.doctor import CHECKS, examine, in_processes
from provisioning.installation.doctor.findings import (
    ERROR,
    NOTE,
    WARNING,
    Check,
    Finding,
    Server,
    Unavailable,
)
from provisioning.monitoring.alerts import ALERTS
from provisioning.monitoring.thresholds import DAY
from provisioning.prove.installing.planted_faults import FAULTS

HOME = Path("/srv/groundswell")
SERVER = Server(HOME, True, {"host": "survey.example.org"}, True, True)
GB = 10**9
MOUNT = {
    "path": "/",
    "bytes": 100 * GB,
    "free": 50 * GB,
    "inodes": 1000,
    "inodes_free": 900,
    "is_readonly": False,
}
REDIS = {
    "problem": "",
    "used": 1,
    "most": 100,
    "policy": "noeviction",
    "write_failed": False,
    "differs": [],
}
# What each check reads on a healthy server.
HEALTHY = {
    "programs": {
        "runs": True,
        "stopped": [],
        "workers": 5,
        "ends": {"nginx": 2},
        "healthz": 200,
    },
    "disk": {"mounts": [MOUNT], "logs": []},
    "memory": {
        "total": 4 * GB,
        "available": 2 * GB,
        "swap": GB,
        "swap_free": GB,
        "killed": [],
        "kills": 0,
    },
    "postgresql": {
        "problem": "",
        "connections": 20,
        "most": 100,
        "off": [],
        "xids": 1000,
        "checksum_failures": 0,
        "collations": [],
        "archive_fails": None,
    },
    "replica": {
        "standbys": 1,
        "lag": 0.5,
        "is_paused": False,
        "slots": [["replica", True, 1000, "reserved"]],
    },
    "backups": {
        "is_off": False,
        "problem": "",
        "last": 0,
        "full": ["/backups", 50 * GB, 100 * GB],
        "database_age": 90 * DAY,
        "backup_age": DAY,
        "certificate_ends": None,
        "drill": [True, 6 * DAY],
    },
    "work": {
        "waits": 60,
        "waiting": 2,
        "running": 1,
        "survey_day": None,
        "emails": 0,
        "email_waits": None,
    },
    "versions": {
        "missing": [],
        "newer": [],
        "current": "2026-11-29-abc",
        "released": "2026-11-29-abc",
        "is_installed": True,
    },
    "redis": {"redis": REDIS},
    "memcached": {"problem": ""},
    "queue": {"problem": ""},
    "nginx": {"problem": ""},
    "secrets": {"readable": []},
    "certificate": {
        "host": "survey.example.org",
        "problem": "",
        "acme": True,
        "refused": "",
        "chain": "",
        "ends_in": 60 * DAY,
        "names": ["*.example.org"],
        "is_of_file": True,
    },
    "name": {
        "host": "survey.example.org",
        "mine": ["192.0.2.1"],
        "named": ["192.0.2.1"],
        "leads_here": True,
        "problem": "",
    },
    "mail": {"is_set": True, "server": "mail.example.org:587", "problem": ""},
    "clock": {
        "is_container": False,
        "problem": "",
        "is_synchronised": True,
        "offset": 0.001,
        "zone": "America/Chicago",
        "zone_is_known": True,
        "year": 2027,
    },
    "ports": {
        "listening": [22, 80, 443, 25672],
        "guarded": [5672, 25672],
        "closed": [5672, 25672],
        "missing": "",
    },
    "boot": {"units": {"groundswell.service": ["enabled", "active"]}},
    "updates": {
        "system": "debian 12",
        "name": "Debian GNU/Linux 12 (bookworm)",
        "security": 3,
        "since": DAY,
        "reboot_since": None,
        "today": "2026-11-30",
    },
    "kernel": {"wrong": []},
    "fonts": {"missing": []},
    "place of backups": {"place": "/mnt/other", "same_disk": False},
}
# The finding, its check, and what differs from a healthy server.
PLANTED = [
    ("programs.supervisor", "programs", {"runs": False}),
    ("programs.stopped", "programs", {"stopped": [["beat", "fatal"]]}),
    ("programs.loop", "programs", {"ends": {"nginx": 3}}),
    ("programs.healthz", "programs", {"healthz": 502}),
    ("jobs.workers", "programs", {"workers": 0}),
    ("disk.space", "disk", {"mounts": [{**MOUNT, "free": 9 * GB}]}),
    ("disk.inodes", "disk", {"mounts": [{**MOUNT, "inodes_free": 99}]}),
    ("disk.readonly", "disk", {"mounts": [{**MOUNT, "is_readonly": True}]}),
    ("disk.logs", "disk", {"logs": [["/srv/groundswell/log/worker.log", 2 * GB]]}),
    ("memory.available", "memory", {"available": GB // 10}),
    ("memory.swap", "memory", {"swap_free": GB // 4}),
    ("memory.killed", "memory", {"killed": ["postgres"], "kills": 2}),
    ("postgresql.down", "postgresql", {"problem": "it does not answer within 8 s"}),
    ("postgresql.durability", "postgresql", {"off": ["fsync"]}),
    ("postgresql.connections", "postgresql", {"connections": 81}),
    ("postgresql.wraparound", "postgresql", {"xids": 600_000_000}),
    ("postgresql.checksums", "postgresql", {"checksum_failures": 1}),
    ("postgresql.collation", "postgresql", {"collations": ["groundswell"]}),
    ("backup.archive", "postgresql", {"archive_fails": True}),
    ("replica.gone", "replica", {"standbys": 0}),
    ("replica.lag", "replica", {"lag": 31}),
    ("replica.lag", "replica", {"is_paused": True}),
    ("replica.slot", "replica", {"slots": [["forgotten", False, 0, "reserved"]]}),
    ("replica.slot", "replica", {"slots": [["replica", True, 5 * GB, "extended"]]}),
    ("replica.slot", "replica", {"slots": [["replica", True, 0, "lost"]]}),
    ("backup.none", "backups", {"is_off": True}),
    ("backup.unreadable", "backups", {"problem": "missing stanza path"}),
    ("backup.full", "backups", {"full": ["/backups", 9 * GB, 100 * GB]}),
    ("backup.old", "backups", {"backup_age": 2.1 * DAY}),
    ("backup.old", "backups", {"backup_age": None}),
    ("backup.drill", "backups", {"drill": [False, DAY]}),
    ("backup.drill", "backups", {"drill": [True, 10 * DAY]}),
    ("backup.drill", "backups", {"drill": None}),
    ("backup.certificate", "backups", {"certificate_ends": time.time() + 9 * DAY}),
    ("jobs.wait", "work", {"waits": 1000, "running": 0}),
    ("mail.queue", "work", {"emails": 3, "email_waits": 7200}),
    ("version.schema", "versions", {"missing": ["survey.0015_survey_day"]}),
    ("version.schema", "versions", {"newer": ["survey.0016_later"]}),
    ("version.release", "versions", {"released": "2026-12-01-def"}),
    ("redis.down", "redis", {"redis": {"problem": "Connection refused"}}),
    ("redis.full", "redis", {"redis": {**REDIS, "used": 91}}),
    ("redis.settings", "redis", {"redis": {**REDIS, "differs": [["save", "1", ""]]}}),
    ("redis.persistence", "redis", {"redis": {**REDIS, "write_failed": True}}),
    ("memcached.down", "memcached", {"problem": "Connection refused"}),
    ("queue.down", "queue", {"problem": "Connection refused"}),
    ("nginx.configuration", "nginx", {"problem": 'unknown directive "listen_to"'}),
    ("secrets.readable", "secrets", {"readable": [["/srv/key", "0644"]]}),
    ("certificate.away", "certificate", {"problem": "Connection refused"}),
    ("certificate.expired", "certificate", {"ends_in": -DAY}),
    ("certificate.ends", "certificate", {"ends_in": 13 * DAY, "acme": False}),
    ("certificate.name", "certificate", {"names": ["example.org"]}),
    ("certificate.chain", "certificate", {"chain": "self-signed certificate"}),
    ("certificate.file", "certificate", {"is_of_file": False}),
    ("certificate.renewal", "certificate", {"refused": "Timeout during connect"}),
    ("certificate.renewal", "certificate", {"ends_in": 20 * DAY}),
    ("dns.nowhere", "name", {"named": [], "leads_here": False}),
    ("dns.elsewhere", "name", {"named": ["192.0.2.9"], "leads_here": False}),
    ("mail.refuses", "mail", {"problem": "Connection refused"}),
    ("clock.program", "clock", {"problem": "506 Cannot talk to daemon"}),
    ("clock.synchronised", "clock", {"is_synchronised": False}),
    ("clock.offset", "clock", {"offset": -6.0}),
    ("clock.zone", "clock", {"zone": "America/Atlantis", "zone_is_known": False}),
    ("firewall.off", "ports", {"closed": []}),
    ("ports.open", "ports", {"listening": [22, 5432]}),
    ("boot.unit", "boot", {"units": {"groundswell.service": ["disabled", "active"]}}),
    ("boot.timer", "boot", {"units": {"certbot.timer": ["enabled", "inactive"]}}),
    ("updates.pending", "updates", {"since": 4 * DAY}),
    ("updates.restart", "updates", {"reboot_since": 4 * DAY}),
    ("updates.system", "updates", {"system": "debian 11"}),
    ("updates.end", "updates", {"today": "2028-03-01"}),
    ("updates.end", "updates", {"today": "2029-03-01"}),
    ("kernel.settings", "kernel", {"wrong": [["kernel.sched", "0", "1"]]}),
]
BY_NAME = {check.name: check for check in CHECKS}


def findings(check: str, server: Server = SERVER, **changes: object) -> list[Finding]:
    facts = deepcopy(HEALTHY[check])
    return list(BY_NAME[check].judge(server, {**facts, **changes}))


def test_a_healthy_server_has_no_findings():
    assert HEALTHY.keys() == BY_NAME.keys()
    assert [each for check in CHECKS for each in findings(check.name)] == []


@pytest.mark.parametrize(("name", "check", "changes"), PLANTED)
def test_a_fault_is_named_with_what_to_do(name, check, changes):
    [finding] = [each for each in findings(check, **changes) if each.name == name]
    assert finding.severity in (ERROR, WARNING)
    # A sentence, without its full stop, and something to do.
    assert not finding.sentence.endswith(".") and len(finding.action) > 10


def test_faults_of_the_drill_are_all_known_here():
    assert {fault.name for fault in FAULTS} <= {name for name, _, _ in PLANTED}
    assert len({fault.name for fault in FAULTS}) >= 20


def test_notes_are_no_warnings():
    held = findings("work", survey_day="2026-11-30 22:00", waits=9000, running=0)
    assert [(each.name, each.severity) for each in held] == [("jobs.survey_day", NOTE)]
    assert doctor.Report(held, {}).status == 0
    [none] = findings("mail", is_set=False)
    assert (none.name, none.severity) == ("mail.none", NOTE)
    [place] = findings("place of backups", same_disk=True)
    assert place.severity == NOTE
    [letters] = findings("fonts", missing=["fonts-noto-cjk"])
    assert (letters.name, letters.severity) == ("fonts.missing", NOTE)
    assert "install fonts-noto-cjk;" in letters.action


def test_missing_fonts_are_those_without_a_file(tmp_path, monkeypatch):
    monkeypatch.setattr(machine, "FONT_FOLDER", tmp_path)
    assert machine.read_fonts(SERVER)["missing"] == [*machine.FONTS]
    folder = tmp_path / "opentype" / "noto"
    folder.mkdir(parents=True)
    (folder / "NotoSansCJK-Bold.ttc").touch()
    assert machine.read_fonts(SERVER)["missing"] == ["fonts-noto-core"]


def test_what_a_container_and_a_small_server_lack_is_no_fault():
    in_container = findings("clock", is_container=True, is_synchronised=False)
    assert in_container == []
    small = Server(HOME, True, {}, has_replica=False, has_queue=False)
    assert findings("replica", small, standbys=0, slots=[]) == []
    # The twin: a standard one.
    assert findings("replica", SERVER, standbys=0, slots=[]) != []


def test_thresholds_are_those_of_the_alerts():
    expressions = {
        alert.name: f"{alert.expression} {alert.lasting}" for alert in ALERTS
    }
    assert "< 0.1 *" in expressions["DiskNearlyFull"]
    assert "> 30 or" in expressions["ReplicaLags"]
    assert expressions["JobsWait"].endswith("15m")


def check_of(read, name: str = "planted") -> Check:
    return Check(
        name, read, lambda server, facts: iter([Finding("f", ERROR, "A", "b")])
    )


def test_a_check_that_hangs_is_ended_and_named(tmp_path):
    child = tmp_path / "child"

    def hang(server: Server) -> dict[str, object]:
        # With a program that ignores signals, as one that waits for a disk.
        code = "import signal, time; signal.signal(15, signal.SIG_IGN); time.sleep(99)"
        process = subprocess.Popen([sys.executable, "-c", code])
        child.write_text(str(process.pid))
        process.wait()
        return {}

    report = examine(SERVER, [check_of(hang, "disk"), check_of(lambda s: {})], 3)
    assert [each.name for each in report.findings] == ["f", "disk.hangs"]
    assert report.status == 2
    # Its program was ended with it.
    for _ in range(100):
        if not is_running(int(child.read_text())):
            return
        time.sleep(0.05)
    raise AssertionError("its program runs on")


def is_running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def test_a_check_that_fails_does_not_hide_the_others():
    def fail(server: Server) -> dict[str, object]:
        raise ValueError("Port could not be cast to integer value as PASSWORD")

    def away(server: Server) -> dict[str, object]:
        raise Unavailable("the server is starting up")

    def die(server: Server) -> dict[str, object]:
        os.kill(os.getpid(), signal.SIGKILL)
        return {}

    checks = [
        check_of(fail, "one"),
        check_of(away, "two"),
        check_of(die, "three"),
        check_of(lambda server: {}, "four"),
    ]
    report = examine(SERVER, checks, 10)
    assert report.left_out == {
        "one": "a fault of its own, ValueError",
        "two": "the server is starting up",
    }
    assert [each.name for each in report.findings] == ["f", "three.hangs"]


def test_long_answers_arrive_whole():
    text = "x" * 10**6
    assert in_processes({"a": lambda: {"text": text}}, 10) == {"a": {"text": text}}


def test_a_stack_is_examined_without_what_only_a_server_has(tmp_path, capsys):
    stack = Server(tmp_path, False, {}, True, True)
    asked = []

    def read(server: Server) -> dict[str, object]:
        asked.append(1)
        return {}

    only_installed = Check("c", read, lambda s, f: iter(()), for_installed=True)
    assert examine(stack, [only_installed]).findings == []
    doctor.print_report(stack, doctor.Report([], {}))
    assert "nothing is wrong" in capsys.readouterr().out


@pytest.fixture
def folder() -> Iterator[Path]:
    """Return a folder that other users may enter, as a stack needs."""
    with scratch_folder() as path:
        yield path


def test_the_command_refuses_where_there_is_no_server(folder):
    home = folder / "stack"
    done = subprocess.run(
        [ROOT / "provisioning" / "doctor", "--json"],
        env={**os.environ, "GROUNDSWELL_STACK": str(home)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1 and "nor a stack in" in done.stderr


def test_a_host_of_a_fleet_has_too_little_to_judge(tmp_path, monkeypatch):
    (tmp_path / "etc").mkdir()
    described = {"checkout_of_fleet": "/srv/code"}
    (tmp_path / "etc/stack.json").write_text(json.dumps(described))
    monkeypatch.setenv("GROUNDSWELL_STACK", "named")
    monkeypatch.setattr(doctor, "stack_folder", lambda: tmp_path)
    with pytest.raises(Refusal, match="host of a fleet.*docs/guides/alerts.md"):
        doctor.find_server()


def test_the_command_examines_a_stack_that_does_not_run(folder):
    """Nothing of it runs: each check says so, and none raises or waits."""
    etc = folder / "etc"
    for name in ("primary", "replica", "redis", "app"):
        (etc / name).mkdir(parents=True)
    (etc / "stack.json").write_text(
        json.dumps({"monitoring": "http://127.0.0.1:1/", "has_replica": True})
    )
    (etc / "redis" / "redis.conf").write_text("maxmemory 64mb\n")
    for name in ("primary", "replica"):
        (etc / name / "server.conf").write_text("port = 5432\n")
    done = subprocess.run(
        [ROOT / "provisioning" / "doctor", "--json"],
        env={**os.environ, "GROUNDSWELL_STACK": str(folder)},
        capture_output=True,
        text=True,
    )
    report = json.loads(done.stdout)
    names = {each["name"] for each in report["findings"]}
    expected = {"programs.supervisor", "postgresql.down", "redis.down"}
    assert done.returncode == report["status"] == 2
    assert not any("traceback" in line.lower() for line in done.stderr.splitlines())
    assert expected | {"memcached.down"} <= names
    assert not any(name.startswith(("certificate", "dns", "boot")) for name in names)


def test_readers_of_this_machine_give_what_the_judges_take(tmp_path):
    home = tmp_path
    (home / "log").mkdir()
    (home / "etc").mkdir()
    server = Server(home, True, {"time_zone": "America/Chicago"}, True, True)
    for check in CHECKS:
        if check.name in ("disk", "memory", "clock", "updates", "kernel", "secrets"):
            facts = check.read(server)
            assert facts.keys() == HEALTHY[check.name].keys()
            list(check.judge(server, json.loads(json.dumps(facts))))


def test_a_zone_that_the_system_does_not_know_is_found():
    for zone, is_known in (("America/Chicago", True), ("America/Atlantis", False)):
        server = Server(HOME, True, {"time_zone": zone}, True, True)
        assert machine.read_clock(server)["zone_is_known"] is is_known


def test_secrets_that_others_may_read_are_found(tmp_path):
    (tmp_path / "secrets").mkdir(mode=0o700)
    for name, mode in (("closed", 0o600), ("open", 0o644)):
        (tmp_path / "secrets" / name).touch()
        (tmp_path / "secrets" / name).chmod(mode)
    server = Server(tmp_path, True, {}, True, True)
    assert machine.read_secrets(server) == {
        "readable": [[str(tmp_path / "secrets" / "open"), "0644"]]
    }


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("0100007F", True),
        ("00000000", False),
        ("0200000A", False),
        ("00000000000000000000000001000000", True),
        ("00000000000000000000000000000000", False),
        ("0000000000000000FFFF00000100007F", True),
    ],
)
def test_addresses_of_the_kernel_are_read(address, expected):
    assert services.is_loopback(address) is expected


def test_ports_that_the_firewall_drops_are_read():
    rules = "  tcp dport { 5432, 5672 } drop\n ip saddr 1.2.3.4 tcp dport 9 accept\n"
    assert services.guarded_ports(rules) == {5432, 5672}
    assert services.guarded_ports("tcp dport 25672 drop") == {25672}


def test_sizes_are_compared_as_redis_writes_them():
    assert services.in_bytes("64mb") == "67108864"
    assert services.in_bytes("noeviction") == "noeviction"


def test_a_query_without_a_server_is_left_out(tmp_path):
    (tmp_path / "etc" / "primary").mkdir(parents=True)
    (tmp_path / "etc" / "primary" / "server.conf").write_text("port = 5432\n")
    server = Server(tmp_path, False, {}, False, False)
    with pytest.raises(Unavailable):
        databases.ask(server, "SELECT to_json(1)")
    [finding] = databases.judge_postgresql(server, databases.read_postgresql(server))
    assert finding.name == "postgresql.down"


def test_no_secret_of_the_mail_server_is_printed():
    """Also where its address can't be read: an error's text would have a part of it."""
    for address in ("smtp://user:pass/word@127.0.0.1:1", "smtp://u:secret@127.0.0.1:1"):
        server = Server(HOME, True, {"mail": address}, True, True)
        try:
            facts = outside.read_mail(server)
        except ValueError:
            raise AssertionError("left to be printed") from None
        assert facts["problem"] and "word" not in str(facts)
        assert "secret" not in str(facts)


def test_findings_that_are_meant_to_be_so_are_left_out(monkeypatch, capsys):
    ports = findings("ports", listening=[22, 9100])
    reports = lambda: doctor.Report([*ports, *findings("nginx", problem="x")], {})  # noqa: E731
    monkeypatch.setattr(doctor, "find_server", lambda: SERVER)
    monkeypatch.setattr(doctor, "examine", lambda server: reports())
    monkeypatch.setattr(sys, "argv", ["doctor", "--json", "--ignore", "ports.open"])
    assert doctor.main() == 2
    [left] = json.loads(capsys.readouterr().out)["findings"]
    assert left["name"] == "nginx.configuration"
    monkeypatch.setattr(sys, "argv", ["doctor"])
    doctor.main()
    assert "[ports.open]" in capsys.readouterr().out
