"""Fill a partition as late in a wave, with millions of other people's responses."""

from __future__ import annotations

import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass

from provisioning.benchmarks.stack import Stack
from provisioning.commands import Refusal

# Row, key and log, on the primary and once more on the replica.
BYTES_PER_ROW = 2 * 130
SPARE_BYTES = 6 * 2**30
PER_SECOND = 120_000
# One person in eleven is left to be measured with: their rows then lie between
# those of the others, all over the key, as on the real day.
LEFT_OUT = 11
PEOPLE_AT_ONCE = 1000

FILL = """
BEGIN;
SET LOCAL lock_timeout = '10s';
CREATE TEMPORARY TABLE filled ON COMMIT DROP AS
    SELECT id FROM survey_respondent
    WHERE administration_id = {administration} AND id > {after} AND id % {left_out} <> 0
      AND started_at IS NULL
    ORDER BY id LIMIT {people};
INSERT INTO survey_response_{administration}
    (administration_id, respondent_id, item_id, state, value, revision, saved_at)
SELECT {administration}, filled.id, item,
       CASE WHEN skipped THEN 's' ELSE 'a' END,
       CASE WHEN NOT skipped THEN (1 + floor(random() * 5))::int::text END,
       1700000000000000 + filled.id, now() - random() * interval '20 days'
FROM filled
CROSS JOIN unnest(ARRAY[{items}]::bigint[]) item
CROSS JOIN LATERAL (SELECT random() + 0 * (filled.id + item) < 0.03 AS skipped) drawn;
UPDATE survey_respondent SET started_at = now(), completed_at = now()
WHERE id IN (SELECT id FROM filled);
SELECT count(*), coalesce(max(id), 0) FROM filled;
COMMIT;
"""


@dataclass(frozen=True, slots=True)
class Growth:
    rows: int
    items: Sequence[int]

    @property
    def people(self) -> int:
        """How many people these responses belong to."""
        return -(-self.rows // len(self.items))

    def invited(self, measured: int) -> int:
        """Return how many people are needed to leave so many to measure with."""
        return max(self.people * LEFT_OUT // (LEFT_OUT - 1), measured * LEFT_OUT) + 1

    def announcement(self) -> str:
        size = self.rows * BYTES_PER_ROW / 2**30
        minutes = max(1, self.rows / PER_SECOND / 60)
        return (
            f"{self.rows / 1e6:,g} million responses of {self.people:,} people take"
            f" {size:,.1f} GB, replica included, and about {minutes:,.0f} minutes"
        )


def check_disk(stack: Stack, growth: Growth, stored: int) -> None:
    needed = max(0, growth.rows - stored) * BYTES_PER_ROW + SPARE_BYTES
    free = shutil.disk_usage(stack.folder).free
    if stored < growth.rows and free < needed:
        raise Refusal(
            f"{growth.announcement()}; {needed / 2**30:,.0f} GB must be free in"
            f" {stack.folder}, and {free / 2**30:,.0f} are"
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


def fill(stack: Stack, administration: int, growth: Growth) -> int:
    """Add missing responses; an interrupted call is continued by the next one."""
    printed_at = time.monotonic()
    rows, after = stored_rows(stack, administration), 0
    check_disk(stack, growth, rows)
    while rows < growth.rows:
        people = min(PEOPLE_AT_ONCE, -(-(growth.rows - rows) // len(growth.items)))
        statements = FILL.format(
            administration=administration,
            after=after,
            left_out=LEFT_OUT,
            people=people,
            items=", ".join(map(str, growth.items)),
        )
        [[filled, last]] = stack.sql(
            statements, failing="The partition can't be filled"
        )
        after = int(last)
        if not int(filled):
            raise Refusal("There are too few people to fill the partition for")
        rows += int(filled) * len(growth.items)
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
