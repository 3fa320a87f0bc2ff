"""Take the screenshots of the handbook for school coordinators.

From a demonstration of its own, with made-up people; writes them into docs/help,
beside the text in the same language. A test fails once the words of these pages have
changed: then take the images again.
"""

from __future__ import annotations

import argparse
import json
import os
import re
from pathlib import Path

from provisioning.commands import ROOT, command_parser, output_of, step
from provisioning.installation.environment import (
    PRODUCTION,
    PYTHON,
    TESTS,
    prepare_environment,
)
from provisioning.measure.benchmarks.stack import sqlite_application
from provisioning.measure.benchmarks.timed_requests import served

HELP = ROOT / "docs" / "help"
WORDS = "reports/tests/console/test_handbook_images.py"
COORDINATOR = "coordinator@groundswell.example"


def main() -> int:
    language = parser().parse_args().language
    prepare_environment(PRODUCTION, TESTS)
    with sqlite_application(GROUNDSWELL_SECOND_FACTOR="off") as application:
        application.collect_static()
        with step("Loading the demonstration's data"):
            demo = json.loads(application.manage("load_demo", "--json"))
            application.manage("roll_up_rates")
            application.call("handbook_images.set_language", language=language)
        with served(application) as target, step("Taking the screenshots"):
            # Playwright is in .venv, which the system's Python does not see.
            output_of(
                [
                    *(PYTHON, "-m", "provisioning.handbook_screenshots"),
                    *(f"{target.origin}/", COORDINATOR, language, folder_of(language)),
                ],
                failing="The screenshots can't be taken",
                input_text=demo["staff_password"],
            )
    with step("Recording the words of the pages"):
        output_of(
            [*(PYTHON, "-m", "pytest"), WORDS],
            failing="The words can't be recorded",
            env={**os.environ, "GROUNDSWELL_RECORD_HANDBOOK": language},
        )
    taken = sorted(folder_of(language).glob("*.webp"))
    size = sum(path.stat().st_size for path in taken) / 1024
    place = folder_of(language).relative_to(ROOT)
    print(f"{len(taken)} images, {size:.0f} KB, in {place}")
    return 0


def folder_of(language: str) -> Path:
    return HELP / language / "coordinators" / "images"


def parser() -> argparse.ArgumentParser:
    parser = command_parser(__doc__)
    parser.add_argument(
        "--language", type=language_code, default="en", help="of the console (en)"
    )
    return parser


def language_code(text: str) -> str:
    if not re.fullmatch("[a-z]{2,3}(-[a-z]{2,4})?", text):
        raise argparse.ArgumentTypeError(f"{text} is not a language such as es")
    return text


def set_language(*, language: str) -> None:
    """Choose the coordinator's language. Runs in Django."""
    from accounts.models import User

    User.objects.filter(email=COORDINATOR).update(language=language)
