"""Write docs/third-party-licences.txt: the licences of everything of others.

From the lock files, the packages in `.venv`, and the scripts and fonts that are served.
A test fails once the file is out of date.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from provisioning.commands import ROOT, command_parser, step
from provisioning.installation.environment import (
    PRODUCTION,
    STACK,
    TESTS,
    prepare_environment,
)
from provisioning.release.components import Component, components

LICENCES = ROOT / "docs" / "third-party-licences.txt"
TITLES = {
    "product": "Packages of the product (requirements.txt)",
    "stack": "Packages that set up and supervise the servers",
    "static": "Scripts, icons and fonts in this repository, served as released",
    "tests": "For tests and development only: not part of an installation",
}
HEAD = """\
Licences of software, fonts and data of others

Groundswell itself is licensed by the file LICENSE. This file is written by
`provisioning/run licences` from the lock files; do not change it by hand.
Licences are expressions of SPDX (https://spdx.org/licenses/). The texts follow the
list, each once, with the names of all components that have it; those of components
for tests only are in their packages.
"""
RULE = "=" * 79


def main() -> int:
    command_parser(__doc__).parse_args()
    prepare_environment(PRODUCTION, TESTS, STACK)
    with step(f"Writing {LICENCES.relative_to(ROOT)}"):
        LICENCES.write_text(document(components()))
    return 0


def document(listed: list[Component]) -> str:
    return "\n".join([HEAD, *_lists(listed), *_texts(listed)]) + "\n"


def _lists(listed: Iterable[Component]) -> Iterator[str]:
    for use, title in TITLES.items():
        yield f"{title}\n"
        for component in listed:
            if component.use == use:
                name = f"{component.name} {component.version}"
                yield f"  {name:<40} {component.licence}"
        yield ""


def _texts(listed: Iterable[Component]) -> Iterator[str]:
    names: dict[str, list[str]] = {}
    for component in listed:
        if component.use != "tests":
            for text in component.texts:
                names.setdefault(text, []).append(component.name)
    for text, holders in names.items():
        yield f"{RULE}\n{', '.join(dict.fromkeys(holders))}\n{RULE}\n\n{text}\n"
