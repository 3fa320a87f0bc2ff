"""Fetch a release, and verify who signed it.

A signed tag of a git repository, or an archive with a signature beside it
(ARCHIVE.sig). Both are signatures of SSH keys: git and openssh-client are all that
checks them, and the keys are lines of a file that the serving release brings
(provisioning/release/allowed_signers) and of one of the machine's owner.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import file_digest
from pathlib import Path

from provisioning.commands import ROOT, Refusal, output_of, reason, step
from provisioning.installation.environment import install_packages, path_of_program
from provisioning.installation.server.options import HOME
from provisioning.installation.server.release import version_of
from provisioning.installation.server.versions import parse_version, version_in

SIGNERS = (
    ROOT / "provisioning" / "release" / "allowed_signers",
    HOME / "allowed_signers",
)
NAMESPACE = "groundswell-release"
ARCHIVE = re.compile(r".*\.(tar\.gz|tgz)")
TAG = re.compile(r"refs/tags/(v\d+\.\d+\.\d+)")
SECONDS = 60
# Slower than a kilobyte a second for a minute is no network.
PATIENCE = ["-c", "http.lowSpeedLimit=1000", "-c", f"http.lowSpeedTime={SECONDS}"]


@dataclass(frozen=True, slots=True)
class Fetched:
    """The files of a release in a folder of their own."""

    folder: Path
    # Of its folder below `releases`.
    name: str
    # Empty: nobody.
    signer: str

    @property
    def version(self) -> str:
        return version_in(self.folder)


def fetch_release(
    source: str, version: str, work: Path, *, unsigned: bool, sha256: str = ""
) -> Fetched:
    """Fetch a release into the empty folder `work`, and verify it.

    `source` is a git repository, an archive (a file or an https:// address), or with
    `unsigned` a folder. Without a version, the newest tag.
    """
    keys = allowed_signers()
    if not unsigned:
        refuse_without_keys(keys)
    install_missing_programs()
    signers = work / "signers"
    signers.write_text(keys)
    files = work / "files"
    files.mkdir()
    is_archive = ARCHIVE.fullmatch(source)
    if sha256 and not is_archive:
        raise Refusal("--sha256 is of an archive")
    if is_archive:
        signer = from_archive(source, files, signers, sha256, unsigned=unsigned)
        name = version_in(files)
    elif unsigned and not version and Path(source).is_dir():
        # As a person has left it there.
        name, signer = version_of(Path(source)), ""
        return Fetched(Path(source), name, signer)
    else:
        name, signer = from_repository(
            source, version, files, signers, unsigned=unsigned
        )
    fetched = Fetched(files, name, signer)
    wanted = version.removeprefix("v") or name
    if fetched.version != wanted:
        raise Refusal(f"{source} says it is {fetched.version}, not {wanted}")
    return fetched


def install_missing_programs() -> None:
    packages = {"git": "git", "ssh-keygen": "openssh-client", "tar": "tar"}
    if missing := [packages[each] for each in packages if not path_of_program(each)]:
        install_packages(missing)


def allowed_signers() -> str:
    """Return the lines of all files of keys; see ssh-keygen(1)."""
    texts = [path.read_text() for path in SIGNERS if path.exists()]
    return "\n".join(texts) + "\n"


def refuse_without_keys(keys: str) -> None:
    """Refuse before anything is fetched: no signature could be a known one."""
    lines = map(str.strip, keys.splitlines())
    if not any(line and not line.startswith("#") for line in lines):
        raise Refusal(
            "No key may sign releases here: put the publisher's line into"
            f" {SIGNERS[-1]} (docs/guides/upgrade.md, Keys). --unsigned takes a release"
            " that nobody has signed"
        )


# Tags


def from_repository(
    source: str, version: str, files: Path, signers: Path, *, unsigned: bool
) -> tuple[str, str]:
    """Extract a tag; return its version and who signed it."""
    work = files.parent
    repository = work / "repository"
    run_git("init", "--quiet", "--bare", str(repository), source=source)
    if version:
        parse_version(version)
        tag = f"v{version.removeprefix('v')}"
    else:
        tag = newest_tag(source)
    with step(f"Fetching {tag}"):
        run_git(
            *("-C", str(repository), "fetch", "--quiet", "--depth=1", source),
            f"refs/tags/{tag}:refs/tags/{tag}",
            source=source,
        )
    signer = "" if unsigned else verify_tag(repository, tag, signers, source)
    archive = work / "release.tar"
    run_git(
        *("-C", str(repository), "archive", "--format=tar", f"--output={archive}", tag),
        source=source,
    )
    extract(archive, files, strip=0)
    return tag.removeprefix("v"), signer


def newest_tag(source: str) -> str:
    printed = run_git("ls-remote", "--tags", source, source=source)
    tags = {
        match[1] for line in printed.split() if (match := TAG.fullmatch(line.strip()))
    }
    if not tags:
        raise Refusal(f"{source} has no tag of a version, such as v1.2.0")
    return max(tags, key=parse_version)


def verify_tag(repository: Path, tag: str, signers: Path, source: str) -> str:
    """Return who signed a tag. Refuse one without a known signature."""
    done = subprocess.run(
        [
            *("git", "-C", repository, "-c", "gpg.format=ssh"),
            *("-c", f"gpg.ssh.allowedSignersFile={signers}", "verify-tag", tag),
        ],
        capture_output=True,
        text=True,
        env=git_environment(source),
    )
    signer = re.search(r'^Good "git" signature for (\S+) with', done.stderr, re.M)
    if done.returncode or not signer:
        raise Refusal(unsigned_problem(f"The tag {tag} of {source}", done.stderr))
    # Otherwise an old release, signed long ago, could be served under a new name.
    content = run_git("-C", str(repository), "cat-file", "tag", tag, source=source)
    if f"\ntag {tag}\n" not in content.partition("\n\n")[0] + "\n":
        raise Refusal(f"What {source} calls {tag} was signed under another name")
    return signer[1]


def run_git(*arguments: str, source: str) -> str:
    return output_of(
        ["git", *PATIENCE, *arguments],
        failing=f"git can't read {source}",
        env=git_environment(source),
        cwd=Path("/"),
    )


def git_environment(source: str) -> Mapping[str, str]:
    return {
        **os.environ,
        # Nobody answers a question for a password.
        "GIT_TERMINAL_PROMPT": "0",
        # The checkout may belong to the user who called sudo.
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "safe.directory",
        "GIT_CONFIG_VALUE_0": "*",
    }


# Archives


def from_archive(
    source: str, files: Path, signers: Path, sha256: str, *, unsigned: bool
) -> str:
    """Extract an archive; return who signed it."""
    archive = files.parent / "release.tar.gz"
    signature = files.parent / "release.tar.gz.sig"
    with step(f"Fetching {source}"):
        copy_from(source, archive)
        if not unsigned:
            copy_from(f"{source}.sig", signature)
    with archive.open("rb") as file:
        digest = file_digest(file, "sha256").hexdigest()
    if sha256 and digest != sha256.lower():
        raise Refusal(f"{source} has the SHA-256 digest {digest}")
    signer = "" if unsigned else verify_archive(source, archive, signature, signers)
    extract(archive, files, strip=1)
    return signer


def copy_from(source: str, target: Path) -> None:
    """Copy a file, or what an https:// address answers."""
    try:
        if "://" not in source:
            shutil.copyfile(source, target)
            return
        if not source.startswith("https://"):
            raise Refusal(f"{source} is neither a file nor begins with https://")
        with (
            urllib.request.urlopen(source, timeout=SECONDS) as reply,  # noqa: S310
            target.open("wb") as file,
        ):
            shutil.copyfileobj(reply, file)
    except FileNotFoundError:
        raise Refusal(f"There is no file {source}") from None
    except OSError as error:
        raise Refusal(f"{source} can't be read: {error}") from None


def verify_archive(source: str, archive: Path, signature: Path, signers: Path) -> str:
    """Return who signed an archive. Refuse one without a known signature."""
    keygen = ["ssh-keygen", "-Y"]
    sources = [f"-s{signature}", f"-f{signers}"]
    known = subprocess.run(
        [*keygen, "find-principals", *sources], capture_output=True, text=True
    )
    signer = (known.stdout.split() or [""])[0]
    with archive.open("rb") as file:
        done = subprocess.run(
            [*keygen, "verify", *sources, f"-I{signer}", f"-n{NAMESPACE}"],
            stdin=file,
            capture_output=True,
            text=True,
        )
    if known.returncode or done.returncode or not signer:
        why = known.stderr if known.returncode else done.stderr or done.stdout
        raise Refusal(unsigned_problem(source, why))
    return signer


def extract(archive: Path, files: Path, *, strip: int) -> None:
    # tar itself refuses paths that lead out of the folder.
    output_of(
        [
            *("tar", "--extract", f"--file={archive}", f"--directory={files}"),
            *("--no-same-owner", f"--strip-components={strip}"),
        ],
        failing=f"{archive.name} can't be unpacked",
    )


def unsigned_problem(what: str, why: str) -> str:
    return (
        f"{what} has no signature of a key in {' or '.join(map(str, SIGNERS))}"
        f" ({reason(why)}); --unsigned takes it nevertheless"
    )
