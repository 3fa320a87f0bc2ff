"""Request exports."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import chain
from typing import TypedDict, Unpack

from django.db import DEFAULT_DB_ALIAS, transaction
from django.http import HttpRequest
from django.utils.translation import gettext as _

from accounts import audit
from accounts.models import District, School, User
from reports.models.exports import Export
from reports.models.panels import PanelProject
from survey.fieldwork.administrations import ChangeBlocked
from survey.fieldwork.administrations.removal import before_removal
from survey.models import Administration
from survey.work.files import delete_files
from survey.work.requested_files import order, refuse_above_quota


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
    further_formats: list[str]
    recipient: str
    sealed_password: str


def project_named(name: str, user: User) -> PanelProject | None:
    """Return a project of a user, ignoring case."""
    projects = PanelProject.objects.using(DEFAULT_DB_ALIAS)
    return projects.filter(by=user, name__iexact=name).first()


@transaction.atomic
def request_export(
    *,
    administrations: Sequence[Administration],
    by: User,
    project: str | PanelProject = "",
    request: HttpRequest | None = None,
    command: str = "",
    **choices: Unpack[ExportChoices],
) -> Export:
    """Record an export and start its job; the caller checks permissions.

    `command` is the name of the command that asks for it in the name of the user.
    `project` is an approved project, or the name that a user gives to a project.

    Raises QuotaExceeded if the user has too many unfinished exports or files.
    """
    # One transaction, so the job is sent only after the export is committed.
    refuse_above_quota(by)
    panel_project = project if isinstance(project, PanelProject) else None
    if isinstance(project, str) and project:
        panel_project = project_named(project, by) or PanelProject.objects.create(
            name=project, by=by
        )
    export = order(Export(by=by, project=panel_project, **choices))
    export.administrations.set(administrations)
    action = "ask for export with names" if export.identities else "ask for export"
    audit.record(
        "ask for key table" if export.is_key_table else action,
        by=command or by,
        request=request,
        subject=export,
        **export.audit_place(),
        after={
            "administrations": [
                administration.name for administration in administrations
            ],
            "format": export.format,
            "places": export.places,
            "role": export.role,
            "finished only": export.finished_only,
            "reason": export.reason,
            **_further_facts(export),
        },
    )
    return export


def _further_facts(export: Export) -> dict[str, object]:
    """Return what the audit log says of panels, key tables and archives."""
    if export.is_panel:
        return {"panel": export.project.name if export.project else "IDs of this file"}
    if export.is_key_table and export.project:
        return {"project": export.project.name}
    return {"encrypted for": export.encryption} if export.is_return else {}


@before_removal
def delete_exports_of(administration: Administration) -> None:
    """Delete exports of an administration that is removed, and of no other one."""
    through = Export.administrations.through.objects
    shared = through.exclude(administration=administration).values("export")
    exports = administration.exports.using(DEFAULT_DB_ALIAS)
    if exports.filter(job__isnull=False, job__ended_at=None).exists():
        raise ChangeBlocked(
            _("An export of it is being made. Try again when that has ended.")
        )
    alone = exports.exclude(pk__in=shared)
    names = list(chain(*alone.values_list(*Export.FILE_NAMES)))
    alone.delete()
    transaction.on_commit(partial(delete_files, *names))
