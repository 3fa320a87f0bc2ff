"""Request exports, and delete their files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict, Unpack

from django.db import DEFAULT_DB_ALIAS, transaction
from django.db.models import Sum
from django.http import HttpRequest
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts import audit
from accounts.models import District, School, User
from reports.exports.job import FOLDER, make_export
from reports.models.exports import FILE_NAMES, Export
from reports.models.panels import PanelProject
from survey import jobs
from survey.administrations import ChangeBlocked
from survey.administrations.removal import before_removal
from survey.files import delete_orphans, path_of
from survey.models import Administration

# Of one user. Each export reads the replica and writes the shared disk.
MOST_UNFINISHED = 5
MOST_BYTES = 20 * 10**9


class ExportRefused(Exception):
    """The message tells the user why, and what to do."""


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
    blank_missing: list[str]
    identities: bool
    reason: str
    is_panel: bool
    places: dict[str, object]


def project_named(name: str, user: User) -> PanelProject | None:
    """Return a project of a user, ignoring case."""
    projects = PanelProject.objects.using(DEFAULT_DB_ALIAS)
    return projects.filter(by=user, name__iexact=name).first()


@transaction.atomic
def request_export(
    *,
    administrations: Sequence[Administration],
    by: User,
    project: str = "",
    request: HttpRequest | None = None,
    **choices: Unpack[ExportChoices],
) -> Export:
    """Record an export and start its job; the caller checks permissions.

    Raises ExportRefused if the user has too many unfinished exports or files.
    """
    # One transaction, so the job is sent only after the export is committed.
    # Requests of one user wait for each other, so each counts the one before.
    User.objects.select_for_update().get(pk=by.pk)
    refuse_above_quota(by)
    panel_project = None
    if project:
        panel_project = project_named(project, by) or PanelProject.objects.create(
            name=project, by=by
        )
    export = Export.objects.create(by=by, project=panel_project, **choices)
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
            **({"panel": project or "IDs of this file"} if export.is_panel else {}),
        },
    )
    return export


def refuse_above_quota(user: User) -> None:
    """Raise ExportRefused if the user should finish or delete exports first."""
    own = Export.objects.using(DEFAULT_DB_ALIAS).filter(by=user)
    if own.filter(job__ended_at=None, job__isnull=False).count() >= MOST_UNFINISHED:
        raise ExportRefused(
            _(
                "You have %(most_unfinished)s exports that are not ready yet."
                " Wait for one of them or cancel one, then create this"
                " export."
            )
            % {"most_unfinished": MOST_UNFINISHED}
        )
    kept = own.exclude(file_name="").aggregate(bytes=Sum("size"))["bytes"] or 0
    if kept >= MOST_BYTES:
        raise ExportRefused(
            _(
                "The files of your exports take %(kept)s GB, and you may keep"
                " %(most_bytes)s GB. Delete files that you no longer need,"
                " then create this export."
            )
            % {"kept": f"{kept / 10**9:.0f}", "most_bytes": f"{MOST_BYTES / 10**9:.0f}"}
        )


def delete_file(
    export: Export, *, by: User | str, request: HttpRequest | None = None
) -> None:
    """Delete the file and its codebooks; the record stays."""
    names = [name for name in (getattr(export, field) for field in FILE_NAMES) if name]
    with transaction.atomic():
        deleted = (
            Export.objects.filter(pk=export.pk)
            .exclude(file_name="")
            .update(**dict.fromkeys(FILE_NAMES, ""), deleted_at=timezone.now())
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


@before_removal
def delete_exports_of(administration: Administration) -> None:
    """Delete exports of an administration that is removed, and of no other one."""
    through = Export.administrations.through.objects
    others = through.exclude(administration=administration).values("export")
    exports = administration.exports.using(DEFAULT_DB_ALIAS)
    if exports.filter(job__isnull=False, job__ended_at=None).exists():
        raise ChangeBlocked(
            _("An export of it is being made. Try again when that has ended.")
        )
    alone = exports.exclude(pk__in=others)
    names = [name for row in alone.values_list(*FILE_NAMES) for name in row if name]
    alone.delete()

    def delete_files() -> None:
        for name in names:
            path_of(name).unlink(missing_ok=True)

    transaction.on_commit(delete_files)


def delete_old_exports() -> None:
    """Delete expired files, and files that no export names."""
    with_file = Export.objects.using(DEFAULT_DB_ALIAS).exclude(file_name="")
    for export in with_file.filter(expires_at__lte=timezone.now()):
        delete_file(export, by="delete_old_exports")

    def names_in_use() -> set[str]:
        rows = with_file.values_list(*FILE_NAMES)
        return {name for row in rows for name in row}

    delete_orphans(FOLDER, names_in_use)
