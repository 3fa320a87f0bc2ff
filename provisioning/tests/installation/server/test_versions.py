"""Which release may follow which, and on which schema the one before runs."""

from __future__ import annotations

import pytest

from provisioning.commands import ROOT, Refusal
from provisioning.installation.server.versions import (
    parse_version,
    refuse_skipped,
    refuse_unless_newer,
    too_new_for,
    version_in,
)

# By migration, the oldest release that runs on its schema.
MIGRATIONS = {
    "survey.0001_tables": "1.0.0",
    "survey.0002_expand": "1.0.0",
    "survey.0003_contract": "1.1.0",
    "survey.0004_break": "1.2.0",
}


def test_versions_compare_by_their_numbers():
    assert parse_version("v1.10.0") > parse_version("1.9.12")
    for text in ("1.2", "1.2.0-rc1", "latest", ""):
        with pytest.raises(Refusal, match="is no version such as"):
            parse_version(text)


def test_a_folder_says_its_version(tmp_path):
    assert parse_version(version_in(ROOT))
    with pytest.raises(Refusal, match="it has no version"):
        version_in(tmp_path)


def test_older_and_same_versions_are_refused():
    refuse_unless_newer("1.0.0", "1.0.1")
    with pytest.raises(Refusal, match="is older than"):
        refuse_unless_newer("1.1.0", "1.0.9")
    with pytest.raises(Refusal, match="serves already"):
        refuse_unless_newer("1.1.0", "1.1.0")
    # Another commit of the same version, which nobody has released.
    refuse_unless_newer("1.1.0", "1.1.0", is_build=True)
    with pytest.raises(Refusal, match="is older than"):
        refuse_unless_newer("1.1.0", "1.0.9", is_build=True)


def test_migrations_that_the_release_before_does_not_bear():
    names = set(MIGRATIONS)
    assert too_new_for("1.2.0", names, MIGRATIONS) == {}
    assert set(too_new_for("1.1.0", names, MIGRATIONS)) == {"survey.0004_break"}
    assert len(too_new_for("1.0.0", names, MIGRATIONS)) == 2


def test_a_migration_that_no_code_knows_is_too_new():
    assert too_new_for("9.0.0", {"survey.0009_x"}, MIGRATIONS) == {"survey.0009_x": ""}


def test_a_release_that_could_serve_in_between_is_not_skipped():
    too_new = too_new_for("1.0.0", set(MIGRATIONS), MIGRATIONS)
    with pytest.raises(Refusal, match=r"upgrade to 1\.1\.0 first"):
        refuse_skipped("1.0.0", "1.2.0", too_new)
    # What no release but the new one bears, no detour helps.
    refuse_skipped("1.1.0", "1.2.0", too_new_for("1.1.0", {*MIGRATIONS}, MIGRATIONS))
