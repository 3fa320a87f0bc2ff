"""`provisioning/check_pdf`: check PDF files against PDF/UA-1 with veraPDF.

Downloads the validator once; the tests do not need it.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

from provisioning.commands import Refusal, run_command, step
from provisioning.jmeter.install import (
    cache_folder,
    download,
    prepare_java,
    read_artifacts,
)

FOLDER = Path(__file__).parent


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="provisioning/check_pdf",
        description="Checks PDF files, such as reports of schools, against PDF/UA-1"
        " with veraPDF 1.28.2, which it downloads first (9 MB, checked against"
        " provisioning/pdf_check/artifacts.txt). Ends with 1 if a file fails.",
        epilog="Paths are absolute, or below the repository. Needs a JDK from Java 17"
        " on (apt-get install openjdk-17-jdk-headless).",
    )
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE.pdf")
    files = [path.resolve() for path in parser.parse_args().files]
    for path in files:
        if not path.is_file():
            raise Refusal(f"{path} is no file")
    java, jars = prepare_java(), prepare_validator()
    classpath = ":".join(map(str, jars))
    # Compiled by Java each time, in a second.
    command = [java, "-cp", classpath, str(FOLDER / "CheckPdf.java")]
    return subprocess.run([*command, *map(str, files)]).returncode


def prepare_validator() -> list[Path]:
    """Return the files of veraPDF, after downloading what is missing."""
    folder = cache_folder() / "verapdf-1.28.2"
    folder.mkdir(parents=True, exist_ok=True)
    jars = []
    for path, digest in read_artifacts(FOLDER / "artifacts.txt").items():
        jar = folder / f"{digest[:12]}-{path.rsplit('/', 1)[1]}"
        if not jar.exists():
            with step(f"Downloading {path.rsplit('/', 1)[1]}"):
                content = download(path, digest)
            draft = jar.with_suffix(".draft")
            draft.write_bytes(content)
            draft.rename(jar)
        jars.append(jar)
    return jars


if __name__ == "__main__":
    sys.exit(run_command("provisioning/check_pdf", main))
