"""The software bill of materials is valid, complete and the same for the same locks."""

from __future__ import annotations

import json

import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

from provisioning.commands import ROOT
from provisioning.release.components import components
from provisioning.tests.conftest import run


@pytest.fixture(scope="module")
def bill(tmp_path_factory) -> str:
    path = tmp_path_factory.mktemp("bill") / "sbom.json"
    done = run(ROOT, "run", "sbom", "--output", str(path))
    assert (done.returncode, done.stderr) == (0, "")
    bill = path.read_text()
    assert f"{len(json.loads(bill)['components'])} components, in {path}" in done.stdout
    return bill


def test_it_is_valid(bill):
    validator = JsonStrictValidator(SchemaVersion.V1_6)
    assert validator.validate_str(bill) is None
    # The validator finds what is wrong.
    assert validator.validate_str(bill.replace('"components"', '"parts"', 1))


def test_it_lists_everything_that_is_installed_and_served(bill):
    document = json.loads(bill)
    parts = {part["purl"]: part for part in document["components"]}
    wanted = [component for component in components() if component.use != "tests"]
    assert {*parts} == {component.url for component in wanted}
    for component in wanted:
        part = parts[component.url]
        assert (part["name"], part["version"]) == (component.name, component.version)
        assert {each["content"] for each in part["hashes"]} == {*component.sha256}
        assert part["licenses"]
        assert part["scope"] == "required"
    about = document["metadata"]["component"]
    assert (about["name"], about["licenses"][0]["expression"]) == (
        *("groundswell", "AGPL-3.0-or-later"),
    )
    (dependencies,) = (each for each in document["dependencies"] if "dependsOn" in each)
    assert {*dependencies["dependsOn"]} == {*parts}


def test_vendored_scripts_and_fonts_are_in_it(bill):
    purls = {part["purl"] for part in json.loads(bill)["components"]}
    assert "pkg:npm/htmx.org@2.0.11" in purls
    assert "pkg:npm/%40fontsource-variable/inter@5.3.0" in purls
    assert "pkg:pypi/django@" in bill
    assert "pkg:pypi/pytest@" not in bill


def test_the_same_locks_make_the_same_bytes(bill):
    done = run(ROOT, "run", "sbom")
    assert done.stdout.rstrip("\n") == bill.rstrip("\n")


def test_packages_of_tests_are_listed_on_request():
    document = json.loads(run(ROOT, "run", "sbom", "--tests").stdout)
    scopes = {part["name"]: part["scope"] for part in document["components"]}
    assert len(scopes) == len(components())
    assert (scopes["pytest"], scopes["django"]) == ("excluded", "required")


def test_a_folder_is_no_file(tmp_path):
    done = run(ROOT, "run", "sbom", "--output", str(tmp_path))
    assert done.returncode == 1
    assert "is a folder; name a file" in done.stderr
