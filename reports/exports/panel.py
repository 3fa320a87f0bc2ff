"""Join the rows of one person in several administrations.

The lines of the stream are sorted three times, in files of their own: by respondent,
which hides the order of the roster; by person, which brings the lines of one person
together; and by the ID that they get in the end. Memory stays flat.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path

from django.utils.translation import gettext as _

from reports.exports.anonymise import Shuffle, random_id
from reports.exports.minimum_group import STEPS
from reports.exports.panel_groups import PanelGroups, PanelPaths, PathCounts
from reports.exports.panel_people import joined_ids, person_ids, refusal
from reports.exports.reading import REPORT_EVERY, Reading, place_cells
from reports.models.exports import Export
from survey.work.jobs import JobRefused, Progress

LETTER = "p"
# Respondents whose IDs are read at once.
BATCH = 2_000


def join_waves(
    export: Export, reading: Reading, folder: Path, progress: Progress
) -> None:
    """Give each person one ID, and say how many steps of their cells are shown.

    Raises JobRefused if an administration does not allow it.
    """
    for administration in reading.administrations:
        if message := refusal(administration):
            raise JobRefused(message)
    progress.begin_step(
        _("Finding people in several seasons."), total=reading.respondents
    )
    people = sort_by_person(export, reading, folder / "people", progress)
    minimum = max(wave.minimum_group for wave in reading.administrations)
    groups = PanelGroups(minimum)
    counts = PathCounts(folder / "paths")
    lines = folder / "people.lines"
    progress.begin_step(_("Counting the groups."), total=reading.respondents)
    paths = PanelPaths(reading.releases, place_cells(reading))
    count_paths(people, paths, counts, lines, progress)
    if minimum > 1:
        groups.divide_people(counts)
    progress.begin_step(_("Joining the seasons."), total=reading.respondents)
    shuffle = Shuffle(folder / "rows", letter=LETTER)
    reading.people, reading.joined_people = add_rows(shuffle, lines, groups, progress)
    lines.unlink()
    reading.shuffle, reading.panel = shuffle, groups


def sort_by_person(
    export: Export, reading: Reading, folder: Path, progress: Progress
) -> Shuffle:
    """Sort the lines by the ID that their person would have if all are joined."""
    administrations = {
        administration.pk: administration for administration in reading.administrations
    }
    # The job has refused a project that is over, and so has no key.
    project = export.project
    key = bytes(project.key) if project is not None and project.key else None
    people = Shuffle(folder, key=key, letter=LETTER)
    joined = joined_ids(
        {administration.role for administration in reading.administrations}
    )
    # Whoever has no ID any more is in one wave only, under a name nobody can guess.
    secret = secrets.token_bytes(32)
    for lines in batches_of_lines(reading.shuffle.bundles()):
        rests = [line.split(b"\t", 1)[1] for line in lines]
        respondents = [int(rest.split(b"\t", 2)[1]) for rest in rests]
        ids = person_ids(respondents, administrations, joined)
        for respondent, rest in zip(respondents, rests, strict=True):
            known = ids.get(respondent)
            name = known.as_bytes() if known else secret + b"%d" % respondent
            people.add(name, rest)
        progress.advance(len(lines))
    return people


def batches_of_lines(bundles: Iterable[list[bytes]]) -> Iterator[list[bytes]]:
    for bundle in bundles:
        for start in range(0, len(bundle), BATCH):
            yield bundle[start : start + BATCH]


def count_paths(
    people: Shuffle,
    paths: PanelPaths,
    counts: PathCounts,
    target: Path,
    progress: Progress,
) -> None:
    """Write all lines to a file, each after the path of its person and a tab."""
    with target.open("wb") as file:
        for bundle in people.bundles():
            for _, group in groupby(bundle, key=_id_of):
                lines = list(group)
                # JSON has no tab, and paths that begin alike are sorted together.
                path = json.dumps(paths.path_of(lines))
                counts.add(path)
                start = path.encode() + b"\t"
                file.writelines(start + line for line in lines)
            progress.advance(len(bundle))


def add_rows(
    shuffle: Shuffle, source: Path, groups: PanelGroups, progress: Progress
) -> tuple[int, int]:
    """Add each line with the number of STEPS that it shows.

    Return the number of IDs, and of those in several lines.
    """
    people = joined = 0
    with source.open("rb") as file:
        pairs = (line.split(b"\t", 1) for line in file)
        for path, group in groupby(pairs, key=lambda pair: pair[0]):
            shown = len(STEPS)
            if groups.minimum > 1:
                shown = groups.shown(tuple(json.loads(path))) - 1
            for key, lines in groupby((line for _, line in group), key=_id_of):
                rows = list(lines)
                joined += shown >= 0 and len(rows) > 1
                people += 1 if shown >= 0 else len(rows)
                for row in rows:
                    # A row that is not joined has an ID, and a place, of its own.
                    final = key if shown >= 0 else random_id(LETTER)
                    rest = row[:-1].split(b"\t", 1)[1]
                    shuffle.add_under(final, rest + b"\t%d\n" % max(shown, 0))
                    if shuffle.count % REPORT_EVERY == 0:
                        progress.advance(REPORT_EVERY)
    return people, joined


def _id_of(line: bytes) -> bytes:
    return line.split(b"\t", 1)[0]
