"""Keep files that users requested: quotas, and complete files or none.

Until the very end everything is in a folder of this run's own. So a repeated
job starts from nothing, and a worker that was thought dead but still runs
cannot disturb its successor.
"""

from __future__ import annotations

import errno
import secrets
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TypeVar

from django.db import DEFAULT_DB_ALIAS, transaction
from django.db.models import QuerySet, Sum
from django.http import Http404, HttpRequest, HttpResponseBase
from django.shortcuts import get_object_or_404
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts import audit
from accounts.http import CSV, StaffRequest
from accounts.models import User
from survey.models import Job
from survey.models.requested_file import ChecksummedFile, RequestedFile
from survey.work.files import (
    delete_files,
    delete_orphans,
    download,
    exists,
    keep,
    new_name,
    path_of,
)
from survey.work.job_kinds import JOB_KINDS, JobKind
from survey.work.jobs import Cancelled, JobRefused, Progress, TakenOver, job, start

# Of one user. Each job reads the replica and writes the shared disk.
MOST_UNFINISHED = 5
MOST_BYTES = 20 * 10**9
DISK_FULL = gettext_lazy(
    "The disk is full, so no file was made. Tell the system"
    " administrator, and try again."
)
Requested = TypeVar("Requested", bound=RequestedFile)
CONTENT_TYPES = {
    ".age": "application/octet-stream",
    ".csv": CSV,
    ".dta": "application/x-stata-dta",
    ".html": "text/html; charset=utf-8",
    ".parquet": "application/vnd.apache.parquet",
    ".pdf": "application/pdf",
    ".sav": "application/x-spss-sav",
    ".xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    ".zip": "application/zip",
    ".zsav": "application/x-spss-sav",
}


class QuotaExceeded(Exception):
    """The message tells the user why, and what to do."""


def refuse_above_quota(user: User) -> None:
    """Raise QuotaExceeded if the user should finish or delete files first.

    Inside a transaction, whose end the user's next request waits for. 1 statement,
    and 2 for each kind of file.
    """
    # So each request counts the one before.
    User.objects.select_for_update().get(pk=user.pk)
    unfinished = stored = 0
    for kind in ChecksummedFile.__subclasses__():
        requested = kind._default_manager.using(DEFAULT_DB_ALIAS).filter(by=user)
        unfinished += requested.filter(job__ended_at=None, job__isnull=False).count()
        with_file = requested.exclude(file_name="")
        stored += with_file.aggregate(bytes=Sum("size"))["bytes"] or 0
    if unfinished >= MOST_UNFINISHED:
        raise QuotaExceeded(
            _(
                "You have %(most_unfinished)s files that are not ready yet."
                " Wait for one of them or cancel one, then try again."
            )
            % {"most_unfinished": MOST_UNFINISHED}
        )
    if stored >= MOST_BYTES:
        raise QuotaExceeded(
            _(
                "Your files take %(kept)s GB, and you may keep %(most_bytes)s GB."
                " Delete files that you no longer need, then try again."
            )
            % {
                "kept": f"{stored / 10**9:.0f}",
                "most_bytes": f"{MOST_BYTES / 10**9:.0f}",
            }
        )


@transaction.atomic
def order(requested: Requested) -> Requested:
    """Store a request, and start the job that makes its file."""
    requested.save(force_insert=True)
    _start_making(requested, requested.by)
    return requested


@transaction.atomic
def order_again(
    requested: RequestedFile, *, request: StaffRequest, action: str
) -> None:
    """Start the job again after it was cancelled or failed, and record it."""
    is_running = requested.job is not None and not requested.job.is_over
    # A second click finds the job running, and starts no other.
    if not (is_running or requested.made_at or requested.deleted_at):
        _start_making(requested, request.user)
        record(action, requested, request)


def _start_making(requested: RequestedFile, by: User) -> None:
    requested.job = start(JOB_KINDS[requested.JOB], subject_id=requested.pk, by=by)
    requested.save(update_fields=["job"])


def record(action: str, requested: RequestedFile, request: StaffRequest) -> None:
    audit.record(
        action,
        by=request.user,
        request=request,
        subject=requested,
        **requested.audit_place(),
        after=requested.audit_facts(),
    )


def has_file(requested: RequestedFile) -> bool:
    """Return whether the file is there; the schedule may just have deleted it."""
    # E-mails with codes have none.
    name = requested.file_name
    return bool(name) and requested.is_ready and exists(name)


def own_file_or_404(
    files: QuerySet[Requested],
    request: StaffRequest,
    pk: int,
    *,
    is_allowed: Callable[[Requested], bool],
) -> Requested:
    """Return a file that this user ordered and may download now.

    Checked at every download, because roles end and files expire.
    """
    ordered = files.using(DEFAULT_DB_ALIAS).filter(by=request.user)
    available = ordered.exclude(file_name="").filter(expires_at__gt=timezone.now())
    requested = get_object_or_404(available, pk=pk)
    if not (is_allowed(requested) and has_file(requested)):
        raise Http404
    return requested


def send(
    requested: RequestedFile,
    request: StaffRequest,
    *,
    action: str,
    as_name: str,
    field: str = "file_name",
) -> HttpResponseBase:
    """Record a download and send the file, whose name gets its suffix.

    The caller has checked the permission.
    """
    name = getattr(requested, field)
    suffix = Path(name).suffix
    # Committed before the file is sent: no download without its entry.
    with transaction.atomic():
        record(action, requested, request)
    return download(name, as_name=as_name + suffix, content_type=CONTENT_TYPES[suffix])


def makes(
    kind: type[Requested], *related: str, waits: bool = False
) -> Callable[[Callable[[Requested, Path, Progress], None]], JobKind]:
    """Register a function that makes files of a kind, in a folder of its own.

    It ends with `keep_files`. The folder is on the disk of the private files.
    """

    def register(make: Callable[[Requested, Path, Progress], None]) -> JobKind:
        @job(kind.JOB, long=True, waits=waits)
        def run(job: Job, progress: Progress) -> None:
            # From the primary: on the replica the row may not have arrived yet.
            known = kind._default_manager.using(DEFAULT_DB_ALIAS)
            requested = known.select_related(*related).get(pk=job.subject_id or 0)
            # A repeated job keeps the first file.
            if requested.made_at is None:
                with _scratch_folder(requested) as folder:
                    make(requested, folder, progress)

        return run

    return register


@contextmanager
def _scratch_folder(requested: RequestedFile) -> Iterator[Path]:
    """Make a folder, and delete it at the end. Raises JobRefused on a full disk."""
    name = f"{requested.FOLDER}/.{requested.pk}-{secrets.token_hex(8)}/any"
    folder = path_of(name).parent
    try:
        yield folder
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise JobRefused(DISK_FULL) from error
        raise
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def keep_files(
    requested: RequestedFile,
    paths: Mapping[str, tuple[Path, str]],
    progress: Progress,
    *,
    after: Mapping[str, object] | None = None,
    **fields: object,
) -> None:
    """Move files out of the scratch folder, and record them in one transaction.

    `paths` has a path and a suffix for each field with the name of a file, `after`
    what the audit log says, and `fields` are stored.
    """
    made_at = timezone.now()
    facts = requested.facts_of(paths["file_name"][0], made_at)
    folder = requested.FOLDER
    names = {field: new_name(folder, suffix) for field, (_, suffix) in paths.items()}
    for field, (path, _suffix) in paths.items():
        keep(path, names[field])
    try:
        with transaction.atomic():
            rows = type(requested)._default_manager.filter(pk=requested.pk)
            rows.filter(made_at=None).update(
                made_at=made_at, **facts, **names, **fields
            )
            if requested.MADE:
                audit.record(
                    requested.MADE,
                    by=requested.by,
                    subject=requested,
                    **requested.audit_place(),
                    after={**(after or {}), "sha256": facts["sha256"]},
                )
            progress.confirm()
    except (TakenOver, Cancelled):
        # After any other error it is not known whether the transaction was
        # committed. A file without a row is swept up later, but a row without
        # its file would be wrong for good.
        delete_files(*names.values())
        raise


def delete_file(
    requested: RequestedFile, *, by: User | str, request: HttpRequest | None = None
) -> None:
    """Delete the file and its codebooks, and keep the record."""
    names = [getattr(requested, field) for field in requested.FILE_NAMES]
    with transaction.atomic():
        rows = type(requested)._default_manager.filter(pk=requested.pk)
        deleted = rows.filter(deleted_at=None).update(
            **dict.fromkeys(requested.FILE_NAMES, ""), deleted_at=timezone.now()
        )
        # A second request finds nothing to delete, and logs nothing.
        if deleted and requested.DELETED:
            audit.record(
                requested.DELETED,
                by=by,
                request=request,
                subject=requested,
                **requested.audit_place(),
            )
    # After the commit, because a row must never name a file that is gone.
    delete_files(*names)


def delete_expired(*kinds: type[RequestedFile]) -> None:
    """Delete expired files of these kinds, and files that no row names."""
    for kind in kinds:
        for requested in kind.expired().using(DEFAULT_DB_ALIAS):
            delete_file(requested, by="delete_old_exports")
        delete_orphans(kind.FOLDER, partial(_names_in_use, kind))


def _names_in_use(kind: type[RequestedFile]) -> set[str]:
    with_file = kind._default_manager.using(DEFAULT_DB_ALIAS).exclude(file_name="")
    names = with_file.filter(deleted_at=None).values_list(*kind.FILE_NAMES)
    return set(chain(*names))
