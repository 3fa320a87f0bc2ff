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


class ProjectRefused(Exception):
    """The message tells the user why a project has no such file."""


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

    Raises QuotaExceeded if the user has too many unfinished exports or files, and
    ProjectRefused if the project has ended, or has other files.
    """
    # One transaction, so the job is sent only after the export is committed.
    refuse_above_quota(by)
    panel_project = project if isinstance(project, PanelProject) else None
    if isinstance(project, str) and project:
        panel_project = project_named(project, by) or PanelProject.objects.create(
            name=project, by=by
        )
    export = Export(by=by, project=panel_project, **choices)
    if panel_project is not None:
        # So each request sees the one before, and the end of the project sees all.
        projects = PanelProject.objects.select_for_update()
        export.project = projects.get(pk=panel_project.pk)
        if message := refusal_by_project(export.project, export, administrations):
            raise ProjectRefused(message)
    export = order(export)
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


def refusal_by_project(
    project: PanelProject, export: Export, administrations: Sequence[Administration]
) -> str:
    """Return why a project has no such file; "" if it may have it.

    A file could otherwise tell what an earlier one left out. All files have the same
    survey rounds, too: cells are left out for all rounds of a file together, so rows
    of two sets of rounds, with the same keys, would tell more.
    """
    if project.is_over:
        return _("The research project has ended.")
    earlier = project.exports.using(DEFAULT_DB_ALIAS).filter(is_panel=True).first()
    if earlier is None:
        return ""
    is_same = earlier.places == export.places
    if export.is_panel:
        is_same = is_same and earlier.finished_only == export.finished_only
    if not is_same:
        return _(
            "Earlier files of %(project)s are about other schools, or about other"
            " people in them. Choose the same ones, or a new project."
        ) % {"project": project}
    rounds = earlier.administrations.using(DEFAULT_DB_ALIAS).order_by("name")
    names = dict(rounds.values_list("pk", "name"))
    chosen = {administration.pk for administration in administrations}
    if chosen != names.keys():
        return _(
            "Files of %(project)s have the survey rounds of its first file, and no"
            " others: %(names)s. Choose exactly these, or a new project."
        ) % {"project": project, "names": ", ".join(names.values())}
    return ""


def _further_facts(export: Export) -> dict[str, object]:
    """Return what the audit log says of panels, key tables and archives."""
    if export.is_panel:
        return {"panel": export.project.name if export.project else "IDs of this file"}
    if export.is_key_table and export.project:
        return {"project": export.project.name}
    return {"encrypted for": export.encryption} if export.is_return else {}


def forget_passwords() -> None:
    """Delete the passwords of archives whose job has ended without a file."""
    ended = Export.objects.filter(job__ended_at__isnull=False)
    ended.exclude(sealed_password="").update(sealed_password="")


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
