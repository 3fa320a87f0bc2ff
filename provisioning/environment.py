"""The virtual environment and Debian's packages, installed where missing."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from provisioning.commands import ROOT, Refusal, output_of, step

VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
PRODUCTION = ROOT / "requirements.txt"
TESTS = ROOT / "provisioning" / "requirements-test.txt"
STACK = ROOT / "provisioning" / "requirements-stack.txt"


def prepare_environment(*requirements: Path) -> None:
    """Make `.venv` hold these pinned requirements; costs nothing when it does."""
    with _one_at_a_time():
        if not _is_usable():
            _make_environment()
        for listed in requirements:
            if not stamp_of(listed).exists():
                _install(listed)


@contextmanager
def _one_at_a_time() -> Iterator[None]:
    with PRODUCTION.open() as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            with step("Waiting for another command that prepares .venv"):
                fcntl.flock(file, fcntl.LOCK_EX)
        yield


def stamp_of(requirements: Path) -> Path:
    """Stands in `.venv` once these requirements are completely installed."""
    content = requirements.read_bytes() + repr(sys.version_info[:2]).encode()
    digest = hashlib.sha256(content).hexdigest()[:16]
    return VENV / "installed" / f"{requirements.stem}-{digest}"


def _is_usable() -> bool:
    # Other requirements mean a new environment: a package that was dropped
    # must not linger (Django would prefer a psycopg 3 left behind, say).
    known = {stamp_of(listed) for listed in (PRODUCTION, TESTS, STACK)}
    stamps = set(VENV.glob("installed/*"))
    return bool(stamps) and stamps <= known and _python_runs()


def _python_runs() -> bool:
    try:
        done = subprocess.run([PYTHON, "-c", "import django"], capture_output=True)
    except OSError:
        return False
    return done.returncode == 0


def _make_environment() -> None:
    _require_venv()
    with step("Creating .venv"):
        _refuse_unwritable(ROOT)
        if VENV.exists():
            shutil.rmtree(VENV)
        output_of([sys.executable, "-m", "venv", VENV], failing="Can't create .venv")


def _refuse_unwritable(folder: Path) -> None:
    if not os.access(folder, os.W_OK):
        raise Refusal(f"{folder} is not writable for this user")


def _require_venv() -> None:
    """Debian's python3 alone comes without the module that brings pip."""
    has_pip = [sys.executable, "-c", "import ensurepip, venv"]
    if subprocess.run(has_pip, capture_output=True).returncode:
        minor = f"python3.{sys.version_info.minor}-venv"
        system = sys.executable == "/usr/bin/python3"
        install_packages(["python3-venv" if system else minor])


def _install(requirements: Path) -> None:
    pip = [str(PYTHON), "-m", "pip", "--disable-pip-version-check", "--no-input"]
    # Two of the packages come as source only, and are built apart from what
    # is installed here; the newer Pythons build no other way.
    options = ["--use-pep517", "--retries", "2", "--timeout", "20", "--quiet"]
    with step(f"Installing {requirements.name}"):
        done = subprocess.run(
            [*pip, "install", *options, "-r", requirements],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            cwd=ROOT,
        )
        if done.returncode:
            raise Refusal(_why_not_installed(done.stdout + done.stderr))
        stamp = stamp_of(requirements)
        stamp.parent.mkdir(exist_ok=True)
        stamp.touch()


UNREACHABLE = (
    "NewConnectionError",
    "ConnectTimeoutError",
    "ReadTimeoutError",
    "NameResolutionError",
    "ProxyError",
    "SSLError",
    "Connection refused",
    "Temporary failure in name resolution",
)


def _why_not_installed(output: str) -> str:
    if "No space left on device" in output:
        return f"The disk is full: {VENV}"
    if any(sign in output for sign in UNREACHABLE):
        return (
            "The package registry can't be reached; check the network, or set"
            " PIP_INDEX_URL to a mirror of it"
        )
    errors = [line for line in output.splitlines() if line.startswith("ERROR:")]
    return f"pip can't install the packages: {(errors or ['no reason given'])[0]}"


def install_packages(packages: Sequence[str]) -> None:
    """Install Debian packages as root; otherwise say which ones are missing."""
    names = " ".join(packages)
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        raise Refusal(
            f"Missing: {names}. Install with: sudo apt-get install"
            f" --no-install-recommends {names}"
        )
    quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C"}
    with step(f"Installing {names}"), _services_kept_off(packages):
        # A third party's list that can't be read is no reason to give up.
        subprocess.run([*APT_GET, "update"], capture_output=True, env=quiet)
        output_of(
            [*APT_GET, "install", "--yes", "--no-install-recommends", *packages],
            failing="apt-get can't install them",
            env=quiet,
        )


APT_GET = ("apt-get", "-qq", "-o", "DPkg::Lock::Timeout=300")


@contextmanager
def _services_kept_off(packages: Sequence[str]) -> Iterator[None]:
    """Debian starts a server, and makes a cluster, as soon as it is installed."""
    files = {Path("/usr/sbin/policy-rc.d"): "#!/bin/sh\nexit 101\n"}
    if any(package.startswith("postgresql") for package in packages):
        clusters = Path("/etc/postgresql-common/createcluster.d")
        files[clusters / "groundswell.conf"] = "create_main_cluster = false\n"
    with ExitStack() as stack:
        for path, text in files.items():
            if not path.exists():
                path.parent.mkdir(parents=True, exist_ok=True)
                stack.callback(path.unlink, missing_ok=True)
                path.write_text(text)
                path.chmod(0o755)
        yield
