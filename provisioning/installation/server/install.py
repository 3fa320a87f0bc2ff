"""Install Groundswell on a server: `provisioning/install`."""

from __future__ import annotations

import fcntl
import os
import sys
from contextlib import suppress
from pathlib import Path

from provisioning.commands import ROOT, Refusal, step, wait_until
from provisioning.installation.environment import (
    PRODUCTION,
    PYTHON,
    STACK,
    install_missing_packages,
    prepare_environment,
)
from provisioning.installation.playbook import ANSIBLE, run_playbook
from provisioning.installation.postgresql import postgresql_programs
from provisioning.installation.server import checks, report
from provisioning.installation.server.options import (
    HOME,
    CertificateFiles,
    InstallOptions,
    keep,
    merge,
    parse,
)
from provisioning.installation.server.release import (
    CURRENT,
    SOURCE,
    compile_release,
    copy_release,
    git,
    is_release,
    link_first_release,
    served_release,
    version_of,
)
from provisioning.installation.supervisor import PATIENCE, Supervisor
from provisioning.installation.time_zone import zone_of_machine
from provisioning.installation.up import SERVER_USER, StackOptions, keep_options

CERTIFICATE = HOME / "certificate" / "chain.pem"
KEY = HOME / "certificate" / "key.pem"
# Below it, a machine has no room for the second PostgreSQL, the queue and the workers.
SMALL_BELOW_MB = 3500


def main() -> int:
    os.umask(0o022)
    given, files = parse()
    only = given.pop("step")
    options = merge(given, own_certificate=files is not None)
    is_running = Supervisor(HOME).is_running()
    checks.refuse_unusable(options, files, is_running=is_running)
    options = with_defaults(options)
    if not is_release():
        # From here on by the code of the release itself.
        version = version_of()
        refuse_upgrade(version)
        release = copy_release(version)
        keep_source()
        command = release / "provisioning" / "install"
        os.execv(command, [str(command), *sys.argv[1:]])  # noqa: S606
    if only == "prepare":
        prepare(options)
        return 0
    with (HOME / "installation.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Refusal("Another installation is under way on this machine") from None
        install(options, files)
    return 0 if only else report.conclude(options)


def refuse_upgrade(version: str) -> None:
    """Refuse to put another release in the place of one that serves."""
    served = served_release()
    if served and served.name != version:
        raise Refusal(
            f"{served.name} serves here. Run {CURRENT}/provisioning/upgrade, which"
            " makes a backup and keeps a way back; for code without a signed tag with"
            f" --from {ROOT} --unsigned"
        )


def keep_source() -> None:
    """Keep where the checkout came from: upgrades come from there too."""
    with suppress(OSError):
        if origin := git(ROOT, "remote", "get-url", "origin"):
            SOURCE.unlink(missing_ok=True)
            # It may have a password in it.
            SOURCE.touch(mode=0o600)
            SOURCE.write_text(origin)


def with_defaults(options: InstallOptions) -> InstallOptions:
    """Add what the machine decides, once."""
    size = options.size or ("small" if memory_mb() < SMALL_BELOW_MB else "standard")
    if size == "small" and (HOME / "data" / "replica").exists():
        raise Refusal("--size: this machine has a second copy of the database already")
    zone = options.time_zone or zone_of_machine()
    # "UTC" may be what nobody has chosen.
    if problem := checks.time_zone_problem(zone):
        raise Refusal(f"--time-zone: {problem}")
    return InstallOptions(
        **{
            **{name: getattr(options, name) for name in InstallOptions.__slots__},
            "size": size,
            "time_zone": zone,
        }
    )


def memory_mb() -> int:
    lines = Path("/proc/meminfo").read_text().splitlines()
    [total] = [line.split()[1] for line in lines if line.startswith("MemTotal:")]
    return int(total) // 1024


def prepare(options: InstallOptions) -> None:
    """Install what this release needs; nothing that serves changes."""
    packages = ["common", "firewall", "chrony", "updates", "certificate"]
    left_out = ["queue"] if options.size == "small" else []
    install_missing_packages(*packages, without=left_out)
    prepare_environment(PRODUCTION, STACK)
    with step("Compiling"):
        compile_release()


def install(options: InstallOptions, files: CertificateFiles | None) -> None:
    keep(options)
    prepare(options)
    link_first_release()
    if files:
        use_certificate(files)
    inventory = ANSIBLE / "inventories" / "server"
    run_playbook(
        HOME,
        variables_of(options),
        inventories=[inventory / "hosts.yml", inventory / f"{options.size}.yml"],
    )
    # What `stack restore` builds a second stack with.
    settings = {**options.settings, "time_zone": options.time_zone}
    keep_options(HOME, StackOptions(port=0, settings=settings))
    with step("Waiting until it serves"):
        wait_until_served(options)


def use_certificate(files: CertificateFiles) -> None:
    """Copy the owner's files to where nginx reads them, the key first."""
    CERTIFICATE.parent.mkdir(mode=0o700, exist_ok=True)
    for source, target in ((files.key, KEY), (files.certificate, CERTIFICATE)):
        draft = target.with_suffix(".new")
        draft.touch(mode=0o600)
        draft.write_bytes(source.read_bytes())
        draft.replace(target)
    supervisor = Supervisor(HOME)
    if supervisor.is_running() and supervisor.pids("nginx"):
        supervisor.calls.signalProcess("nginx", "HUP")


def variables_of(options: InstallOptions) -> dict[str, object]:
    """Return Ansible's variables for this machine and these options."""
    backup, _ = checks.backup_variables(options.backup) if options.backup else ({}, "")
    mail = options.mail or f"filemail:///{HOME}/files/mail"
    return {
        "home": str(HOME),
        "checkout": str(CURRENT),
        "python": str(CURRENT / PYTHON.relative_to(ROOT)),
        "release_folder": str(ROOT),
        "version": ROOT.name,
        "server_user": SERVER_USER,
        "postgresql_bin": str(postgresql_programs()),
        # The second through a tunnel, to the engineers' pages.
        "allowed_hosts": [options.host, "localhost"],
        "time_zone": options.time_zone,
        "mail_server": mail,
        "acme_authority": options.acme,
        "acme_email": options.email,
        **backup,
        **options.settings,
    }


def wait_until_served(options: InstallOptions) -> None:
    supervisor = Supervisor(HOME)
    wait_until(
        lambda: not supervisor.not_running() and report.status_over_tls(options) == 200,
        seconds=2 * PATIENCE,
        pause=0.5,
    )
    if names := ", ".join(supervisor.not_running()):
        raise Refusal(f"Not running: {names}; see {CURRENT}/provisioning/stack logs")
    if (status := report.status_over_tls(options)) != 200:
        raise Refusal(f"The login page is not served; its status is {status or None}")
