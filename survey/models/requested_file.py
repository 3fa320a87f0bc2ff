"""The bases of models for files that a user requests and a job makes."""

from __future__ import annotations

import hashlib
from datetime import datetime, timedelta
from pathlib import Path
from typing import ClassVar, TypedDict

from django.conf import settings
from django.db import models
from django.db.models import Q, QuerySet
from django.utils import timezone
from django.utils.translation import pgettext

from accounts.models import District, School
from accounts.permissions import Places
from accounts.tables import Table
from survey.models.job import Job

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
    # The kind of job that makes the file.
    JOB: ClassVar[str]
    # Actions in the audit log; without them, only requests and downloads are logged.
    MADE: ClassVar[str] = ""
    DELETED: ClassVar[str] = ""

    by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+"
    )
    created_at = models.DateTimeField(default=timezone.now)
    job = models.OneToOneField(
        "survey.Job", on_delete=models.SET_NULL, null=True, related_name="+"
    )
    made_at = models.DateTimeField(null=True)
    deleted_at = models.DateTimeField(null=True)
    # Name in the private files; empty before the file is made and after it is
    # deleted.
    file_name = models.CharField(max_length=100, blank=True)

    class Meta:
        abstract = True

    def audit_place(self) -> AuditPlace:
        """Return the place for the audit log, if it is a single one."""
        return {}

    def audit_facts(self) -> dict[str, object]:
        """Return what the audit log says of a download."""
        return {}

    def facts_of(self, path: Path, made_at: datetime) -> dict[str, object]:
        """Return what is stored of a file that was made."""
        return {}

    @classmethod
    def expired(cls) -> QuerySet[RequestedFile]:
        """Return the rows whose files have to be deleted; each kind has its rule."""
        raise NotImplementedError

    @property
    def is_ready(self) -> bool:
        return self.made_at is not None and self.deleted_at is None

    @property
    def status(self) -> str:
        """Return "ready", "deleted" or the state of the job."""
        if self.is_ready:
            return "ready"
        if self.deleted_at is not None:
            return "deleted"
        if self.job is None or self.job.state == Job.State.FAILED:
            return "not finished"
        return str(self.job.state)

    @property
    def status_label(self) -> str:
        if self.is_ready:
            return pgettext("export", "ready")
        if self.deleted_at is not None:
            return pgettext("export", "deleted")
        if self.job:
            return str(self.job.get_state_display()).lower()
        return pgettext("export", "not finished")


class ChecksummedFile(RequestedFile):
    """A file that counts towards its user's quota, with a checksum and an end."""

    expires_at = models.DateTimeField(null=True)
    size = models.BigIntegerField(null=True)
    sha256 = models.CharField(max_length=64, blank=True)

    class Meta:
        abstract = True

    def facts_of(self, path: Path, made_at: datetime) -> dict[str, object]:
        with path.open("rb") as file:
            sha256 = hashlib.file_digest(file, "sha256").hexdigest()
        return {
            "expires_at": made_at + KEPT_FOR,
            "size": path.stat().st_size,
            "sha256": sha256,
        }

    @classmethod
    def expired(cls) -> QuerySet[RequestedFile]:
        with_file = cls._default_manager.exclude(file_name="")
        return with_file.filter(expires_at__lte=timezone.now())


class FileWithCodes(RequestedFile):
    """A file with access codes, for users who may see all codes in it.

    It is deleted a week after it was ordered; this row stays.
    """

    # Limits of what is in the file; without both, the whole state.
    district = models.ForeignKey(
        "accounts.District", on_delete=models.PROTECT, null=True, related_name="+"
    )
    school = models.ForeignKey(
        "accounts.School", on_delete=models.PROTECT, null=True, related_name="+"
    )
    # A second language, of those in which it is offered.
    language = models.CharField(max_length=16, blank=True)
    # Begin the CSV file with a byte order mark, for Excel.
    marked = models.BooleanField(default=False)
    file_name = models.CharField(max_length=100, blank=True, db_column="file")
    # Set when codes in the file were replaced or revoked later.
    outdated_at = models.DateTimeField(null=True)
    # The latest job that makes the file.
    job = models.ForeignKey(Job, on_delete=models.SET_NULL, null=True, related_name="+")

    class Meta:
        abstract = True

    def audit_place(self) -> AuditPlace:
        return {"school": self.school, "district": self.district}

    @classmethod
    def expired(cls) -> QuerySet[RequestedFile]:
        # Also what was never made: it cannot be made any more.
        ordered = cls._default_manager.filter(deleted_at=None)
        return ordered.filter(created_at__lt=timezone.now() - KEPT_FOR)

    @staticmethod
    def within(places: Places) -> Q:
        """Filter files of which everything is in these places."""
        if places.state:
            return Q()
        # A file of several schools holds codes that a coordinator may not see.
        return (
            Q(school__in=places.schools)
            | Q(school__district__in=places.districts)
            | Q(school=None, district__in=places.districts)
        )

    @property
    def encoding(self) -> str:
        """Return the encoding of a CSV file."""
        return "utf-8-sig" if self.marked else "utf-8"


# A file always has a checksum and an end.
COMPLETE_OR_NONE = Q(file_name="") | Q(
    made_at__isnull=False, expires_at__isnull=False
) & ~Q(sha256="") & Q(deleted_at=None)
