"""Run the tests of the release before on the schema of this one.

An upgrade migrates while the old release serves, and a rollback lets it serve again on
the database as it is. Starts private servers, migrates with this code, and runs the
other code's own tests on the result; with --control on a schema that has lost a column
besides, where they have to fail. Tests that fail on their own schema too are named, and
do not count. The release before is the newest tag, or without tags the commit before
the newest migration. Ends with one line of JSON.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

from provisioning.commands import (
    ROOT,
    Refusal,
    command_parser,
    conclude,
    output_of,
    scratch_folder,
    step,
)
from provisioning.installation.environment import (
    PRODUCTION,
    PYTHON,
    STACK,
    TESTS,
    VENV,
    prepare_environment,
)
from provisioning.installation.server.release import LEFT_OUT
from provisioning.installation.servers import private_servers

# What respondents, staff and jobs do most; not how migrations themselves behave.
PATHS = (
    "survey/tests/taking",
    "survey/tests/administrations",
    "survey/tests/rosters",
    "accounts/tests",
    "reports/tests/test_rollup.py",
)
CACHE = ".pytest_cache"
# pytest's status when tests failed, as they must in the control.
FAILED = 1
# Each in a process of its own, for each is of another folder of code.
CREATE = """
import django; django.setup()
from django.db import connection
connection.creation.create_test_db(verbosity=0, autoclobber=True, serialize=False)
connection.creation.destroy_test_db("groundswell", verbosity=0)
"""
PRINT_DUMP = """
import django; django.setup()
from django.db import connection
print(connection.creation.dump)
"""
CONTROL = """
from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("survey", "{before}")]
    operations = [
        migrations.RunSQL(
            "ALTER TABLE survey_respondent DROP COLUMN completed_at CASCADE"
        ),
    ]
"""


def main() -> int:
    parser = command_parser(__doc__)
    parser.add_argument("--release", default="", metavar="COMMIT", help="that one")
    parser.add_argument("--control", action="store_true", help="also the control")
    parser.add_argument(
        "paths", nargs="*", default=PATHS, help=f"tests ({' '.join(PATHS)})"
    )
    options = parser.parse_args()
    prepare_environment(PRODUCTION, TESTS, STACK)
    commit = options.release or release_before()
    with scratch_folder() as folder:
        old = folder / "old"
        extract(commit, old)
        paths = [path for path in options.paths if (old / path.split("::")[0]).exists()]
        if not paths:
            raise Refusal(f"{commit} has none of these tests")
        figures: dict[str, Any] = {"on_new_schema": run_on_schema_of(ROOT, old, paths)}
        failed = failed_tests(old)
        if failed:
            # What fails there too says nothing about the new schema.
            run_on_schema_of(old, old, failed)
        figures["fail_on_their_own"] = without = failed_tests(old)
        wrong = [f"{test} fails" for test in failed if test not in without]
        if figures["on_new_schema"] not in (0, FAILED):
            wrong.append("The tests of the release before do not run")
        if options.control:
            broken = folder / "broken"
            break_schema(broken)
            # A test that fails is enough.
            deselected = ("--exitfirst", *(f"--deselect={test}" for test in without))
            figures["in_control"] = run_on_schema_of(broken, old, paths, *deselected)
            if figures["in_control"] != FAILED:
                wrong.append("The control was not noticed")
    return conclude({"release": commit, **figures}, wrong)


def failed_tests(old: Path) -> list[str]:
    """Return the tests that failed the last time, as pytest remembers them."""
    file = old / CACHE / "v/cache/lastfailed"
    return sorted(json.loads(file.read_text())) if file.exists() else []


def release_before() -> str:
    """Return the newest tag, or the commit before the newest migration."""
    git = ["git", "-C", str(ROOT)]
    described = subprocess.run(
        [*git, "describe", "--tags", "--match=v*", "--abbrev=0", "HEAD"],
        capture_output=True,
        text=True,
    )
    if not described.returncode:
        return described.stdout.strip()
    newest = ["log", "-1", "-m", "--first-parent", "--diff-filter=A", "--format=%H"]
    paths = ["--", "*/migrations/0*.py"]
    commit = output_of([*git, *newest, *paths], failing="git log fails").strip()
    return output_of([*git, "rev-parse", f"{commit}^"], failing="git fails").strip()


def extract(commit: str, folder: Path) -> None:
    """Put a commit's files into a folder, with an environment for them."""
    folder.mkdir()
    archive = folder.with_suffix(".tar")
    output_of(
        ["git", "-C", ROOT, "archive", f"--output={archive}", commit],
        failing=f"git can't read {commit}",
    )
    output_of(["tar", "-xf", archive, "-C", folder], failing="tar fails")
    requirements = [path.relative_to(ROOT) for path in (PRODUCTION, TESTS, STACK)]
    theirs, ours = (
        [(code / path).read_bytes() for path in requirements] for code in (folder, ROOT)
    )
    if theirs == ours:
        (folder / ".venv").symlink_to(VENV.resolve())
    else:
        with step(f"Preparing the packages of {commit}"):
            output_of(
                [folder / "provisioning" / "test", "--prepare-only"],
                failing="They can't be installed",
            )


def break_schema(folder: Path) -> None:
    """Copy this code, with a migration that drops what old code reads."""
    ignored = shutil.ignore_patterns(*LEFT_OUT)
    shutil.copytree(ROOT, folder, ignore=ignored, symlinks=True)
    (folder / ".venv").symlink_to(VENV.resolve())
    migrations = folder / "survey" / "migrations"
    before = max(path.stem for path in migrations.glob("0*.py"))
    name = f"{int(before[:4]) + 1:04}_control.py"
    (migrations / name).write_text(CONTROL.format(before=before))


def run_on_schema_of(new: Path, old: Path, paths: list[str], *options: str) -> int:
    """Migrate with the code in `new`, and return pytest's status for that in `old`."""
    with private_servers(in_memory=True) as servers:
        environment = {
            **os.environ,
            "GROUNDSWELL_TEST_SERVERS": str(servers),
            "DJANGO_SETTINGS_MODULE": "settings.test",
        }

        def run(code: Path, script: str) -> str:
            return output_of(
                [code / PYTHON.relative_to(ROOT), "-c", script],
                failing="The schema can't be made",
                env=environment,
                cwd=code,
            )

        with step(f"Migrating with {new.name}"):
            run(new, CREATE)
            [dump] = servers.glob("migrated-*.sql")
            # Where the other code looks for what its own migrations make.
            dump.rename(run(old, PRINT_DUMP).strip().splitlines()[-1])
        command: list[str | Path] = [old / PYTHON.relative_to(ROOT), "-m", "pytest"]
        command += ["-m", "not alone and not browser", "-o", f"cache_dir={CACHE}"]
        return subprocess.run(
            [*command, *options, *paths],
            cwd=old,
            env=environment,
        ).returncode
