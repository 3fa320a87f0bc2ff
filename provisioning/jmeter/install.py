"""`jmeter/install`: assemble JMeter from Maven artifacts, and keep it.

With the standard library only.
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
from concurrent.futures import ThreadPoolExecutor
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
    digest: str
    # In a Maven repository.
    path: str

    @property
    def name(self) -> str:
        return self.path.rsplit("/", 1)[1]

    @property
    def place(self) -> str:
        """The path in JMeter's folder."""
        if self.name.startswith("ApacheJMeter-"):
            return "bin/ApacheJMeter.jar"
        plugin = self.name.startswith("ApacheJMeter_")
        return f"lib/ext/{self.name}" if plugin else f"lib/{self.name}"


def main() -> int:
    argparse.ArgumentParser(
        prog="jmeter/install",
        description="Downloads JMeter 5.6.3 without its window (25 MB, checked against"
        " jmeter/artifacts.txt) into ~/.cache/groundswell, and Debian's Java 17 where"
        " there is none. Costs nothing when both are there. jmeter/run does it too.",
        epilog="MAVEN_MIRROR names another Maven repository than Maven Central;"
        " XDG_CACHE_HOME another place than ~/.cache. HTTPS_PROXY and SSL_CERT_FILE"
        " are honoured.",
    ).parse_args()
    java = prepare_java()
    print(f"JMeter 5.6.3 is in {prepare_jmeter()}, for {java}")
    return 0


def prepare_jmeter() -> Path:
    """Return JMeter's folder, after downloading what is missing."""
    home = cache_folder() / NAME
    stamp = home / "artifacts.sha256"
    digest = hashlib.sha256(ARTIFACTS.read_bytes()).hexdigest()

    def is_complete() -> bool:
        return stamp.exists() and stamp.read_text() == digest

    if not is_complete():
        home.parent.mkdir(parents=True, exist_ok=True)
        with home.with_name(f"{NAME}.lock").open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not is_complete():
                with step("Downloading JMeter 5.6.3"):
                    _assemble(home, digest)
    return home


def cache_folder() -> Path:
    cache = os.environ.get("XDG_CACHE_HOME")
    return (Path(cache) if cache else Path.home() / ".cache") / "groundswell"


def _assemble(home: Path, digest: str) -> None:
    # Under another name first: an interrupted download leaves no half JMeter.
    draft = home.with_name(f"{NAME}.draft")
    for folder in (draft, home):
        shutil.rmtree(folder, ignore_errors=True)
    # JMeter reads lib/junit, and complains if there is none.
    for name in ("bin", "lib/ext", "lib/junit"):
        (draft / name).mkdir(parents=True)
    with ThreadPoolExecutor(max_workers=6) as pool:
        artifacts = read_artifacts()
        contents = pool.map(_download, artifacts)
        for artifact, content in zip(artifacts, contents, strict=True):
            (draft / artifact.place).write_bytes(content)
    # JMeter's configuration is inside one of the files.
    jar = next(draft.glob("lib/ext/ApacheJMeter_config-*.jar"))
    with zipfile.ZipFile(jar) as archive:
        for name in archive.namelist():
            if name.startswith("bin/"):
                archive.extract(name, draft)
    jar.unlink()
    (draft / "artifacts.sha256").write_text(digest)
    draft.rename(home)


def read_artifacts() -> list[Artifact]:
    lines = ARTIFACTS.read_text().splitlines()
    return [Artifact(*line.split()) for line in lines if not line.startswith("#")]


def _download(artifact: Artifact) -> bytes:
    mirror = os.environ.get("MAVEN_MIRROR", CENTRAL).rstrip("/")
    address = f"{mirror}/{artifact.path}"
    if not address.startswith(("https://", "http://", "file://")):
        raise Refusal(f"MAVEN_MIRROR is an address such as {CENTRAL}")
    content = b""
    for attempt in range(1, TRIES + 1):
        try:
            with urllib.request.urlopen(  # noqa: S310
                address, timeout=TIMEOUT, context=ssl.create_default_context()
            ) as response:
                content = response.read()
            break
        except urllib.error.HTTPError as error:
            if error.code < 500 or attempt == TRIES:
                raise Refusal(f"{address}: the repository says {error.code}") from None
        except (OSError, HTTPException) as error:
            if attempt == TRIES:
                why = getattr(error, "reason", None) or error
                raise Refusal(
                    f"The Maven repository {mirror} can't be reached ({why}); check"
                    " the network, or set MAVEN_MIRROR to a mirror of it"
                ) from None
        time.sleep(2**attempt / 4)
    if hashlib.sha256(content).hexdigest() != artifact.digest:
        raise Refusal(f"{artifact.name} is not what jmeter/artifacts.txt expects")
    return content


def prepare_java() -> str:
    """Return the path of a Java that is new enough, installed as root if missing."""
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
    # On standard error, such as: openjdk version "17.0.15" 2025-04-15
    found = re.search(r'version "(\d+)', done.stderr)
    return int(found[1]) if found else 0


if __name__ == "__main__":
    sys.exit(run_command("jmeter/install", main))
