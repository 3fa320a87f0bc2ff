"""Start a program in its container, as the roles' supervisor would start it.

The command, the user's environment and the socket are read from what `configure.py`
wrote. It replaces this process, which so needs no shell and passes no signals on. With
the standard library only: every image has this file, and most have nothing else of
Groundswell. Programs before the last one are started beside it.
"""

from __future__ import annotations

import configparser
import os
import shlex
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

HOME = Path(os.environ.get("GROUNDSWELL_HOME", "/srv/groundswell"))
CHECKOUT = Path("/srv/groundswell-checkout")
PYTHON = str(CHECKOUT / ".venv/bin/python")
ETC, RUN, DATA = HOME / "etc", HOME / "run", HOME / "data"
# What a container that was killed leaves in `run`. Its process id is another program's
# by now.
STALE = {"nginx": ("nginx.pid", "compressing.sock"), "pgbouncer": ("pgbouncer.pid",)}


def main() -> None:
    if sys.argv[1] in ("release", "manage"):
        run_as_owner(*sys.argv[1:])
    *beside, program = sys.argv[1:]
    for name in beside:
        subprocess.Popen(command_of(section_of(name))[0])
    section = section_of(program)
    command, environment = command_of(section)
    for name in STALE.get(program, ()):
        (RUN / name).unlink(missing_ok=True)
    if program == "primary":
        prepare_database(command)
    if program == "nginx":
        command = ["nginx", "-e", "stderr", "-c", str(ETC / "nginx/nginx.conf")]
        command += ["-g", "daemon off;"]
        renew_nginx()
    if "socket" in section:
        command = [PYTHON, "-m", "gunicorn"]
        command += ["--config", str(ETC / program / "gunicorn.py")]
        environment |= open_socket(section)
    if environment:
        for name in ("counters", "ready"):
            (RUN / name).mkdir(exist_ok=True)
        os.chdir(CHECKOUT)
    os.execvpe(command[0], command, {**os.environ, **environment})  # noqa: S606


def run_as_owner(name: str, *arguments: str) -> None:
    """Run the release, or a command of manage.py, as the owner of the tables."""
    file = ETC / "app/manage.env"
    environment = read_environment(file.read_text()) if file.exists() else {}
    command = [PYTHON, "manage.py", *arguments]
    if name == "release":
        command = [
            PYTHON,
            "-m",
            "provisioning",
            "provisioning.containers.release",
            name,
        ]
    os.chdir(CHECKOUT)
    os.execve(PYTHON, command, {**environment, **os.environ})  # noqa: S606


def section_of(program: str) -> Mapping[str, str]:
    """Return what the roles wrote about a program for the supervisor."""
    parser = configparser.RawConfigParser()
    parser.read(ETC.glob("*/supervisor.ini"))
    for kind in ("program", "fcgi-program"):
        if parser.has_section(f"{kind}:{program}"):
            return parser[f"{kind}:{program}"]
    sys.exit(f"{ETC} has no program {program}: mount what configure.py wrote for it")


def command_of(section: Mapping[str, str]) -> tuple[list[str], dict[str, str]]:
    """Return a program's command and the environment that a shell would read first.

    A container that is given its variables by an orchestrator has no such file.
    """
    command = shlex.split(section["command"].replace("%%", "%"))
    if command[:2] != ["/bin/sh", str(ETC / "app/run")]:
        return command, {}
    file = ETC / "app" / f"{command[2]}.env"
    environment = read_environment(file.read_text()) if file.exists() else {}
    # A variable that was given counts.
    given = {name: os.environ[name] for name in environment if name in os.environ}
    return command[3:], {**environment, **given, "PYTHONUNBUFFERED": "1"}


def read_environment(text: str) -> dict[str, str]:
    """Return the variables of lines NAME='value', as a shell would read them."""
    lines = shlex.split(text, comments=True)
    return dict(line.split("=", 1) for line in lines)


def open_socket(section: Mapping[str, str]) -> dict[str, str]:
    """Open a pool's socket as the supervisor would, and say so to gunicorn.

    It is handed over the way systemd does, and gunicorn does not remove it.
    """
    path = section["socket"].removeprefix("unix://")
    listener = socket.socket(socket.AF_UNIX)
    draft = f"{path}.new"
    with suppress(FileNotFoundError):
        os.unlink(draft)
    listener.bind(draft)
    os.chmod(draft, int(section["socket_mode"], 8))
    listener.listen(int(section["socket_backlog"]))
    # What waits at the socket of a container before this one is served to its end.
    os.replace(draft, path)
    if listener.fileno() == 3:
        os.set_inheritable(3, True)
    else:
        os.dup2(listener.fileno(), 3)
        listener.close()
    listener.detach()
    return {"LISTEN_FDS": "1", "LISTEN_PID": str(os.getpid())}


def prepare_database(command: list[str]) -> None:
    """Make the data folder, and roles and the database where these have changed.

    The server runs for it where nobody reaches it.
    """
    subprocess.run(["sh", str(ETC / "primary/initialise")], check=True)
    roles = sha256((ETC / "primary/roles.sql").read_bytes()).hexdigest()
    stamp = DATA / "primary.roles"
    if stamp.exists() and stamp.read_text() == roles:
        return
    # This is the container's first process, which no signal ends by itself.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    server = subprocess.Popen([*command, "-c", "listen_addresses="])
    try:
        subprocess.run(["sh", str(ETC / "primary/prepare")], check=True)
    finally:
        server.send_signal(signal.SIGINT)
        server.wait()
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    stamp.write_text(roles)


def renew_nginx() -> None:
    """Reload nginx regularly, so that no slow request lives on; see the role `web`."""
    try:
        command = section_of("nginx_renewal")["command"]
    except SystemExit:
        return
    seconds = int(command.partition("sleep ")[2].partition(";")[0])
    nginx = os.getpid()
    if os.fork():
        return
    while os.getppid() == nginx:
        time.sleep(seconds)
        os.kill(nginx, signal.SIGHUP)
    os._exit(0)


if __name__ == "__main__":
    main()
