"""Build the images, start them all with the compose file, and answer a survey there.

Then restarts the respondents' pool under requests, and stops everything. Where no shell
is needed, the containers run without one. Needs root, or a user who may run Podman or
Docker. The last line is a JSON object.
"""

from __future__ import annotations

import http.client
import json
import shutil
import ssl
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from provisioning.commands import (
    Refusal,
    command_parser,
    conclude,
    missed,
    output_of,
    step,
    wait_until,
)
from provisioning.containers.engine import HAS_SYSTEMD, Engine
from provisioning.installation.environment import (
    PRODUCTION,
    PYTHON,
    TESTS,
    prepare_environment,
)

NAME = "survey.example.org"
BASE = "docker.io/library/debian:12-slim"
VERSION = "trial"
# One-shots, and those that serve.
ONCE = ("configure", "release")
SERVERS = ("postgresql", "redis", "redis-messages", "memcached", "rabbitmq")
WORKERS = (
    *("worker", "long_worker", "scan_worker", "download_worker", "email_worker"),
    "beat",
)
PROGRAMS = ("nginx", "taking", "console", "pgbouncer", *WORKERS)
# Debian's scripts start these two.
WITH_SHELL = ("postgresql", "rabbitmq")
SHELLS = ("/usr/bin/dash", "/usr/bin/bash")
PAGES = 2
THREADS = 8
PROBE = """
import json, os
def writes(path):
    try:
        open(path, "w").close()
        return True
    except OSError:
        return False
print(json.dumps([os.getuid(), writes("/probe") or writes("/usr/probe")]))
"""


def main() -> int:
    parser = command_parser(__doc__)
    add = parser.add_argument
    add("--base", help=f"image to build on; without it {BASE}, or one of debootstrap")
    add("--port", type=int, default=8443, help="of nginx, on 127.0.0.1 (8443)")
    add("--keep", action="store_true", help="leave containers and volumes")
    options = parser.parse_args()
    prepare_environment(PRODUCTION, TESTS)
    # Short, because of the sockets in it.
    folder = Path(tempfile.mkdtemp(prefix="gs-"))
    trial = Trial(Engine(folder), options.port)
    try:
        base = options.base or trial.usual_base()
        sizes = trial.engine.build(base, VERSION)
        with trial.engine.served():
            figures = trial.run(keep=options.keep)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    figures = {"engine": trial.engine.name, "base": base, "image_mb": sizes, **figures}
    least = {"requests_answered": 1, "saved_answers": 1, "read_only": 1, "as_user": 1}
    most = {"lost_requests": 0, "killed": 0, "restarts": 0}
    return conclude(figures, missed(figures, least=least, most=most))


class Trial:
    def __init__(self, engine: Engine, port: int) -> None:
        self.engine = engine
        self.port = port
        self.origin = f"https://{NAME}:{port}"
        self.variables = {
            "VERSION": VERSION,
            "HTTPS": f"127.0.0.1:{port}",
            "HTTP": f"127.0.0.1:{port + 1}",
            "ENGINEERS": str(port + 2),
            "GROUNDSWELL_HOSTS": NAME,
            "GROUNDSWELL_URL": self.origin,
            "GROUNDSWELL_TIME_ZONE": "America/Chicago",
        }
        masked = [f"/dev/null:{shell}:ro" for shell in SHELLS]
        services = {
            name: {"volumes": masked}
            for name in (*ONCE[1:], *PROGRAMS, *SERVERS)
            if name not in WITH_SHELL
        }
        override = json.dumps({"services": services})
        (engine.folder / "override.yaml").write_text(override)

    def usual_base(self) -> str:
        with step(f"Looking for {BASE}"):
            has_it = self.engine.runs("timeout", "60", self.engine.name, "pull", BASE)
        return BASE if has_it else self.engine.bootstrap()

    def compose(self, *arguments: str) -> str:
        return self.engine.call_compose(
            *arguments, variables=self.variables, failing=f"compose {arguments[0]}"
        )

    def run(self, *, keep: bool) -> dict[str, Any]:
        began = time.monotonic()
        try:
            with self.checked_health():
                with step("Starting everything by one command"):
                    self.compose("up", "--detach", "--no-build")
                    self.wait_until_served()
                seconds = time.monotonic() - began
                figures = self.examine()
                figures |= self.restart_under_requests()
                figures |= self.stop()
        finally:
            if not keep:
                with step("Removing everything"), suppress(Refusal):
                    self.compose("down", "--volumes", "--timeout", "5")
        return {"seconds_to_start": round(seconds), **figures}

    @contextmanager
    def checked_health(self) -> Iterator[None]:
        """Check the health of containers where systemd does not do it for Podman."""
        if self.engine.name != "podman" or HAS_SYSTEMD:
            yield
            return
        ended = threading.Event()

        def check() -> None:
            while not ended.wait(1):
                for identifier in self.containers().values():
                    self.engine.runs("podman", "healthcheck", "run", identifier)

        thread = threading.Thread(target=check)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()

    def containers(self) -> dict[str, str]:
        """Return the containers by the names of their services."""
        text = '{{.Label "com.docker.compose.service"}} {{.ID}}'
        if self.engine.name == "podman":
            text = '{{index .Labels "com.docker.compose.service"}} {{.ID}}'
        listed = self.engine.run(
            *("ps", "--all", "--format", text),
            *("--filter", "label=com.docker.compose.project=groundswell-trial"),
            failing="Containers can't be listed",
        )
        return dict(line.split() for line in listed.splitlines())

    def wait_until_served(self) -> None:
        if not wait_until(lambda: self.ask() == "200", seconds=900, pause=1):
            raise Refusal("The containers run, and nothing is served")

    def ask(self, path: str = "/") -> str:
        """Return the status of a page, or "lost"."""
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        connection = http.client.HTTPSConnection(
            "127.0.0.1", self.port, timeout=40, context=context
        )
        try:
            connection.request("GET", path, headers={"Host": f"{NAME}:{self.port}"})
            reply = connection.getresponse()
            reply.read()
            return str(reply.status)
        except (OSError, http.client.HTTPException):
            return "lost"
        finally:
            connection.close()

    def examine(self) -> dict[str, Any]:
        """Answer a survey; look at users, file systems and restarts."""
        with step("Loading a survey"):
            run = ("run", "--rm", "-T", "--no-deps", "release", "manage")
            demo = json.loads(self.compose(*run, "load_demo", "--json"))
        codes = [card["code"] for card in demo["cards"] if card["role"] == "student"]
        saved = self.answer(codes[0])
        users, read_only = Counter[int](), 0
        for service, identifier in self.containers().items():
            if service in ONCE:
                continue
            probe = ("exec", identifier, "python3", "-c", PROBE)
            text = self.engine.run(*probe, failing=f"{service} can't be examined")
            uid, writes = json.loads(text)
            users[uid] += 1
            read_only += not writes
        return {
            "saved_answers": saved,
            "users": dict(users),
            "as_user": int(0 not in users),
            "read_only": int(read_only == users.total()),
            "without_shell": len(PROGRAMS) + len(SERVERS) - len(WITH_SHELL),
            "restarts": sum(
                self.engine.inspect(each).get("RestartCount", 0)
                for each in self.containers().values()
            ),
        }

    def answer(self, code: str) -> int:
        """Answer pages in Chromium; return how many answers the database has more."""
        before = self.responses()
        with step("Answering in Chromium"), tempfile.TemporaryDirectory() as data:
            browser = [str(PYTHON), "-m", "provisioning.prove.installing.browser"]
            settings = [
                "DJANGO_SETTINGS_MODULE=settings.embedded",
                f"GROUNDSWELL_DATA={data}",
            ]
            shown = json.loads(
                output_of(
                    ["env", *settings, *browser]
                    + [f"{self.origin}/", code, self.key_digest(), str(PAGES)],
                    failing="Chromium fails",
                )
            )
        saved = self.responses() - before
        if not 0 < shown <= saved:
            raise Refusal(f"The page showed {shown} as saved, the database has {saved}")
        return saved

    def key_digest(self) -> str:
        """Return the digest of the served certificate's public key."""
        certificate = ssl.get_server_certificate(("127.0.0.1", self.port))
        (self.engine.folder / "served.pem").write_text(certificate)
        script = (
            'openssl x509 -in "$1" -pubkey -noout | openssl pkey -pubin -outform der'
            " | openssl dgst -sha256 -binary | openssl enc -base64"
        )
        command = ["sh", "-c", script, "sh", str(self.engine.folder / "served.pem")]
        return output_of(command, failing="openssl fails").strip()

    def responses(self) -> int:
        psql = ("psql", "-h", "/srv/groundswell/run", "-U", "postgres")
        query = ("-d", "groundswell", "-Atc", "SELECT count(*) FROM survey_response")
        identifier = self.containers()["postgresql"]
        text = self.engine.run("exec", identifier, *psql, *query, failing="psql fails")
        return int(text)

    def restart_under_requests(self) -> dict[str, Any]:
        """Restart the respondents' pool while people ask for pages.

        A page that nobody could serve says when to come again, and the browser does;
        a request is lost if it gets no answer at all.
        """
        answers: Counter[str] = Counter()
        ended = threading.Event()

        def send() -> None:
            while not ended.is_set():
                answers[self.ask()] += 1

        threads = [threading.Thread(target=send) for _ in range(THREADS)]
        with step("Restarting the respondents' pool under requests"):
            for thread in threads:
                thread.start()
            time.sleep(5)
            self.compose("restart", "taking")
            wait_until(lambda: self.ask() == "200", seconds=120, pause=0.5)
            time.sleep(3)
            ended.set()
            for thread in threads:
                thread.join()
        known = ("200", "503")
        return {
            "requests_answered": answers["200"],
            "told_to_come_again": answers["503"],
            "lost_requests": sum(
                count for status, count in answers.items() if status not in known
            ),
        }

    def stop(self) -> dict[str, Any]:
        """Stop everything; count what had to be killed, or ended with an error."""
        with step("Stopping everything"):
            began = time.monotonic()
            self.compose("stop")
            seconds = time.monotonic() - began
        codes = {
            service: self.engine.inspect(identifier)["State"]["ExitCode"]
            for service, identifier in self.containers().items()
        }
        killed = {service: code for service, code in codes.items() if code == 137}
        return {
            "seconds_to_stop": round(seconds),
            "killed": len(killed),
            "exit_codes": {name: code for name, code in codes.items() if code},
        }
