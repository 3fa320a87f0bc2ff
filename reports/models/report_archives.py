"""Archives: the reports of all schools of a district or the state in one file."""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext as _

from accounts.tables import Reference
from survey.models.requested_file import (
    COMPLETE_OR_NONE,
    AuditPlace,
    ChecksummedFile,
)


class ReportArchive(ChecksummedFile, district=Reference.MOVED):
    """A request for the reports of many schools as one ZIP file."""

    FOLDER, JOB = "school-reports", "school_reports.make"
    MADE, DELETED = "make school reports", "delete school reports"

    administration = models.ForeignKey(
        "survey.Administration", on_delete=models.CASCADE, related_name="+"
    )
    # None is the whole state.
    district = models.ForeignKey(
        "accounts.District", on_delete=models.PROTECT, null=True, related_name="+"
    )
    language = models.CharField(max_length=16)
    # Administrations whose scores the reports have: this one, and earlier waves.
    waves = models.JSONField(default=list)
    # Whether districts are compared with the state.
    shows_state = models.BooleanField(default=False)
    schools = models.IntegerField(null=True)
    reports = models.IntegerField(null=True)

    class Meta:
        ordering = ("-created_at", "-pk")
        constraints = (
            models.CheckConstraint(
                condition=COMPLETE_OR_NONE,
                name="an_archive_has_a_checksum_and_an_end",
            ),
        )
        indexes = (
            # The list of one person's archives, the newest first.
            models.Index(
                fields=("by", "administration", "-created_at"),
                name="archives_of_a_person",
            ),
            # Archives to delete: the few that still have a file.
            models.Index(
                fields=("expires_at",),
                condition=~Q(file_name=""),
                name="archives_with_a_file",
            ),
        )

    def __str__(self) -> str:
        return f"{self.place_name}, {self.administration.name} ({self.language})"

    @property
    def place_name(self) -> str:
        return str(self.district) if self.district else _("All districts")

    def audit_place(self) -> AuditPlace:
        return {"district": self.district}

    def audit_facts(self) -> dict[str, object]:
        return {"reports": self.reports, "sha256": self.sha256}
