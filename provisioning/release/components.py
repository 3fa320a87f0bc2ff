"""List everything of others that Groundswell is installed, tested or served with.

Versions and digests come from the lock files, licences from the metadata of the
packages in `.venv`, which has exactly these versions. Uses the standard library only.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from importlib.metadata import Distribution, distributions
from pathlib import Path

from provisioning.commands import ROOT, Refusal
from provisioning.installation.environment import (
    PRODUCTION,
    STACK,
    TESTS,
    VENV,
    lock_of,
)

# Where a component is used -> its lock file. A package of several is in the first.
LOCKS = {"product": PRODUCTION, "stack": STACK, "tests": TESTS}
LICENCE_FILE = re.compile(r"(licen[cs]es?|copying|notice)\b", re.IGNORECASE)
# Trove classifiers and informal names that mean one licence only. "BSD License" does
# not: such packages are below, read by hand.
SPDX = {
    "Apache 2.0": "Apache-2.0",
    "Apache License 2.0": "Apache-2.0",
    "Apache Software License": "Apache-2.0",
    "ISC License (ISCL)": "ISC",
    "MIT License": "MIT",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    **{
        name: name
        for name in ("Apache-2.0", "BSD-3-Clause", "MIT", "MPL-2.0")
        + ("EPL-2.0 OR GPL-2.0-or-later",)
    },
}
# Read in their licence files, because their metadata are blank, vague or wrong.
READ_BY_HAND = {
    **dict.fromkeys(
        ("amqp", "billiard", "click-plugins", "cssselect2", "django-appconf")
        + ("itsdangerous",)
        + ("django-balancer", "django-cache-machine", "django-csp", "google-re2")
        + ("jinja2", "prompt-toolkit", "pydyf", "pytest-django", "scipy", "sqlparse")
        + ("tinycss2", "vine", "weasyprint", "webencodings"),
        "BSD-3-Clause",
    ),
    **dict.fromkeys(
        ("grimp", "import-linter", "pycryptodomex", "pyxform"), "BSD-2-Clause"
    ),
    "ansible-core": "GPL-3.0-or-later",
    "axe-playwright-python": "MIT",
    "boolean-py": "BSD-2-Clause",
    "cffi": "MIT-0",
    "defusedxml": "PSF-2.0",
    "fido2": "BSD-2-Clause AND (Apache-2.0 OR MPL-2.0)",
    # With a permission to link OpenSSL, which its version 3 does not need.
    "psycopg2-binary": "LGPL-3.0-or-later",
    "pypdfium2": "BSD-3-Clause AND Apache-2.0",
    "pyphen": "GPL-2.0-or-later OR LGPL-2.0-or-later OR MPL-1.1",
    "pyrage": "MIT",
    "python-dateutil": "BSD-3-Clause AND (Apache-2.0 OR BSD-3-Clause)",
    "qrcode": "BSD-3-Clause AND MIT",
    # That of the Repoze project, and parts under BSD-3-Clause and PSF-2.0.
    "supervisor": "LicenseRef-Repoze",
    # Older parts want an acknowledgement in advertising; see decision 0169.
    "xlrd": "BSD-3-Clause AND LicenseRef-Giffin",
}


@dataclass(frozen=True, slots=True)
class Component:
    """A package, script, font or data set of others, in one version."""

    name: str
    version: str
    # An expression of SPDX.
    licence: str
    # product, stack, tests; static: served by us as released.
    use: str
    # A package URL, as ECMA-427 defines it.
    url: str
    # Of all files that may be installed or that are served, in hexadecimal.
    sha256: tuple[str, ...] = ()
    # Licences and notices, as released.
    texts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Vendored:
    """A part of this repository that others have made."""

    name: str
    version: str
    licence: str
    url: str
    folder: str
    # Files in the folder; the licence as well, which data sets have none of.
    pattern: str
    licence_file: str = ""
    use: str = "static"


DATA_SETS = "provisioning/prove/rasch_agreement/data_sets"
VENDORED = (
    Vendored(
        *("htmx.org", "2.0.11", "0BSD", "pkg:npm/htmx.org@2.0.11"),
        *("static/vendor", "htmx.min.js", "htmx-LICENSE.txt"),
    ),
    Vendored(
        *("sortablejs", "1.15.6", "MIT", "pkg:npm/sortablejs@1.15.6"),
        *("static/vendor", "sortable.min.js", "sortable-LICENSE.txt"),
    ),
    Vendored(
        *("lucide-static", "1.62.0", "ISC AND MIT", "pkg:npm/lucide-static@1.62.0"),
        *("static/vendor/lucide", "*.svg", "LICENSE"),
    ),
    Vendored(
        *("Inter", "5.3.0", "OFL-1.1"),
        "pkg:npm/%40fontsource-variable/inter@5.3.0",
        *("static/fonts", "inter-*.woff2", "OFL.txt"),
    ),
    Vendored(
        *("Noto Sans Arabic", "5.3.0", "OFL-1.1"),
        "pkg:npm/%40fontsource-variable/noto-sans-arabic@5.3.0",
        *("static/fonts", "noto-*.woff2", "OFL.txt"),
    ),
    Vendored(
        *("DejaVu", "2.37", "Bitstream-Vera AND LicenseRef-Arev"),
        "pkg:deb/debian/fonts-dejavu-core@2.37",
        *("static/fonts", "DejaVu*.ttf", "LICENSE"),
    ),
    Vendored(
        *("acorn", "8.19.0", "MIT", "pkg:npm/acorn@8.19.0"),
        *("survey/tests/javascript", "acorn.js", "acorn-LICENSE.txt", "tests"),
    ),
    Vendored(
        *("compose-go (the schema)", "2.16.2", "Apache-2.0"),
        "pkg:golang/github.com/compose-spec/compose-go/v2@v2.16.2",
        *("provisioning/tests/containers", "compose-spec.json"),
        *("compose-spec-LICENSE.txt", "tests"),
    ),
    # Answers of people in data sets of R, which rasch_agreement/make_data_sets.R reads.
    *(
        Vendored(
            *(f"data sets of {package}", version, licence),
            *(f"pkg:cran/{package}@{version}", DATA_SETS, pattern, "", "tests"),
        )
        for package, version, licence, pattern in (
            ("eRm", "1.0-2", "GPL-3.0-only", "public_*mdat*/answers.csv.gz"),
            (
                *("psychotools", "0.7-2", "GPL-2.0-only OR GPL-3.0-only"),
                "public_consp*/answers.csv.gz",
            ),
            ("psychTools", "2.2.9", "GPL-2.0-or-later", "public_bfi*/answers.csv.gz"),
        )
    ),
)


def components() -> list[Component]:
    """Return all components, sorted by use and name.

    Raises Refusal for a package that is not in `.venv`, or whose licence is unknown.
    """
    return [*packages(), *map(vendored_component, VENDORED)]


def packages() -> Iterator[Component]:
    folders = [*map(str, VENV.glob("lib/python3*/site-packages"))]
    installed = {canonical(each.name): each for each in distributions(path=folders)}
    listed: set[str] = set()
    for use, requirements in LOCKS.items():
        locked = locked_packages(lock_of(requirements))
        for (name, version), digests in sorted(locked.items()):
            if name in listed:
                continue
            listed.add(name)
            distribution = installed.get(name)
            if distribution is None or distribution.version != version:
                raise Refusal(
                    f"{name} {version} is not in .venv; provisioning/test"
                    " --prepare-only installs it"
                )
            yield Component(
                name=name,
                version=version,
                licence=licence_of(name, distribution),
                use=use,
                url=f"pkg:pypi/{name}@{version}",
                sha256=digests,
                texts=tuple(_texts_of(distribution)),
            )


def locked_packages(path: Path) -> Mapping[tuple[str, str], tuple[str, ...]]:
    """Return the SHA-256 digests in a lock file, by name and version."""
    parts = re.split(r"^(?=[\w.-]+==)", path.read_text(), flags=re.MULTILINE)[1:]
    locked = {}
    for part in parts:
        name, version = part.split(maxsplit=1)[0].split("==")
        digests = re.findall(r"--hash=sha256:([0-9a-f]{64})", part)
        locked[canonical(name), version] = tuple(sorted(digests))
    return locked


def canonical(name: str) -> str:
    return re.sub("[-_.]+", "-", name).lower()


def licence_of(name: str, distribution: Distribution) -> str:
    """Return the licence as an expression of SPDX."""
    if name in READ_BY_HAND:
        return READ_BY_HAND[name]
    headers = distribution.metadata.get_all
    for expression in headers("License-Expression") or []:
        return str(expression)
    classifiers = {
        line.rpartition(" :: ")[2]
        for line in headers("Classifier") or []
        if line.startswith("License :: ") and not line.endswith("OSI Approved")
    }
    informal = {*(headers("License") or [])}
    for named in (classifiers or informal, informal):
        if len(named) == 1 and (licence := SPDX.get(*named)):
            return licence
    vague = ", ".join(sorted(classifiers | informal)) or "none"
    raise Refusal(
        f"The licence of {name} is unclear ({vague}): read it, and write it into"
        " READ_BY_HAND in provisioning/release/components.py"
    )


def _texts_of(distribution: Distribution) -> Iterator[str]:
    for path in sorted(distribution.files or [], key=str):
        if path.parts[0].endswith(".dist-info") and LICENCE_FILE.match(path.name):
            yield tidy(path.read_text())


def tidy(text: str) -> str:
    """Return a text without differences that are none, such as the ends of lines."""
    return "\n".join(map(str.rstrip, text.expandtabs().splitlines())).strip("\n")


def vendored_component(vendored: Vendored) -> Component:
    folder = ROOT / vendored.folder
    texts = [folder / vendored.licence_file] if vendored.licence_file else []
    return Component(
        name=vendored.name,
        version=vendored.version,
        licence=vendored.licence,
        use=vendored.use,
        url=vendored.url,
        sha256=tuple(
            sha256(path.read_bytes()).hexdigest()
            for path in sorted(folder.glob(vendored.pattern))
        ),
        texts=tuple(tidy(path.read_text()) for path in texts),
    )
