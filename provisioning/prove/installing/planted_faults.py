"""Plant faults on an installed machine, one by one: `provisioning/doctor` names each.

And a machine without one has nothing that is wrong. What a fault breaks besides may be
named too: without its replica, PostgreSQL's program is missing as well.
"""

from __future__ import annotations

import json
import shutil
import time
from dataclasses import dataclass
from typing import Any

from provisioning.commands import Refusal, step, wait_until
from provisioning.installation.server.options import HOME
from provisioning.prove.installing.machine import Machine

DOCTOR = f"{HOME}/current/provisioning/doctor"
# What it promises, in seconds.
LONGEST = 30
STATUSES = {"error": 2, "warning": 1, "note": 0}
# Before each script. The files in `kept` are put back by `back`.
SHELL = f"""
set -eu
cd {HOME}
kept=/root/kept; mkdir -p $kept
supervisor() {{ current/.venv/bin/supervisorctl -c etc/supervisord.conf "$@" >&2; }}
sql() {{
    psql -h $PWD/run -U postgres -d groundswell -qAtX -v ON_ERROR_STOP=1 -c "$@"
}}
workers() {{ ls log | sed -n 's/worker.log$/worker/p'; }}
stop_workers() {{ for each in $(workers); do supervisor stop $each & done; wait; }}
keep() {{ cp -a "$1" "$kept/$(echo "$1" | tr / _)"; }}
back() {{ cp -a "$kept/$(echo "$1" | tr / _)" "$1"; }}
certificate() {{
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes \\
        -subj "/CN=$1" -addext "subjectAltName=DNS:$1" -days 30 \\
        -keyout certificate/key.pem -out certificate/chain.pem 2>/dev/null
}}
keep_certificate() {{ keep certificate/chain.pem; keep certificate/key.pem; }}
own_certificate() {{
    back certificate/chain.pem; back certificate/key.pem; show
}}
show() {{ supervisor signal HUP nginx; sleep 2; }}
"""


# openssl's own command makes none that has ended.
EXPIRED = """
import datetime, sys
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
key = serialization.load_pem_private_key(open("certificate/key.pem", "rb").read(), None)
old = x509.load_pem_x509_certificate(open("certificate/chain.pem", "rb").read())
made = x509.CertificateBuilder(
    old.subject, old.subject, key.public_key(), 1, datetime.datetime(2025, 1, 1),
    datetime.datetime(2025, 2, 1), list(old.extensions)).sign(key, hashes.SHA256())
open("certificate/chain.pem", "wb").write(
    made.public_bytes(serialization.Encoding.PEM))
"""


@dataclass(frozen=True, slots=True)
class Fault:
    # The name of the finding.
    name: str
    plant: str
    heal: str


FAULTS = (
    Fault(
        "disk.space",
        "mount -t tmpfs -o size=8m fault /mnt;"
        " dd if=/dev/zero of=/mnt/full bs=1M 2>/dev/null || true",
        "umount /mnt",
    ),
    Fault(
        "disk.inodes",
        "mount -t tmpfs -o nr_inodes=100 fault /mnt; touch $(seq -f /mnt/%g 95)",
        "umount /mnt",
    ),
    Fault("disk.logs", "fallocate -l 1100M log/grown.log", "rm log/grown.log"),
    Fault(
        "certificate.name",
        "keep_certificate; certificate other.example.org; show",
        "own_certificate",
    ),
    Fault(
        "certificate.expired",
        f"keep_certificate; current/.venv/bin/python -c '{EXPIRED.strip()}'; show",
        "own_certificate",
    ),
    Fault(
        "certificate.chain",
        "keep_certificate; sh etc/certificate/make_temporary 2>/dev/null; show",
        "own_certificate",
    ),
    Fault(
        "certificate.file",
        "keep_certificate; sh etc/certificate/make_temporary 2>/dev/null",
        "own_certificate",
    ),
    Fault(
        "certificate.renewal",
        "keep installation.json; echo 'Timeout during connect' >certificate/failed;"
        """ sed -i 's|"acme": ""|"acme": "https://acme.example.org/"|'"""
        " installation.json",
        "back installation.json; rm certificate/failed",
    ),
    Fault(
        "dns.elsewhere",
        "keep /etc/hosts; sed -i 's/^127.0.0.1 survey/192.0.2.1 survey/' /etc/hosts",
        "back /etc/hosts",
    ),
    # Requests for names get no answer at all.
    Fault(
        "dns.nowhere",
        "keep /etc/hosts; sed -i '/ survey/d' /etc/hosts; nft add table inet fault;"
        " nft 'add chain inet fault out { type filter hook output priority 0; }';"
        " nft add rule inet fault out oifname != lo drop",
        "back /etc/hosts; nft delete table inet fault",
    ),
    Fault(
        "mail.refuses",
        "port=$(sed -n 's/.*smtp:.*:\\([0-9]*\\)\".*/\\1/p' installation.json);"
        " nft add table inet fault;"
        " nft 'add chain inet fault out { type filter hook output priority 0; }';"
        ' nft add rule inet fault out tcp dport "$port" reject',
        "nft delete table inet fault",
    ),
    Fault(
        "mail.queue",
        """sql "INSERT INTO accounts_letter (kind, \\"to\\", facts, created_at, due_at,
        attempts) VALUES ('drill', 'it@example.org', '{}', now() - interval '3 hours',
        now() + interval '1 day', 3)" """,
        "sql \"DELETE FROM accounts_letter WHERE kind = 'drill'\"",
    ),
    Fault(
        "backup.old",
        "sql \"UPDATE survey_backuprun SET ended_at = ended_at - interval '5 days'\"",
        "sql \"UPDATE survey_backuprun SET ended_at = ended_at + interval '5 days'\"",
    ),
    Fault(
        "backup.drill",
        """sql "INSERT INTO survey_backuprun (kind, ok, started_at, ended_at, details)
        VALUES ('drill', false, now(), now(), '{}')" """,
        "sql \"DELETE FROM survey_backuprun WHERE kind = 'drill'\"",
    ),
    Fault(
        "backup.unreadable",
        "mv backups/database/backup/groundswell backups/database/backup/moved",
        "mv backups/database/backup/moved backups/database/backup/groundswell",
    ),
    Fault(
        "backup.full",
        "mount -t tmpfs -o size=4m fault backups/database;"
        " dd if=/dev/zero of=backups/database/full bs=1M 2>/dev/null || true",
        "umount backups/database",
    ),
    Fault("replica.gone", "supervisor stop replica", "supervisor start replica"),
    Fault(
        "replica.lag",
        "psql -p 5433 -h $PWD/run -U postgres -qAtXc 'SELECT pg_wal_replay_pause()'",
        "psql -p 5433 -h $PWD/run -U postgres -qAtXc 'SELECT pg_wal_replay_resume()'",
    ),
    Fault(
        "replica.slot",
        "sql \"SELECT pg_create_physical_replication_slot('forgotten', true)\"",
        "sql \"SELECT pg_drop_replication_slot('forgotten')\"",
    ),
    Fault(
        # A worker that looks for work in the table would take it.
        "jobs.wait",
        """stop_workers; sql "INSERT INTO survey_job (kind, state, done, message,
        attempts, created_at) VALUES ('drill', 'waiting', 0, '', 0, now() - interval
        '40 minutes')" """,
        "sql \"DELETE FROM survey_job WHERE kind = 'drill'\";"
        " supervisor start $(workers)",
    ),
    Fault(
        "jobs.workers",
        "stop_workers",
        "supervisor start $(workers)",
    ),
    Fault(
        "version.schema",
        "sql \"UPDATE django_migrations SET app = 'kept' WHERE id ="
        " (SELECT max(id) FROM django_migrations WHERE app = 'survey')\"",
        "sql \"UPDATE django_migrations SET app = 'survey' WHERE app = 'kept'\"",
    ),
    Fault("version.release", "keep released; echo newer >released", "back released"),
    Fault(
        "ports.open",
        "systemd-run --quiet --unit=fault python3 -m http.server 7777; sleep 2",
        "systemctl stop fault",
    ),
    Fault(
        "firewall.off",
        "nft delete table inet groundswell",
        "nft --file etc/firewall/rules.nft",
    ),
    Fault(
        "boot.timer",
        "systemctl disable --quiet --now apt-daily-upgrade.timer",
        "systemctl enable --quiet --now apt-daily-upgrade.timer",
    ),
    Fault(
        "boot.unit",
        "systemctl disable --quiet groundswell",
        "systemctl enable --quiet groundswell",
    ),
    Fault("programs.stopped", "supervisor stop logs", "supervisor start logs"),
    Fault("memcached.down", "supervisor stop memcached", "supervisor start memcached"),
    Fault(
        "redis.settings",
        "redis-cli -s run/redis.sock CONFIG SET maxmemory-policy allkeys-lru >&2",
        "redis-cli -s run/redis.sock CONFIG SET maxmemory-policy noeviction >&2",
    ),
    Fault(
        "nginx.configuration",
        "keep etc/nginx/nginx.conf; echo 'listen_to 80;' >>etc/nginx/nginx.conf",
        "back etc/nginx/nginx.conf",
    ),
    Fault(
        "secrets.readable",
        "chmod 644 secrets/secret_key",
        "chmod 600 secrets/secret_key",
    ),
    # It takes connections, and never answers.
    Fault(
        "postgresql.down",
        "kill -STOP $(head -n 1 data/primary/postmaster.pid)",
        "kill -CONT $(head -n 1 data/primary/postmaster.pid)",
    ),
    Fault(
        "postgresql.collation",
        "sql \"UPDATE pg_collation SET collversion = '1' WHERE collname = 'en-x-icu'\"",
        "sql 'ALTER COLLATION \"en-x-icu\" REFRESH VERSION' 2>/dev/null",
    ),
    Fault(
        "clock.zone",
        "mv /usr/share/zoneinfo/America/Chicago $kept",
        "mv $kept/Chicago /usr/share/zoneinfo/America",
    ),
    Fault(
        "updates.restart",
        "touch -d '5 days ago' /run/reboot-required",
        "rm /run/reboot-required",
    ),
    # Last: the log says for a quarter of an hour that it happened.
    Fault(
        "programs.loop",
        "for n in 1 2 3; do kill -9 $(current/.venv/bin/supervisorctl"
        " -c etc/supervisord.conf pid memcached); sleep 4; done",
        "true",
    ),
)


def name_faults(machine: Machine, host: str, size: str = "standard") -> str:
    """Return "37/37": how many planted faults were named, of how many.

    The machine has its owner's certificate. Raises Refusal if it has a fault before any
    was planted or after all were healed, or if an examination lasts too long.
    """
    make_healthy(machine, host)
    # A small one has no second copy.
    faults = [
        fault
        for fault in FAULTS
        if size == "standard" or not fault.name.startswith("replica.")
    ]
    with step("Examining a healthy machine"):
        refuse_faults(machine)
    missed = []
    for fault in faults:
        with step(f"Planting {fault.name}"):
            run(machine, fault.plant)
            try:
                names = names_in(examine(machine))
            finally:
                run(machine, fault.heal)
        if fault.name not in names:
            missed.append(fault.name)
            print(f"Not named: {fault.name}; named: {', '.join(names) or 'nothing'}")
        if fault is FAULTS[-2]:
            with step("Examining it after all were healed"):
                refuse_faults(machine, seconds=240)
    return f"{len(faults) - len(missed)}/{len(faults)}"


def make_healthy(machine: Machine, host: str) -> None:
    """Make a backup, trust the drill's authority, and let the name lead to it."""
    machine.run(f"{HOME}/current/provisioning/stack", "backup", "--full")
    known = machine.root / "usr/local/share/ca-certificates/drill.crt"
    shutil.copy(machine.folder / "certificates" / "ca.pem", known)
    machine.run("update-ca-certificates")
    hosts = machine.root / "etc/hosts"
    if host not in hosts.read_text():
        hosts.write_text(f"{hosts.read_text()}127.0.0.1 {host}\n")


def run(machine: Machine, script: str) -> None:
    machine.run("sh", "-c", SHELL + script)


def refuse_faults(machine: Machine, seconds: float = 0) -> None:
    """Raise Refusal if something is wrong; what was healed may take a while."""
    names: list[str] = []

    def is_healthy() -> bool:
        report = examine(machine)
        names[:] = names_in(report)
        # All can be looked at, too.
        names.extend(report["left_out"])
        return not names

    if not wait_until(is_healthy, seconds=seconds, pause=5):
        raise Refusal(f"A healthy machine has {', '.join(names)}")


def examine(machine: Machine) -> dict[str, Any]:
    """Return the doctor's report; raise Refusal if it is late or contradicts itself."""
    began = time.monotonic()
    done = machine.call(DOCTOR, "--json")
    if (seconds := time.monotonic() - began) > LONGEST:
        raise Refusal(f"The examination took {seconds:.0f} s, and may take {LONGEST}")
    try:
        report: dict[str, Any] = json.loads(done.stdout)
    except ValueError:
        raise Refusal(f"doctor fails: {done.stderr.decode()[-300:]}") from None
    statuses = [STATUSES[each["severity"]] for each in report["findings"]]
    expected = max(statuses, default=0)
    if not done.returncode == report["status"] == expected:
        raise Refusal(f"doctor ends with {done.returncode}, not with {expected}")
    return report


def names_in(report: dict[str, Any]) -> list[str]:
    """Return the names of warnings and errors."""
    return [
        each["name"] for each in report["findings"] if STATUSES[each["severity"]] > 0
    ]
