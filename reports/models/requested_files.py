"""The base of models for files that a user requests and a job makes."""

from __future__ import annotations

from datetime import timedelta
from typing import ClassVar, TypedDict

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import pgettext

from accounts.models import District, School
from accounts.tables import Table
from survey.models import Job

KEPT_FOR = timedelta(days=7)


class AuditPlace(TypedDict, total=False):
    """Arguments for `accounts.audit.record`."""

    school: School | None
    district: District | None


class RequestedFile(Table):
    """A request for a file, and the record of it once the file is deleted."""

    # Fields with names of files; the first is the file itself.
    FILE_NAMES: ClassVar[tuple[str, ...]] = ("file_name",)
    # Folder of the private files.
    FOLDER: ClassVar[str]
    # Actions in the audit log.
    MADE: ClassVar[str]
    DELETED: ClassVar[str]

    by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+"
    )
    created_at = models.DateTimeField(default=timezone.now)
    job = models.OneToOneField(
        "survey.Job", on_delete=models.SET_NULL, null=True, related_name="+"
    )
    made_at = models.DateTimeField(null=True)
    expires_at = models.DateTimeField(null=True)
    deleted_at = models.DateTimeField(null=True)
    # Name in the private files; empty before the file is made and after it is
    # deleted.
    file_name = models.CharField(max_length=100, blank=True)
    size = models.BigIntegerField(null=True)
    sha256 = models.CharField(max_length=64, blank=True)

    class Meta:
        abstract = True

    def audit_place(self) -> AuditPlace:
        """Return the place for the audit log, if it is a single one."""
        return {}

    @property
    def status(self) -> str:
        """Return "ready", "deleted" or the state of the job."""
        if self.file_name:
            return "ready"
        if self.deleted_at is not None:
            return "deleted"
        if self.job is None or self.job.state == Job.State.FAILED:
            return "not finished"
        return str(self.job.state)

    @property
    def status_label(self) -> str:
        if self.file_name:
            return pgettext("export", "ready")
        if self.deleted_at is not None:
            return pgettext("export", "deleted")
        if self.job:
            return str(self.job.get_state_display()).lower()
        return pgettext("export", "not finished")


# A file always has a checksum and an end.
COMPLETE_OR_NONE = Q(file_name="") | Q(
    made_at__isnull=False, expires_at__isnull=False
) & ~Q(sha256="") & Q(deleted_at=None)
