"""`provisioning/pages`: how long each page of the console takes, as each role.

A data folder of its own with the demonstration, and some work done in it; then
every link from the first page on, by GET, in one process without a network.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from provisioning.commands import ROOT, Refusal, output_of, run_command, step
from provisioning.environment import PRODUCTION, PYTHON, prepare_environment

# Milliseconds, at the median, with the demonstration's data.
BOUND = 100.0


def main() -> int:
    arguments = _arguments()
    prepare_environment(PRODUCTION)
    with tempfile.TemporaryDirectory(dir=ROOT) as folder:
        environment = _environment(Path(folder))
        demo = _prepare(environment)
        pages = _walked(environment, demo, arguments.times)
    print(table(pages, arguments.bound))
    return 1 if any(is_bad(page, arguments.bound) for page in pages) else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="provisioning/pages",
        description="Follows every link of the console as each role of the"
        " demonstration, times each page, and ends with 1 where one is slower than"
        " the bound at the median, or answers with an error.",
    )
    parser.add_argument("--times", type=int, default=7, help="of each page")
    parser.add_argument("--bound", type=float, default=BOUND, help="in milliseconds")
    return parser.parse_args()


def _environment(folder: Path) -> dict[str, str]:
    return {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "settings.embedded",
        "GROUNDSWELL_DATA": str(folder),
        "GROUNDSWELL_STATIC_ROOT": str(folder / "static"),
        "GROUNDSWELL_SECOND_FACTOR": "off",
    }


def _prepare(environment: dict[str, str]) -> dict[str, Any]:
    def manage(*arguments: str) -> str:
        return output_of(
            [PYTHON, ROOT / "manage.py", *arguments],
            failing=f"manage.py {arguments[0]} failed",
            env=environment,
        )

    with step("Preparing the demonstration"):
        manage("migrate", "--verbosity=0")
        manage("collectstatic", "--no-input", "--verbosity=0")
        manage("compress", "--verbosity=0")
        demo: dict[str, Any] = json.loads(manage("load_demo", "--json"))
    return demo


def _walked(
    environment: dict[str, str], demo: dict[str, Any], times: int
) -> list[dict[str, Any]]:
    with step("Walking through the console"):
        walk = subprocess.run(
            [PYTHON, "-m", "provisioning.benchmarks.page_walk", str(times)],
            cwd=ROOT,
            env=environment,
            input=json.dumps(demo),
            capture_output=True,
            text=True,
        )
    if walk.returncode:
        raise Refusal(f"The walk ended early: {walk.stderr.strip()[-2000:]}")
    pages: list[dict[str, Any]] = json.loads(walk.stdout.splitlines()[-1])
    return pages


def is_bad(page: dict[str, Any], bound: float) -> bool:
    return page["status"] >= 400 or page["median"] > bound


def table(pages: list[dict[str, Any]], bound: float) -> str:
    """Those that answer with an error first, then the slowest."""
    slowest_first = sorted(
        pages, key=lambda page: (page["status"] < 400, -page["median"])
    )
    lines = [f"{'':<2}{'route':<26}{'role':<24}{'ms':>8}{'statements':>12}{'KB':>7}"]
    for page in slowest_first:
        mark = "!" if is_bad(page, bound) else ""
        error = f"  {page['status']} at {page['path']}" if page["status"] >= 400 else ""
        lines.append(
            f"{mark:<2}{page['route']:<26}{page['role']:<24}{page['median']:>8.1f}"
            f"{page['statements']:>12}{page['bytes'] / 1000:>7.1f}{error}"
        )
    bad = sum(is_bad(page, bound) for page in pages)
    lines.append(f"\n{len(pages)} pages, {bad} over {bound:g} ms or with an error")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(run_command("provisioning/pages", main))
