"""`provisioning/stack`: every server of a real installation, on this machine."""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import http.client
import json
import os
import pwd
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
import xmlrpc.client
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any

from provisioning.ansible_here import (
    ANSIBLE,
    ansible_environment,
    playbook,
    why_failed,
)
from provisioning.commands import (
    ROOT,
    Refusal,
    Stopped,
    end_with_parent,
    is_alive,
    run_command,
    step,
)
from provisioning.environment import (
    PRODUCTION,
    PYTHON,
    STACK,
    VENV,
    install_packages,
    prepare_environment,
)
from provisioning.home import Supervisor, environment_of, is_open, stack_home
from provisioning.packages import missing_packages, postgresql_programs
from provisioning.promotion import promote

BENCH = ROOT / "provisioning" / "bench"
SERVER_USER = "groundswell"
# In the home: what --port and --set said the last time that it came up.
CHOSEN = "etc/chosen.json"
# Patience with a machine that does other things as well, in seconds.
PATIENCE = 60
# Everything else is a unix socket. With --port they follow one another from
# there, so that a second stack finds its place beside the first.
PORTS = {
    "nginx_port": 8080,
    "nginx_monitoring_port": 8081,
    "queue_port": 5672,
    "queue_dist_port": 25672,
    "queue_epmd_port": 4371,
}


def main() -> int:
    if sys.argv[1:2] == ["manage"]:
        return _manage(stack_home(), sys.argv[2:])
    options = _arguments()
    home = stack_home()
    if options.command == "up":
        chosen = _chosen(home, options)
        return _up(home, _variables(home, chosen), chosen)
    if options.command == "down":
        return _down(home)
    if options.command == "status":
        return _status(home)
    if options.command == "logs":
        return _logs(home, options.program, options.follow)
    if options.command == "reload":
        return _reload(home)
    if options.command == "promote":
        return _promote(home, options)
    return _rebuild(home, options)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="provisioning/stack",
        description="Every server of a real installation on this machine: nginx,"
        " gunicorn, pgbouncer, PostgreSQL with a replica, Memcached, Redis, RabbitMQ"
        " and Celery under one supervisor. Data, logs and configuration lie in"
        " .stack, or in the folder that GROUNDSWELL_STACK names.",
        allow_abbrev=False,
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    up = commands.add_parser(
        "up", help="start it; where it runs, bring in what changed", allow_abbrev=False
    )
    rebuild = commands.add_parser(
        "rebuild",
        help="put it aside with its data, build it anew, and measure it again",
        allow_abbrev=False,
    )
    for command in (up, rebuild):
        command.add_argument(
            "--port",
            type=_port,
            help="of nginx, instead of 8080; the next ones are for the monitoring"
            " and for RabbitMQ; kept for the next time, until --port= forgets it",
        )
        command.add_argument(
            "--set",
            action="append",
            type=_setting,
            default=[],
            metavar="NAME=VALUE",
            help="a variable of provisioning/ansible, such as commit_delay=1000;"
            " kept for the next time, until --set=NAME= forgets it",
        )
    commands.add_parser("down", help="stop it; the data stay")
    commands.add_parser("status", help="what runs, since when, with how much memory")
    logs = commands.add_parser("logs", help="the last lines of each program's log")
    logs.add_argument("program", nargs="?", help="of this one only")
    logs.add_argument("-f", dest="follow", action="store_true", help="and what follows")
    promotion = commands.add_parser(
        "promote",
        help="put the replica in the place of a primary that is lost",
        allow_abbrev=False,
    )
    promotion.add_argument(
        "--although-it-serves", action="store_true", help="the primary still runs"
    )
    promotion.add_argument(
        "--although-it-lags",
        action="store_true",
        help="the replica's last transaction is old; what came later is lost",
    )
    commands.add_parser("reload", help="restart the workers without losing a request")
    commands.add_parser("manage", help="manage.py with the stack's environment")
    return parser.parse_args()


def _port(text: str) -> int:
    if not text:
        # The usual ones.
        return 0
    last = 65536 - len(PORTS)
    if not text.isdecimal() or not 1 <= int(text) <= last:
        raise argparse.ArgumentTypeError(f"{text} is not between 1 and {last}")
    return int(text)


def _setting(text: str) -> tuple[str, str]:
    name, sign, value = text.partition("=")
    if not sign or not name.isidentifier():
        raise argparse.ArgumentTypeError(f"{text} is not NAME=VALUE")
    return name, value


# Up


@dataclass(frozen=True, slots=True)
class Chosen:
    """--port and --set, with those of the last time that nobody changed."""

    port: int
    settings: dict[str, str]


def _chosen(home: Path, options: argparse.Namespace) -> Chosen:
    kept = _kept(home)
    given = dict(options.set)
    settings = {**kept.settings, **given}
    words = [
        f"--set={name}={value}"
        for name, value in kept.settings.items()
        if name not in given
    ]
    if kept.port and options.port is None:
        words.insert(0, f"--port={kept.port}")
    if words:
        print(f"As the last time: {' '.join(words)}", flush=True)
    return Chosen(
        port=kept.port if options.port is None else options.port,
        settings={name: value for name, value in settings.items() if value},
    )


def _kept(home: Path) -> Chosen:
    try:
        return Chosen(**json.loads((home / CHOSEN).read_text()))
    except FileNotFoundError:
        return Chosen(port=0, settings={})
    except (TypeError, ValueError):
        raise Refusal(f"{home / CHOSEN} can't be read; delete it") from None


def _keep(home: Path, chosen: Chosen) -> None:
    for folder in (home, (home / CHOSEN).parent):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    # A setting may be a password.
    draft = home / f"{CHOSEN}.new"
    draft.unlink(missing_ok=True)
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as file:
        json.dump(asdict(chosen), file)
    draft.replace(home / CHOSEN)


def _variables(home: Path, chosen: Chosen) -> dict[str, Any]:
    """What only this machine knows; the rest stands in provisioning/ansible."""
    is_root = os.geteuid() == 0
    # Servers refuse to be root, and the application should not be; only where
    # nobody else may read the checkout it has to.
    readable = all(is_open(path) for path in (ROOT / "manage.py", VENV / "pyvenv.cfg"))
    return {
        "home": str(home),
        "checkout": str(ROOT),
        "python": str(PYTHON),
        "server_user": SERVER_USER if is_root else "",
        "app_user": (SERVER_USER if readable else "root") if is_root else "",
        **_ports(chosen.port),
        **chosen.settings,
    }


def _ports(first: int) -> dict[str, int]:
    if not first:
        return PORTS
    return {name: first + n for n, name in enumerate(PORTS)}


def _up(home: Path, variables: dict[str, Any], chosen: Chosen) -> int:
    began = time.monotonic()
    _refuse_somebody_elses(home, str(variables["server_user"]))
    supervisor = Supervisor(home)
    if not supervisor.is_running():
        # Before the long work.
        _refuse_taken_ports(variables)
    packages = missing_packages()
    if packages:
        install_packages(packages)
    prepare_environment(PRODUCTION, STACK)
    _play(
        home,
        {
            **variables,
            "postgresql_bin": str(postgresql_programs()),
            "version": _version(),
        },
    )
    _keep(home, chosen)
    with step("Waiting until it serves"):
        _wait(supervisor, int(variables["nginx_port"]))
        degraded = _wait_for_helpers(_told(home)["monitoring"])
    for consequence in degraded:
        print(consequence, flush=True)
    print(_welcome(home, supervisor, time.monotonic() - began), flush=True)
    return 0


def _refuse_somebody_elses(home: Path, server_user: str) -> None:
    """Root would give a user's stack to the servers' user, and lock him out."""
    if not home.exists():
        return
    may = {os.geteuid()}
    with contextlib.suppress(KeyError):
        may.add(pwd.getpwnam(server_user).pw_uid)
    owner = home.stat().st_uid
    if owner not in may:
        raise Refusal(
            f"{home} belongs to another user (number {owner}); start it as that"
            " user, or let GROUNDSWELL_STACK name another folder"
        )


def _refuse_taken_ports(variables: dict[str, Any]) -> None:
    for port in (int(variables[name]) for name in PORTS):
        try:
            socket.create_server(("127.0.0.1", port)).close()
        except PermissionError:
            raise Refusal(
                f"Only root may serve on port {port}; choose another with --port"
            ) from None
        except OSError:
            raise Refusal(
                f"Port {port} is taken by another program; choose others with --port"
            ) from None


def _version() -> str:
    """Of the code that the workers load: other code means other workers."""
    digest = hashlib.sha256(PRODUCTION.read_bytes())
    folders = ("accounts", "reports", "settings", "static", "survey", "templates")
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.is_file() and path.suffix != ".pyc" and "tests" not in path.parts:
                digest.update(f"{path.relative_to(ROOT)}\0".encode())
                digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def _play(home: Path, variables: dict[str, Any]) -> None:
    """Run the playbook; a line for each play, and all of it in a log."""
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    inventory = f"--inventory={ANSIBLE / 'inventories' / 'here'}"
    command = playbook(ANSIBLE / "site.yml", inventory, variables=variables)
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        cwd=ANSIBLE,
        env=ansible_environment(home),
        preexec_fn=end_with_parent(signal.SIGTERM),
    )
    assert process.stdout is not None  # noqa: S101
    with process, (home / "provisioning.log").open("w") as log:
        said = list(_shown(process.stdout, log))
    if process.returncode:
        raise Refusal(f"{why_failed(said)} (more in {home / 'provisioning.log'})")


def _shown(output: Iterable[str], log: IO[str]) -> Iterator[str]:
    """Ansible's lines; of each play that has anything to do, a line of ours."""
    play = ""
    with contextlib.ExitStack() as showing:
        for line in output:
            log.write(line)
            if line.startswith("PLAY "):
                showing.close()
                play = line.partition("[")[2].partition("]")[0]
            elif line.startswith("TASK [") and play:
                showing.enter_context(step(play))
                play = ""
            yield line


def _wait(supervisor: Supervisor, port: int) -> None:
    """Until every program runs, people can log in, and nobody is missed."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        programs = supervisor.programs()
        waiting = [one["name"] for one in programs if one["statename"] != "RUNNING"]
        if not waiting and _status_of(port, "/") == http.client.OK:
            return
        time.sleep(0.2)
    if waiting:
        raise Refusal(f"Not running: {', '.join(waiting)}; see provisioning/stack logs")
    raise Refusal(f"The login page does not come: it says {_status_of(port, '/')}")


def _wait_for_helpers(monitoring: str) -> list[str]:
    """What /readyz still misses; RabbitMQ takes longest."""
    deadline = time.monotonic() + 20
    while degraded := _ready(monitoring).get("degraded"):
        if time.monotonic() > deadline:
            return degraded
        time.sleep(0.2)
    return []


def _status_of(port: int, path: str) -> int | None:
    try:
        with urllib.request.urlopen(  # noqa: S310
            f"http://127.0.0.1:{port}{path}", timeout=5
        ) as reply:
            return reply.status
    except urllib.error.HTTPError as error:
        return error.code
    except (OSError, http.client.HTTPException):
        return None


def _welcome(home: Path, supervisor: Supervisor, seconds: float) -> str:
    told = _told(home)
    return "\n".join(
        [
            "",
            f"Groundswell is running: {told['address']}",
            f"  watched at {told['monitoring']} (/healthz /readyz /metrics)",
            f"  data, logs and configuration in {home}",
            f"  {len(supervisor.programs())} programs, up in {seconds:.0f} s",
            "",
            "provisioning/stack status shows them; provisioning/stack down stops them.",
        ]
    )


def _told(home: Path) -> dict[str, Any]:
    return json.loads((home / "etc" / "stack.json").read_text())


# Down


# First whoever takes requests, then whoever asks the servers, then those.
STOPPING = (
    {"nginx"},
    {"taking", "console", "worker", "beat"},
    {"primary", "replica", "pgbouncer", "memcached", "redis", "rabbitmq", "logs"},
    {"epmd"},
)


def _down(home: Path) -> int:
    supervisor = Supervisor(home)
    if not supervisor.is_running():
        print("Nothing is running.")
        return 0
    with step("Stopping every program"):
        for groups in STOPPING:
            _stop(supervisor, groups)
        _end(supervisor)
    print(f"Stopped; the data stay in {home}")
    return 0


def _stop(supervisor: Supervisor, groups: set[str]) -> None:
    """At once, and each in its own way of ending; then wait for the last."""
    for one in supervisor.programs():
        if one["group"] in groups:
            # It may have ended by itself in between.
            with contextlib.suppress(xmlrpc.client.Fault):
                supervisor.calls.stopProcess(f"{one['group']}:{one['name']}", False)
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        if not any(
            one["pid"] for one in supervisor.programs() if one["group"] in groups
        ):
            return
        time.sleep(0.05)


def _end(supervisor: Supervisor) -> None:
    pid = supervisor.calls.getPID()
    supervisor.calls.shutdown()
    deadline = time.monotonic() + PATIENCE
    while is_alive(pid):
        if time.monotonic() > deadline:
            raise Refusal(f"The supervisor (process {pid}) does not end")
        time.sleep(0.05)


# Status


def _status(home: Path) -> int:
    supervisor = Supervisor(home)
    if not supervisor.is_running():
        print("Nothing is running; start it with provisioning/stack up")
        return 1
    programs = supervisor.programs()
    rows = [_row(program) for program in programs]
    print(f"{'program':<18}{'state':<10}{'pid':>8}{'up':>12}{'MB':>8}")
    for name, state, pid, up, memory in rows:
        print(f"{name:<18}{state:<10}{pid:>8}{up:>12}{memory:>8.0f}")
    told = _told(home)
    print(f"\n{_readiness(told['monitoring'])}\n\n{told['address']}")
    down = [
        program["name"] for program in programs if program["statename"] != "RUNNING"
    ]
    total = sum(memory for *_, memory in rows)
    verdict = f"not running: {', '.join(down)}" if down else "all running"
    print(f"{len(rows)} programs, {total:.0f} MB, {verdict}")
    return 1 if down else 0


def _row(program: dict[str, Any]) -> tuple[str, str, int, str, float]:
    seconds = program["now"] - program["start"] if program["pid"] else 0
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    return (
        program["name"],
        program["statename"].lower(),
        program["pid"],
        f"{hours}:{minutes:02}:{seconds:02}",
        _memory_of(program["pid"]),
    )


def _memory_of(program: int) -> float:
    """Megabytes of a program with its children, shared pages counted once."""
    if not program:
        return 0
    total = 0
    waiting = [program]
    while waiting:
        process = Path("/proc", str(waiting.pop()))
        # One that ends meanwhile needs none.
        with contextlib.suppress(OSError):
            for children in process.glob("task/*/children"):
                waiting += map(int, children.read_text().split())
            rollup = (process / "smaps_rollup").read_text()
            total += int(rollup.partition("Pss:")[2].split()[0])
    return total / 1024


def _readiness(monitoring: str) -> str:
    """What the application says of its helpers, where it says anything."""
    state = _ready(monitoring)
    if not state:
        return "/readyz says nothing"
    checks = state.get("checks", {})
    lines = [
        f"{name:<12}{'ok' if check['ok'] else 'AWAY':<6}{check['detail']}"
        for name, check in checks.items()
    ]
    return "\n".join([*lines, *state.get("degraded", [])])


def _ready(monitoring: str) -> dict[str, Any]:
    try:
        with urllib.request.urlopen(  # noqa: S310
            f"{monitoring}readyz", timeout=5
        ) as reply:
            return json.load(reply)
    except urllib.error.HTTPError as error:
        # 503: the state is its body all the same.
        with contextlib.suppress(ValueError), error:
            return json.load(error)
    except (OSError, ValueError, http.client.HTTPException):
        pass
    return {}


# Logs


def _logs(home: Path, program: str | None, follow: bool) -> int:
    found = sorted((home / "log").glob(f"{program or ''}*.log"))
    found += sorted((home / "log").glob(f"{program or '*'}/*.log"))
    if not found:
        raise Refusal(f"There is no log of {program or 'anything'} in {home / 'log'}")
    command = ["tail", "-n", "40" if program else "10", *(["-F"] if follow else [])]
    with contextlib.suppress(Stopped):
        subprocess.run([*command, *found], check=False)
    return 0


# Reload


def _reload(home: Path) -> int:
    """Restart each gunicorn while its twin accepts; then nginx, in place.

    Both share one socket, which the supervisor holds: whoever connects waits
    in its queue until one of them takes it. A request under way is finished.
    """
    supervisor = Supervisor(home)
    if not supervisor.is_running():
        raise Refusal("Nothing is running; start it with provisioning/stack up")
    masters = [
        (program["group"], program["name"])
        for program in supervisor.programs()
        if program["group"] in ("taking", "console")
    ]
    for group, name in masters:
        with step(f"Restarting {name}"):
            supervisor.calls.stopProcess(f"{group}:{name}")
            supervisor.calls.startProcess(f"{group}:{name}", False)
            _wait_for_worker(home, supervisor, group, name)
    with step("Reloading nginx"):
        supervisor.calls.signalProcess("nginx", "HUP")
    print(f"{len(masters)} masters restarted, each while its twin served")
    return 0


def _wait_for_worker(home: Path, supervisor: Supervisor, group: str, name: str) -> None:
    ready = home / "run" / f"{name}.ready"
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        pid = supervisor.calls.getProcessInfo(f"{group}:{name}")["pid"]
        if pid and ready.exists() and ready.read_text() == str(pid):
            return
        time.sleep(0.05)
    raise Refusal(f"{name} does not come back; the other master serves alone")


# Promote


def _promote(home: Path, options: argparse.Namespace) -> int:
    lost = promote(
        home,
        although_it_serves=options.although_it_serves,
        although_it_lags=options.although_it_lags,
    )
    old = f"lie in {lost}" if lost.exists() else "are gone"
    print(f"The replica is the primary now; the old one's data {old}")
    return 0


# Rebuild


def _rebuild(home: Path, options: argparse.Namespace) -> int:
    before = _last_result()
    chosen = _chosen(home, options)
    variables = _variables(home, chosen)
    _refuse_somebody_elses(home, str(variables["server_user"]))
    _refuse_what_cant_be_renamed(home)
    _down(home)
    if home.exists():
        _put_aside(home)
        # Also for the next try, should this one fail.
        _keep(home, chosen)
    _up(home, variables, chosen)
    if not BENCH.exists():
        return 0
    status = subprocess.run([BENCH, "--home", home], check=False).returncode
    _print_beside(before, _last_result())
    return status


def _refuse_what_cant_be_renamed(home: Path) -> None:
    """A renamed link would leave the data where the next stack writes."""
    if home.is_symlink() or home.is_mount():
        kind = "a symbolic link" if home.is_symlink() else "a mount point"
        raise Refusal(
            f"{home} is {kind}, so it can't be put aside; let GROUNDSWELL_STACK name"
            " a folder inside it"
        )


def _put_aside(home: Path) -> None:
    # Never deleted from here: where the new one does not start, it is the only
    # copy of everybody's answers.
    former = home.with_name(f"{home.name}.before-{time.strftime('%Y%m%d-%H%M%S')}")
    with step("Putting the former one aside"):
        home.rename(former)
    print(f"Its data stay in {former}; rm -r {former} deletes them.", flush=True)


def _last_result() -> dict[str, Any]:
    """What provisioning/bench kept of its last run, outside the home."""
    with contextlib.suppress(OSError, ValueError):
        return json.loads((ROOT / ".bench" / "latest.json").read_text())
    return {}


def _print_beside(before: dict[str, Any], after: dict[str, Any]) -> None:
    print(f"\n{'':<28}{'before':>12}{'rebuilt':>12}{'ratio':>8}")
    for name, figure in after.items():
        if isinstance(figure, int | float) and not isinstance(figure, bool):
            old = before.get(name) or 0
            ratio = f"{figure / old:.2f}" if old else ""
            print(f"{name:<28}{old or '-':>12}{figure:>12}{ratio:>8}")


# Manage


def _manage(home: Path, arguments: Sequence[str]) -> int:
    environment = {**os.environ, **environment_of(home, "manage")}
    try:
        return subprocess.run(
            [PYTHON, ROOT / "manage.py", *arguments],
            cwd=ROOT,
            env=environment,
            check=False,
        ).returncode
    except Stopped as stopped:
        return 128 + stopped.number


if __name__ == "__main__":
    sys.exit(run_command("provisioning/stack", main))
