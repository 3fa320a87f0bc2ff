"""Asking for an export, and what becomes of its file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.db import DEFAULT_DB_ALIAS, transaction
from django.http import HttpRequest
from django.utils import timezone

from accounts import audit
from accounts.models import User
from reports.exports.job import FOLDER, make_export
from reports.models.exports import Export
from survey import jobs
from survey.files import delete_orphans, path_of
from survey.models import Administration


@transaction.atomic
def ask_for_export(
    *,
    administrations: Sequence[Administration],
    by: User,
    request: HttpRequest | None = None,
    **choices: Any,
) -> Export:
    """`choices` are fields of the export; whether somebody may is the caller's."""
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
            "administrations": [one.name for one in administrations],
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
    """The file and the codebook; the record stays."""
    names = [name for name in (export.file_name, export.codebook_name) if name]
    with transaction.atomic():
        deleted = (
            Export.objects.filter(pk=export.pk)
            .exclude(file_name="")
            .update(file_name="", codebook_name="", deleted_at=timezone.now())
        )
        if deleted:
            audit.record(
                "delete export",
                by=by,
                request=request,
                subject=export,
                **export.place_for_audit(),
            )
    # After the commit: a row must never name a file that is gone.
    for name in names:
        path_of(name).unlink(missing_ok=True)


def delete_old_exports() -> None:
    """For the time table: files whose days are over, and what nobody names."""
    known = Export.objects.using(DEFAULT_DB_ALIAS).exclude(file_name="")
    for export in known.filter(expires_at__lte=timezone.now()):
        delete_file(export, by="delete_old_exports")
    delete_orphans(FOLDER, _named)


def _named() -> set[str]:
    known = Export.objects.using(DEFAULT_DB_ALIAS).exclude(file_name="")
    rows = known.values_list("file_name", "codebook_name")
    return {name for row in rows for name in row}
