"""Install the virtual environment and Debian's packages where they are missing."""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, redirect_stdout
from glob import glob
from pathlib import Path
from platform import freedesktop_os_release

from provisioning.commands import ROOT, Refusal, output_of, reason, step
from provisioning.help_site.build import build_if_changed

VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
PRODUCTION = ROOT / "requirements.txt"
TESTS = ROOT / "provisioning" / "installation" / "requirements-test.txt"
STACK = ROOT / "provisioning" / "installation" / "requirements-stack.txt"
ROLES = ROOT / "provisioning" / "ansible" / "roles"
# Of a machine that runs everything; load comes from another one.
STACK_ROLES = ("primary", "replica", "backup", "cache", "queue", "web", "worker")
# The tests check the firewall's rules and load none, and send hostile requests through
# a load balancer.
TEST_ROLES = (*STACK_ROLES, "firewall", "haproxy", "power_loss")
# The tests' browser. Chromium itself also draws a window's controls: a session
# with a small page takes 0.8 s of processor time there, and 0.2 s here.
BROWSER = "chromium-headless-shell"
# Counts what each kind of request costs a worker.
COUNTER = "valgrind"


# The virtual environment


def prepare_environment(*requirements: Path) -> None:
    """Install these pinned requirements into `.venv`, unless they are there.

    With those of production, also build the help site that the product serves.
    """
    with PRODUCTION.open() as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            # Standard output may be a file that the command writes.
            waiting = step("Waiting for another command that prepares .venv")
            with redirect_stdout(sys.stderr), waiting:
                fcntl.flock(lock, fcntl.LOCK_EX)
        if not is_usable():
            _create_environment()
        if missing := [path for path in requirements if not stamp_of(path).exists()]:
            _install(missing)
        if PRODUCTION in requirements:
            build_if_changed(PYTHON)


def lock_of(requirements: Path) -> Path:
    """Return the file with the digests of these packages; see provisioning/lock."""
    return ROOT / "provisioning" / "installation" / "locked" / requirements.name


def stamp_of(requirements: Path) -> Path:
    """Return the file that marks these requirements as completely installed."""
    content = requirements.read_bytes() + repr(sys.version_info[:2]).encode()
    digest = hashlib.sha256(content).hexdigest()[:16]
    return VENV / "installed" / f"{requirements.stem}-{digest}"


def is_usable() -> bool:
    """Return whether `.venv` works and holds no other requirements."""
    # Other requirements mean a new environment: a package that was dropped
    # must not linger (Django would prefer a psycopg 3 left behind, say).
    known = {stamp_of(path) for path in (PRODUCTION, TESTS, STACK)}
    stamps = set(VENV.glob("installed/*"))
    if not stamps or not stamps <= known:
        return False
    try:
        done = subprocess.run([PYTHON, "-c", "import django"], capture_output=True)
    except OSError:
        return False
    return done.returncode == 0


def _create_environment() -> None:
    # Debian's python3 alone lacks the module that installs pip.
    has_pip = [sys.executable, "-c", "import ensurepip, venv"]
    if subprocess.run(has_pip, capture_output=True).returncode:
        minor = f"python3.{sys.version_info.minor}-venv"
        system = sys.executable == "/usr/bin/python3"
        install_packages(["python3-venv" if system else minor])
    with step("Creating .venv"):
        if not os.access(ROOT, os.W_OK):
            raise Refusal(f"{ROOT} is not writable for this user")
        if VENV.exists():
            shutil.rmtree(VENV)
        output_of([sys.executable, "-m", "venv", VENV], failing="Can't create .venv")


def _install(requirements: Sequence[Path]) -> None:
    pip = [str(PYTHON), "-m", "pip", "--disable-pip-version-check", "--no-input"]
    # Two of the packages come as source only, and are built apart from what
    # is installed here; the newer Pythons build no other way.
    options = ["--use-pep517", "--retries", "2", "--timeout", "20", "--quiet"]
    # Nothing but the files that were published when the versions were chosen.
    options += ["--require-hashes", "--no-compile"]
    for path in requirements:
        options += ["-r", str(lock_of(path))]
    with step(f"Installing {', '.join(path.name for path in requirements)}"):
        done = subprocess.run(
            [*pip, "install", *options],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            cwd=ROOT,
        )
        if done.returncode:
            raise Refusal(why_not_installed(done.stdout + done.stderr))
        # pip would compile in one process, and the packages' own tests as well. Some
        # files are templates or for other Pythons, which is no error.
        compileall = [str(PYTHON), "-m", "compileall", "-q", "-j0"]
        compileall += ["-x", "/site-packages/.+/tests/", str(VENV / "lib")]
        subprocess.run(compileall, capture_output=True)
        for path in requirements:
            stamp = stamp_of(path)
            stamp.parent.mkdir(exist_ok=True)
            stamp.touch()


def why_not_installed(output: str) -> str:
    """Return one sentence for pip's output."""
    if re.search(
        "(NewConnection|ConnectTimeout|ReadTimeout|NameResolution|Proxy|SSL)Error"
        "|Connection refused|Temporary failure in name resolution",
        output,
    ):
        return (
            "The package registry can't be reached; check the network, or set"
            " PIP_INDEX_URL to a mirror of it"
        )
    return f"pip can't install the packages: {reason(output)}"


def manage(*arguments: str, environment: Mapping[str, str]) -> str:
    """Run a management command, and return what it prints."""
    return output_of(
        [PYTHON, ROOT / "manage.py", *arguments],
        failing=f"manage.py {arguments[0]} failed",
        env=environment,
    )


# Debian's packages


def install_missing_packages(
    *more_roles: str, without: Sequence[str] = (), for_tests: bool = False
) -> None:
    """Install what the stack (without some roles) and more roles lack, or the tests.

    The roles list it, for this machine as for a fleet: one package in a line,
    then the program or file that shows it is installed.
    """
    chosen = TEST_ROLES if for_tests else (*STACK_ROLES, *more_roles)
    roles = [role for role in chosen if role not in without]
    lists = [(ROLES / role / "packages.txt").read_text() for role in roles]
    lines = [line for text in lists for line in text.splitlines()]
    signs = dict(line.split() for line in lines)
    if for_tests:
        signs[COUNTER] = COUNTER
    # Ubuntu has Chromium as a snap only: there Playwright brings its own.
    if for_tests and freedesktop_os_release()["ID"] != "ubuntu":
        signs[BROWSER] = BROWSER
    missing = [
        package
        for package, sign in signs.items()
        if not (glob(sign) if sign.startswith("/") else path_of_program(sign))
    ]
    if not missing:
        return
    try:
        install_packages(missing)
    except Refusal:
        # The tests can run in Chromium too, but take longer.
        if BROWSER not in missing or not path_of_program("chromium"):
            raise
        missing.remove(BROWSER)
        if missing:
            install_packages(missing)


def path_of_program(name: str) -> str:
    """Return the path of a program, or "" where it is missing."""
    # Debian keeps servers in folders outside an ordinary user's PATH.
    return shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin:/usr/bin") or ""


def install_packages(packages: Sequence[str]) -> None:
    """Install Debian packages as root; for other users, name the missing ones."""
    names = " ".join(packages)
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        raise Refusal(
            f"Missing: {names}. Install with: sudo apt-get install"
            f" --no-install-recommends {names}"
        )
    # Debian starts a server, and creates a cluster, when it installs one.
    prevented = {Path("/usr/sbin/policy-rc.d"): "#!/bin/sh\nexit 101\n"}
    if any(package.startswith("postgresql") for package in packages):
        clusters = Path("/etc/postgresql-common/createcluster.d")
        prevented[clusters / "groundswell.conf"] = "create_main_cluster = false\n"
    quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C"}
    apt_get = ["apt-get", "-qq", "-o", "DPkg::Lock::Timeout=300"]
    with step(f"Installing {names}"), ExitStack() as stack:
        for path, text in prevented.items():
            # One of these may be left of a run that was killed.
            if not path.exists() or path.read_text() == text:
                path.parent.mkdir(parents=True, exist_ok=True)
                stack.callback(path.unlink, missing_ok=True)
                path.write_text(text)
                path.chmod(0o755)
        # A third party's list that can't be read is no reason to give up.
        subprocess.run([*apt_get, "update"], capture_output=True, env=quiet)
        output_of(
            [*apt_get, "install", "--yes", "--no-install-recommends", *packages],
            failing="apt-get can't install them",
            env=quiet,
        )
