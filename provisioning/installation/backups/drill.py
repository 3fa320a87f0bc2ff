"""Restore a database from its backups, and compare it with what was recorded.

Starts servers of its own with made-up responses, backs them up, saves more, drops a
table, deletes a wave's administration, and restores to the second before, into another
folder. Then it compares all tables with their counts and checksums from before, puts
both losses back into the running database, and compares again. Two negative controls
have to be noticed: a restore to after the losses, and a missing file of the log.
"""

from __future__ import annotations

import json
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from provisioning.commands import (
    Refusal,
    command_parser,
    conclude,
    output_of,
    scratch_folder,
    step,
)
from provisioning.installation.backups.operations import (
    archive_running_log,
    keep_result,
    read_host,
)
from provisioning.installation.backups.records import (
    archive_log,
    count_tables,
    differences,
    record_replica,
)
from provisioning.installation.backups.repository import Repository
from provisioning.installation.backups.restoring import (
    backup_before,
    restored_database,
    until_point,
    until_time,
)
from provisioning.installation.postgresql import run_sql
from provisioning.installation.stack_folder import stack_folder
from provisioning.measure.benchmarks.answered_survey import answer_items
from provisioning.measure.benchmarks.stack import (
    Application,
    private_application,
    sql_file,
)
from provisioning.measure.benchmarks.timed_requests import log_in, save_beside, served

REPLICA_PORT = 5433
ITEMS = 20
# Per cent, while a backup runs.
MOST_SAVES_LOST = 3.0
COPY_ROWS = Path(__file__).with_name("copy_rows.sh")
# Of the administration 'measured': a partition with its responses is dropped, its
# people are deleted, and so is the wave.
MEASURED = "SELECT id FROM survey_administration WHERE name = 'measured'"
DESTROY = """
SET lock_timeout = '10s';
SELECT format('DROP TABLE survey_response_%s', id) FROM survey_administration
WHERE name = 'measured' \\gexec
DELETE FROM survey_respondent WHERE administration_id =
    (SELECT id FROM survey_administration WHERE name = 'measured');
UPDATE survey_administration SET wave_id = NULL WHERE name = 'measured';
DELETE FROM survey_wave WHERE name = 'measured';
"""
# Statistics of sessions that are still connected may be a second old.
WRITTEN_ROWS = """
SELECT sum(n_tup_ins + n_tup_upd)::bigint FROM pg_stat_user_tables
WHERE relname LIKE 'survey\\_response%'
"""
JOIN_WAVE = """
UPDATE survey_administration a SET wave_id = w.id FROM survey_wave w
WHERE a.name = 'measured' AND w.name = 'measured';
"""


def main() -> int:
    parser = command_parser(
        __doc__,
        responses=(100_000, "made up"),
        seconds=(20.0, "that each of the rounds lasts"),
    )
    rounds = "also measure page saves beside full backups and without, so often (0)"
    parser.add_argument("--rounds", type=int, default=0, help=rounds)
    parser.add_argument(
        "--stack",
        action="store_true",
        help="instead, restore the last backup of the stack that runs here, beside it,"
        " to the point at which its tables were recorded; the result is in /metrics",
    )
    options = parser.parse_args()
    if options.stack:
        return drill_stack(stack_folder())
    with private_application(
        backs_up=True, GROUNDSWELL_TEST_REPLICA=str(REPLICA_PORT)
    ) as application:
        rehearsal = make_responses(application, options.responses)
        saves = {}
        if options.rounds:
            saves = measure_saves(
                application, rehearsal, rounds=options.rounds, seconds=options.seconds
            )
        result = drill(application) | saves
    expected = {"restored": True, "equal": True, "recovered": True}
    expected |= {"equal_after_loss": False, "restored_without_log": False}
    wrong = [name for name, value in expected.items() if result[name] is not value]
    if result.get("saves_lost_percent", 0) > MOST_SAVES_LOST:
        wrong.append("saves_lost_percent")
    return conclude(result, [f"{name} is {result[name]}" for name in wrong])


def measure_saves(
    application: Application,
    rehearsal: tuple[dict[str, Any], list[str]],
    *,
    rounds: int,
    seconds: float,
) -> dict[str, Any]:
    """Measure page saves at half of the limit, with and without a full backup."""
    repository = Repository.of_stack(application.run)

    def back_up() -> float:
        began = time.monotonic()
        repository.back_up("full", from_standby=True)
        return time.monotonic() - began

    application.collect_static()
    archived, [[written]] = archived_bytes(application), application.sql(WRITTEN_ROWS)
    with served(application, "--workers=2") as target:
        saves = save_beside(
            back_up,
            name="full backup",
            target=target,
            students=log_in(*rehearsal, target),
            rounds=rounds,
            seconds=seconds,
        )
    log_bytes = archived_bytes(application) - archived
    [[total]] = application.sql(WRITTEN_ROWS)
    rows = int(total) - int(written)
    return {
        "log_bytes_per_response": round(log_bytes / max(1, rows)),
        "saves_alone": round(saves.alone),
        "saves_during_backup": round(saves.during),
        "saves_lost_percent": round(saves.lost_percent, 1),
    }


def archived_bytes(application: Application) -> int:
    """Archive all of the log, and return its compressed and encrypted size."""
    archive_log(run=application.run)
    files = application.run.glob("backups/database/archive/**/*")
    return sum(file.stat().st_size for file in files if file.is_file())


def drill_stack(folder: Path) -> int:
    """Restore the last backup with a record to its point, and compare all tables."""
    repository, began = Repository.of_stack(folder), datetime.now(UTC)
    result: dict[str, Any] = {"restored": False, "equal": False}
    try:
        recorded = [backup for backup in repository.backups() if backup.record]
        if not recorded:
            raise Refusal("No backup has a record; make one: provisioning/stack backup")
        backup = recorded[-1]
        record: dict[str, Any] = backup.record or {}
        result |= {"label": backup.label, "bytes": backup.size}
        result["recorded"] = record["at"]
        archive_running_log(folder, read_host(folder))
        until = until_point(backup, record["lsn"])
        with (
            scratch_folder(folder / "data") as place,
            restored_database(repository, place, until) as run,
        ):
            result["restored"] = True
            with step("Comparing all tables"):
                sentences = differences(record["tables"], count_tables(run))
            result["differences"] = sentences[:20]
            result["equal"] = report(sentences)
    except Refusal as refusal:
        result["error"] = str(refusal)
        print(f"drill_restore: {refusal}", file=sys.stderr, flush=True)
    result["seconds"] = round((datetime.now(UTC) - began).total_seconds(), 1)
    keep_result(folder, "drill", began, result, ok=result["equal"])
    print(json.dumps(result))
    return int(not result["equal"])


def make_responses(
    application: Application, count: int
) -> tuple[dict[str, Any], list[str]]:
    """Create made-up responses, and return a rehearsal of eight people."""
    people = max(20, count // ITEMS)
    schools = min(20, people // 20) if people < 400 else people // 200 + 1
    shape = ("--respondents=8", "--pages=4", f"--items={ITEMS // 4}")
    rehearsal = answer_items(application, *shape, people=people, schools=schools)
    application.sql("INSERT INTO survey_wave (name) VALUES ('measured')")
    application.sql(JOIN_WAVE)
    return rehearsal


def drill(application: Application) -> dict[str, Any]:
    run = application.run
    repository = Repository.of_stack(run)
    began = time.monotonic()
    with step("Making a full backup"):
        full = repository.back_up("full", from_standby=True)
    full_seconds = time.monotonic() - began
    application.sql(sql_file("save_answers", count=1000))
    with step("Making an incremental backup"):
        incremental = repository.back_up("incr", from_standby=True)
    application.sql(sql_file("save_answers", count=2000))
    with step("Recording rows and checksums"):
        file = archive_log(run=run)
        record = record_replica(run, REPLICA_PORT)
    tables = record["tables"]
    result: dict[str, Any] = {
        "restored": False,
        "equal": False,
        "seconds": 0.0,
        "responses": int(tables["survey_response"][0]),
        "database_bytes": full.size,
        "full_backup_bytes": full.added,
        "full_backup_seconds": round(full_seconds, 1),
        "incremental_bytes": incremental.added,
    }
    # To the second.
    time.sleep(1.1)
    before = datetime.now(UTC).replace(microsecond=0)
    time.sleep(1)
    with step("Dropping a table, and destroying a wave"):
        application.sql(DESTROY)
    with step("Archiving the log"):
        time.sleep(1.1)
        after = datetime.now(UTC)
        archive_log(run=run)
    began = time.monotonic()
    with scratch_folder() as folder:
        backup = backup_before(repository.backups(), before)
        with restored_database(repository, folder, until_time(backup, before)) as place:
            result["seconds"] = round(time.monotonic() - began, 1)
            result["restored"] = True
            with step("Comparing all tables"):
                sentences = differences(tables, count_tables(place))
            result["equal"] = report(sentences)
            with step("Putting back what was lost"):
                put_back(place, run)
            result["recovered"] = report(differences(tables, count_tables(run)))
    result["equal_after_loss"] = equal_after_loss(repository, after, tables)
    result["restored_without_log"] = restored_without_log(repository, run, file, before)
    return result


def report(sentences: list[str]) -> bool:
    for sentence in sentences:
        print(f"  {sentence}", flush=True)
    return not sentences


def put_back(restored: Path, running: Path) -> None:
    """Copy what was lost into the running database, as docs/guides/backups.md says."""
    [[key]] = run_sql(MEASURED, run=restored)
    run_sql(f"SELECT survey_add_partition({key})", run=running)
    for table, where in (
        ("survey_wave", "name = 'measured'"),
        ("survey_respondent", f"administration_id = {key}"),
        (f"survey_response_{key}", "true"),
    ):
        output_of(
            [COPY_ROWS, restored, running, table, where],
            failing=f"{table} can't be copied",
        )
    run_sql(JOIN_WAVE, run=running)


# Negative controls: both have to be False.


def equal_after_loss(
    repository: Repository, after: datetime, recorded: dict[str, list[str]]
) -> bool:
    print("Negative control: a restore to after the losses", flush=True)
    backup = backup_before(repository.backups(), after)
    with (
        scratch_folder() as folder,
        restored_database(repository, folder, until_time(backup, after)) as place,
    ):
        return report(differences(recorded, count_tables(place)))


def restored_without_log(
    repository: Repository, folder: Path, file: str, before: datetime
) -> bool:
    """Hide a file of the log, and return whether it is restored nevertheless."""
    print(f"Negative control: without {file} of the log", flush=True)
    [archived] = folder.glob(f"backups/database/archive/*/*/*/{file}-*")
    hidden = archived.rename(archived.with_name(f"hidden-{archived.name}"))
    backup = backup_before(repository.backups(), before)
    try:
        with (
            scratch_folder() as place,
            restored_database(repository, place, until_time(backup, before)),
        ):
            return True
    except Refusal as refusal:
        print(f"  refused: {refusal}", flush=True)
        return False
    finally:
        hidden.rename(archived)
