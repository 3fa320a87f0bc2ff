"""`jmeter/install`: JMeter put together from Maven artifacts, and kept.

Standard library only.
"""

from __future__ import annotations

import argparse
import fcntl
import hashlib
import os
import re
import shutil
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.request
import zipfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path

from provisioning.commands import ROOT, Refusal, run_command, step
from provisioning.environment import install_packages

ARTIFACTS = ROOT / "jmeter" / "artifacts.txt"
NAME = "jmeter-5.6.3"
CENTRAL = "https://repo.maven.apache.org/maven2"
JAVA = 17
TRIES = 4
TIMEOUT = 30


@dataclass(frozen=True, slots=True)
class Artifact:
    """`path` is its place in a Maven repository."""

    digest: str
    path: str

    @property
    def name(self) -> str:
        return self.path.rsplit("/", 1)[1]

    @property
    def place(self) -> str:
        """Where JMeter looks for it."""
        if self.name.startswith("ApacheJMeter-"):
            return "bin/ApacheJMeter.jar"
        plugin = self.name.startswith("ApacheJMeter_")
        return f"lib/ext/{self.name}" if plugin else f"lib/{self.name}"


def main() -> int:
    _arguments()
    java = prepare_java()
    home = prepare_jmeter()
    print(f"JMeter 5.6.3 is in {home}, for {java}")
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="jmeter/install",
        description="Downloads JMeter 5.6.3 without its window (25 MB, checked against"
        " jmeter/artifacts.txt) into ~/.cache/groundswell, and Debian's Java 17 where"
        " there is none. Costs nothing when both are there. jmeter/run does it too.",
        epilog="MAVEN_MIRROR names another Maven repository than Maven Central;"
        " XDG_CACHE_HOME another place than ~/.cache. HTTPS_PROXY and SSL_CERT_FILE"
        " are honoured.",
    )
    return parser.parse_args()


def prepare_jmeter() -> Path:
    """JMeter's folder, complete; costs nothing when it is there."""
    home = cache_folder() / NAME
    if _is_complete(home):
        return home
    home.parent.mkdir(parents=True, exist_ok=True)
    with _one_at_a_time(home):
        if not _is_complete(home):
            with step("Downloading JMeter 5.6.3"):
                _assemble(home)
    return home


def cache_folder() -> Path:
    kept = os.environ.get("XDG_CACHE_HOME")
    return (Path(kept) if kept else Path.home() / ".cache") / "groundswell"


def _is_complete(home: Path) -> bool:
    stamp = home / "artifacts.sha256"
    return stamp.exists() and stamp.read_text() == _list_digest()


def _list_digest() -> str:
    return hashlib.sha256(ARTIFACTS.read_bytes()).hexdigest()


@contextmanager
def _one_at_a_time(home: Path) -> Iterator[None]:
    with home.with_name(f"{NAME}.lock").open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _assemble(home: Path) -> None:
    """Under another name first: an interrupted download leaves no half JMeter."""
    draft = home.with_name(f"{NAME}.draft")
    for left in (draft, home):
        shutil.rmtree(left, ignore_errors=True)
    # JMeter looks into lib/junit, and complains where there is none.
    for folder in ("bin", "lib/ext", "lib/junit"):
        (draft / folder).mkdir(parents=True)
    with ThreadPoolExecutor(max_workers=6) as pool:
        wanted = read_artifacts()
        for artifact, content in zip(wanted, pool.map(_download, wanted), strict=True):
            (draft / artifact.place).write_bytes(content)
    _unpack_configuration(draft)
    (draft / "artifacts.sha256").write_text(_list_digest())
    draft.rename(home)


def read_artifacts() -> list[Artifact]:
    lines = ARTIFACTS.read_text().splitlines()
    return [Artifact(*line.split()) for line in lines if not line.startswith("#")]


def _unpack_configuration(draft: Path) -> None:
    jar = next(draft.glob("lib/ext/ApacheJMeter_config-*.jar"))
    with zipfile.ZipFile(jar) as archive:
        for name in archive.namelist():
            if name.startswith("bin/"):
                archive.extract(name, draft)
    jar.unlink()


# Downloads


def _download(artifact: Artifact) -> bytes:
    mirror = os.environ.get("MAVEN_MIRROR", CENTRAL).rstrip("/")
    address = f"{mirror}/{artifact.path}"
    for tried in range(1, TRIES + 1):
        try:
            content = _read(address)
            break
        except urllib.error.HTTPError as error:
            if error.code < 500 or tried == TRIES:
                raise Refusal(f"{address}: the repository says {error.code}") from None
        except (OSError, HTTPException) as error:
            if tried == TRIES:
                raise Refusal(_unreachable(mirror, error)) from None
        time.sleep(2**tried / 4)
    if hashlib.sha256(content).hexdigest() != artifact.digest:
        raise Refusal(f"{artifact.name} is not what jmeter/artifacts.txt expects")
    return content


def _read(address: str) -> bytes:
    if not address.startswith(("https://", "http://", "file://")):
        raise Refusal(f"MAVEN_MIRROR is an address such as {CENTRAL}")
    with urllib.request.urlopen(  # noqa: S310
        address, timeout=TIMEOUT, context=ssl.create_default_context()
    ) as response:
        content: bytes = response.read()
        return content


def _unreachable(mirror: str, error: Exception) -> str:
    why = getattr(error, "reason", None) or error
    return (
        f"The Maven repository {mirror} can't be reached ({why}); check the network,"
        " or set MAVEN_MIRROR to a mirror of it"
    )


# Java


def prepare_java() -> str:
    """The path of a Java that is new enough, installed as root where missing."""
    java = shutil.which("java")
    if java is None or _version_of(java) < JAVA:
        install_packages([f"openjdk-{JAVA}-jre-headless"])
        java = "/usr/bin/java"
        if _version_of(java) < JAVA:
            raise Refusal(f"{java} is older than Java {JAVA}: update-alternatives")
    return java


def _version_of(java: str) -> int:
    try:
        done = subprocess.run([java, "-version"], capture_output=True, text=True)
    except OSError:
        return 0
    # Written to standard error, such as: openjdk version "17.0.15" 2025-04-15
    found = re.search(r'version "(\d+)', done.stderr)
    return int(found[1]) if found else 0


if __name__ == "__main__":
    sys.exit(run_command("jmeter/install", main))
