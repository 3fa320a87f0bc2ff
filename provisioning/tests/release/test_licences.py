"""The licences of everything of others are known, listed, and fit ours."""

from __future__ import annotations

import re
from email.message import Message
from hashlib import sha256
from types import SimpleNamespace

import pytest
from license_expression import get_spdx_licensing

from provisioning.commands import PROJECT, ROOT, Refusal
from provisioning.release.components import (
    READ_BY_HAND,
    VENDORED,
    components,
    licence_of,
    tidy,
)
from provisioning.release.licences import LICENCES, document

# As the Free Software Foundation publishes it.
AGPL = "0d96a4ff68ad6d4b6f1f30f713b18d5184912ba8dd389f86aa7710db079abcb0"
# Licences that may be combined with AGPL-3.0-or-later; see decision 0169.
FITTING = {
    *("0BSD", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "CC0-1.0", "ISC", "MIT"),
    *("MIT-0", "MIT-CMU", "PSF-2.0", "Python-2.0", "Unlicense", "Zlib"),
    *("GPL-2.0-or-later", "GPL-3.0-only", "GPL-3.0-or-later"),
    *("LGPL-2.0-or-later", "LGPL-3.0-only", "LGPL-3.0-or-later", "MPL-2.0"),
    # Fonts, which no code is linked with.
    *("Bitstream-Vera", "LicenseRef-Arev", "OFL-1.1"),
}
# Why another one may be used.
EXCEPTED = {
    "supervisor": "starts the servers' programs, and is linked with none of them",
    "xlrd": "by the permission at the end of README.md",
}
# Its release has no text.
WITHOUT_TEXT = {"django-balancer"}


@pytest.fixture(scope="module")
def listed():
    return components()


def test_the_list_of_licences_is_of_the_locked_packages(listed):
    assert LICENCES.read_text() == document(listed), (
        "out of date: run provisioning/run licences, and look at the difference"
    )


def test_groundswell_has_the_licence_that_it_names():
    assert sha256((ROOT / "LICENSE").read_bytes()).hexdigest() == AGPL
    assert PROJECT["license"] == "AGPL-3.0-or-later"


def test_licences_are_expressions_of_spdx(listed):
    spdx = get_spdx_licensing()
    for component in listed:
        unknown = set(spdx.unknown_license_keys(component.licence))
        ours = {key for key in unknown if str(key).startswith("LicenseRef-")}
        assert unknown == ours, component


def test_licences_of_what_is_installed_fit_ours(listed):
    misfits = {
        component.name
        for component in listed
        if component.use != "tests" and not fits(component.licence)
    }
    assert misfits == {*EXCEPTED}


@pytest.mark.parametrize(
    ("licence", "fitting"),
    [
        ("MIT", True),
        ("EPL-2.0 OR GPL-2.0-or-later", True),
        ("BSD-3-Clause AND (Apache-2.0 OR EPL-2.0)", True),
        ("EPL-2.0", False),
        ("GPL-2.0-only", False),
        ("MIT AND BUSL-1.1", False),
    ],
)
def test_one_of_the_alternatives_has_to_fit(licence, fitting):
    assert fits(licence) is fitting


def fits(licence: str) -> bool:
    parsed = get_spdx_licensing().parse(licence)
    # Names such as GPL-3.0-or-later become one symbol each.
    return bool(
        parsed.subs(
            {
                symbol: get_spdx_licensing().TRUE
                if symbol.key in FITTING
                else get_spdx_licensing().FALSE
                for symbol in parsed.symbols
            }
        ).simplify()
        == get_spdx_licensing().TRUE
    )


def test_the_text_of_each_licence_is_in_the_list(listed):
    text = LICENCES.read_text()
    for component in listed:
        if component.use == "tests":
            continue
        assert (not component.texts) == (component.name in WITHOUT_TEXT), component.name
        assert all(each in text for each in component.texts), component.name


@pytest.mark.parametrize("name", ["click", "jinja2", "numpy", "fpdf2"])
def test_texts_are_the_whole_ones(listed, name):
    text = "".join(next(each for each in listed if each.name == name).texts)
    assert len(text) > 1000
    assert re.search("copyright", text, re.IGNORECASE)


def metadata(**headers: str) -> SimpleNamespace:
    message = Message()
    for name, value in headers.items():
        message[name.replace("_", "-")] = value
    return SimpleNamespace(metadata=message)


@pytest.mark.parametrize(
    ("headers", "licence"),
    [
        ({"License_Expression": "MIT OR Zlib", "License": "BSD"}, "MIT OR Zlib"),
        ({"Classifier": "License :: OSI Approved :: MIT License"}, "MIT"),
        ({"License": "Apache 2.0"}, "Apache-2.0"),
        (
            {"Classifier": "License :: OSI Approved", "License": "MPL-2.0"},
            "MPL-2.0",
        ),
    ],
)
def test_licences_are_read_from_metadata(headers, licence):
    assert licence_of("new", metadata(**headers)) == licence


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"License": "Custom"},
        {"License": "BSD"},
        {"Classifier": "License :: OSI Approved :: BSD License"},
        {"Classifier": "License :: Other/Proprietary License"},
    ],
)
def test_an_unclear_licence_is_read_by_hand(headers):
    with pytest.raises(Refusal, match="licence of new is unclear .* READ_BY_HAND"):
        licence_of("new", metadata(**headers))


def test_nothing_is_read_by_hand_that_is_gone(listed):
    assert {*READ_BY_HAND} <= {component.name for component in listed}


def test_each_file_of_others_is_of_a_component():
    listed = {
        path
        for vendored in VENDORED
        for pattern in (vendored.pattern, vendored.licence_file)
        if pattern
        for path in (ROOT / vendored.folder).glob(pattern)
    }
    for folder in ("static/vendor", "static/fonts"):
        files = {path for path in (ROOT / folder).rglob("*") if path.is_file()}
        assert {path for path in files if path.name != "README.md"} <= listed


def test_versions_of_files_of_others_are_those_of_their_lists():
    for vendored in VENDORED:
        assert list((ROOT / vendored.folder).glob(vendored.pattern)), vendored
        if vendored.use == "static":
            folder = ROOT / "static" / vendored.folder.split("/")[1]
            assert vendored.version in (folder / "README.md").read_text(), vendored


def test_ends_of_lines_make_no_difference():
    assert tidy("\n a  \r\n\tb\x0c\n\n") == " a\n        b"
