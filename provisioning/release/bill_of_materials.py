"""Write a software bill of materials (CycloneDX 1.6, JSON) of this version.

With packages of the product and of its stack, and the scripts, icons and fonts that
are served: name, version, licence, package URL, and the SHA-256 of each file that may
be installed. Without what only tests need, unless --tests asks for it. Debian's
packages are not in it: they are those of each host.
"""

from __future__ import annotations

import argparse
import json

from provisioning.commands import Refusal, caller_path, command_parser, output_of
from provisioning.installation.environment import (
    PRODUCTION,
    PYTHON,
    STACK,
    TESTS,
    prepare_environment,
)


def main() -> int:
    options = parser().parse_args()
    prepare_environment(PRODUCTION, TESTS, STACK)
    # CycloneDX's library is in .venv, which the system's Python does not see.
    module = [str(PYTHON), "-m", "provisioning.release.cyclonedx_document"]
    document = output_of(
        [*module, *(["--tests"] if options.tests else [])],
        failing="The bill of materials can't be made",
    )
    if options.output is None:
        print(document)
        return 0
    try:
        options.output.write_text(document)
    except IsADirectoryError:
        raise Refusal(f"{options.output} is a folder; name a file") from None
    print(f"{len(json.loads(document)['components'])} components, in {options.output}")
    return 0


def parser() -> argparse.ArgumentParser:
    parser = command_parser(__doc__)
    parser.add_argument(
        "--output", type=caller_path, metavar="FILE", help="instead of printing it"
    )
    parser.add_argument(
        "--tests", action="store_true", help="with what only tests and development need"
    )
    return parser
