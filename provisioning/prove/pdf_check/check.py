"""`provisioning/run check_pdf`: check PDF files against PDF/UA-1 with veraPDF.

Downloads the validator once; the tests do not need it.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import tempfile
from pathlib import Path

from provisioning.commands import Refusal, command_parser, step
from provisioning.measure.benchmarks.stack import sqlite_application
from provisioning.measure.jmeter.install import (
    cache_folder,
    download,
    prepare_java,
    read_artifacts,
)

FOLDER = Path(__file__).parent
VERDICT = re.compile(r" (passes|FAILS), (\d+) checks$", re.MULTILINE)


def main() -> int:
    options = parse_options()
    files = [path.resolve() for path in options.files]
    for path in files:
        if not path.is_file():
            raise Refusal(f"{path} is no file")
    if files:
        return subprocess.run([*validator(), *map(str, files)]).returncode
    with tempfile.TemporaryDirectory() as folder:
        make_reports(Path(folder))
        done = subprocess.run(
            [*validator(), *map(str, sorted(Path(folder).glob("*.pdf")))],
            stdout=subprocess.PIPE,
            text=True,
        )
    print(done.stdout, end="")
    figures = count(done.stdout)
    print(json.dumps(figures))
    return int(bool(done.returncode or figures["failed"]))


def parse_options() -> argparse.Namespace:
    parser = command_parser(
        "Checks PDF files, such as reports of schools, against PDF/UA-1"
        " with veraPDF 1.28.2, which it downloads first (9 MB, checked against"
        " artifacts.txt beside it). Without files it makes reports of a school"
        " with a trend in English, Spanish and Arabic, from made-up answers;"
        " the last line is JSON then. Ends with 1 if a file fails.",
        epilog="Paths are absolute, or below the repository. Needs a JDK from Java 17"
        " on (apt-get install default-jdk-headless).",
    )
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE.pdf")
    return parser.parse_args()


def make_reports(folder: Path) -> None:
    with sqlite_application() as application, step("Making the reports"):
        path = "prove.pdf_check.make_reports.make_reports"
        application.call(path, folder=str(folder))


def validator() -> list[str]:
    """Return the command that checks files."""
    java, jars = prepare_java(), prepare_validator()
    classpath = ":".join(map(str, jars))
    # Compiled by Java each time, in a second.
    return [java, "-cp", classpath, str(FOLDER / "CheckPdf.java")]


def count(output: str) -> dict[str, int]:
    """Return how many files and checks the validator prints, and failed files."""
    verdicts = VERDICT.findall(output)
    return {
        "files": len(verdicts),
        "checks": sum(int(checks) for _, checks in verdicts),
        "failed": sum(verdict == "FAILS" for verdict, _ in verdicts),
    }


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
