"""Open codes: one code that a school hands out to everybody."""

from __future__ import annotations

from django.conf import settings
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import F, Q
from django.utils import timezone

from accounts.permissions import Capability, Permissions
from survey.models.administration import Administration, Respondent

# Each seat of a limited code is a row.
MAX_SEATS = 10_000


class OpenCodeQuerySet(models.QuerySet["OpenCode"]):
    def visible_to(self, permissions: Permissions) -> OpenCodeQuerySet:
        """Return the codes of schools where the user hands out access codes."""
        return self.filter(school__in=permissions.schools(Capability.MANAGE_ROSTERS))


class OpenCode(models.Model):
    """A code with which anyone can begin; see `survey/open_codes/README.md`.

    Starting with it writes nothing here: the starts are its respondents. `issue`
    counts the codes that were handed out; only the newest one's digest is stored.
    """

    administration = models.ForeignKey(
        Administration, on_delete=models.PROTECT, related_name="open_codes"
    )
    school = models.ForeignKey(
        "accounts.School", on_delete=models.PROTECT, related_name="open_codes"
    )
    # For the staff, such as "Spring newsletter"; respondents do not see it.
    label = models.CharField(max_length=100, blank=True)
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


class OpenCodeSeat(models.Model):
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


class OpenDecline(models.Model):
    """A decision not to take part. A row of its own, so that none waits."""

    # Of the form that was sent: sending it twice counts once.
    form_digest = models.BinaryField(max_length=32, primary_key=True)
    open_code = models.ForeignKey(
        OpenCode, on_delete=models.CASCADE, related_name="declines", db_constraint=False
    )
    at = models.DateTimeField()

    def __str__(self) -> str:
        return f"declined at {self.at}"
