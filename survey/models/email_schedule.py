"""E-mail invitations and reminders: schedules, texts, and who was sent what."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy, ngettext

from accounts.tables import Erasing, Reference, Table
from survey.models.administration import Administration, Respondent

# Of one schedule. Mail servers that accept more are rare.
MAX_RATE = 60_000


class EmailSchedule(Table):
    """The e-mails of one administration; nothing is sent before it is confirmed.

    Only the functions of `survey.fieldwork.emails.schedules` change it.
    """

    administration = models.OneToOneField(
        Administration, on_delete=models.CASCADE, related_name="email_schedule"
    )
    # E-mails in a minute of the clock.
    rate_per_minute = models.PositiveIntegerField(default=600)
    confirmed_at = models.DateTimeField(null=True)
    confirmed_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, related_name="+"
    )
    paused_at = models.DateTimeField(null=True)
    # Why the system itself paused it; empty if a person did.
    pause_reason = models.CharField(max_length=200, blank=True)
    # What kept the latest attempt from sending; empty if nothing did.
    trouble = models.CharField(max_length=200, blank=True)

    class Meta:
        constraints = (
            models.CheckConstraint(
                condition=Q(rate_per_minute__gte=1, rate_per_minute__lte=MAX_RATE),
                name="emails_are_sent_at_a_possible_rate",
            ),
        )

    def __str__(self) -> str:
        return f"e-mails of {self.administration}"

    @property
    def is_active(self) -> bool:
        return self.confirmed_at is not None and self.paused_at is None


class EmailStep(Table):
    """One e-mail of a schedule: the invitation, a reminder or the thanks."""

    class Kind(models.TextChoices):
        # At the opening, and later to people who are added to the roster.
        INVITATION = "invitation", gettext_lazy("Invitation")
        # `days` after a person's own invitation, unless the person has finished.
        REMINDER = "reminder", gettext_lazy("Reminder")
        # After the closing, to all who were invited: getting it tells nothing.
        THANKS = "thanks", gettext_lazy("Thanks")

    schedule = models.ForeignKey(
        EmailSchedule, on_delete=models.CASCADE, related_name="steps"
    )
    kind = models.CharField(max_length=16, choices=Kind)
    # Of reminders; 0 for the others.
    days = models.PositiveSmallIntegerField(default=0)
    # Sending goes through the people by primary key: the last one it came to, and
    # when it begins again, for new people and for those to be tried again.
    position = models.BigIntegerField(default=0)
    rests_until = models.DateTimeField(null=True)

    class Meta:
        ordering = ("kind", "days")
        constraints = (
            models.UniqueConstraint(
                fields=("schedule", "kind", "days"),
                name="one_email_of_a_kind_after_so_many_days",
            ),
            models.CheckConstraint(
                condition=Q(kind="reminder", days__gte=1)
                | Q(kind__in=("invitation", "thanks"), days=0),
                name="only_reminders_wait_for_days",
            ),
        )

    def __str__(self) -> str:
        if self.kind == self.Kind.REMINDER:
            return f"Reminder after {self.days} day{'' if self.days == 1 else 's'}"
        return self.Kind(self.kind).name.capitalize()

    @property
    def label(self) -> str:
        """The name of the e-mail on pages; `str()` is that of the audit log."""
        if self.kind == self.Kind.REMINDER:
            words = ngettext(
                "Reminder after %(days)s day", "Reminder after %(days)s days", self.days
            )
            return words % {"days": self.days}
        return self.get_kind_display()


class EmailTemplate(Table):
    """The text of a step in one language, checked by `emails.templates`."""

    step = models.ForeignKey(
        EmailStep, on_delete=models.CASCADE, related_name="templates"
    )
    language = models.CharField(max_length=16)
    subject = models.CharField(max_length=150)
    body = models.TextField(max_length=10_000)

    class Meta:
        ordering = ("language",)
        constraints = (
            models.UniqueConstraint(
                fields=("step", "language"), name="one_text_per_email_and_language"
            ),
            models.CheckConstraint(
                condition=~Q(subject__contains="\n") & ~Q(subject__contains="\r"),
                name="a_subject_is_one_line",
            ),
        )

    def __str__(self) -> str:
        return f"{self.step} ({self.language})"


class EmailDelivery(
    Table,
    reason="unique by step and person; written by the worker alone",
    erasing=Erasing.DELETED,
    respondent=Reference.STAYS,
):
    """The ledger: one row for each person and step, made before it is sent."""

    class State(models.TextChoices):
        # Being sent. After a worker died: maybe sent, for at most one e-mail.
        CLAIMED = "claimed"
        SENT = "sent"
        # The address does not exist.
        BOUNCED = "bounced"
        # With `retry_at` it is tried again.
        FAILED = "failed"
        # Not tried again, because the person has finished, was withdrawn or has
        # opted out.
        CANCELLED = "cancelled"

    class Reason(models.TextChoices):
        BUSY = "busy", "refused for now"
        REFUSED = "refused"
        # Not sent again, as it may have arrived.
        UNCONFIRMED = "unconfirmed", "the mail server did not confirm it"
        NO_ADDRESS = "no address", "not an e-mail address"
        ERROR = "error", "could not be written"
        ABANDONED = "abandoned", "the worker stopped while sending it"

    step = models.ForeignKey(
        EmailStep, on_delete=models.CASCADE, related_name="deliveries", db_index=False
    )
    # Without a constraint, which would lock the respondent's row at each e-mail.
    respondent = models.ForeignKey(
        Respondent,
        on_delete=models.CASCADE,
        related_name="+",
        db_index=False,
        db_constraint=False,
    )
    state = models.CharField(max_length=16, choices=State)
    reason = models.CharField(max_length=16, choices=Reason, blank=True)
    # Where it went: `survey.fieldwork.emails.suppression.digest_of` the address.
    address_digest = models.CharField(max_length=64)
    # By which the provider's webhooks name the e-mail; empty for SMTP. As a varchar,
    # PostgreSQL would take a row for much wider and look people up by another index.
    provider_id = models.TextField(max_length=200, blank=True, db_default="")
    attempts = models.PositiveSmallIntegerField(default=1)
    # Sent again after a worker died while sending it: it may have arrived twice.
    repeated = models.BooleanField(default=False)
    claimed_at = models.DateTimeField()
    recorded_at = models.DateTimeField(null=True)
    retry_at = models.DateTimeField(null=True)
    # The attempt of the job that claimed it.
    job_id = models.BigIntegerField()
    job_attempt = models.PositiveSmallIntegerField()

    class Meta:
        constraints = (
            models.UniqueConstraint(
                fields=("step", "respondent"), name="one_email_per_person_and_step"
            ),
            models.CheckConstraint(
                condition=Q(retry_at=None) | Q(state="failed"),
                name="only_failed_emails_are_tried_again",
            ),
        )
        indexes = (
            # Counts the e-mails of this minute, and finds the latest.
            models.Index(fields=("step", "claimed_at"), name="emails_by_time"),
            # Finds what a dead worker left, and what is to be tried again.
            models.Index(
                fields=("step",),
                condition=Q(state="claimed") | Q(retry_at__isnull=False),
                name="emails_in_hand",
            ),
            # Finds the e-mail that a webhook is about.
            models.Index(
                fields=("provider_id",),
                condition=~Q(provider_id=""),
                name="emails_by_provider_id",
            ),
        )

    def __str__(self) -> str:
        return f"{self.step} to respondent {self.respondent_id}: {self.state}"


class SuppressedAddress(Table, erasing=Erasing.STAYS):
    """An address that gets no e-mails; see `survey.fieldwork.emails.suppression`.

    Belongs to no person and no administration, so that it outlives rosters.
    """

    class Reason(models.TextChoices):
        OPTED_OUT = "opted out"
        BOUNCED = "bounced"
        COMPLAINED = "complained"

    digest = models.CharField(max_length=64, primary_key=True)
    reason = models.CharField(max_length=16, choices=Reason)
    at = models.DateTimeField()

    class Meta:
        verbose_name_plural = "suppressed addresses"

    def __str__(self) -> str:
        return f"address {self.digest[:8]}: {self.reason}"
