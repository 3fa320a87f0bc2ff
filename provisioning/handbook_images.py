"""Take the screenshots of the handbook for school coordinators.

From a demonstration of its own, with made-up people; writes them into
static/img/handbook. A test fails once the words of these pages have changed: then
take the images again.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from provisioning.commands import (
    ROOT,
    Refusal,
    command_parser,
    fetch,
    listen,
    output_of,
    step,
    wait_until,
)
from provisioning.install.environment import (
    PRODUCTION,
    PYTHON,
    TESTS,
    manage,
    prepare_environment,
)
from provisioning.processes import start_process, stop_process

IMAGES = ROOT / "static" / "img" / "handbook"
WORDS = "reports/tests/console/test_handbook_images.py"
COORDINATOR = "coordinator@groundswell.example"


def main() -> int:
    options = parser().parse_args()
    prepare_environment(PRODUCTION, TESTS)
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder)
        with running_demo(data) as address:
            set_language(data, options.language)
            with step("Taking the screenshots"):
                # Playwright is in .venv, which the system's Python does not see.
                output_of(
                    [
                        *(PYTHON, "-m", "provisioning.handbook_screenshots"),
                        *(address, COORDINATOR, options.language, IMAGES),
                    ],
                    failing="The screenshots can't be taken",
                    input_text=(data / "staff.txt").read_text().strip(),
                )
    with step("Recording the words of the pages"):
        output_of(
            [*(PYTHON, "-m", "pytest"), WORDS],
            failing="The words can't be recorded",
            env={**os.environ, "GROUNDSWELL_RECORD_HANDBOOK": options.language},
        )
    taken = sorted((IMAGES / options.language).glob("*.webp"))
    size = sum(path.stat().st_size for path in taken) / 1024
    place = (IMAGES / options.language).relative_to(ROOT)
    print(f"{len(taken)} images, {size:.0f} KB, in {place}")
    return 0


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


@contextmanager
def running_demo(data: Path) -> Iterator[str]:
    with listen(0) as free:
        port = free.getsockname()[1]
    address = f"http://127.0.0.1:{port}/"
    log = data / "demo.log"
    with log.open("w") as output, step("Starting the demonstration"):
        demo = start_process(
            [ROOT / "provisioning" / "demo", f"--port={port}"],
            output=output,
            env=environment_of(data),
        )
    try:
        wait_for_demo(demo, address, log)
        yield address
    finally:
        stop_process(demo, seconds=30)


def wait_for_demo(
    demo: subprocess.Popen[bytes], address: str, log: Path, seconds: float = 300
) -> None:
    with step("Loading the demonstration's data"):
        is_served = wait_until(
            lambda: demo.poll() is not None or fetch(address)[0] == 200,
            seconds=seconds,
            pause=0.2,
        )
        if demo.poll() is not None or not is_served:
            last = log.read_text().strip().splitlines()[-1:]
            raise Refusal(f"The demonstration does not start: {' '.join(last)}")


def environment_of(data: Path) -> dict[str, str]:
    return {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "settings.embedded",
        "GROUNDSWELL_DATA": str(data),
    }


def set_language(data: Path, language: str) -> None:
    if language == "en":
        return
    manage(
        "shell",
        "--no-imports",
        f"--command=from accounts.models import User; User.objects.filter("
        f"email={COORDINATOR!r}).update(language={language!r})",
        environment=environment_of(data),
    )
