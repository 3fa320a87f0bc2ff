"""`provisioning/run check_formats`: read exports with R's haven.

Runs the tests that compare files cell by cell, which need R. The last line is JSON.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
import xml.etree.ElementTree as ElementTree
from pathlib import Path

from provisioning.commands import ROOT, command_parser, output_of
from provisioning.prove.r_packages import prepare_r

R_PACKAGES = ("r-cran-haven", "r-cran-jsonlite")
TESTS = ROOT / "reports" / "tests" / "exports"
FILES = (TESTS / "test_typed_formats.py", TESTS / "test_documents.py")
# By their names: those for which haven reads, and those that run programs in R.
CHOSEN = "haven or program_in_r"
VERSION = 'cat(as.character(packageVersion("haven")))'


def main() -> int:
    command_parser(
        "Reads exports as .sav, .zsav and .dta with R's haven, which it installs first"
        " (root), and compares each cell with the database's, labels and reasons for"
        " missing answers with the survey's; also unusual texts, 2,000 columns and no"
        " rows. Runs the programs for R that are beside exports. The last line is"
        " JSON. Ends with 1 if something differs."
    ).parse_args()
    prepare_r(R_PACKAGES)
    haven = output_of(["Rscript", "-e", VERSION], failing="R has no haven")
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.xml")
        options = ["--fast", *map(str, FILES), "-k", CHOSEN, f"--junit-xml={report}"]
        done = subprocess.run([str(ROOT / "provisioning" / "test"), *options])
        figures = count(report.read_text()) if report.exists() else {}
    passed = done.returncode == 0 and figures.get("passed", 0) > 0
    passed = passed and not figures["failed"] and not figures["skipped"]
    print(json.dumps({"haven": haven.strip(), **figures, "agrees": passed}))
    return 0 if passed else 1


def count(report: str) -> dict[str, int]:
    """Return how many tests passed, failed and were skipped, by pytest's report."""
    # Written by pytest a moment ago.
    [suite] = ElementTree.fromstring(report).iter("testsuite")  # noqa: S314
    failed = int(suite.get("failures", 0)) + int(suite.get("errors", 0))
    skipped = int(suite.get("skipped", 0))
    passed = int(suite.get("tests", 0)) - failed - skipped
    return {"passed": passed, "failed": failed, "skipped": skipped}
