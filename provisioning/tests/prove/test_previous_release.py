"""The release before runs on this one's schema, and a broken schema is noticed."""

from __future__ import annotations

import json
import subprocess

import pytest

from provisioning.commands import ROOT
from provisioning.prove.previous_release import PATHS, release_before

PAGE_SAVES = "survey/tests/taking/test_save_page.py"


def test_there_is_a_release_before():
    kind = ["git", "-C", ROOT, "cat-file", "-t", f"{release_before()}^{{commit}}"]
    done = subprocess.run(kind, capture_output=True, text=True)
    assert done.stdout == "commit\n"


def test_its_tests_are_there():
    assert [path for path in PATHS if not (ROOT / path).exists()] == []


@pytest.mark.alone
@pytest.mark.slow
def test_it_saves_pages_on_this_schema_and_not_on_a_broken_one():
    command = [ROOT / "provisioning/run", "previous_release", "--control", PAGE_SAVES]
    done = subprocess.run(command, capture_output=True, text=True)
    result = json.loads(done.stdout.splitlines()[-1])
    assert result["on_new_schema"] == 0, done.stdout
    assert result["in_control"] == 1, done.stdout
    assert (result["passed"], done.returncode) == (True, 0)
