"""Install Groundswell on a fresh system, answer a survey there over TLS, upgrade it.

Makes the machine with debootstrap and runs it with systemd-nspawn: systemd is its
process 1, the network is its own, and this machine's services are left alone. Then it
upgrades to made-up releases under load, one of them interrupted, and goes back: with
the database as it is, and by a restore. Needs root. The last line is a JSON object.
"""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

from provisioning.commands import (
    Refusal,
    command_parser,
    output_of,
    print_verdict,
    step,
    wait_until,
)
from provisioning.installation.debian_roots import SUITES
from provisioning.installation.environment import (
    PRODUCTION,
    PYTHON,
    TESTS,
    install_packages,
    path_of_program,
    prepare_environment,
)
from provisioning.installation.server.options import HOME
from provisioning.prove.installing.authority import Authority, own_certificate
from provisioning.prove.installing.machine import (
    HOST,
    PROGRAMS,
    Machine,
    Mirror,
    make_root,
)
from provisioning.prove.installing.mail_sink import MailSink
from provisioning.prove.installing.planted_faults import name_faults
from provisioning.prove.installing.releases import Releases, copy_code
from provisioning.prove.installing.upgrading import drill_upgrades, responses

NAME = "survey.example.org"
EMAIL = "it@example.org"
CODE = "/root/groundswell"
STACK = f"{HOME}/current/provisioning/stack"
# Debian's package of each program.
PACKAGES = {
    "debootstrap": "debootstrap",
    "systemd-nspawn": "systemd-container",
    "slirp4netns": "slirp4netns",
}
# Times five seconds, until a page says that it is saved: what is measured here is
# whether, and not how fast.
PATIENCE = 12
# Pages that are answered before a restart, and after it.
PAGES = 2


def main() -> int:
    options = parser().parse_args()
    missing = [
        PACKAGES.get(name, name) for name in PROGRAMS if not path_of_program(name)
    ]
    if missing:
        install_packages(missing)
    prepare_environment(PRODUCTION, TESTS)
    folder = Path(tempfile.mkdtemp(prefix="gs-drill-", dir=options.folder))
    machine = Machine(folder, memory_mb=options.memory, cores=options.cores)
    passed = False
    try:
        figures = drill(machine, options)
        passed = True
    finally:
        machine.stop()
        if passed:
            shutil.rmtree(folder, ignore_errors=True)
        else:
            print(f"Logs are kept in {folder}")
    print_verdict(())
    print(json.dumps(figures))
    return 0


def parser() -> argparse.ArgumentParser:
    parser = command_parser(__doc__)
    add = parser.add_argument
    add("--suite", choices=[*SUITES], default="bookworm", help="(bookworm)")
    add("--mirror", help="where its packages are, if this machine has none of them")
    add("--size", choices=("standard", "small"), default="standard")
    add("--memory", type=int, default=0, help="MB for the machine (all)")
    add("--cores", type=int, default=0, help="of the machine (all)")
    add(
        "--acme",
        action="store_true",
        help="also a certificate of an authority, Pebble, which Go installs",
    )
    add("--folder", type=Path, default=Path("/var/tmp"), help="(/var/tmp)")  # noqa: S108
    return parser


def drill(machine: Machine, options: argparse.Namespace) -> dict[str, Any]:
    began = time.monotonic()
    make_root(
        machine.root, options.suite, Mirror.of_suite(options.suite, options.mirror)
    )
    code = machine.root / CODE[1:]
    copy_code(code)
    releases = Releases(machine.folder, machine.root / "root/releases")
    releases.trust(code)
    certificate, key = own_certificate(machine.folder, NAME)
    for path, name in ((certificate, "own.pem"), (key, "own.key")):
        shutil.copy(path, machine.root / "root" / name)
    with step("Starting the machine"):
        machine.start()
    with MailSink() as mail:
        installed = install(machine, options.size, mail.port)
        with step("Installing it again, which changes nothing"):
            repeated = install(machine, options.size, mail.port, quietly=True)
        minutes = (time.monotonic() - began) / 60
        codes = load_survey(machine)
        saved = answer(machine, codes[0])
        named = name_faults(machine, NAME, options.size)
        signed = Authority(machine, NAME).sign() if options.acme else None
        with step("Making a backup"):
            machine.run(STACK, "backup", "--full")
        seconds = restart(machine)
        saved_after = answer(machine, codes[1])
        shutil.copytree(code, releases.repository)
        upgraded = drill_upgrades(
            machine, releases, NAME, lambda: answer(machine, codes.pop())
        )
    return {
        "suite": options.suite,
        "size": options.size,
        "minutes": round(minutes, 1),
        "install_minutes": round(installed / 60, 1),
        "again_seconds": round(repeated),
        "saved_over_tls": saved,
        "mails": mail.received,
        "rebooted": {"seconds": round(seconds), "saved_over_tls": saved_after},
        "certificate": signed,
        "memory_peak_mb": machine.memory_peak_mb() if options.memory else None,
        **upgraded,
        "doctor_named": named,
    }


def install(machine: Machine, size: str, port: int, *, quietly: bool = False) -> float:
    """Call `provisioning/install` as its guide says; return the seconds it took."""
    began = time.monotonic()
    printed = machine.run(
        f"{CODE}/provisioning/install",
        *("--host", NAME, "--email", EMAIL, "--time-zone", "America/Chicago"),
        *("--mail", f"smtp://{HOST}:{port}", "--size", size),
        *("--certificate", "own.pem", "--key", "own.key"),
    )
    if not quietly:
        print(printed)
    if "/console/invitation/?key=" not in printed:
        raise Refusal("It printed no link for the first administrator")
    return time.monotonic() - began


def load_survey(machine: Machine) -> list[str]:
    """Load the demonstration; return access codes of four students."""
    with step("Loading a survey"):
        demo = json.loads(machine.run(STACK, "manage", "load_demo", "--json"))
    return [card["code"] for card in demo["cards"] if card["role"] == "student"][:4]


def answer(machine: Machine, code: str) -> int:
    """Answer some pages in Chromium; return how many answers the database has more."""
    before = responses(machine)
    with step("Answering in Chromium over TLS"), tempfile.TemporaryDirectory() as data:
        shown = json.loads(
            output_of(
                [
                    *("ip", "netns", "exec", machine.name, "env"),
                    "DJANGO_SETTINGS_MODULE=settings.embedded",
                    f"GROUNDSWELL_DATA={data}",
                    f"GROUNDSWELL_TEST_PATIENCE={PATIENCE}",
                    *(str(PYTHON), "-m", "provisioning.prove.installing.browser"),
                    *(f"https://{NAME}/", code),
                    *(key_digest(machine), str(PAGES)),
                ],
                failing="Chromium fails",
            )
        )
    saved = responses(machine) - before
    if not 0 < shown <= saved:
        raise Refusal(
            f"The page showed {shown} answers as saved, the database has {saved}"
        )
    return saved


def key_digest(machine: Machine) -> str:
    """Return the digest of the served certificate's public key."""
    chain = f"{HOME}/certificate/chain.pem"
    script = (
        f"openssl x509 -in {chain} -pubkey -noout | openssl pkey -pubin -outform der"
        " | openssl dgst -sha256 -binary | openssl enc -base64"
    )
    return machine.run("sh", "-c", script).strip()


def restart(machine: Machine) -> float:
    """Restart the machine; return the seconds until it serves again."""
    began = time.monotonic()
    with step("Restarting the machine"):
        machine.reboot()
        if not wait_until(
            lambda: machine.call(STACK, "status").returncode == 0, seconds=120, pause=1
        ):
            raise Refusal("Not all programs run after a restart")
    return time.monotonic() - began
