"""Write the archive of a release, and sign it with an SSH key.

Of a tag, such as v1.2.0: groundswell-1.2.0.tar.gz, and beside it the signature (.sig)
that `provisioning/upgrade` verifies. The public key has to be in
provisioning/release/allowed_signers of the release that people upgrade from. Prints
the archive's SHA-256 digest.
"""

from __future__ import annotations

from hashlib import file_digest
from pathlib import Path

from provisioning.commands import ROOT, Refusal, caller_path, command_parser, output_of
from provisioning.installation.server.fetching import NAMESPACE
from provisioning.installation.server.versions import parse_version


def main() -> int:
    parser = command_parser(__doc__)
    add = parser.add_argument
    add("tag", help="such as v1.2.0")
    add("--key", type=caller_path, required=True, help="the private SSH key")
    add("--folder", type=caller_path, default="", help="(this one)")
    options = parser.parse_args()
    parse_version(options.tag)
    if not options.key.is_file():
        raise Refusal(f"There is no key {options.key}")
    archive = write_archive(ROOT, options.tag, options.folder)
    sign(archive, options.key)
    with archive.open("rb") as file:
        print(f"{archive}\nSHA-256 {file_digest(file, 'sha256').hexdigest()}")
    return 0


def write_archive(repository: Path, tag: str, folder: Path) -> Path:
    name = f"groundswell-{tag.removeprefix('v')}"
    archive = folder / f"{name}.tar.gz"
    output_of(
        [
            *("git", "-C", repository, "archive", "--format=tar.gz"),
            *(f"--prefix={name}/", f"--output={archive}", tag),
        ],
        failing=f"{tag} can't be written",
    )
    return archive


def sign(archive: Path, key: Path) -> None:
    signature = archive.with_name(f"{archive.name}.sig")
    # ssh-keygen would ask whether to overwrite it.
    signature.unlink(missing_ok=True)
    output_of(
        ["ssh-keygen", "-Y", "sign", "-f", key, "-n", NAMESPACE, archive],
        failing="The archive can't be signed",
    )
