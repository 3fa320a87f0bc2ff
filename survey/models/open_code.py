"""Open codes: one code that a school hands out to everybody."""

from __future__ import annotations

import unicodedata
from datetime import datetime

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import F, Q
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts.permissions import Capability, Permissions
from accounts.tables import Erasing, Reference, Table
from survey.models.administration import Administration, Respondent
from survey.models.job import Job
from survey.models.requested_file import FileWithCodes

# Each seat of a limited code is a row.
MAX_SEATS = 10_000
MAX_PER_HOUR = 100_000
# They turn the text behind them around, so that a label looks like another one.
_TURNS_TEXT = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def validate_label(label: str) -> None:
    if any(
        unicodedata.category(sign) in ("Cc", "Cs") or sign in _TURNS_TEXT
        for sign in label
    ):
        raise ValidationError("The label has invisible characters. Type it again.")


class OpenCodeQuerySet(models.QuerySet["OpenCode"]):
    def visible_to(self, permissions: Permissions) -> OpenCodeQuerySet:
        """Return the codes of schools where the user hands out access codes."""
        return self.filter(school__in=permissions.schools(Capability.MANAGE_ROSTERS))


class OpenCodeOptions(Table):
    """What can be chosen for a code, or for the codes of all schools."""

    # For the staff, such as "Spring newsletter"; respondents do not see it.
    label = models.CharField(max_length=100, blank=True, validators=[validate_label])
    # In which the start page opens; empty: the browser's.
    language = models.CharField(max_length=16, blank=True)
    # Within the administration's window; null: as long as that.
    opens_at = models.DateTimeField(null=True, blank=True)
    closes_at = models.DateTimeField(null=True, blank=True)
    # Most starts, each of which takes an `OpenCodeSeat`; null: unlimited.
    limit = models.PositiveIntegerField(
        null=True,
        blank=True,
        validators=[MinValueValidator(1), MaxValueValidator(MAX_SEATS)],
    )
    # Most starts in one hour of the clock; null: by the size of the school.
    hourly_limit = models.PositiveIntegerField(
        null=True,
        blank=True,
        validators=[MinValueValidator(1), MaxValueValidator(MAX_PER_HOUR)],
    )

    class Meta:
        abstract = True


class OpenCode(OpenCodeOptions, taking="SELECT", school=Reference.MOVED):
    """A code with which anyone can begin; see `survey/fieldwork/open_codes/README.md`.

    Starting with it writes nothing here: the starts are its respondents. `issue`
    counts the codes that were handed out; only the newest one's digest is stored.
    """

    administration = models.ForeignKey(
        Administration, on_delete=models.PROTECT, related_name="open_codes"
    )
    school = models.ForeignKey(
        "accounts.School", on_delete=models.PROTECT, related_name="open_codes"
    )
    issue = models.PositiveSmallIntegerField(default=1)
    # Serves the start: one read by code.
    code_digest = models.BinaryField(max_length=32, unique=True)
    code_key_version = models.PositiveSmallIntegerField()
    created_at = models.DateTimeField(default=timezone.now)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.PROTECT,
        null=True,
        blank=True,
        related_name="+",
    )
    revoked_at = models.DateTimeField(null=True, blank=True)
    # The code itself, only while it is on the school's public page: the servers
    # of that page cannot derive it. Empty: not published.
    published_code = models.CharField(
        max_length=12, blank=True, default="", db_default="", editable=False
    )
    # Starts without an answer that were deleted after the closing.
    empty_starts_deleted = models.PositiveIntegerField(default=0, db_default=0)

    objects = OpenCodeQuerySet.as_manager()

    class Meta:
        ordering = ("-created_at", "-pk")
        constraints = (
            models.CheckConstraint(
                condition=Q(opens_at=None)
                | Q(closes_at=None)
                | Q(closes_at__gt=F("opens_at")),
                name="an_open_code_ends_after_it_begins",
            ),
            models.CheckConstraint(
                condition=Q(limit=None) | Q(limit__gte=1),
                name="a_limited_code_admits_somebody",
            ),
            models.CheckConstraint(
                condition=Q(hourly_limit=None) | Q(hourly_limit__gte=1),
                name="a_code_admits_somebody_each_hour",
            ),
            models.CheckConstraint(
                condition=Q(published_code="") | Q(revoked_at=None),
                name="a_revoked_code_is_not_published",
            ),
        )

    def __str__(self) -> str:
        return f"open code {self.pk}"

    @property
    def published(self) -> bool:
        """Tell whether the school's public page shows this code."""
        return bool(self.published_code)

    @property
    def window(self) -> tuple[datetime, datetime]:
        """When people can begin; `administration` should be selected."""
        opens_at, closes_at = (
            self.administration.opens_at,
            self.administration.closes_at,
        )
        return (
            max(opens_at, self.opens_at or opens_at),
            min(closes_at, self.closes_at or closes_at),
        )


class OpenCodeSeat(
    Table,
    reason="a free seat is looked for without a respondent",
    taking="SELECT, UPDATE (respondent_id, claimed_at)",
    erasing=Erasing.RELEASED,
    respondent=Reference.STAYS,
):
    """One of the starts that a limited code admits; created with the code."""

    open_code = models.ForeignKey(
        OpenCode,
        on_delete=models.CASCADE,
        related_name="seats",
        db_constraint=False,
        db_index=False,
    )
    respondent = models.OneToOneField(
        Respondent,
        on_delete=models.SET_NULL,
        null=True,
        related_name="seat",
        db_constraint=False,
    )
    claimed_at = models.DateTimeField(null=True)

    class Meta:
        indexes = (
            # A start looks for a free seat of its code.
            models.Index(
                fields=("open_code",),
                condition=Q(respondent=None),
                name="free_seats_of_a_code",
            ),
        )

    def __str__(self) -> str:
        return f"seat {self.pk}"


class OpenDecline(Table, taking="INSERT"):
    """A decision not to take part. A row of its own, so that none waits."""

    # Of the form that was sent: sending it twice counts once.
    form_digest = models.BinaryField(max_length=32, primary_key=True)
    open_code = models.ForeignKey(
        OpenCode, on_delete=models.CASCADE, related_name="declines", db_constraint=False
    )
    at = models.DateTimeField()

    def __str__(self) -> str:
        return f"declined at {self.at}"


class OpenCodeBatch(OpenCodeOptions):
    """An order of codes for all schools of a user that have none."""

    administration = models.ForeignKey(
        Administration, on_delete=models.PROTECT, related_name="+"
    )
    by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+"
    )
    created_at = models.DateTimeField(default=timezone.now)
    # Codes created so far, by all attempts of the job.
    codes = models.PositiveIntegerField(default=0)
    # The latest job that creates them.
    job = models.ForeignKey(Job, on_delete=models.SET_NULL, null=True, related_name="+")

    class Meta:
        ordering = ("-created_at", "-pk")

    def __str__(self) -> str:
        return f"open codes of order {self.pk}"


class OpenCodeFile(FileWithCodes, district=Reference.MOVED, school=Reference.MOVED):
    """A file with open codes to print or to send: of one code, or of many schools."""

    FOLDER, JOB = "open-codes", "open_codes.file"

    class Format(models.TextChoices):
        POSTER = "poster", gettext_lazy("Posters to put up (PDF)")
        LETTER = "letter", gettext_lazy("Letters to take home (PDF)")
        CSV = "csv", gettext_lazy("List for newsletters (CSV)")

    administration = models.ForeignKey(
        Administration, on_delete=models.PROTECT, related_name="+"
    )
    open_code = models.ForeignKey(
        OpenCode, on_delete=models.PROTECT, null=True, related_name="+"
    )
    format = models.CharField(max_length=8, choices=Format)
    codes = models.PositiveIntegerField(null=True)

    class Meta:
        ordering = ("-created_at", "-pk")
        constraints = (
            models.CheckConstraint(
                condition=Q(open_code=None) | Q(school__isnull=False),
                name="a_file_of_one_code_is_of_its_school",
            ),
        )
        indexes = (
            # The daily deletion of old files.
            models.Index(
                fields=("created_at",),
                condition=Q(deleted_at=None),
                name="open_code_files_with_a_file",
            ),
        )

    def __str__(self) -> str:
        return f"{self.get_format_display()}: {self.scope}"

    @property
    def scope(self) -> str:
        """Describe which codes the file holds."""
        place = str(self.school or self.district or _("all schools"))
        if self.open_code and self.open_code.label:
            return f"{place}, {self.open_code.label}"
        return place

    def audit_facts(self) -> dict[str, object]:
        return {
            "administration": self.administration.name,
            "format": self.format,
            "codes": self.codes,
        }
