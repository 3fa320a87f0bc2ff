"""Making the file: read in one moment, shuffled, written, counted, kept.

Whatever a run leaves lies in a folder of its own until the very end, so a job
that is begun again begins at nothing, and one that was taken for dead and
lives cannot disturb the next.
"""

from __future__ import annotations

import errno
import hashlib
import json
import logging
import os
import secrets
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from django.db import DEFAULT_DB_ALIAS, transaction
from django.utils import timezone

from accounts import audit
from accounts.models import School
from accounts.permissions import Permissions
from reports.exports import codebook
from reports.exports.anonymise import Shuffle
from reports.exports.columns import Version, columns_of
from reports.exports.csv_file import CsvFile
from reports.exports.long_rows import LongRows
from reports.exports.missing import like_codes, missing_codes
from reports.exports.rows import IDENTITY, Plan, Rows
from reports.exports.snapshot import Selection, snapshot
from reports.exports.wide_rows import WideRows
from reports.exports.xlsx_file import MOST_COLUMNS, MOST_ROWS, XlsxFile
from reports.models.exports import KEPT, Export
from survey.files import new_name, path_of
from survey.jobs import Cancelled, JobRefused, Progress, TakenOver, job
from survey.models import Administration, Identity, Job, PublishedSurvey

log = logging.getLogger(__name__)

FOLDER = "exports"
# Bytes of the stream that are worked on at once: some thousand respondents of
# a usual survey, whose answers take 100 times as much in the interpreter.
AT_ONCE = 2**20
TELL_EVERY = 500
RIGHTS_CHANGED = (
    "Since this export was asked for, what you may see has changed. Nothing was"
    " kept. Ask for it again: it will hold what you may see now."
)
NO_ROOM = (
    "There is no room left on the disk for this file. Nothing was kept. Tell an"
    " engineer, and start it again."
)


class DoesNotAddUp(Exception):
    """The file has not what the database counted in the same moment."""


@dataclass
class Made:
    """What became of it; `counted` by the database."""

    rows: Rows
    respondents: int
    responses: int


@job("export.make", long=True)
def make_export(job: Job, progress: Progress) -> None:
    export = _asked(job)
    if export.made_at is not None:
        return
    _check_rights(export)
    with _folder(export) as folder:
        try:
            made = _make(export, folder, progress)
            _keep(export, folder, made, progress)
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                raise JobRefused(NO_ROOM) from error
            raise
    # Not told by `says`: it is kept, whoever asks to stop it now.
    progress.message = f"Ready: {made.rows.rows:,} rows."
    progress.done = progress.total = made.respondents


def _asked(job: Job) -> Export:
    known = Export.objects.using(DEFAULT_DB_ALIAS).select_related("by")
    return known.get(pk=job.subject_id or 0)


def _check_rights(export: Export) -> None:
    # Who asked may have been dismissed since.
    if not export.is_for(Permissions(export.by)):
        raise JobRefused(RIGHTS_CHANGED)


@contextmanager
def _folder(export: Export) -> Iterator[Path]:
    name = f"{FOLDER}/.{export.pk}-{secrets.token_hex(8)}/lines"
    folder = path_of(name).parent
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _make(export: Export, folder: Path, progress: Progress) -> Made:
    administrations = list(
        export.administrations.select_related("published__survey__corrects").order_by(
            "-opens_at", "pk"
        )
    )
    selection = Selection(administrations, export.covered, export.finished_only)
    versions = versions_of(administrations)
    shuffle, seen = Shuffle(folder), _Seen()
    with snapshot(selection) as now:
        people = now.people()
        _check_size(export, people)
        progress.begin_step("Reading the responses.", total=people)

        def take(line: bytes) -> None:
            seen.see(line)
            shuffle.add(line.split(b"\t", 2)[1], line)
            if shuffle.count % TELL_EVERY == 0:
                progress.advance(TELL_EVERY)

        long = export.format == Export.Format.LONG
        now.read(take, versions, saved=long)
        progress.begin_step("Counting the responses.", total=people)
        responses = now.responses()
    plan = Plan(
        columns=columns_of(versions.values()),
        administrations={one.pk: one for one in administrations},
        schools=_schools(seen.schools),
        attributes=sorted(seen.attributes),
        missing=missing_codes(seen.like_codes | _codes_of(versions.values())),
        language=export.language,
        labels=export.labels,
        zone=timezone.get_default_timezone(),
        identities=_identities if export.identities else None,
    )
    progress.begin_step("Writing the file.", total=people)
    rows = _written(export, folder, plan, shuffle, progress)
    made = Made(rows, people, responses)
    _reconcile(made)
    codebook.write(_codebook(folder), export=export, rows=rows)
    return made


def versions_of(administrations: Iterable[Administration]) -> dict[str, Version]:
    """By digest, the newest first."""
    found: list[PublishedSurvey] = [one.published for one in administrations]
    found.sort(key=lambda one: one.published_at, reverse=True)
    return {
        one.digest: Version(one.digest, json.loads(one.definition)) for one in found
    }


class _Seen:
    """What has to be known of all lines before the first row can be written."""

    def __init__(self) -> None:
        self.schools: set[int] = set()
        self.attributes: set[str] = set()
        self.like_codes: set[int] = set()
        self._known: set[bytes] = set()

    def see(self, line: bytes) -> None:
        self.like_codes |= like_codes(line)
        _, _, school, _, _, _, about, _ = line.split(b"\t", 7)
        self.schools.add(int(school))
        if not about.endswith(b", {}]"):
            self.attributes.update(json.loads(about)[2])


def _codes_of(versions: Iterable[Version]) -> set[int]:
    """Options that nobody has chosen yet are taken as well."""
    return {
        number
        for version in versions
        for item in version.items.values()
        for option in version.options(item)
        for number in like_codes(f"\x1f{option['value']}".encode())
    }


def _schools(keys: set[int]) -> dict[int, tuple[str, str, str, str]]:
    known = School.objects.using(DEFAULT_DB_ALIAS).filter(pk__in=keys)
    rows = known.values_list("pk", "district__code", "district__name", "code", "name")
    return {key: (one, two, three, four) for key, one, two, three, four in rows}


def _identities(respondents: Sequence[int]) -> Mapping[int, Sequence[str]]:
    """From the primary: whoever reads the replica for reports sees no names."""
    known = Identity.objects.using(DEFAULT_DB_ALIAS).filter(respondent__in=respondents)
    return {
        key: tuple("" if cell is None else str(cell) for cell in cells)
        for key, *cells in known.values_list("respondent", *IDENTITY)
    }


def _check_size(export: Export, people: int) -> None:
    if export.format == Export.Format.XLSX and people + 1 > MOST_ROWS:
        raise JobRefused(too_many_rows(people))


def too_many_rows(people: int) -> str:
    return (
        f"An Excel sheet has room for {MOST_ROWS - 1:,} respondents, and these are"
        f" {people:,}. Choose CSV, or one district at a time."
    )


def too_many_columns(count: int) -> str:
    return (
        f"An Excel sheet has room for {MOST_COLUMNS:,} columns, and these are"
        f" {count:,}. Choose CSV, or fewer administrations."
    )


def _written(
    export: Export, folder: Path, plan: Plan, shuffle: Shuffle, progress: Progress
) -> Rows:
    path = _draft(folder)
    shape = LongRows if export.format == Export.Format.LONG else WideRows
    if export.format == Export.Format.XLSX:
        headers = WideRows.headers_of(plan)
        if len(headers) > MOST_COLUMNS:
            raise JobRefused(too_many_columns(len(headers)))
        rows: Rows = shape(plan, XlsxFile(path, headers, scratch=folder))
        _write_all(rows, shuffle, progress)
        rows.writer.close()
    else:
        with path.open("wb") as file:
            headers = shape.headers_of(plan)
            rows = shape(plan, CsvFile(file, headers, bom=export.bom))
            _write_all(rows, shuffle, progress)
            file.flush()
            os.fsync(file.fileno())
    return rows


def _write_all(rows: Rows, shuffle: Shuffle, progress: Progress) -> None:
    for lines in _gathered(shuffle.bundles()):
        rows.write(lines)
        progress.advance(len(lines))


def _gathered(bundles: Iterable[list[bytes]]) -> Iterator[list[bytes]]:
    """As many at once as are worked on well: bundles may be tiny, or large."""
    lines: list[bytes] = []
    size = 0
    for bundle in bundles:
        for line in bundle:
            lines.append(line)
            size += len(line)
            if size >= AT_ONCE:
                yield lines
                lines, size = [], 0
    if lines:
        yield lines


def _reconcile(made: Made) -> None:
    rows = made.rows
    if (rows.respondents, rows.responses) != (made.respondents, made.responses):
        raise DoesNotAddUp(
            f"{rows.respondents} respondents and {rows.responses} responses were"
            f" written, of {made.respondents} and {made.responses}."
        )


def _draft(folder: Path) -> Path:
    return folder / "file"


def _codebook(folder: Path) -> Path:
    return folder / "codebook.html"


def _keep(export: Export, folder: Path, made: Made, progress: Progress) -> None:
    draft = _draft(folder)
    with draft.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    size = draft.stat().st_size
    names = new_name(FOLDER, export.ending), new_name(FOLDER, ".html")
    for one, name in zip((draft, _codebook(folder)), names, strict=True):
        one.chmod(0o600)
        one.rename(path_of(name))
    try:
        with transaction.atomic():
            _write_down(export, made, names, size=size, sha256=digest)
            progress.confirm()
    except (TakenOver, Cancelled):
        # After any other error nobody knows whether it was committed: a file
        # without a row is swept up, a row without its file would be a lie.
        for name in names:
            path_of(name).unlink(missing_ok=True)
        raise


def _write_down(
    export: Export, made: Made, names: tuple[str, str], *, size: int, sha256: str
) -> None:
    now = timezone.now()
    Export.objects.filter(pk=export.pk, made_at=None).update(
        made_at=now,
        expires_at=now + KEPT,
        file_name=names[0],
        codebook_name=names[1],
        size=size,
        rows=made.rows.rows,
        respondents=made.respondents,
        responses=made.responses,
        sha256=sha256,
    )
    audit.record(
        "make export",
        by=export.by,
        subject=export,
        **export.place_for_audit(),
        after={
            "respondents": made.respondents,
            "responses": made.responses,
            "sha256": sha256,
            "identities": export.identities,
        },
    )
