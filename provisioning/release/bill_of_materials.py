"""Write a software bill of materials (CycloneDX 1.6, JSON) of this version.

With packages of the product and of its stack, and the scripts, icons and fonts that
are served: name, version, licence, package URL, and the SHA-256 of each file that may
be installed. Without what only tests need, unless --tests asks for it. Debian's
packages are not in it: they are those of each host.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from uuid import NAMESPACE_URL, uuid5

from provisioning.commands import PROJECT, VERSION, Refusal, command_parser, output_of
from provisioning.installation.environment import (
    PRODUCTION,
    PYTHON,
    STACK,
    TESTS,
    prepare_environment,
)
from provisioning.release.components import Component, components


def main() -> int:
    options = parser().parse_args()
    prepare_environment(PRODUCTION, TESTS, STACK)
    # CycloneDX's library is in .venv, which the system's Python does not see.
    module = [str(PYTHON), "-m", "provisioning.release.bill_of_materials"]
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
        "--output", type=Path, metavar="FILE", help="instead of printing it"
    )
    parser.add_argument(
        "--tests", action="store_true", help="with what only tests and development need"
    )
    return parser


def document(*, tests: bool = False) -> str:
    """Return the bill as JSON: the same bytes for the same locked packages."""
    from cyclonedx.model.bom import Bom
    from cyclonedx.model.component import Component as Part
    from cyclonedx.model.component import ComponentType
    from cyclonedx.output.json import JsonV1Dot6

    product = Part(
        name=PROJECT["name"],
        version=PROJECT["version"],
        type=ComponentType.APPLICATION,
        bom_ref=VERSION,
        licenses=[_licence(PROJECT["license"])],
    )
    parts = [
        _part(component)
        for component in components()
        if tests or component.use != "tests"
    ]
    digests = "".join(f"{part.bom_ref}" for part in parts)
    bom = Bom(
        components=parts,
        # Of its content, so that two bills of one version are alike.
        serial_number=uuid5(NAMESPACE_URL, f"{VERSION} {digests}"),
    )
    bom.metadata.component = product
    bom.register_dependency(product, parts)
    # When it is made is no property of what it lists.
    bom.metadata.timestamp = None
    return JsonV1Dot6(bom).output_as_string(indent=2)


def _part(component: Component) -> object:
    from cyclonedx.model import HashAlgorithm, HashType, Property
    from cyclonedx.model.component import Component as Part
    from cyclonedx.model.component import ComponentScope, ComponentType
    from packageurl import PackageURL

    scope = (
        ComponentScope.EXCLUDED
        if component.use == "tests"
        else ComponentScope.REQUIRED
    )
    return Part(
        name=component.name,
        version=component.version,
        type=ComponentType.LIBRARY,
        bom_ref=component.url,
        purl=PackageURL.from_string(component.url),
        scope=scope,
        licenses=[_licence(component.licence)],
        hashes=[
            HashType(alg=HashAlgorithm.SHA_256, content=digest)
            for digest in component.sha256
        ],
        properties=[Property(name="groundswell:use", value=component.use)],
    )


def _licence(expression: str) -> object:
    from cyclonedx.model.license import DisjunctiveLicense, LicenseExpression

    if expression.startswith("LicenseRef-"):
        return DisjunctiveLicense(name=expression.removeprefix("LicenseRef-"))
    return LicenseExpression(expression)


if __name__ == "__main__":
    sys.stdout.write(document(tests="--tests" in sys.argv))
