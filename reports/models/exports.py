"""Exports: requests for a file with responses, and their files."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q, QuerySet
from django.utils.text import slugify
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts.models import District, School
from accounts.permissions import Capability, Permissions, Places
from accounts.tables import Erasing, Reference
from reports.models.panels import PanelProject
from survey.models import Role
from survey.models.requested_file import (
    COMPLETE_OR_NONE,
    AuditPlace,
    ChecksummedFile,
)

# The capabilities for an export, and for one with names. One role must have
# both: otherwise two roles together would join answers and names.
RESPONSES = (Capability.SEE_RESPONSES,)
IDENTITIES = (Capability.SEE_RESPONSES, Capability.SEE_IDENTITIES)


# Characters of the names of administrations in a file's name.
LONGEST_NAME = 80
# The format of a technical report, which is asked for on a page of its own and so is no
# choice of `Export.Format`.
TECHNICAL = "technical"
# Formats with pages of their own as well: the encrypted archive for a district, and
# the IDs that belong to the project keys of an approved project.
RETURN, KEY_TABLE = "return", "keys"


class ValueType(models.TextChoices):
    """What the answers in a column are."""

    CHOICE = "choice", gettext_lazy("choices")
    NUMBER = "number", gettext_lazy("numbers and calculations")
    DATE = "date", gettext_lazy("dates and times")
    TEXT = "text", gettext_lazy("text")


class Export(
    ChecksummedFile,
    erasing=Erasing.WITH_FILES,
    district=Reference.MOVED,
    school=Reference.MOVED,
):
    """A request for a file with responses."""

    FILE_NAMES = (
        "file_name",
        "codebook_name",
        "codebook_table_name",
        "documents_name",
    )
    FOLDER, JOB = "exports", "export.make"
    MADE, DELETED = "make export", "delete export"

    class Format(models.TextChoices):
        WIDE = "wide", gettext_lazy("CSV, one row for each respondent")
        LONG = "long", gettext_lazy("CSV, one row for each answer")
        XLSX = "xlsx", gettext_lazy("Excel, one row for each respondent")
        SAV = "sav", gettext_lazy("SPSS (.sav), one row for each respondent")
        ZSAV = (
            "zsav",
            gettext_lazy("SPSS, compressed (.zsav), one row for each respondent"),
        )
        DTA = "dta", gettext_lazy("Stata (.dta), one row for each respondent")
        PARQUET = "parquet", gettext_lazy("Parquet, one row for each respondent")

    by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="exports"
    )

    format = models.CharField(max_length=16, choices=Format)
    administrations = models.ManyToManyField(
        "survey.Administration", related_name="exports"
    )
    district = models.ForeignKey(
        "accounts.District", on_delete=models.PROTECT, null=True, related_name="+"
    )
    school = models.ForeignKey(
        "accounts.School", on_delete=models.PROTECT, null=True, related_name="+"
    )
    role = models.CharField(max_length=16, choices=Role, blank=True)
    finished_only = models.BooleanField(default=False)
    # Of the labels in the file; the codebook has it first.
    language = models.CharField(max_length=16, blank=True)
    labels = models.BooleanField(default=False)
    bom = models.BooleanField(default=False)
    # Of ValueType: their missing answers are blank, instead of a code.
    blank_missing = models.JSONField(default=list, db_default=[])
    identities = models.BooleanField(default=False)
    reason = models.CharField(max_length=500, blank=True)
    # Whether people have the same ID in all administrations of the file; in all files
    # of the project, if there is one.
    is_panel = models.BooleanField(default=False, db_default=False)
    project = models.ForeignKey(
        PanelProject, on_delete=models.PROTECT, null=True, related_name="exports"
    )
    # Of an archive for a district: the formats beside CSV, and what encrypts it: the
    # district's public key, or a password, encrypted until the archive is made.
    further_formats = models.JSONField(default=list, db_default=[])
    recipient = models.CharField(max_length=2000, blank=True, default="", db_default="")
    sealed_password = models.CharField(
        max_length=500, blank=True, default="", db_default=""
    )
    # Scope of the responses: {"state": false, "districts": [], "schools": []}.
    places = models.JSONField(default=dict)

    # Names in the private files, like that of the file itself.
    codebook_name = models.CharField(max_length=100, blank=True)
    codebook_table_name = models.CharField(
        max_length=100, blank=True, default="", db_default=""
    )
    # A ZIP file: DDI, a data package, and syntax that reads the file.
    documents_name = models.CharField(
        max_length=100, blank=True, default="", db_default=""
    )
    rows = models.BigIntegerField(null=True)
    respondents = models.BigIntegerField(null=True)
    # IDs in a panel, in which a person has a row for each administration.
    people = models.BigIntegerField(null=True)
    # People with rows in several administrations of a panel.
    joined_people = models.BigIntegerField(null=True)
    responses = models.BigIntegerField(null=True)

    class Meta:
        ordering = ("-created_at", "-pk")
        constraints = (
            models.CheckConstraint(
                condition=Q(identities=False) | ~Q(reason=""),
                name="names_are_exported_for_a_reason",
            ),
            models.CheckConstraint(
                condition=Q(is_panel=False) | Q(identities=False),
                name="a_panel_has_no_names",
            ),
            models.CheckConstraint(
                condition=Q(is_panel=True) | Q(project=None) | Q(format=KEY_TABLE),
                name="only_a_panel_or_a_key_table_has_a_project",
            ),
            models.CheckConstraint(
                condition=~Q(format=KEY_TABLE)
                | Q(project__isnull=False, identities=True),
                name="a_key_table_is_of_a_project_and_tells_ids",
            ),
            models.CheckConstraint(
                condition=~Q(format=RETURN)
                | Q(district__isnull=False, identities=True),
                name="data_are_returned_to_one_district_with_names",
            ),
            models.CheckConstraint(
                condition=COMPLETE_OR_NONE,
                name="an_exports_file_has_a_checksum_and_an_end",
            ),
        )
        indexes = (
            # The list of one person's exports, the newest first.
            models.Index(fields=("by", "-created_at"), name="exports_of_a_person"),
            # Exports to delete: the few that still have a file.
            models.Index(
                fields=("expires_at",),
                condition=~Q(file_name=""),
                name="exports_with_a_file",
            ),
        )

    def __str__(self) -> str:
        return f"export {self.pk}"

    @property
    def needs(self) -> tuple[Capability, ...]:
        needed = IDENTITIES if self.identities else RESPONSES
        if self.project is not None and self.project.is_approved:
            return (*needed, Capability.MANAGE_PROJECTS)
        return needed

    def is_allowed(self, permissions: Permissions) -> bool:
        """Return whether these permissions, as of now, cover what is in it.

        1 statement for the project, unless it was selected; see also `cover`.
        """
        if self.project is not None and self.project.is_over:
            return False
        return permissions.cover(self.scope, *self.needs)

    @property
    def scope(self) -> Places:
        return Places(
            state=bool(self.places.get("state")),
            districts=frozenset(self.places.get("districts", ())),
            schools=frozenset(self.places.get("schools", ())),
        )

    def audit_place(self) -> AuditPlace:
        """Return the place for the audit log, if the scope is a single place.

        Administrators of that place may then read the entry.
        """
        places = self.scope
        if len(places.schools) == 1 and not places.districts:
            return {"school": School.objects.filter(pk__in=places.schools).first()}
        if len(places.districts) == 1 and not places.schools:
            return {
                "district": District.objects.filter(pk__in=places.districts).first()
            }
        return {}

    def audit_facts(self) -> dict[str, object]:
        facts: dict[str, object] = {
            "identities": self.identities,
            "sha256": self.sha256,
        }
        if self.is_return:
            facts |= {"purpose": self.reason, "encrypted for": self.encryption}
        return facts

    @property
    def format_label(self) -> str:
        if self.is_panel:
            return str(PANEL_FORMATS[self.format])
        if self.is_technical:
            return _("Technical report, PDF and CSV tables in a ZIP file")
        if self.is_return:
            return _("Data for a district, encrypted")
        if self.is_key_table:
            return _("Key table of a research project, CSV")
        return self.get_format_display()

    @property
    def format_names(self) -> list[str]:
        """Return the endings of the data in an archive, such as ".xlsx"."""
        return [".csv", *(f".{name}" for name in self.further_formats)]

    @property
    def blank_types(self) -> list[str]:
        return [
            str(value_type.label)
            for value_type in ValueType
            if value_type in self.blank_missing
        ]

    @property
    def people_in_words(self) -> str:
        """Describe the people in the file, such as "Students who finished"."""
        if self.is_key_table:
            return _("Everyone on the rosters, without people who opted out")
        words = {
            ("", True): _("People who finished"),
            ("", False): _("People who started"),
            (Role.STUDENT, True): _("Students who finished"),
            (Role.STUDENT, False): _("Students who started"),
            (Role.TEACHER, True): _("Teachers who finished"),
            (Role.TEACHER, False): _("Teachers who started"),
            (Role.PARENT, True): _("Parents who finished"),
            (Role.PARENT, False): _("Parents who started"),
        }
        return words[self.role, self.finished_only]

    @property
    def is_technical(self) -> bool:
        return self.format == TECHNICAL

    @property
    def is_return(self) -> bool:
        return self.format == RETURN

    @property
    def is_key_table(self) -> bool:
        return self.format == KEY_TABLE

    @property
    def encryption(self) -> str:
        """Return what opens an archive for a district: its key, or a password."""
        return self.recipient or "password"

    @property
    def suffix(self) -> str:
        if self.is_return:
            return ".zip.age" if self.recipient else ".zip"
        if self.is_technical:
            return ".zip"
        if self.format in (self.Format.WIDE, self.Format.LONG, KEY_TABLE):
            return ".csv"
        return f".{self.format}"

    @property
    def is_typed(self) -> bool:
        """Return whether columns have types and labels, so that cells have codes."""
        return self.format in TYPED_FORMATS

    @property
    def stem(self) -> str:
        """Return the name, without its suffix, under which browsers save the file."""
        names = "-".join(
            sorted(administration.name for administration in self.administrations.all())
        )
        short = slugify(names)[:LONGEST_NAME].strip("-")
        kind = "panel" if self.is_panel else self.format
        return f"{short}-{kind}-{self.pk}"


TYPED_FORMATS = frozenset(
    (
        *(Export.Format.SAV, Export.Format.ZSAV),
        *(Export.Format.DTA, Export.Format.PARQUET),
    )
)
PANEL_FORMATS = {
    Export.Format.WIDE.value: gettext_lazy(
        "CSV, one row for each person in each season"
    ),
    Export.Format.XLSX.value: gettext_lazy(
        "Excel, one row for each person in each season"
    ),
    Export.Format.SAV.value: gettext_lazy(
        "SPSS (.sav), one row for each person in each season"
    ),
    Export.Format.ZSAV.value: gettext_lazy(
        "SPSS, compressed (.zsav), one row for each person in each season"
    ),
    Export.Format.DTA.value: gettext_lazy(
        "Stata (.dta), one row for each person in each season"
    ),
    Export.Format.PARQUET.value: gettext_lazy(
        "Parquet, one row for each person in each season"
    ),
}


def exports_visible_to(permissions: Permissions, user_id: int) -> QuerySet[Export]:
    """Return the user's own exports, and all of them to state administrators."""
    if permissions.places(Capability.SEE_AUDIT).state:
        return Export.objects.all()
    return Export.objects.filter(by_id=user_id)
