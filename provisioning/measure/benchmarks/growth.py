"""Fill a partition as late in a wave, with millions of other people's responses."""

from __future__ import annotations

import math
import shutil
import time
from collections.abc import Sequence
from pathlib import Path

from provisioning.commands import Refusal
from provisioning.measure.benchmarks.stack import Stack, sql_file

# Row, key and log, on the primary and once more on the replica.
BYTES_PER_ROW = 2 * 130
SPARE_BYTES = 6 * 2**30
PER_SECOND = 120_000
# One person in eleven is left to be measured with: their rows then lie between
# those of the others, all over the key, as on the real day.
LEFT_OUT = 11
PEOPLE_AT_ONCE = 1000


def fill_with_others(
    stack: Stack, shape: Sequence[str], rows: int, *, measured: int
) -> None:
    details, _ = stack.open_rehearsal(*shape, "--respondents=1")
    items = [item["id"] for page in details["pages"] for item in page["items"]]
    administration = details["administration_id"]
    people = math.ceil(rows / len(items))
    size = rows * BYTES_PER_ROW / 2**30
    minutes = max(1, rows / PER_SECOND / 60)
    print(
        f"{rows / 1e6:,g} million responses of {people:,} people take {size:,.1f} GB,"
        f" replica included, and about {minutes:,.0f} minutes",
        flush=True,
    )
    check_disk(stack.folder, rows - stored_rows(stack, administration))
    invited = max(people * LEFT_OUT // (LEFT_OUT - 1), measured * LEFT_OUT) + 1
    stack.open_rehearsal(*shape, f"--respondents={invited}")
    fill(stack, administration, rows, items)


def check_disk(folder: Path, missing: int) -> None:
    needed = missing * BYTES_PER_ROW + SPARE_BYTES
    free = shutil.disk_usage(folder).free
    if missing > 0 and free < needed:
        raise Refusal(
            f"{missing / 1e6:,g} million responses more need {needed / 2**30:,.0f} GB"
            f" in {folder}, and {free / 2**30:,.0f} are free"
        )


def stored_rows(stack: Stack, administration: int) -> int:
    """Count responses; return an estimate where counting would take minutes."""
    table = f"survey_response_{administration}"
    [[estimate]] = stack.sql(
        f"SELECT reltuples::bigint FROM pg_class WHERE oid = '{table}'::regclass"  # noqa: S608
    )
    if int(estimate) > 5_000_000:
        return int(estimate)
    [[count]] = stack.sql(f"SELECT count(*) FROM {table}")  # noqa: S608
    return int(count)


def fill(stack: Stack, administration: int, wanted: int, items: Sequence[int]) -> int:
    """Add missing responses; an interrupted call is continued by the next one."""
    printed_at = time.monotonic()
    rows, after = stored_rows(stack, administration), 0
    while rows < wanted:
        statements = sql_file(
            "fill_partition",
            administration=administration,
            partition=f"survey_response_{administration}",
            items=",".join(map(str, items)),
            left_out=LEFT_OUT,
            people=min(PEOPLE_AT_ONCE, math.ceil((wanted - rows) / len(items))),
            after=after,
        )
        [[filled, last]] = stack.sql(
            statements, failing="The partition can't be filled"
        )
        after = int(last)
        if not int(filled):
            raise Refusal("There are too few people to fill the partition for")
        rows += int(filled) * len(items)
        if time.monotonic() - printed_at > 30:
            printed_at = time.monotonic()
            print(f"  {rows / 1e6:,.1f} million", flush=True)
    settle(stack, administration)
    return rows


def settle(stack: Stack, administration: int) -> None:
    """Vacuum and write everything out, so that no run pays for it."""
    stack.sql(
        f"VACUUM (ANALYZE) survey_response_{administration};\n"
        "VACUUM (ANALYZE) survey_respondent;\nCHECKPOINT;"
    )
