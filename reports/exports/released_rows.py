"""Read whose rows of a release are in a file, and write what they show into the lines.

From then on, the lines of a file without names have nothing that it must not show:
the place instead of the school, and no date of withdrawal. Their `about` is a JSON
array of grade, languages, subgroups, the language that is shown, and the number of
the class. People of a class show the same cells, but for dates.
"""

from __future__ import annotations

import io
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

import numpy as np
from django.db import connections
from numpy.typing import NDArray

from accounts.permissions import Places
from reports.answers.people import Ints
from reports.answers.selection import is_among
from reports.exports.batches import without_batches
from reports.exports.local_days import LocalDays
from reports.exports.minimum_group import (
    DATE_STEPS,
    SAVED_STEPS,
    DateGroups,
    saved_path,
    start_path,
)
from reports.exports.offered_versions import OfferedVersions
from reports.exports.release_mask import COARSENED, ReleaseMask, ShownCells
from reports.rates.rollup import AFTER_CLOSING
from reports.releases.changes import saved_since
from survey.models import Administration

# The progress as `SchoolPeople` has it, and whether the person opted out or declined.
PROGRESS = """
SELECT r.id, 4 * {at} + 2 * {finished} + {opted_out}
FROM survey_respondent r
WHERE r.administration_id = {administration} AND r.started_at IS NOT NULL AND {among}
"""
AT = {
    "postgresql": "floor(extract(epoch FROM coalesce(r.completed_at, r.started_at)))"
    "::bigint",
    "sqlite": "CAST(strftime('%s', coalesce(r.completed_at, r.started_at)) AS integer)",
}
# Bytes before the first row of a binary COPY, and after the last one.
BINARY_HEADER, BINARY_END = 19, 2
BINARY_ROW = np.dtype(
    [
        ("fields", ">i2"),
        *(("bytes id", ">i4"), ("id", ">i8")),
        *(("bytes progress", ">i4"), ("progress", ">i8")),
    ]
)


@dataclass
class ReleasedRows:
    """The people of a release at the places of a file.

    Only of those whose row `is_in` it, answers are written. The others are read to
    decide on dates, which are the same in every file.
    """

    mask: ReleaseMask
    # Sorted; without people who have no record any more, or have changed answers.
    keys: Ints
    is_in: NDArray[np.bool_]
    # What each person shows, and the language on the roster, as positions in `shown`.
    cells: Ints
    shown: Sequence[tuple[ShownCells, str]]
    # People whose rows would be in the file otherwise.
    opted_out: int
    changed: int
    # The other people of their batches.
    left_with_them: int
    # Those who were in it when the release was made.
    people: int
    dates: DateGroups | None
    # Whether the file has a row for each answer, with the day of saving.
    is_long: bool
    offered: OfferedVersions
    days: LocalDays
    # By position in `shown`.
    classes: Sequence[int]
    # By class: items whose answers are left out.
    masked_items: Sequence[frozenset[str]]
    _next: int = 0
    _abouts: dict[tuple[int, bytes], bytes] = field(default_factory=dict)

    @property
    def administration(self) -> Administration:
        return self.mask.administration

    @property
    def is_too_small(self) -> bool:
        """Test if the file would have had too few people on the day of the release."""
        return self.people < self.administration.minimum_group

    def keys_in_file(self) -> list[int]:
        keys: list[int] = self.keys[self.is_in].tolist()
        return keys

    def line_in_file(self, line: bytes) -> bytes | None:
        """Return a line of the stream as the file may show it; None if it is not in it.

        Lines come in the order of keys.
        """
        start, respondent, _, started, completed, _, about, rest = line.split(b"\t", 7)
        key = int(respondent)
        while self.keys[self._next] != key:
            self._next += 1
        position, is_in = int(self.cells[self._next]), bool(self.is_in[self._next])
        if self.dates:
            if self.is_long:
                path = self._saved_path(rest)
            else:
                path = self.date_path(
                    started.decode(), completed.decode(), json.loads(about)
                )
            self.dates.add(self.classes[position], path, is_in=is_in)
        if not is_in:
            return None
        place = self.shown[position][0].place.key.encode()
        about = self._about(position, about)
        return b"\t".join(
            (start, respondent, place, started, completed, b"", about, rest)
        )

    def _about(self, position: int, about: bytes) -> bytes:
        known = self._abouts.get((position, about))
        if known is None:
            cells, language = self.shown[position]
            subgroups = dict(zip(self.mask.subgroups, cells.subgroups, strict=True))
            known = json.dumps(
                [
                    cells.grade,
                    [language, json.loads(about)],
                    {
                        name: subgroup
                        for name, subgroup in subgroups.items()
                        if subgroup is not None
                    },
                    cells.language,
                    self.classes[position],
                ],
                ensure_ascii=False,
            ).encode()
            self._abouts[position, about] = known
        return known

    def dates_shown(
        self, group: int, started: str, completed: str, finished_in: str
    ) -> int:
        """Return how many of DATE_STEPS are shown of a person of a class."""
        if not self.dates:
            return len(DATE_STEPS)
        path = self.date_path(started, completed, finished_in)
        return self.dates.steps_shown(group, path)

    def date_path(
        self, started: str, completed: str, finished_in: str
    ) -> tuple[str, ...]:
        days = [
            self.days.at(int(time)) if time else "" for time in (started, completed)
        ]
        return start_path(finished_in, days, self.offered.period_of(started))

    def _saved_path(self, rest: bytes) -> tuple[str, ...]:
        # "{1700000000,…}", or blank without answers.
        saved = rest[:-1].rpartition(b"\t")[2][1:-1]
        if not saved:
            return ()
        times = [int(seconds) for seconds in saved.split(b",")]
        return saved_path(self.days.at(min(times)), self.days.at(max(times)))

    def coarsened(self) -> list[tuple[str, int]]:
        """Return what rows of the file do not show, and of how many people."""
        people = np.bincount(self.cells[self.is_in], minlength=len(self.shown)).tolist()
        counts: Counter[str] = Counter()
        for (cells, _), count in zip(self.shown, people, strict=True):
            place = cells.place
            for step, is_shown in (
                ("district", place.district is not None),
                ("school", place.school is not None),
                ("grade", cells.grade != COARSENED),
                ("language", cells.language != COARSENED),
                *(
                    (name, text != COARSENED)
                    for name, text in zip(
                        self.mask.subgroups, cells.subgroups, strict=True
                    )
                ),
            ):
                counts[step] += 0 if is_shown else count
        for steps, count in self.dates.summary() if self.dates else ():
            for step in steps:
                counts[step] += count
        return [(step, count) for step, count in counts.items() if count]


def released_rows(
    mask: ReleaseMask,
    places: Places,
    offered: OfferedVersions,
    days: LocalDays,
    *,
    finished_only: bool,
    is_long: bool,
) -> ReleasedRows:
    """Find the people of a file; at most 5 statements, in the snapshot that is open."""
    shown, (keys, shown_by, then, counted) = _people_in(mask, places)
    has_answered = (then % 2 == 1) | (not finished_only)
    now, opted_out = _progress(mask, keys)
    gone = (now < 0) | opted_out
    changed = ~gone & ((now != then) | _saved_after(mask, keys, counted))
    absent = gone | changed
    numbers: dict[ShownCells, int] = {}
    classes = [numbers.setdefault(cells, len(numbers)) for cells, _ in shown]
    leaves = without_batches(
        mask.administration,
        keys,
        np.array(classes, dtype=np.int64)[shown_by],
        absent,
    )
    is_read = (now >= 0) & ~changed
    dates = None
    if mask.administration.minimum_group > 1:
        steps = SAVED_STEPS if is_long else DATE_STEPS
        dates = DateGroups(mask.administration.minimum_group, steps)
    return ReleasedRows(
        mask,
        keys[is_read],
        (has_answered & ~leaves)[is_read],
        shown_by[is_read],
        shown,
        opted_out=int((gone & has_answered).sum()),
        changed=int((changed & has_answered).sum()),
        left_with_them=int((leaves & ~absent & has_answered).sum()),
        people=int(has_answered.sum()),
        dates=dates,
        is_long=is_long,
        offered=offered,
        days=days,
        classes=classes,
        masked_items=[cells.masked_items for cells in numbers],
    )


def _people_in(
    mask: ReleaseMask, places: Places
) -> tuple[list[tuple[ShownCells, str]], Ints]:
    """Return what people show, and four columns about each person, sorted by keys.

    The key, the position in what is shown, the progress, and when it was counted.
    """
    positions: dict[tuple[ShownCells, str], int] = {}
    parts = [np.zeros((4, 0), dtype=np.int64)]
    for school in mask.schools(places):
        people = school.people
        of_groups = np.array(
            [
                positions.setdefault((shown, group.language), len(positions))
                for shown, group in zip(school.cells, people.groups, strict=True)
            ],
            dtype=np.int64,
        )
        counted = np.full(len(people.ids), _microseconds(people.counted_at))
        shown_by = of_groups[people.group]
        parts.append(np.stack((people.ids, shown_by, people.progress[:-1], counted)))
    columns = np.concatenate(parts, axis=1)
    return list(positions), columns[:, np.argsort(columns[0])]


def _progress(mask: ReleaseMask, keys: Ints) -> tuple[Ints, NDArray[np.bool_]]:
    """Return the progress of today, -1 without a record, and who has opted out."""
    connection = connections[mask.alias]
    found_keys, progress = np.zeros((2, 0), dtype=np.int64)
    number = "({})::int" if connection.vendor == "postgresql" else "({})"
    statement = PROGRESS.format(
        at=AT[connection.vendor],
        finished=number.format("r.completed_at IS NOT NULL"),
        opted_out=number.format("coalesce(r.opted_out_at, r.declined_at) IS NOT NULL"),
        administration=int(mask.administration.pk),
        among=is_among(keys.tolist(), mask.alias),
    )
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            buffer = io.BytesIO()
            cursor.copy_expert(f"COPY ({statement}) TO STDOUT (FORMAT binary)", buffer)
            data = buffer.getbuffer()[BINARY_HEADER:-BINARY_END]
            rows = np.frombuffer(data, dtype=BINARY_ROW)
            found_keys, progress = rows["id"].astype(int), rows["progress"].astype(int)
        else:
            cursor.execute(statement)
            found_keys, progress = (
                np.array(cursor.fetchall(), dtype=int).reshape(-1, 2).T
            )
    now = np.full(len(keys), -1, dtype=np.int64)
    opted_out = np.zeros(len(keys), dtype=np.bool_)
    rows_of = np.searchsorted(keys, found_keys)
    now[rows_of], opted_out[rows_of] = progress // 2, progress % 2 == 1
    return now, opted_out


def _saved_after(mask: ReleaseMask, keys: Ints, counted: Ints) -> NDArray[np.bool_]:
    """Return who has saved since their school was counted."""
    saved_after = np.zeros(len(keys), dtype=np.bool_)
    closes_at = _microseconds(mask.administration.closes_at + AFTER_CLOSING)
    if not len(keys) or counted.min() >= closes_at:
        return saved_after
    since = datetime.fromtimestamp(counted.min() / 10**6, tz=UTC)
    saved = saved_since(mask.alias, mask.administration, since)
    position = {key: row for row, key in enumerate(keys.tolist()) if key in saved}
    for key, row in position.items():
        saved_after[row] = _microseconds(saved[key]) >= counted[row]
    return saved_after


def _microseconds(moment: datetime | None) -> int:
    return 0 if moment is None else int(moment.timestamp() * 10**6)
