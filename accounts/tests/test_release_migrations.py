"""Each migration says which release runs on the schema that it leaves."""

from __future__ import annotations

import json

import pytest
from django.core.checks import run_checks
from django.core.checks.registry import registry
from django.core.management import CommandError, call_command
from django.db.migrations import Migration

from accounts import release_migrations
from accounts.release_migrations import (
    check_oldest_releases,
    migrations_on_disk,
    oldest_release,
    problem_of,
)


def migration(name, release=None, app="survey"):
    made = Migration(name, app)
    if release is not None:
        made.oldest_release = release
    return made


def test_all_migrations_say_it(capsys):
    assert check_oldest_releases() == []
    call_command("release_migrations")
    listed = json.loads(capsys.readouterr().out)
    assert listed.keys() == {".".join(key) for key in migrations_on_disk()}
    assert listed["survey.0001_tables"] == "1.0.0"


def test_a_migration_that_says_nothing_is_refused(monkeypatch):
    new = migration("0999_new")
    assert problem_of(new).msg.startswith("survey.0999_new says nothing")
    # The twin: with the statement it passes.
    assert problem_of(migration("0999_new", "1.1.0")) is None
    monkeypatch.setattr(
        release_migrations, "migrations_on_disk", lambda: {("survey", "0999_new"): new}
    )
    [problem] = check_oldest_releases()
    assert problem.id == "accounts.E003"
    with pytest.raises(CommandError, match="survey.0999_new does not say"):
        call_command("release_migrations")
    assert problem in run_checks(include_deployment_checks=True)


@pytest.mark.parametrize("release", ["1.0", "next", "", True])
def test_a_statement_is_a_version(release):
    assert "says" in problem_of(migration("0999_new", release)).msg


def test_migrations_of_packages_are_listed(monkeypatch):
    new = migration("0999_new", app="auth")
    assert oldest_release(new) is None
    monkeypatch.setattr(
        release_migrations, "OF_PACKAGES", {("auth", "0999_new"): "1.1.0"}
    )
    assert oldest_release(new) == "1.1.0"


def test_migrations_of_the_first_release_have_none_before_them():
    assert oldest_release(migration("0014_district_modules")) == "1.0.0"
    assert oldest_release(migration("0015_anything")) is None
    assert oldest_release(migration("0001_initial", app="unknown")) is None


def test_it_is_checked_before_a_release_and_not_at_each_start():
    assert check_oldest_releases in registry.deployment_checks
    assert check_oldest_releases not in registry.registered_checks
