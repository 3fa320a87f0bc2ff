"""Hosts of a fleet made of folders, whose programs only write down what they do."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from provisioning.commands import ROOT
from provisioning.installation.playbook import (
    ANSIBLE,
    ansible_environment,
    playbook_command,
)
from provisioning.prove.failovers.cluster import SIZES

# One for all of them: it is called by the name of each.
PROGRAM = f"""#!{sys.executable}
import json, os, re, sys
from pathlib import Path
hosts = Path({{folder!r}}) / "hosts"
name, words = Path(sys.argv[0]).name, " ".join(sys.argv[1:])
shown = words.replace(str(hosts), "") + " " + os.environ.get("PGOPTIONS", "")
place = re.search(f"{{{{hosts}}}}/(\\\\w+)", words) or re.search(
    f"{{{{hosts}}}}/(\\\\w+)", sys.argv[0])
host = place[1] if place else "-"
data = hosts / host / "data/database"
file = data / "state.json"
state = json.loads(file.read_text()) if file.exists() else {{{{}}}}

def write(**changes):
    data.mkdir(exist_ok=True)
    file.write_text(json.dumps(state | changes))
    (data / "PG_VERSION").write_text(str((state | changes)["version"]))

with (hosts / "log").open("a") as log:
    log.write(f"{{{{host}}}} {{{{name}}}} {{{{shown}}}}\\n")
is_running = state.get("state") in ("primary", "standby")
if name == "psql":
    if not is_running:
        sys.exit(2)
    if "shared_preload" in words:
        print(state["state"], "with", state["libraries"])
    elif "replay_lsn" in words:
        print("t")
    elif "pg_is_in_recovery" in words:
        print(state["state"])
elif name == "pg_controldata" and state:
    print("Database cluster state:              ", state["state"])
    print("Latest checkpoint location:          ", state["checkpoint"])
elif name == "pg_ctl":
    end = "shut down" if state["state"] == "primary" else "shut down in recovery"
    write(state=end)
elif name == "start" and "database" in words:
    if not state:
        write(state="standby", version=17, checkpoint="0/2", libraries="")
    else:
        write(state="primary" if state["state"] == "shut down" else "standby")
elif name == "run" and "upgrade_data_folder" in words:
    write(version=17)
elif name == "repository":
    # Without a connection, pgBackRest reads the files of pg1.
    written = hosts / "db3/etc/backup/repository_host/pgbackrest.conf"
    pg1 = re.search("--pg1-host=([0-9.]+)", words) or re.search(
        "pg1-host = (.+)", written.read_text())
    asked = hosts / ("db" + pg1[1][-1]) / "data/database/PG_VERSION"
    sys.exit(0 if asked.exists() else 55)
elif name == "stack":
    print((hosts / "reasons").read_text())
elif name == "supervisorctl" and words.endswith("status"):
    print("taking:taking_0 RUNNING\\nnginx RUNNING\\nlong_worker RUNNING")
"""
NAMES = ("psql", "pg_ctl", "pg_controldata", "vacuumdb")
DATABASES = ("db1", "db2", "db3")


@dataclass
class FleetOfFolders:
    folder: Path
    port: int

    @property
    def hosts(self) -> Path:
        return self.folder / "hosts"

    def state(self, host: str) -> dict[str, Any]:
        path = self.hosts / host / "data/database/state.json"
        return json.loads(path.read_text()) if path.exists() else {}

    def change(self, host: str, **changes: object) -> None:
        state = self.state(host) | changes
        folder = self.hosts / host / "data/database"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "state.json").write_text(json.dumps(state))
        (folder / "PG_VERSION").write_text(str(state["version"]))

    def stop(self) -> None:
        for host in DATABASES:
            is_primary = self.state(host)["state"] == "primary"
            end = "shut down" if is_primary else "shut down in recovery"
            self.change(host, state=end)

    def log(self) -> list[str]:
        return (self.hosts / "log").read_text().splitlines()

    def hosts_that(self, *parts: str) -> list[str]:
        """Return the hosts that did something with all these words, in order."""
        return [
            line.split()[0]
            for line in self.log()
            if all(part in line for part in parts)
        ]

    def make(self) -> None:
        self.hosts.mkdir()
        (self.hosts / "reasons").write_text("[]")
        (self.hosts / "log").touch()
        program = self.folder / "program"
        program.write_text(PROGRAM.format(folder=str(self.folder)))
        program.chmod(0o755)
        programs = self.folder / "usr/lib/postgresql"
        for version in (15, 17):
            for name in NAMES:
                link(programs / str(version) / "bin" / name, program)
        for name in ("supervisorctl", "patronictl", "etcdctl", "repository"):
            link(self.folder / "bin" / name, program)
        checkout = self.folder / "checkout/provisioning"
        for name in ("run", "stack"):
            link(checkout / name, program)
        for name in ("__init__.py", "commands.py", "processes.py", "installation"):
            link(checkout / name, ROOT / "provisioning" / name)
        link(self.folder / "checkout/pyproject.toml", ROOT / "pyproject.toml")
        for host in (*DATABASES, "web1", "web2", "worker1", "worker2"):
            start = self.hosts / host / "etc/start"
            start.parent.mkdir(parents=True)
            start.write_text(f'exec {start.with_name("starts")}/start "$@"\n')
            link(start.with_name("starts") / "start", program)
            prepare = self.hosts / host / "etc/backup/prepare"
            prepare.parent.mkdir()
            prepare.write_text(f'exec {prepare.with_name("does")}/prepare "$@"\n')
            link(prepare.with_name("does") / "prepare", program)
        for host in DATABASES:
            self.change(
                host,
                state="primary" if host == "db2" else "standby",
                version=15,
                checkpoint="0/1",
                libraries="pg_stat_statements",
            )
        for name in ("fleet", "citus"):
            example = ANSIBLE / "inventories" / f"{name}.example"
            written = self.folder / name
            written.mkdir()
            (written / "group_vars").symlink_to(example / "group_vars")
            addresses = (
                (example / "hosts.yml").read_text().replace("10.0.0.", "127.0.0.")
            )
            (written / "hosts.yml").write_text(addresses)

    def play(
        self, book: str, *options: str, cluster: bool = False, **variables: object
    ) -> tuple[int, str]:
        """Run a playbook; return its status and what it printed."""
        given: dict[str, object] = {
            **SIZES,
            "home": f"{self.hosts}/{{{{ inventory_hostname }}}}",
            "checkout": str(self.folder / "checkout"),
            "secrets": str(self.folder / "secrets"),
            "supervisorctl": f"{self.folder}/bin/supervisorctl {{{{ etc }}}}",
            "patronictl": f"{self.folder}/bin/patronictl {{{{ etc }}}}",
            "etcdctl": f"{self.folder}/bin/etcdctl",
            "postgresql_bin": (
                f"{self.folder}/usr/lib/postgresql/{{{{ postgresql_version }}}}/bin"
            ),
            "patroni_port": self.port,
            "installs_packages": False,
            "deploys_code": False,
            "starts_at_boot": False,
            "encrypts": False,
            "server_user": "",
            "model_grants": [],
            "ansible_connection": "local",
            "ansible_become": False,
            "ansible_python_interpreter": sys.executable,
            **variables,
        }
        inventories = ["fleet", *(["citus"] if cluster else [])]
        command = playbook_command(
            *(f"--inventory={self.folder / name}" for name in inventories),
            *options,
            variables=given,
            book=book,
        )
        done = subprocess.run(
            command,
            env=ansible_environment(self.folder),
            cwd=ANSIBLE,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
        )
        return done.returncode, done.stdout + done.stderr


def link(path: Path, target: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(target)


@contextmanager
def fleet_of_folders(folder: Path) -> Iterator[FleetOfFolders]:
    """Yield it with an answer of Patroni's at each host's address."""
    states = folder / "hosts"
    by_address = {f"127.0.0.{10 + number}": f"db{number}" for number in (1, 2, 3)}

    class Patroni(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            address = self.connection.getsockname()[0]
            host = by_address.get(address, address)
            with (states / "log").open("a") as log:
                log.write(f"{host} answers {self.path}\n")
            state = states / host / "data/database/state.json"
            wanted = {"/primary": "primary", "/replica": "standby"}[self.path]
            leads = state.exists() and json.loads(state.read_text())["state"] == wanted
            self.send_response(200 if leads else 503)
            self.end_headers()

        def log_message(self, *_arguments: object) -> None:
            pass

    server = ThreadingHTTPServer(("0.0.0.0", 0), Patroni)  # noqa: S104
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        fleet = FleetOfFolders(folder, server.server_port)
        fleet.make()
        yield fleet
    finally:
        server.shutdown()
        server.server_close()
