"""Run the tests, or a command, in a root folder with another release.

`debootstrap` fills it once, from where this machine's apt gets its packages. Then
`provisioning/test` installs into it what is missing, by this machine's settings of
apt and pip. What is run has a copy of this checkout, and processes, mounts and a
network of its own, in which there is only the loopback: nothing stays of it but the
packages. Needs root.
"""

from __future__ import annotations

import fcntl
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from provisioning.commands import ROOT, Refusal, command_parser, output_of, step
from provisioning.installation.environment import install_packages, path_of_program

# Each release with its distribution, as apt names it, and its PostgreSQL.
SUITES = {
    "bookworm": ("Debian", 15),
    "trixie": ("Debian", 17),
    "noble": ("Ubuntu", 16),
}
# What debootstrap needs besides: half of what the roles install is in universe, and
# Debian's lacks scripts for Ubuntu's newer releases, which are all the same.
UBUNTU = ("--components=main,universe",), ("/usr/share/debootstrap/scripts/gutsy",)
CHECKOUT = "/groundswell"
# What Debian's installer brings, and debootstrap alone does not.
FIRST_PACKAGES = ("python3", "ca-certificates", "git", "iproute2", "procps")
CERTIFICATES = "/etc/ssl/certs/ca-certificates.crt"
COPIED = ("/etc/resolv.conf", "/etc/hosts", "/etc/pip.conf", CERTIFICATES)
CERTIFICATE_VARIABLES = (
    *("PIP_CERT", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"),
    "PIP_CONFIG_FILE",
)
APT_SETTINGS = re.compile(r"Acquire::(https?|Check-|Retries|AllowInsecure)")
# The first process reaps what killed programs leave, so it is a shell that stays.
# Inside of chroot, nobody might make a namespace of users.
ENTER = """\
set -eu
root=$1
shift
mount --bind "$root" "$root"
mount -t proc proc "$root/proc"
mount --rbind /sys "$root/sys"
mount --rbind /dev "$root/dev"
mount -t tmpfs -o mode=1777 tmpfs "$root/dev/shm"
mount -t tmpfs -o mode=1777 tmpfs "$root/run"
cd "$root"
pivot_root . mnt
cd /
umount --lazy /mnt
[ -z "$ALONE" ] || ip link set lo up
set +e
"$@"
exit $?
"""


def main() -> int:
    parser = command_parser(
        __doc__,
        epilog="Further arguments go to provisioning/test: provisioning/run"
        " test_in_root --suite trixie provisioning/tests/installation",
    )
    add = parser.add_argument
    add("--suite", choices=[*SUITES], default="trixie", help="the release (trixie)")
    add("--mirror", help="where its packages are, if this machine has none of them")
    add("--fresh", action="store_true", help="make the root anew")
    add("--command", help="run this instead of the tests: 'provisioning/stack up'")
    add(
        "--postgresql",
        type=int,
        action="append",
        default=[],
        choices=[version for _, version in SUITES.values()],
        help="also install this version, from the release that has it",
    )
    options, chosen = parser.parse_known_args()
    command = shlex.split(options.command or "provisioning/test") + chosen
    with prepared_root(
        options.suite, options.mirror, options.postgresql, fresh=options.fresh
    ) as root:
        return run_inside(root, command, alone=True).returncode


@contextmanager
def prepared_root(
    suite: str,
    mirror: str | None = None,
    versions: Sequence[int] = (),
    *,
    fresh: bool = False,
) -> Iterator[Path]:
    """Yield a root with all packages and this checkout, for one process at a time."""
    if os.geteuid() != 0:
        raise Refusal("Only root can make a root folder and enter it; try sudo")
    root = roots_folder() / suite
    root.parent.mkdir(parents=True, exist_ok=True)
    with root.with_name(f"{suite}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if fresh:
            remove(root)
        if not root.exists():
            make_root(root, suite, mirror)
        copy_settings(root)
        copy_checkout(root)
        done = run_inside(root, ["provisioning/test", "--prepare-only"], alone=False)
        if done.returncode:
            raise Refusal(f"What is missing can't be installed in {root}")
        # Its own as well: the tests do with any.
        for version in {SUITES[suite][1], *versions}:
            install_postgresql(root, version, mirror)
        yield root


def roots_folder() -> Path:
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "groundswell" / "roots"


def remove(root: Path) -> None:
    # Mounts are in namespaces of their own, so nothing of the machine is below it.
    if root.exists():
        with step(f"Removing {root}"):
            shutil.rmtree(root)


def make_root(root: Path, suite: str, mirror: str | None) -> None:
    if not path_of_program("debootstrap"):
        install_packages(["debootstrap"])
    distribution, _ = SUITES[suite]
    options, script = UBUNTU if distribution == "Ubuntu" else ((), ())
    draft = root.with_name(f"{suite}.new")
    shutil.rmtree(draft, ignore_errors=True)
    with step(f"Making {root}"):
        output_of(
            [
                "debootstrap",
                "--variant=minbase",
                f"--include={','.join(FIRST_PACKAGES)}",
                *options,
            ]
            + [suite, str(draft), mirror or mirror_of(distribution), *script],
            failing=f"debootstrap can't make {suite}",
            env=os.environ | proxies(),
        )
        (draft / "usr/sbin/policy-rc.d").write_text("#!/bin/sh\nexit 101\n")
        (draft / "usr/sbin/policy-rc.d").chmod(0o755)
        draft.rename(root)


def mirror_of(distribution: str) -> str:
    """Return where this machine's apt gets the distribution's packages."""
    listed = output_of(
        ["apt-get", "indextargets", "--format", "$(ORIGIN) $(REPO_URI)"],
        failing="apt can't say where packages are",
    )
    for line in listed.splitlines():
        origin, _, address = line.partition(" ")
        if origin == distribution and "security" not in address:
            return address
    raise Refusal(
        f"This machine's apt has no packages of {distribution}: run apt-get update, or"
        " name their address by --mirror"
    )


def apt_settings() -> list[str]:
    """Return this machine's proxies and certificates of apt, as lines of its file."""
    dump = output_of(["apt-config", "dump", "Acquire"], failing="apt has no settings")
    return [line for line in dump.splitlines() if APT_SETTINGS.match(line)]


def proxies() -> dict[str, str]:
    """Return apt's proxies as variables, which debootstrap reads instead."""
    addresses = re.findall(
        r'^Acquire::(https?)::Proxy "(.+)";$', "\n".join(apt_settings()), re.MULTILINE
    )
    return {f"{scheme}_proxy": address for scheme, address in addresses}


def copy_settings(root: Path) -> None:
    """Copy what this machine's apt and pip need to reach their registries."""
    apt = apt_settings()
    names = [re.search('"(/.+)"', line) for line in apt]
    files = {
        *COPIED,
        *(os.environ.get(name, "") for name in CERTIFICATE_VARIABLES),
        *(name[1] for name in names if name),
        *map(str, Path("/etc/apt/auth.conf.d").glob("*")),
        "/etc/apt/auth.conf",
    }
    for file in map(Path, files):
        if file.is_absolute() and file.is_file():
            copy_file(file, root / file.relative_to("/"))
    for name in (".config/pip/pip.conf", ".pip/pip.conf", ".netrc"):
        if (Path.home() / name).is_file():
            copy_file(Path.home() / name, root / "root" / name)
    settings = root / "etc/apt/apt.conf.d/99machine"
    # A proxy's address may hold a password.
    settings.touch(mode=0o600)
    settings.write_text("".join(f"{line}\n" for line in apt))


def copy_file(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    target.unlink(missing_ok=True)
    shutil.copy(source, target)


def copy_checkout(root: Path) -> None:
    """Copy all files of this checkout, also new ones; `.venv` in the root stays."""
    target = root / CHECKOUT.lstrip("/")
    target.mkdir(exist_ok=True)
    for path in target.iterdir():
        if path.name != ".venv":
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    listed = output_of(
        ["git", "-c", f"safe.directory={ROOT}", "ls-files", "-z"]
        + ["--cached", "--others", "--exclude-standard"],
        failing="git can't list the files of this checkout",
    )
    for name in filter(None, listed.split("\0")):
        source = ROOT / name
        # One that was deleted is still in the list, and so is the link to a .venv.
        if source.is_file() and not name.startswith(".venv"):
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, target / name, follow_symlinks=False)


def install_postgresql(root: Path, version: int, mirror: str | None) -> None:
    """Install another release's PostgreSQL, as an upgraded machine still has it."""
    if (root / f"usr/lib/postgresql/{version}/bin/postgres").exists():
        return
    [(suite, distribution)] = [
        (suite, distribution)
        for suite, (distribution, packaged) in SUITES.items()
        if packaged == version
    ]
    apt = root / "etc/apt"
    address = mirror or mirror_of(distribution)
    if root.name != suite:
        (apt / f"sources.list.d/{suite}.list").write_text(
            f"deb {address} {suite} main\n"
        )
        # Of that release, only what this one has not.
        preferences = f"Package: *\nPin: release n={suite}\nPin-Priority: 100\n"
        (apt / f"preferences.d/{suite}").write_text(preferences)
    (root / "etc/postgresql-common/createcluster.d").mkdir(parents=True, exist_ok=True)
    (root / "etc/postgresql-common/createcluster.d/groundswell.conf").write_text(
        "create_main_cluster = false\n"
    )
    install = f"apt-get -qq install --yes --no-install-recommends postgresql-{version}"
    with step(f"Installing PostgreSQL {version}"):
        script = f"{{ apt-get -qq update && {install}; }} >/tmp/install.log 2>&1"
        if run_inside(root, ["sh", "-c", script], alone=False).returncode:
            raise Refusal(f"PostgreSQL {version} can't be installed in {root}")


def run_inside(
    root: Path, command: Sequence[str], *, alone: bool
) -> subprocess.CompletedProcess[bytes]:
    """Run a command in the checkout of a root; `alone` with the loopback only."""
    namespaces = ["--mount", "--propagation=private", "--pid", "--fork", "--kill-child"]
    inside = ["env", "-C", CHECKOUT, *command]
    return subprocess.run(
        ["unshare", *namespaces, "--mount-proc", *(["--net"] if alone else [])]
        + ["sh", "-c", ENTER, "sh", str(root), *inside],
        env=environment_inside(os.environ) | {"ALONE": "yes" if alone else ""},
        cwd="/",
    )


def environment_inside(outside: Mapping[str, str]) -> dict[str, str]:
    """Return this process's variables without its places."""
    left_out = re.compile("XDG_|VIRTUAL_ENV|TMPDIR|PYTHONPATH|LANG|LC_|OLDPWD|PWD")
    return {
        **{name: it for name, it in outside.items() if not left_out.match(name)},
        "HOME": "/root",
        "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "DEBIAN_FRONTEND": "noninteractive",
        "LC_ALL": "C.UTF-8",
    }
