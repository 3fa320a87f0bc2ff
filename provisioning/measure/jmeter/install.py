"""Download JMeter 5.6.3 without its window into ~/.cache/groundswell.

25 MB from Maven, checked against jmeter/artifacts.txt, and Debian's Java where there is
none. Costs nothing when both are there. jmeter/run does it too.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import time
import urllib.request
import zipfile
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPException
from pathlib import Path
from urllib.error import HTTPError

from provisioning.commands import ROOT, Refusal, command_parser, step
from provisioning.installation.environment import install_packages

ARTIFACTS = ROOT / "jmeter" / "artifacts.txt"
NAME = "jmeter-5.6.3"
CENTRAL = "https://repo.maven.apache.org/maven2"
JAVA = 17
TRIES = 4
TIMEOUT = 30


def main() -> int:
    command_parser(
        __doc__,
        epilog="MAVEN_MIRROR names another Maven repository than Maven Central;"
        " XDG_CACHE_HOME another place than ~/.cache. HTTPS_PROXY and SSL_CERT_FILE"
        " are honoured.",
    ).parse_args()
    java = prepare_java()
    print(f"JMeter 5.6.3 is in {prepare_jmeter()}, for {java}")
    return 0


def prepare_jmeter() -> Path:
    home = cache_folder() / NAME
    stamp = home / "artifacts.sha256"
    digest = hashlib.sha256(ARTIFACTS.read_bytes()).hexdigest()
    home.parent.mkdir(parents=True, exist_ok=True)
    with home.with_name(f"{NAME}.lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not stamp.exists() or stamp.read_text() != digest:
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
        contents = pool.map(download, artifacts, artifacts.values())
        for path, content in zip(artifacts, contents, strict=True):
            (draft / place_of(path)).write_bytes(content)
    # JMeter's configuration is inside one of the files.
    jar = next(draft.glob("lib/ext/ApacheJMeter_config-*.jar"))
    with zipfile.ZipFile(jar) as archive:
        for name in archive.namelist():
            if name.startswith("bin/"):
                archive.extract(name, draft)
    jar.unlink()
    (draft / "artifacts.sha256").write_text(digest)
    draft.rename(home)


def read_artifacts(listed: Path | None = None) -> dict[str, str]:
    """Return paths in a Maven repository, and the SHA-256 of each file.

    Of JMeter, or of another list.
    """
    lines = (listed or ARTIFACTS).read_text().splitlines()
    pairs = [line.split() for line in lines if not line.startswith("#")]
    return {path: digest for digest, path in pairs}


def place_of(path: str) -> str:
    name = path.rsplit("/", 1)[1]
    if name.startswith("ApacheJMeter-"):
        return "bin/ApacheJMeter.jar"
    return f"lib/ext/{name}" if name.startswith("ApacheJMeter_") else f"lib/{name}"


def download(path: str, digest: str) -> bytes:
    """Return a file of the Maven repository; raises Refusal if it is another one."""
    mirror = os.environ.get("MAVEN_MIRROR", CENTRAL).rstrip("/")
    address = f"{mirror}/{path}"
    if not address.startswith(("https://", "http://", "file://")):
        raise Refusal(f"MAVEN_MIRROR is an address such as {CENTRAL}")
    content = b""
    for attempt in range(1, TRIES + 1):
        try:
            with urllib.request.urlopen(address, timeout=TIMEOUT) as response:  # noqa: S310
                content = response.read()
            break
        except (OSError, HTTPException) as error:
            is_final = isinstance(error, HTTPError) and error.code < 500
            if is_final or attempt == TRIES:
                raise Refusal(
                    f"{address} can't be downloaded ({error}); check the network, or"
                    " set MAVEN_MIRROR to a mirror"
                ) from None
        time.sleep(2**attempt / 4)
    if hashlib.sha256(content).hexdigest() != digest:
        raise Refusal(f"{path} is not what artifacts.txt expects")
    return content


def prepare_java() -> str:
    """Return the path of a Java that is new enough, installed as root if missing."""
    java = shutil.which("java")
    if java is None or _version_of(java) < JAVA:
        install_packages(["default-jre-headless"])
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
    version = re.search(r'version "(\d+)', done.stderr)
    return int(version[1]) if version else 0
