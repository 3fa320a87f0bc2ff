"""Build Citus once, with a PostgreSQL of its own, outside of the repository.

Debian has no Citus. PostgreSQL finds extensions in the folders beside its own
programs only, so Debian's packages are unpacked into a folder of the cache, and Citus
is installed there. The PostgreSQL of the machine stays as it is.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import tempfile
from pathlib import Path

from provisioning.commands import ROOT, Refusal, output_of, step
from provisioning.installation.environment import install_packages, path_of_program
from provisioning.installation.postgresql import postgresql_version

ARCHIVE = "citus-13.2.2.tar.xz"
SHA256 = "6ffb1af003e08550f20e34a1544d77d82cf92ed896293d44676e2547d1d3372f"
# Unpacked, not installed: the headers' package would bring LLVM along.
SERVER_PACKAGES = ("postgresql", "postgresql-client", "postgresql-server-dev")
PACKAGES = (
    *("libpq-dev", "libpq5", "libssl-dev", "libkrb5-dev", "krb5-multidev"),
    *("liblz4-dev", "liblz4-1", "libzstd-dev", "libzstd1"),
)
TOOLS = {"gcc": "gcc", "make": "make", "cpp": "cpp", "xz": "xz-utils"}
# Newer minor releases of PostgreSQL declare a function of the same name.
CLASHING = "have_createdb_privilege"


def cache_folder() -> Path:
    """Return a folder that PostgreSQL's system user can read."""
    if os.geteuid() == 0:
        return Path("/var/cache/groundswell")
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "groundswell"


def find_archive(given: Path | None = None) -> Path | None:
    """Return the archive of Citus: as given, of the environment, or in `vendor`."""
    named = given or os.environ.get("GROUNDSWELL_CITUS")
    if named:
        return Path(named)
    beside = ROOT.parent / "vendor" / ARCHIVE
    return beside if beside.exists() else None


def programs_with_citus() -> Path | None:
    """Return the folder of PostgreSQL's programs with Citus, if it was built."""
    unpacked = cache_folder() / ARCHIVE.removesuffix(".tar.xz")
    programs = unpacked / f"usr/lib/postgresql/{postgresql_version()}/bin"
    return programs if programs.exists() else None


def packages() -> list[str]:
    """Return the packages with PostgreSQL and its headers, as the distribution's."""
    version = postgresql_version()
    # With times of 64 bits since Debian 13 and Ubuntu 24.04.
    libraries = ["libssl3" if version == 15 else "libssl3t64", *PACKAGES]
    return [*(f"{name}-{version}" for name in SERVER_PACKAGES), *libraries]


def build_citus(archive: Path | None) -> Path:
    """Build where that was not done; return the folder of PostgreSQL's programs."""
    cache = cache_folder()
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / "citus.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if programs := programs_with_citus():
            return programs
        if archive is None or not archive.exists():
            raise Refusal(
                f"The source of Citus is missing: {archive or ARCHIVE}; name it by"
                " --citus, or by GROUNDSWELL_CITUS"
            )
        if hashlib.sha256(archive.read_bytes()).hexdigest() != SHA256:
            raise Refusal(f"{archive} is not the archive of Citus that is known here")
        missing = [
            package
            for program, package in TOOLS.items()
            if not path_of_program(program)
        ]
        if missing:
            install_packages(missing)
        target = cache / ARCHIVE.removesuffix(".tar.xz")
        with tempfile.TemporaryDirectory(dir=cache) as folder:
            Path(folder).chmod(0o755)
            with step("Unpacking PostgreSQL and Citus"):
                new = _unpack(Path(folder), archive)
            with step("Building Citus (some minutes, once)"):
                _compile(Path(folder) / target.name, new)
            new.rename(target)
    programs = programs_with_citus()
    assert programs is not None  # noqa: S101
    return programs


def _unpack(folder: Path, archive: Path) -> Path:
    new = folder / "new"
    new.mkdir(mode=0o755)
    debs = folder / "debs"
    debs.mkdir()
    # As root, apt would hand the download over to a user who may not write there.
    _run(
        *("apt-get", "-qq", "-o", "APT::Sandbox::User=root", "download", *packages()),
        cwd=debs,
    )
    for deb in sorted(debs.iterdir()):
        _run("dpkg-deb", "--extract", str(deb), str(new), cwd=folder)
    _run("tar", "--extract", "--file", str(archive.absolute()), cwd=folder)
    return new


def _compile(source: Path, target: Path) -> None:
    for file in (
        "include/pg_version_compat.h",
        "backend/distributed/commands/serialize_distributed_ddls.c",
    ):
        path = source / "src" / file
        path.write_text(path.read_text().replace(CLASHING, f"citus_{CLASHING}"))
    usr = target / "usr"
    environment = {
        **os.environ,
        "C_INCLUDE_PATH": f"{usr}/include:{usr}/include/x86_64-linux-gnu",
        "LIBRARY_PATH": f"{usr}/lib/x86_64-linux-gnu",
        "PG_CONFIG": f"{usr}/lib/postgresql/{postgresql_version()}/bin/pg_config",
    }
    _run("./configure", "--without-libcurl", cwd=source, environment=environment)
    # Without LLVM: the bytecode is for the just-in-time compiler, which is off.
    for goal in ("extension", "install-extension"):
        _run(
            *("make", "--silent", f"--jobs={os.cpu_count()}", "with_llvm=no", goal),
            cwd=source,
            environment=environment,
        )


def _run(*command: str, cwd: Path, environment: dict[str, str] | None = None) -> None:
    output_of(command, failing="Citus can't be built", cwd=cwd, env=environment)
