"""Request exports, and delete their files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict, Unpack

from django.db import DEFAULT_DB_ALIAS, transaction
from django.http import HttpRequest
from django.utils import timezone

from accounts import audit
from accounts.models import District, School, User
from reports.exports.job import FOLDER, make_export
from reports.models.exports import Export
from survey import jobs
from survey.files import delete_orphans, path_of
from survey.models import Administration


class ExportChoices(TypedDict, total=False):
    """Fields of an export that the person chooses."""

    format: str
    district: District | None
    school: School | None
    role: str
    finished_only: bool
    language: str
    labels: bool
    bom: bool
    identities: bool
    reason: str
    places: dict[str, object]


@transaction.atomic
def request_export(
    *,
    administrations: Sequence[Administration],
    by: User,
    request: HttpRequest | None = None,
    **choices: Unpack[ExportChoices],
) -> Export:
    """Record an export and start its job; the caller checks permissions."""
    # One transaction, so the job is sent only after the export is committed.
    export = Export.objects.create(by=by, **choices)
    export.administrations.set(administrations)
    export.job = jobs.start(make_export, subject_id=export.pk, by=by)
    export.save(update_fields=["job"])
    audit.record(
        "ask for export with names" if export.identities else "ask for export",
        by=by,
        request=request,
        subject=export,
        **export.place_for_audit(),
        after={
            "administrations": [
                administration.name for administration in administrations
            ],
            "format": export.format,
            "places": export.places,
            "role": export.role,
            "finished only": export.finished_only,
            "reason": export.reason,
        },
    )
    return export


def delete_file(
    export: Export, *, by: User | str, request: HttpRequest | None = None
) -> None:
    """Delete the file and the codebook; the record stays."""
    names = [name for name in (export.file_name, export.codebook_name) if name]
    with transaction.atomic():
        deleted = (
            Export.objects.filter(pk=export.pk)
            .exclude(file_name="")
            .update(file_name="", codebook_name="", deleted_at=timezone.now())
        )
        # A second request finds nothing to delete, and logs nothing.
        if deleted:
            audit.record(
                "delete export",
                by=by,
                request=request,
                subject=export,
                **export.place_for_audit(),
            )
    # After the commit, because a row must never name a file that is gone.
    for name in names:
        path_of(name).unlink(missing_ok=True)


def delete_old_exports() -> None:
    """Delete expired files, and files that no export names."""
    with_file = Export.objects.using(DEFAULT_DB_ALIAS).exclude(file_name="")
    for export in with_file.filter(expires_at__lte=timezone.now()):
        delete_file(export, by="delete_old_exports")

    def names_in_use() -> set[str]:
        rows = with_file.values_list("file_name", "codebook_name")
        return {name for row in rows for name in row}

    delete_orphans(FOLDER, names_in_use)
