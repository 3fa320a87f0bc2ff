"""Build the help site from docs/help and docs/guides, and check its links.

Without --output, into .help/site, from where the product serves it at /help/. A link
that leads nowhere is an error, and so is a page that no navigation lists.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from pathlib import Path

from provisioning.commands import ROOT, Refusal, command_parser, step

HERE = Path(__file__).resolve().parent
# Beside the code, so that a release has the help of its version.
SITE = ROOT / ".help" / "site"
SOURCES = (
    *("docs/help", "docs/guides", "provisioning/help_site"),
    *("static/css/tokens.css", "static/css/fonts.css", "static/css/base.css"),
    *("static/fonts", "static/img/mark.svg", "pyproject.toml"),
)


def main() -> int:
    parser = command_parser(__doc__)
    parser.add_argument(
        "--output", type=Path, default=SITE, help="folder to write to (.help/site)"
    )
    folder = parser.parse_args().output.absolute()
    # It calls this module in turn.
    from provisioning.installation import environment

    environment.prepare_environment(environment.PRODUCTION)
    with step("Building the help site"):
        build(environment.PYTHON, folder, strict=True)
    pages = len(list(folder.rglob("index.html")))
    print(f"{pages} pages in {folder}, every link leads somewhere")
    return 0


def build_if_changed(python: Path) -> None:
    """Build the site that the product serves, unless its sources are the same.

    A bad link is no reason to serve nothing: only the tests and the command refuse it.
    """
    digest = digest_of_sources()
    stamp = SITE.parent / "digest"
    if SITE.exists() and stamp.exists() and stamp.read_text() == digest:
        return
    SITE.parent.mkdir(exist_ok=True)
    # For the user that serves it, whatever the umask is.
    SITE.parent.chmod(0o755)
    with step("Building the help site"):
        build(python, SITE, strict=False)
    stamp.write_text(digest)


def build(python: Path, folder: Path, *, strict: bool) -> None:
    """Replace the folder by a new site. Raises Refusal with all bad links."""
    draft = folder.with_name(f"{folder.name}.new")
    shutil.rmtree(draft, ignore_errors=True)
    run_generator(
        *(python, "-m", "properdocs", "build"),
        *("--config-file", HERE / "properdocs.yml", "--site-dir", draft),
        # Counts what it would print: with --quiet it finds nothing.
        *(["--strict"] if strict else []),
    )
    for path in (draft, *draft.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)
    shutil.rmtree(folder, ignore_errors=True)
    draft.rename(folder)


def run_generator(*command: str | Path) -> None:
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True
    )
    if done.returncode:
        lines = f"{done.stdout}{done.stderr}".splitlines()
        problems = [line for line in lines if line.startswith(("WARNING", "ERROR"))]
        reason = "; ".join(problems or lines[-1:] or ["it gave no reason"])
        raise Refusal(f"The help site can't be built: {reason}")


def digest_of_sources() -> str:
    digest = hashlib.sha256()
    for source in SOURCES:
        top = ROOT / source
        for path in [top] if top.is_file() else sorted(top.rglob("*")):
            if path.is_file() and path.suffix != ".pyc":
                name = path.relative_to(ROOT)
                digest.update(f"{name}\0".encode() + path.read_bytes())
    return digest.hexdigest()
