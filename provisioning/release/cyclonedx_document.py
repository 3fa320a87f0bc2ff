"""Print the software bill of materials as CycloneDX; see `provisioning/run sbom`."""

from __future__ import annotations

import sys
from uuid import NAMESPACE_URL, uuid5

from cyclonedx.model import HashAlgorithm, HashType, Property
from cyclonedx.model.bom import Bom, BomMetaData
from cyclonedx.model.component import Component as Part
from cyclonedx.model.component import ComponentScope, ComponentType
from cyclonedx.model.license import DisjunctiveLicense, License, LicenseExpression
from cyclonedx.output.json import JsonV1Dot6
from packageurl import PackageURL

from provisioning.commands import PROJECT, VERSION
from provisioning.release.components import Component, components


def document(*, tests: bool = False) -> str:
    """Return the bill as JSON: the same bytes for the same locked packages."""
    product = Part(
        name=PROJECT["name"],
        version=PROJECT["version"],
        type=ComponentType.APPLICATION,
        bom_ref=VERSION,
        licenses=[licence(PROJECT["license"])],
    )
    listed = [each for each in components() if tests or each.use != "tests"]
    parts = [part_of(component) for component in listed]
    metadata = BomMetaData(component=product)
    # When it is made is no property of what it lists; nor is a random number.
    metadata._timestamp = None  # type: ignore[assignment]
    content = " ".join(component.url for component in listed)
    bom = Bom(
        components=parts,
        metadata=metadata,
        serial_number=uuid5(NAMESPACE_URL, f"{VERSION} {content}"),
    )
    bom.register_dependency(product, parts)
    return JsonV1Dot6(bom).output_as_string(indent=2)


def part_of(component: Component) -> Part:
    required = component.use != "tests"
    return Part(
        name=component.name,
        version=component.version,
        type=ComponentType.LIBRARY,
        bom_ref=component.url,
        purl=PackageURL.from_string(component.url),
        scope=ComponentScope.REQUIRED if required else ComponentScope.EXCLUDED,
        licenses=[licence(component.licence)],
        hashes=[
            HashType(alg=HashAlgorithm.SHA_256, content=digest)
            for digest in component.sha256
        ],
        properties=[Property(name="groundswell:use", value=component.use)],
    )


def licence(expression: str) -> License:
    if expression.startswith("LicenseRef-"):
        return DisjunctiveLicense(name=expression.removeprefix("LicenseRef-"))
    return LicenseExpression(expression)


if __name__ == "__main__":
    sys.stdout.write(document(tests="--tests" in sys.argv))
