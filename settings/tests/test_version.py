"""The version is in one place, and the changelog tells what is in it."""

from __future__ import annotations

import re
from datetime import date

from django.conf import settings

from provisioning.commands import PROJECT, ROOT

# Of https://semver.org, without build numbers.
SEMANTIC = r"(0|[1-9]\d*)(\.(0|[1-9]\d*)){2}(-[0-9A-Za-z-.]+)?"
CHANGELOG = ROOT / "CHANGELOG.md"
ENTRY = re.compile(r"^## \[([^]]+)\] - (\d{4}-\d{2}-\d{2})$", re.MULTILINE)


def test_the_version_is_semantic_and_that_of_the_project():
    assert re.fullmatch(SEMANTIC, settings.VERSION)
    assert PROJECT["version"] == settings.VERSION


def test_the_changelog_has_an_entry_for_the_version():
    """Keep a Changelog: newest first, each with a date, below Unreleased."""
    text = CHANGELOG.read_text()
    entries = ENTRY.findall(text)
    assert entries[0][0] == settings.VERSION, "write what is new into CHANGELOG.md"
    days = [date.fromisoformat(day) for _version, day in entries]
    assert days == sorted(days, reverse=True)
    assert text.index("## [Unreleased]") < text.index(f"## [{settings.VERSION}]")
